-- Owns: the body of a chat-completions request, from canonical messages.
-- Pure but for efr.json, which arrives as an argument; knows no connection. Runs in efrd, on the
-- loop thread.
--
-- Policy: members stand in a fixed order and a message is rendered the same way each time, so that
-- a request starts with the bytes of the one before it. An answer that this provider gave goes back
-- as it was kept in `provider_raw`; one of another provider is rendered from its blocks.

local M = {}

-- An object with its members in the given order; `fields` is a list of {name, JSON text or nil}.
local function object(json, fields)
  local out = {}
  for _, field in ipairs(fields) do
    if field[2] then out[#out + 1] = json.encode(field[1]) .. ":" .. field[2] end
  end
  return "{" .. table.concat(out, ",") .. "}"
end

local function encode(json, value)
  local text, err = json.encode(value, { sort = true })
  if not text then error("encode a request: " .. tostring(err), 0) end
  return text
end

local function join_text(content)
  local parts = {}
  for _, block in ipairs(content) do
    if block.kind == "text" and block.text ~= "" then parts[#parts + 1] = block.text end
  end
  return table.concat(parts, "\n\n")
end

---The JSON text of an assistant message, as it is kept in `provider_raw` and sent back.
---@param json table
---@param text string
---@param calls {call_id: string, name: string, raw: string}[]  raw = arguments as the server wrote
---@return string
function M.assistant_json(json, text, calls)
  local rendered = {}
  for i, call in ipairs(calls) do
    rendered[i] = object(json, {
      { "id", encode(json, call.call_id) },
      { "type", '"function"' },
      { "function", object(json, {
        { "name", encode(json, call.name) },
        { "arguments", encode(json, call.raw) },
      }) },
    })
  end
  return object(json, {
    { "role", '"assistant"' },
    { "content", encode(json, text) },
    { "tool_calls", #rendered > 0 and "[" .. table.concat(rendered, ",") .. "]" or nil },
  })
end

local function render_assistant(json, message)
  if message.provider_raw then return { message.provider_raw } end
  local calls = {}
  for _, block in ipairs(message.content) do
    if block.kind == "tool_call" then
      calls[#calls + 1] = {
        call_id = block.call_id,
        name = block.name,
        raw = encode(json, block.input),
      }
    end
  end
  return { M.assistant_json(json, join_text(message.content), calls) }
end

local function render_user(json, message)
  local out = {}
  for _, block in ipairs(message.content) do
    if block.kind == "tool_result" then
      local output = block.is_error and "Error: " .. block.output or block.output
      out[#out + 1] = object(json, {
        { "role", '"tool"' },
        { "tool_call_id", encode(json, block.call_id) },
        { "content", encode(json, output) },
      })
    end
  end
  local text = join_text(message.content)
  if text ~= "" then
    out[#out + 1] = object(json, { { "role", '"user"' }, { "content", encode(json, text) } })
  end
  return out
end

---The JSON text of one canonical message in a request. A message of results becomes several, with
---commas between them; one that says nothing becomes "".
---@param json table
---@param message table
---@return string
function M.message(json, message)
  local render = message.role == "assistant" and render_assistant or render_user
  return table.concat(render(json, message), ",")
end

local function tools_json(json, tools)
  if not tools or #tools == 0 then return nil end
  local out = {}
  for i, tool in ipairs(tools) do
    out[i] = object(json, {
      { "type", '"function"' },
      { "function", object(json, {
        { "name", encode(json, tool.name) },
        { "description", encode(json, tool.description) },
        { "parameters", encode(json, tool.schema) },
      }) },
    })
  end
  return "[" .. table.concat(out, ",") .. "]"
end

---The whole body.
---@param json table
---@param request table  model, system, sent (texts of M.message), tools, max_output_tokens, effort
---@return string
function M.body(json, request)
  local messages = {}
  if request.system and request.system ~= "" then
    messages[1] = object(json, {
      { "role", '"system"' },
      { "content", encode(json, request.system) },
    })
  end
  for _, text in ipairs(request.sent) do
    if text ~= "" then messages[#messages + 1] = text end
  end
  local tools = tools_json(json, request.tools)
  local max = request.max_output_tokens
  return object(json, {
    { "model", encode(json, request.model) },
    { "stream", "true" },
    { "stream_options", '{"include_usage":true}' },
    { "messages", "[" .. table.concat(messages, ",") .. "]" },
    { "tools", tools },
    { "tool_choice", tools and '"auto"' or nil },
    { "max_tokens", max and encode(json, max) or nil },
    { "reasoning_effort", request.effort and encode(json, request.effort) or nil },
  })
end

return M
