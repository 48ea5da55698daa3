-- What a subscription has to send: events (at most 64 wait, then overflow) and drafts (a room of
-- 16, merged when full, which never ends the stream), in one order.
-- Knows nothing of sockets or the store. Pure but for async. Main thread of efrd; pop waits.
local async = require "efr.util.async"

local M = {}

M.EVENTS_MAX = 64
M.DRAFTS_MAX = 16

local Feed = {}
Feed.__index = Feed

function M.new()
  return setmetatable({
    items = {}, first = 1, last = 0, events = 0, drafts = 0,
    merged = {}, merged_order = {}, news = async.signal(),
  }, Feed)
end

local function push(self, item)
  self.last = self.last + 1
  self.items[self.last] = item
  self.news:notify()
end

--- Adds a committed row of the log. When the room is full the feed ends with overflow after what is
--- in it.
function Feed:event(row)
  if self.ended then
    return
  elseif self.events >= M.EVENTS_MAX then
    return self:finish("overflow")
  end
  self.events = self.events + 1
  push(self, { row = row })
end

-- Drafts that may be joined into one.
local function part_of(draft)
  local body = draft.draft
  return table.concat({ draft.turn_id or "", body.kind, body.index or "", body.call or "" }, "/")
end

-- The newer draft on top of the older. Text that continues is joined (offsets are in bytes), the
-- rest takes the newer state.
local function join(older, newer)
  local a, b = older.draft, newer.draft
  if not (a.delta and b.delta) or a.offset + #a.delta ~= b.offset then
    return newer
  end
  local body = {}
  for key, value in pairs(b) do
    body[key] = value
  end
  body.offset, body.delta, body.title = a.offset, a.delta .. b.delta, b.title or a.title
  return { turn_id = newer.turn_id, after_seq = newer.after_seq, draft = body }
end

local function merge(self, draft)
  local part = part_of(draft)
  local older = self.merged[part]
  if older then
    self.merged[part] = join(older, draft)
  else
    self.merged[part] = draft
    self.merged_order[#self.merged_order + 1] = part
  end
end

local function push_draft(self, draft)
  self.drafts = self.drafts + 1
  push(self, { draft = draft })
end

--- Adds a draft {turn_id, after_seq, draft}.
function Feed:draft(draft)
  if self.ended then
    return
  elseif self.drafts >= M.DRAFTS_MAX then
    return merge(self, draft)
  end
  push_draft(self, draft)
end

--- Ends the feed after what is in it. The first reason stays.
function Feed:finish(reason)
  if not self.ended then
    self.ended = reason
    self.news:notify()
  end
end

local function refill(self)
  local part = table.remove(self.merged_order, 1)
  if part then
    local draft = self.merged[part]
    self.merged[part] = nil
    push_draft(self, draft)
  end
end

--- The next item: {row=} or {draft=}; nil and the reason at the end. Waits. One reader only.
function Feed:pop()
  while self.first > self.last do
    if self.ended then
      return nil, self.ended
    end
    self.news:wait()
  end
  local item = self.items[self.first]
  self.items[self.first] = nil
  self.first = self.first + 1
  if item.row then
    self.events = self.events - 1
  else
    self.drafts = self.drafts - 1
    refill(self)
  end
  return item
end

return M
