-- Owns: which conversations somebody follows, and whether a person there can answer a question that
-- has an answer of its own when nobody does.
-- Must not know: questions, the wire. Runs in efrd; wait waits.
--
-- Policy: a client that lost its place comes back at once, and one that sent a prompt follows it a
-- moment later, so nobody counts as gone before a grace has passed.

local async = require "efr.util.async"

local M = {}

M.GRACE_MS = 3000 ---@type integer

local Answering = {}
Answering.__index = Answering

---@return table answering
function M.new()
  return setmetatable({ counts = {}, waiting = {} }, Answering)
end

local function changed(self, id)
  local waiting = self.waiting[id]
  self.waiting[id] = nil
  for _, resume in ipairs(waiting or {}) do resume() end
end

---A client follows a conversation.
---@param id string
---@param answers boolean  a person there can answer
---@return fun() remove
function Answering:add(id, answers)
  local count = self.counts[id] or { all = 0, answers = 0 }
  self.counts[id] = count
  local here = true
  local function add(n)
    count.all, count.answers = count.all + n, count.answers + (answers and n or 0)
    self.counts[id] = count.all > 0 and count or nil
    changed(self, id)
  end
  add(1)
  return function()
    if here then
      here = false
      add(-1)
    end
  end
end

---Whether a person follows the conversation who can answer.
---@param id string
---@return boolean
function Answering:somebody(id)
  local count = self.counts[id]
  return count ~= nil and count.answers > 0
end

local function wait_change(self, id)
  async.await(function(resume)
    self.waiting[id] = self.waiting[id] or {}
    table.insert(self.waiting[id], resume)
  end)
end

---Waits as long as somebody follows the conversation who can answer, or may come in a moment.
---@param id string
---@param is_over fun(): boolean  asked after each change
function Answering:wait(id, is_over)
  while not is_over() do
    if self:somebody(id) then
      wait_change(self, id)
    elseif self.counts[id] then
      return
    else
      async.with_timeout(M.GRACE_MS, function() wait_change(self, id) end)
      if not self.counts[id] then return end
    end
  end
end

---Wakes those who wait, so that they ask again whether it is over.
---@param id string
function Answering:wake(id) changed(self, id) end

return M
