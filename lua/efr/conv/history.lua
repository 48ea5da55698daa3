-- Owns: what a conversation's requests repeat: each message of its turns as the text that is sent.
-- Must not know: requests in flight, permissions. Store and provider arrive. Runs in efrd.
--
-- Policy: history only grows. A message is rendered once, by the provider of the request, and only
-- its text stays in memory; the message itself is in turn_messages, as it was sent. Another
-- provider or another set of tools renders anew from there, and so does a turn after the texts were
-- dropped; a turn that was not saved is rebuilt from its events. The live-state block is part of
-- the message. Opaque data of another provider is left out of what is sent, and kept in the store.

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
    texts = nil, -- nil = not in memory
    turns = 0, -- ended turns
  }, History)
end

-- The saved messages by turn, still as JSON text: {turn_id = {provider, text...}}.
local function saved_turns(self)
  local rows, message, code = self.deps.query:turn_messages(self.id)
  if not rows then return nil, message, code end
  local saved = {}
  for _, row in ipairs(rows) do
    local turn = saved[row.turn_id]
    if not turn then
      turn = { provider = row.provider }
      saved[row.turn_id] = turn
    end
    turn[#turn + 1] = row.message
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

-- Adds a message as this provider sends it: without what only another one can read, and with calls
-- of tools that are not offered as text.
local function add(self, message, from)
  if message.provider_raw and from ~= self.provider.id then
    message = { role = message.role, content = message.content }
  end
  local shown, missing = show.message(self.deps.json, message, self.offered, self.missing)
  local text, why = self.provider:render(shown)
  if not text then return nil, "render a message: " .. tostring(why), "EFR_JSON" end
  self.missing = missing
  self.texts[#self.texts + 1] = text
  return true
end

local function add_saved(self, turn)
  for _, text in ipairs(turn) do
    local message, why = self.deps.json.decode(text)
    if not message then return nil, "read a saved message: " .. tostring(why), "EFR_JSON" end
    local ok, code
    ok, why, code = add(self, message, turn.provider)
    if not ok then return nil, why, code end
  end
  return true
end

local function add_rebuilt(self, turn_id)
  local events, message, code = self.deps.query:turn_events(self.id, turn_id)
  if not events then return nil, message, code end
  for _, rebuilt in ipairs(rebuild.messages(self.deps.json, events)) do
    local ok
    ok, message, code = add(self, rebuilt, nil)
    if not ok then return nil, message, code end
  end
  return true
end

local function load(self)
  local saved, message, code = saved_turns(self)
  if not saved then return nil, message, code end
  local rows
  rows, message, code = ended_turns(self)
  if not rows then return nil, message, code end
  self.texts, self.turns, self.missing = {}, #rows, nil
  for _, row in ipairs(rows) do
    local ok
    if saved[row.id] then
      ok, message, code = add_saved(self, saved[row.id])
    else
      ok, message, code = add_rebuilt(self, row.id)
    end
    if not ok then return nil, message, code end
  end
  return true
end

local function key_of(provider, offered)
  local names = {}
  for name in pairs(offered) do names[#names + 1] = name end
  table.sort(names)
  return provider.id .. " " .. table.concat(names, " ")
end

---Begins a turn: what earlier turns left is there afterwards, as `provider` sends it with these
---tools. Reads the store when it is not in memory so.
---@param provider table  id and render(message) -> text | nil, why
---@param offered table<string, any>  the tools of the turn's requests, by name
---@return true|nil
---@return string? message
---@return string? code
function History:open(provider, offered)
  local key = key_of(provider, offered)
  if self.texts and self.key == key and self.provider == provider then return true end
  self.provider, self.offered, self.key = provider, offered, key
  local ok, message, code = load(self)
  if not ok then self:drop() end
  return ok, message, code
end

---Adds a message of the turn that runs.
---@param message table
---@return true|nil
---@return string? message  it cannot be sent
---@return string? code
function History:add(message)
  return add(self, message, self.provider.id)
end

---Counts the turn that has ended.
function History:turn_ended()
  self.turns = self.turns + 1
end

---Forgets what is in memory; the next turn reads it again. Not while a turn runs.
function History:drop()
  self.texts, self.key, self.provider, self.offered, self.missing = nil, nil, nil, nil, nil
end

---What a request sends, oldest first: one text of the provider for each message.
---@return string[]
function History:sent()
  return table.move(self.texts, 1, #self.texts, 1, {})
end

---Whether the texts are in memory.
---@return boolean
function History:is_loaded()
  return self.texts ~= nil
end

---How many turns have ended.
---@return integer
function History:count()
  return self.turns
end

return M
