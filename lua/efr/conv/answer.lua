-- Owns: one answer of the model: its stream becomes drafts, recorded updates, text and calls.
-- Must not know: permissions, tools, what happens with the calls. Runs in efrd, on the loop thread.
--
-- Policy: drafts and events count bytes of one and the same buffer. Updates are recorded at most
-- every update_interval_ms and drafts go out at most every draft_interval_ms; the stream never
-- waits for either. Text that came before a failure or an interrupt is completed and kept.

local async = require "efr.util.async"
local coalesce = require "efr.conv.coalesce"
local events = require "efr.conv.events"

local M = {}

---@class efr.Answer
---@field outcome "done"|"error"|"interrupted"
---@field text string
---@field calls table[]  {id, provider_id, name, input, raw, error?}
---@field stop_reason? string
---@field provider_raw? string
---@field usage? table
---@field err? table  a provider's error
---@field store_error? string  the events could not be recorded

local Reader = {}
Reader.__index = Reader

-- Splits off bytes at the end that begin a character and do not end it.
local function whole_characters(text)
  for back = 1, math.min(3, #text) do
    local byte = text:byte(#text - back + 1)
    if byte >= 0xC0 then
      local need = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
      if need > back then return text:sub(1, #text - back), text:sub(#text - back + 1) end
      break
    elseif byte < 0x80 then
      break
    end
  end
  return text, ""
end

local function draft(self, fields)
  return { turn_id = self.turn.id, after_seq = self.turn.conv.last_seq, draft = fields }
end

-- A pending delta: pieces that were not sent yet and the offset where they begin.
local function pending()
  return { pieces = {}, offset = 0 }
end

local function take(part)
  if #part.pieces == 0 then return nil end
  local delta, offset = table.concat(part.pieces), part.offset
  part.pieces, part.offset = {}, offset + #delta
  return delta, offset
end

local function flush_drafts(self)
  local out = {}
  local delta, offset = take(self.draft_text)
  if delta then
    out[#out + 1] = draft(self, {
      kind = "text",
      index = self.index,
      offset = offset,
      delta = delta,
    })
  end
  delta, offset = take(self.draft_thought)
  if delta then
    out[#out + 1] = draft(self, { kind = "reasoning", offset = offset, delta = delta })
  end
  for _, call in ipairs(self.calls) do
    if call.grew then
      call.grew = false
      out[#out + 1] = draft(self, {
        kind = "tool_input",
        call = call.id,
        tool = call.name,
        bytes = call.bytes,
      })
    end
  end
  if #out > 0 then self.turn.conv:send_drafts(out) end
end

local function update_event(self)
  local delta, offset = take(self.event_text)
  if not delta then return nil end
  return events.make("assistant_message_updated", {
    turn_id = self.turn.id,
    index = self.index,
    offset = offset,
    delta = delta,
  })
end

local function flush_events(self)
  local event = update_event(self)
  if not event then return end
  local seqs, message = self.turn.conv:append({ events = { event } })
  if not seqs then self.store_error = message end
end

local function add_text(self, text)
  local whole
  whole, self.partial = whole_characters(self.partial .. text)
  whole = self.clean(whole)
  if whole == "" then return end
  for _, list in ipairs({ self.text, self.event_text.pieces, self.draft_text.pieces }) do
    list[#list + 1] = whole
  end
  self.updates:poke()
  self.drafts:poke()
end

local HANDLERS = {}

function HANDLERS.text_delta(self, event)
  add_text(self, event.text)
end

function HANDLERS.reasoning_delta(self, event)
  local pieces = self.draft_thought.pieces
  pieces[#pieces + 1] = self.clean(event.text)
  self.drafts:poke()
end

local function call_of(self, event)
  local call = self.by_index[event.index]
  if not call then
    call = { id = self.mint(), provider_id = event.call_id, name = event.name, bytes = 0 }
    self.by_index[event.index] = call
    self.calls[#self.calls + 1] = call
  end
  return call
end

function HANDLERS.tool_call_start(self, event)
  call_of(self, event).grew = true
  self.drafts:poke()
end

function HANDLERS.tool_call_delta(self, event)
  local call = self.by_index[event.index]
  if not call then return end
  call.bytes, call.grew = call.bytes + #event.delta, true
  self.drafts:poke()
end

function HANDLERS.tool_call_end(self, event)
  local call = call_of(self, event)
  call.provider_id, call.name = event.call_id, event.name
  call.input, call.raw, call.error, call.ended = event.input, event.raw, event.error, true
end

function HANDLERS.usage(self, event)
  self.usage = event
end

local function new_reader(turn)
  local ports, config = turn.app.ports, turn.app.config
  local self = setmetatable({
    turn = turn,
    index = turn.next_index,
    clean = ports.text.clean,
    mint = ports.sys.uuid7,
    text = {},
    partial = "",
    event_text = pending(),
    draft_text = pending(),
    draft_thought = pending(),
    calls = {},
    by_index = {},
  }, Reader)
  self.updates = coalesce.new(config:get("conversation.update_interval_ms"), function()
    flush_events(self)
  end)
  self.drafts = coalesce.new(config:get("conversation.draft_interval_ms"), function()
    flush_drafts(self)
  end)
  return self
end

-- Waits for the end of the stream or an interrupt.
local function receive(self, request)
  return async.await(function(resume)
    local handle, over
    local remove = self.turn.token:on_cancel(function()
      over = true
      if handle then handle.cancel() end
      resume({ kind = "interrupted" })
    end)
    if over then return end
    handle = self.turn.provider:start(request, function(event)
      if over then return end
      local handler = HANDLERS[event.kind]
      if handler then return handler(self, event) end
      if event.kind == "done" or event.kind == "error" then
        over = true
        remove()
        resume(event)
      end
    end)
    if over then handle.cancel() end
  end)
end

-- Records the end of the text. An answer without text records nothing.
local function complete(self)
  self.updates:stop()
  self.drafts:stop()
  if self.partial ~= "" then
    self.partial = ""
    add_text(self, "\xEF\xBF\xBD")
  end
  flush_drafts(self)
  local text = table.concat(self.text)
  if text == "" then return text end
  local batch = { update_event(self) }
  batch[#batch + 1] = events.make("assistant_message_completed", {
    turn_id = self.turn.id,
    index = self.index,
    text = text,
  })
  self.turn.next_index = self.index + 1
  local seqs, message = self.turn.conv:append({ events = batch })
  if not seqs then self.store_error = message end
  return text
end

---Asks the model and waits for its whole answer.
---@param turn table
---@param request table
---@return efr.Answer
function M.receive(turn, request)
  local self = new_reader(turn)
  local last = receive(self, request)
  local answer = {
    outcome = last.kind,
    text = complete(self),
    calls = {},
    usage = self.usage,
    stop_reason = last.stop_reason,
    provider_raw = last.provider_raw,
    err = last.kind == "error" and last or nil,
    store_error = self.store_error,
  }
  -- Calls of an answer that broke off are not run: their arguments may be cut.
  for _, call in ipairs(last.kind == "done" and self.calls or {}) do
    if call.ended then answer.calls[#answer.calls + 1] = call end
  end
  return answer
end

return M
