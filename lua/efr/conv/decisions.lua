-- Owns: the newest decisions, for people who ask why.
-- Must not know: how they were made, the wire. Runs in efrd.
--
-- Policy: kept in memory and bounded, in number and in bytes. A restart forgets them; the log keeps
-- the reasons of each question and refusal. Each is kept as one JSON text: as tables they take ten
-- times the memory, and lie between all that a turn needs for a moment.

local exact = require "efr.util.exact"
local explain = require "efr.perm.explain"

local M = {}

local MAX <const>, MAX_BYTES <const> = 256, 512 * 1024

local Decisions = {}
Decisions.__index = Decisions

---@param ports {json: table, text: table}
---@return table decisions
function M.new(ports)
  return setmetatable({
    _json = ports.json, _text = ports.text, _by_call = {}, _order = {}, _newest = {}, _bytes = 0,
  }, Decisions)
end

local function forget_oldest(self)
  local oldest = table.remove(self._order, 1)
  local entry = self._by_call[oldest]
  self._by_call[oldest], self._bytes = nil, self._bytes - #entry.text
  if self._newest[entry.conversation_id] == oldest then
    self._newest[entry.conversation_id] = nil
  end
end

---Keeps a decision. The newest is kept however large it is.
---@param entry { call_id: string, conversation_id: string, decision: efr.Decision, input: table,
---  line: string?, effect: string, launch: string? }
---@return true|nil
---@return string? message  it has no JSON form
function Decisions:add(entry)
  local data = explain.data(entry.decision, entry.input, entry.line)
  data.effect, data.call_id, data.conversation_id = entry.effect, entry.call_id,
    entry.conversation_id
  data.launch = entry.launch or data.launch
  local text, message = self._json.encode(exact.clean(data, self._text))
  if not text then return nil, message end
  self._by_call[entry.call_id] = { conversation_id = entry.conversation_id, text = text }
  self._order[#self._order + 1] = entry.call_id
  self._newest[entry.conversation_id] = entry.call_id
  self._bytes = self._bytes + #text
  while #self._order > MAX or self._bytes > MAX_BYTES and #self._order > 1 do
    forget_oldest(self)
  end
  return true
end

---@param conversation_id string?
---@param call_id string?  nil: the newest of the conversation
---@return table? data  as explain.data gives it, with effect (what held), call_id, conversation_id;
---  text that is no UTF-8 is cleaned, its bytes in NAME_b64
function Decisions:get(conversation_id, call_id)
  call_id = call_id or self._newest[conversation_id or ""]
  local entry = call_id and self._by_call[call_id]
  if not entry or conversation_id and entry.conversation_id ~= conversation_id then return nil end
  return assert(self._json.decode(entry.text))
end

return M
