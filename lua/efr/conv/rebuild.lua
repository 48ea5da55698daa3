-- Owns: making the messages of a turn from its events, for a turn whose messages were not saved
-- (the daemon ended in the middle of it).
-- Pure. Runs in efrd.
--
-- Policy: a completed text opens an assistant message, calls join it, results gather in one user
-- message. Ids are the daemon's own and there is no provider data. A call without an end gets a
-- result that says so, since a history with an open call is refused by providers.

local prompt = require "efr.conv.prompt"

local M = {}

local Builder = {}
Builder.__index = Builder

local function add(self, role)
  local message = { role = role, content = self.json.array({}) }
  self.messages[#self.messages + 1] = message
  return message
end

local function last(self, role)
  local message = self.messages[#self.messages]
  return message and message.role == role and message or nil
end

local function push(message, block)
  message.content[#message.content + 1] = block
  return block
end

local HANDLERS = {}

function HANDLERS.prompt_queued(self, event)
  push(add(self, "user"), { kind = "text", text = event.text })
end

local function text_block(self, index)
  local block = self.texts[index]
  if not block then
    block = push(add(self, "assistant"), { kind = "text", text = "" })
    self.texts[index] = block
  end
  return block
end

function HANDLERS.assistant_message_updated(self, event)
  local block = text_block(self, event.index or 0)
  block.text = block.text:sub(1, event.offset or 0) .. (event.delta or "")
end

function HANDLERS.assistant_message_completed(self, event)
  text_block(self, event.index or 0).text = event.text or ""
end

function HANDLERS.tool_call_started(self, event)
  -- Calls of one answer come one after another with their results between them; all of them are of
  -- the answer before the results as long as no text came in between.
  local message = last(self, "assistant")
  if not message then
    local results = self.messages[#self.messages]
    local before = self.messages[#self.messages - 1]
    if results and results.is_results and before and before.role == "assistant" then
      message = before
    else
      message = add(self, "assistant")
    end
  end
  push(message, {
    kind = "tool_call",
    call_id = event.call_id,
    name = event.tool,
    input = event.input or {},
  })
  self.open[event.call_id] = true
  self.order[#self.order + 1] = event.call_id
end

local function results_of(self)
  local message = self.messages[#self.messages]
  if message and message.is_results then return message end
  message = add(self, "user")
  message.is_results = true
  return message
end

local function result(self, call_id, output, is_error)
  push(results_of(self), {
    kind = "tool_result",
    call_id = call_id,
    output = output,
    is_error = is_error or false,
  })
  self.open[call_id] = nil
end

function HANDLERS.tool_call_completed(self, event)
  if self.open[event.call_id] then
    result(self, event.call_id, event.output or "", event.is_error)
  end
end

---The messages of a turn.
---@param json table  array() marks lists
---@param rows {kind: string, event: table}[]  the events of the turn, oldest first
---@return table[]
function M.messages(json, rows)
  local self = setmetatable({
    json = json,
    messages = {},
    texts = {},
    open = {},
    order = {},
  }, Builder)
  for _, row in ipairs(rows) do
    local handler = HANDLERS[row.kind]
    if handler then handler(self, row.event) end
  end
  for _, call_id in ipairs(self.order) do
    if self.open[call_id] then result(self, call_id, prompt.UNFINISHED, true) end
  end
  for _, message in ipairs(self.messages) do message.is_results = nil end
  return self.messages
end

return M
