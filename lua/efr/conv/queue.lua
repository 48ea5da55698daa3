-- Owns: the prompts of one conversation that wait for their turn, in the order of the log.
-- Must not know: the store, turns. Pure. Runs in efrd.
--
-- A prompt takes its place before it is recorded, so that the order here is the order of the log.
-- While it is being recorded it can neither start nor be withdrawn.

local M = {}

---@class efr.QueuedPrompt
---@field turn_id string
---@field recorded boolean
---@field tty? string

---@class efr.PromptQueue
local Queue = {}
Queue.__index = Queue

---@return efr.PromptQueue
function M.new()
  return setmetatable({ items = {} }, Queue)
end

---@return integer
function Queue:len()
  return #self.items
end

---Takes the place at the end.
---@param item efr.QueuedPrompt
function Queue:push(item)
  self.items[#self.items + 1] = item
end

local function index_of(self, item)
  for i, other in ipairs(self.items) do
    if other == item then return i end
  end
  return nil
end

---Removes a prompt, wherever it stands.
---@param item efr.QueuedPrompt
---@return integer|nil place  where it stood
function Queue:remove(item)
  local at = index_of(self, item)
  if at then table.remove(self.items, at) end
  return at
end

---Puts removed prompts back at their places (after a batch that was not recorded).
---@param removed {item: efr.QueuedPrompt, at: integer}[]  at = the place before any was removed
function Queue:restore(removed)
  local entries = table.move(removed, 1, #removed, 1, {})
  table.sort(entries, function(a, b) return a.at < b.at end)
  for _, entry in ipairs(entries) do
    table.insert(self.items, math.min(entry.at, #self.items + 1), entry.item)
  end
end

---The prompt that runs next, taken out; nil while there is none or it is still being recorded.
---@return efr.QueuedPrompt|nil
function Queue:take()
  local first = self.items[1]
  if not first or not first.recorded then return nil end
  return table.remove(self.items, 1)
end

---A waiting prompt by the id of its turn.
---@param turn_id string
---@return efr.QueuedPrompt|nil
function Queue:find(turn_id)
  for _, item in ipairs(self.items) do
    if item.turn_id == turn_id and item.recorded then return item end
  end
  return nil
end

---The newest waiting prompt that came from a terminal.
---@param tty string
---@return efr.QueuedPrompt|nil
function Queue:newest_from_tty(tty)
  for i = #self.items, 1, -1 do
    local item = self.items[i]
    if item.tty == tty and item.recorded then return item end
  end
  return nil
end

return M
