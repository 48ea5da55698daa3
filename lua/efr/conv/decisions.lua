-- Owns: the newest decisions, for people who ask why.
-- Must not know: how they were made, the wire. Runs in efrd.
--
-- Policy: kept in memory and bounded, in number and in bytes. A restart forgets them; the log keeps
-- the reasons of each question and refusal. Each is one line of JSON, and old lines are joined into
-- blocks: kept one by one they would lie between all that a turn needs for a moment, and keep its
-- pages. Somebody who asks is rare, so the lines are searched.

local exact = require "efr.util.exact"
local explain = require "efr.perm.explain"

local M = {}

local BLOCKS <const>, BLOCK_LINES <const>, BLOCK_BYTES <const> = 7, 32, 32 * 1024

local Decisions = {}
Decisions.__index = Decisions

---@param ports {json: table, text: table}
---@return table decisions
function M.new(ports)
  return setmetatable({
    _json = ports.json, _text = ports.text, _blocks = {}, _lines = {}, _bytes = 0,
  }, Decisions)
end

-- The newest lines become a block; the oldest block goes.
local function close_block(self)
  table.insert(self._blocks, table.concat(self._lines, "\n"))
  self._lines, self._bytes = {}, 0
  if #self._blocks > BLOCKS then table.remove(self._blocks, 1) end
end

---Keeps a decision.
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
  if self._bytes + #text > BLOCK_BYTES and self._lines[1] then close_block(self) end
  self._lines[#self._lines + 1], self._bytes = text, self._bytes + #text
  if #self._lines >= BLOCK_LINES then close_block(self) end
  return true
end

-- Calls fn with each line that has the text in it, newest first, until it returns something.
local function search(self, wanted, fn)
  for i = #self._lines, 1, -1 do
    local found = self._lines[i]:find(wanted, 1, true) and fn(self._lines[i])
    if found then return found end
  end
  for i = #self._blocks, 1, -1 do
    local lines = {}
    for line in self._blocks[i]:gmatch("[^\n]+") do table.insert(lines, 1, line) end
    for _, line in ipairs(lines) do
      local found = line:find(wanted, 1, true) and fn(line)
      if found then return found end
    end
  end
  return nil
end

---@param conversation_id string?
---@param call_id string?  nil: the newest of the conversation
---@return table? data  as explain.data gives it, with effect (what held), call_id, conversation_id;
---  text that is no UTF-8 is cleaned, its bytes in NAME_b64
function Decisions:get(conversation_id, call_id)
  local wanted = call_id or conversation_id
  return wanted and search(self, wanted, function(line)
    local data = assert(self._json.decode(line))
    if (not call_id or data.call_id == call_id)
      and (not conversation_id or data.conversation_id == conversation_id) then
      return data
    end
    return nil
  end)
end

return M
