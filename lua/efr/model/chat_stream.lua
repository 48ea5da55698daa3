-- Owns: reading the chunks of a chat-completions stream into the canonical events of model/.
-- Pure but for efr.json, which arrives as an argument; knows no connection. Runs in efrd, on the
-- loop thread.
--
-- Policy: tool calls are joined by `index`; servers that leave it out are read by id, then by
-- place. A call without an id gets one of ours. Arguments that are no JSON object do not fail the
-- turn: the call carries the error and the model reads it. A stream that ends before it said why it
-- stopped is `Incomplete`.

local chat_request = require "efr.model.chat_request"
local errors = require "efr.model.errors"

local M = {}

local STOP <const> = {
  stop = "end_turn",
  tool_calls = "tool_use",
  function_call = "tool_use",
  length = "max_tokens",
  content_filter = "content_filter",
}

---@class efr.ChatStream
local Stream = {}
Stream.__index = Stream

---A reader for one answer.
---@param json table
---@param emit fun(event: table)
---@param mint fun(): string  a new call id
---@return efr.ChatStream
function M.new(json, emit, mint)
  return setmetatable({
    json = json,
    emit = emit,
    mint = mint,
    text = {},
    calls = {}, -- in order of arrival
    by_index = {},
    ids = {},
    stop = nil,
    finished = false,
  }, Stream)
end

local function is_text(value)
  return type(value) == "string" and value ~= ""
end

-- The server's id, unless it is missing or another call of this answer has it.
local function id_for(self, part)
  local id = is_text(part.id) and not self.ids[part.id] and part.id or self.mint()
  self.ids[id] = true
  return id
end

local function open_call(self, key, part)
  local fn = type(part["function"]) == "table" and part["function"] or {}
  local call = {
    index = #self.calls,
    call_id = id_for(self, part),
    name = is_text(fn.name) and fn.name or "",
    pieces = {},
    named = false,
  }
  self.calls[#self.calls + 1] = call
  self.by_index[key] = call
  return call
end

-- The call that a part belongs to. Without an index a new id starts a call, and no id continues the
-- last one.
local function find_call(self, part)
  local key = math.type(part.index) == "integer" and part.index or nil
  if key then
    local call = self.by_index[key]
    if not call then return open_call(self, key, part) end
    -- Some servers send every call under index 0; a different id is a different call.
    if is_text(part.id) and call.server_id and part.id ~= call.server_id then
      return open_call(self, key, part)
    end
    return call
  end
  local last = self.calls[#self.calls]
  local new = is_text(part.id) and not (last and last.server_id == part.id)
  if last and not new then return last end
  return open_call(self, "id" .. #self.calls, part)
end

local function take_call(self, part)
  if type(part) ~= "table" then return end
  local call = find_call(self, part)
  if is_text(part.id) then call.server_id = part.id end
  local fn = type(part["function"]) == "table" and part["function"] or {}
  if call.name == "" and is_text(fn.name) then call.name = fn.name end
  if not call.named and call.name ~= "" then
    call.named = true
    self.emit({
      kind = "tool_call_start",
      index = call.index,
      call_id = call.call_id,
      name = call.name,
    })
  end
  local piece = fn.arguments
  if type(piece) == "table" then piece = self.json.encode(piece, { sort = true }) end
  if is_text(piece) then
    call.pieces[#call.pieces + 1] = piece
    if call.named then
      self.emit({ kind = "tool_call_delta", index = call.index, delta = piece })
    end
  end
end

local function count(value)
  if math.type(value) == "integer" and value > 0 then return value end
  if math.type(value) == "float" and value > 0 and value < 2 ^ 53 then return math.floor(value) end
  return 0
end

local function take_usage(self, usage)
  local input, output = usage.prompt_tokens_details, usage.completion_tokens_details
  if type(input) ~= "table" then input = {} end
  if type(output) ~= "table" then output = {} end
  self.usage = {
    kind = "usage",
    input_tokens = count(usage.prompt_tokens),
    output_tokens = count(usage.completion_tokens),
    cached_input_tokens = count(input.cached_tokens),
    reasoning_tokens = count(output.reasoning_tokens),
  }
end

local function take_delta(self, delta)
  local thought = delta.reasoning_content
  if not is_text(thought) then thought = delta.reasoning end
  if is_text(thought) then self.emit({ kind = "reasoning_delta", text = thought }) end
  if is_text(delta.content) then
    self.text[#self.text + 1] = delta.content
    self.emit({ kind = "text_delta", text = delta.content })
  end
  if type(delta.tool_calls) == "table" then
    for _, part in ipairs(delta.tool_calls) do take_call(self, part) end
  end
end

-- The error that a chunk reports in the middle of a stream.
local function reported(chunk)
  local message, code = errors.read_body(chunk)
  local status = type(chunk.error) == "table" and math.tointeger(chunk.error.code)
  if status then return errors.from_http(status, message or "") end
  return errors.new("Api", "the model server reported an error: " .. (message or "no text"),
    { code = code })
end

---Reads the data of one event. After an error the stream is over and the error is the last event.
---@param data string
---@return efr.ProviderError|nil err
function Stream:take(data)
  if self.finished then return nil end
  if data == "[DONE]" then
    self.finished = true
    return nil
  end
  local chunk, why = self.json.decode(data)
  if type(chunk) ~= "table" then
    return errors.new("Decode", "the model server sent a chunk that is no JSON object: "
      .. errors.clip(tostring(why or data)))
  end
  if type(chunk.error) == "table" or type(chunk.error) == "string" then
    return reported(chunk)
  end
  if type(chunk.usage) == "table" then take_usage(self, chunk.usage) end
  local choice = type(chunk.choices) == "table" and chunk.choices[1]
  if type(choice) ~= "table" then return nil end
  if type(choice.delta) == "table" then take_delta(self, choice.delta) end
  if is_text(choice.finish_reason) then self.stop = choice.finish_reason end
  return nil
end

local function end_call(self, call)
  local raw = table.concat(call.pieces)
  local event = {
    kind = "tool_call_end",
    index = call.index,
    call_id = call.call_id,
    name = call.name,
    raw = raw,
  }
  -- A call of a tool without parameters often comes with no arguments at all.
  if raw:match("^%s*$") then
    raw, event.raw = "{}", "{}"
  end
  local input, why = self.json.decode(raw)
  if type(input) == "table" and not self.json.is_array(input) then
    event.input = input
  else
    event.error = "The arguments are no JSON object"
      .. (why and " (" .. errors.clip(tostring(why)) .. ")" or "") .. "; the call did not run."
    -- What goes back must be valid for servers that parse it.
    raw = "{}"
  end
  call.raw = raw
  self.emit(event)
end

---Ends the answer: emits the calls, the usage and `done`, or returns the error of a stream that
---broke off.
---@return efr.ProviderError|nil err
function Stream:finish()
  if not self.stop and not self.finished then
    return errors.new("Incomplete",
      "the model server ended the stream before the answer was complete")
  end
  local kept = {}
  for _, call in ipairs(self.calls) do
    if call.name == "" then
      return errors.new("InvalidStream", "the model server sent a tool call without a name")
    end
    end_call(self, call)
    kept[#kept + 1] = call
  end
  if self.usage then self.emit(self.usage) end
  local stop = STOP[self.stop] or "end_turn"
  if #kept > 0 and stop == "end_turn" then stop = "tool_use" end
  self.emit({
    kind = "done",
    stop_reason = stop,
    provider_raw = chat_request.assistant_json(self.json, table.concat(self.text), kept),
  })
  return nil
end

return M
