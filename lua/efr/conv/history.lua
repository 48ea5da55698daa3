-- Owns: the messages of a conversation's ended turns, exactly as they were sent.
-- Must not know: requests in flight, permissions. The store arrives as query. Runs in efrd.
--
-- Policy: history only grows. A turn's messages come from memory, else from turn_messages, else
-- they are rebuilt from its events. Nothing is rendered a second time: the live-state block is part
-- of the saved message. Opaque data of another provider is left out of what is sent, and kept.

local rebuild = require "efr.conv.rebuild"
local show = require "efr.conv.offered"

local M = {}

local ENDED <const> = { completed = true, failed = true, interrupted = true, cancelled = true }

---@class efr.History
local History = {}
History.__index = History

---@param deps {query: table, json: table}
---@param conversation_id string
---@return efr.History
function M.new(deps, conversation_id)
  return setmetatable({
    deps = deps,
    id = conversation_id,
    turns = nil, -- list of {turn_id, provider, messages}; nil = not loaded
    stripped = setmetatable({}, { __mode = "k" }),
  }, History)
end

local function saved_turns(self)
  local rows, message, code = self.deps.query:turn_messages(self.id)
  if not rows then return nil, message, code end
  local saved = {}
  for _, row in ipairs(rows) do
    local turn = saved[row.turn_id]
    if not turn then
      turn = { turn_id = row.turn_id, provider = row.provider, messages = {} }
      saved[row.turn_id] = turn
    end
    turn.messages[#turn.messages + 1] = row.message
  end
  return saved
end

-- Turns run one after another, so the order of their starts is the order of the history.
local function ended_turns(self)
  local rows, message, code = self.deps.query:turns(self.id)
  if not rows then return nil, message, code end
  local out = {}
  for _, row in ipairs(rows) do
    if row.started_at and ENDED[row.status] then out[#out + 1] = row end
  end
  table.sort(out, function(a, b)
    if a.started_at ~= b.started_at then return a.started_at < b.started_at end
    return a.queued_seq < b.queued_seq
  end)
  return out
end

---Reads the history from the store, once.
---@return true|nil
---@return string? message
---@return string? code
function History:load()
  if self.turns then return true end
  local saved, message, code = saved_turns(self)
  if not saved then return nil, message, code end
  local rows
  rows, message, code = ended_turns(self)
  if not rows then return nil, message, code end
  local turns = {}
  for _, row in ipairs(rows) do
    local turn = saved[row.id]
    if not turn then
      local events
      events, message, code = self.deps.query:turn_events(self.id, row.id)
      if not events then return nil, message, code end
      turn = { turn_id = row.id, messages = rebuild.messages(self.deps.json, events) }
    end
    turns[#turns + 1] = turn
  end
  self.turns = turns
  return true
end

---Forgets what is in memory; the next turn reads it again.
function History:drop()
  self.turns = nil
end

---Adds a turn that ended.
---@param turn {turn_id: string, provider: string, messages: table[]}
function History:add(turn)
  if self.turns then self.turns[#self.turns + 1] = turn end
end

-- The same table for the same message each time, so that what was rendered from it stays cached.
local function without_raw(self, message)
  local copy = self.stripped[message]
  if not copy then
    copy = { role = message.role, content = message.content }
    self.stripped[message] = copy
  end
  return copy
end

-- What was rewritten for one set of tools is not for another.
local function rewritten_for(self, offered)
  local names = {}
  for name in pairs(offered) do names[#names + 1] = name end
  table.sort(names)
  local key = table.concat(names, " ")
  if self.rewritten_key ~= key then
    self.rewritten_key, self.rewritten = key, setmetatable({}, { __mode = "k" })
  end
  return self.rewritten
end

---All messages, oldest first, for a request to `provider`. load() came before.
---@param provider string
---@param offered table<string, any>  the tools of the request, by name
---@param running? table[]  the messages of the turn that runs; the same rules show them, so that
---  they are the same bytes when the turn has ended
---@return table[]
function History:messages(provider, offered, running)
  local out = {}
  for _, turn in ipairs(self.turns) do
    for _, message in ipairs(turn.messages) do
      local foreign = message.provider_raw and turn.provider ~= provider
      out[#out + 1] = foreign and without_raw(self, message) or message
    end
  end
  if running then table.move(running, 1, #running, #out + 1, out) end
  return show.messages(self.deps.json, out, offered, rewritten_for(self, offered))
end

---How many turns there are.
---@return integer
function History:count()
  return #self.turns
end

return M
