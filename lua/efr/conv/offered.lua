-- Owns: showing calls of tools that a request does not offer as text.
-- Pure; the JSON writer arrives as an argument. Runs in efrd, on the loop thread.
--
-- Policy: a provider refuses calls of tools that it is not told about, so such a call and its
-- result become text, always the same one. The opaque form of a message that holds one is left out;
-- the canonical one says what it said.

local M = {}

local function call_text(json, block)
  local input = json.encode(block.input, { sort = true })
  return ("Earlier tool call `%s` (id %s), shown as text: this request does not offer the tool. "
    .. "Its input:\n%s"):format(block.name, block.call_id, input)
end

local function result_text(block, name)
  return ("Result of the earlier tool call `%s` (id %s)%s:\n%s"):format(name, block.call_id,
    block.is_error and ", which failed" or "", block.output)
end

-- The calls of an assistant message that are not offered, by id; nil when there are none.
local function missing_of(message, offered)
  local missing
  for _, block in ipairs(message.content) do
    if block.kind == "tool_call" and not offered[block.name] then
      missing = missing or {}
      missing[block.call_id] = block.name
    end
  end
  return missing
end

local function rewrite(json, message, missing)
  local content = {}
  for i, block in ipairs(message.content) do
    local name = missing[block.call_id]
    if block.kind == "tool_call" and name then
      block = { kind = "text", text = call_text(json, block) }
    elseif block.kind == "tool_result" and name then
      block = { kind = "text", text = result_text(block, name) }
    end
    content[i] = block
  end
  return { role = message.role, content = json.array(content) }
end

---A message as a request with these tools can send it. Messages are shown in their order: what one
---call returns as `missing` goes into the next, since results stand right behind the answer that
---made the calls.
---@param json table
---@param message table
---@param offered table<string, any>  by tool name
---@param missing table<string, string>|nil  of the message before
---@return table message  the same one when it needs no change
---@return table<string, string>|nil missing
function M.message(json, message, offered, missing)
  if message.role == "assistant" then missing = missing_of(message, offered) end
  local shown = missing and rewrite(json, message, missing) or message
  if message.role == "user" then missing = nil end
  return shown, missing
end

return M
