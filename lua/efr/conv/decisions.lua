-- Owns: the newest decisions, for people who ask why.
-- Must not know: how they were made, the wire. Runs in efrd.
--
-- Policy: kept in memory and bounded. A restart forgets them; the log keeps the reasons of each
-- question and refusal.

local explain = require "efr.perm.explain"

local M = {}

local MAX <const> = 256

local Decisions = {}
Decisions.__index = Decisions

---@return table decisions
function M.new()
  return setmetatable({ _by_call = {}, _order = {}, _newest = {} }, Decisions)
end

local function forget_oldest(self)
  local oldest = table.remove(self._order, 1)
  local entry = self._by_call[oldest]
  self._by_call[oldest] = nil
  if entry and self._newest[entry.conversation_id] == oldest then
    self._newest[entry.conversation_id] = nil
  end
end

---Keeps a decision.
---@param entry { call_id: string, conversation_id: string, decision: efr.Decision, input: table,
---  line: string?, effect: string, launch: string? }
function Decisions:add(entry)
  local data = explain.data(entry.decision, entry.input, entry.line)
  data.effect, data.call_id, data.conversation_id = entry.effect, entry.call_id,
    entry.conversation_id
  data.launch = entry.launch or data.launch
  self._by_call[entry.call_id] = data
  self._order[#self._order + 1] = entry.call_id
  self._newest[entry.conversation_id] = entry.call_id
  if #self._order > MAX then forget_oldest(self) end
end

---@param conversation_id string?
---@param call_id string?  nil: the newest of the conversation
---@return table? data  as explain.data gives it, with effect (what held), call_id, conversation_id
function Decisions:get(conversation_id, call_id)
  call_id = call_id or self._newest[conversation_id or ""]
  local data = call_id and self._by_call[call_id]
  if not data or conversation_id and data.conversation_id ~= conversation_id then return nil end
  return data
end

return M
