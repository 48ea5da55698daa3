-- What a client that watches a terminal gets: its output byte for byte, or its screen.
-- Knows nothing of sockets, shells or calls. Main thread of efrd; the functions wait.
--
-- Policy: a watcher never slows the program down. Output that a slow client did not take yet is
-- bounded, then its stream ends with overflow. Of the screen a slow client misses pictures. Every
-- `seq` is the offset behind what the item shows.
local async = require "efr.util.async"
local text = require "efr.util.text"

local M = {}

local REPLAY_MAX <const> = 1 << 20
local ITEMS_MAX <const> = 64
local ITEM_BYTES <const> = 32768
local FRAME_MS <const> = 40

-- ---- output ----

local Feed = {}
Feed.__index = Feed

local function put(self, item)
  self.items[#self.items + 1] = item
  self.news:notify()
end

--- What a terminal says to one watcher, bounded.
function M.feed()
  return setmetatable({ items = {}, news = async.signal() }, Feed)
end

--- Takes what the terminal tells its watchers.
--- @param kind "output"|"resized"|"closed"
--- @param value any
--- @param seq integer  the terminal's offset now
function Feed:push(kind, value, seq)
  if self.ended then
    return
  elseif kind == "closed" then
    return self:finish("closed")
  end
  local last = self.items[#self.items]
  if kind == "output" and last and last.bytes and #last.bytes + #value <= ITEM_BYTES then
    last.bytes, last.seq = last.bytes .. value, seq
  elseif #self.items >= ITEMS_MAX then
    self:finish("overflow")
  elseif kind == "output" then
    put(self, { bytes = value, seq = seq })
  else
    put(self, { size = value, seq = seq })
  end
end

--- Ends it after what is in it. The first reason stays.
function Feed:finish(reason)
  self.ended = self.ended or reason
  self.news:notify()
end

--- The next item: {bytes, seq} or {size, seq}; nil and the reason at the end. Waits.
function Feed:pop()
  while #self.items == 0 do
    if self.ended then
      return nil, self.ended
    end
    self.news:wait()
  end
  return table.remove(self.items, 1)
end

local function send_output(stream, bytes, seq)
  local start = seq - #bytes
  for at = 1, #bytes, ITEM_BYTES do
    local piece = bytes:sub(at, at + ITEM_BYTES - 1)
    local item = { kind = "output", seq = start + at - 1 + #piece, data = text.base64(piece) }
    if not stream:send(item) then
      return false
    end
  end
  return true
end

local NO_SCREEN <const> = "this terminal has no screen now"

-- What the client missed, or the screen.
local function send_start(terminal, params, stream)
  local seq, since = terminal:seq(), params.since_seq
  local recording = terminal:recording()
  if since and since <= seq and seq - since <= REPLAY_MAX and recording then
    local bytes = recording:since(since)
    if bytes then
      return send_output(stream, bytes, seq)
    end
  end
  local screen = terminal:screen()
  local snapshot = screen and screen:snapshot(params.scrollback_rows or 0)
  if not snapshot then
    return nil, NO_SCREEN, "conflict"
  end
  return stream:send { kind = "snapshot", seq = seq, snapshot = snapshot }
end

--- Streams the output until the terminal, the client or the stream ends.
--- @return table|nil result, string|nil message, string|nil code, table|nil data
function M.output(terminal, params, stream)
  local feed = M.feed()
  local stop = terminal:watch(function(kind, value)
    feed:push(kind, value, terminal:seq())
  end)
  local forget = stream.token:on_cancel(function()
    feed:finish("cancelled")
  end)
  local last_seq = terminal:seq()
  local ok, message, code = send_start(terminal, params, stream)
  local item, reason
  while ok do
    item, reason = feed:pop()
    if not item then
      break
    elseif item.bytes then
      ok = send_output(stream, item.bytes, item.seq)
    else
      ok = stream:send { kind = "resized", seq = item.seq, size = item.size }
    end
    last_seq = item.seq
  end
  stop()
  forget()
  if ok == nil then
    return nil, message, code
  elseif reason == "overflow" then
    return nil, "this client is too slow for the stream", "overflow", { last_seq = last_seq }
  end
  return {}
end

-- ---- screens ----

-- The rows that differ from the picture before. Rows that are the same are the same table.
local function changed_rows(before, now)
  local out = {}
  for i, row in ipairs(now.rows) do
    if before.rows[i] ~= row then
      out[#out + 1] = { row = i - 1, cells = row.cells, wrapped = row.wrapped }
    end
  end
  return out
end

local function picture(before, now, seq)
  if not before or before.size.cols ~= now.size.cols or before.size.rows ~= now.size.rows then
    return { kind = "snapshot", seq = seq, snapshot = now }
  end
  return {
    kind = "screen", seq = seq, cursor = now.cursor, alternate_screen = now.alternate_screen,
    application_keys = now.application_keys, title = now.title, changed = changed_rows(before, now),
  }
end

-- Waits until watch.dirty or watch.over.
local function wait_news(watch)
  while not watch.dirty and not watch.over do
    watch.news:wait()
  end
end

local function send_pictures(terminal, stream, watch)
  local before, rows
  while not watch.over do
    watch.dirty = false
    local seq, screen = terminal:seq(), terminal:screen()
    local seen = { old = rows or {}, new = {} }
    local now = screen and screen:snapshot(0, seen)
    if not now then
      return nil, NO_SCREEN, "conflict"
    elseif not stream:send(picture(before, now, seq)) then
      return {}
    end
    before, rows = now, seen.new
    async.sleep(FRAME_MS)
    wait_news(watch)
  end
  return {}
end

--- Streams pictures of the screen, each with the rows that changed, until the terminal, the client
--- or the stream ends.
--- @return table|nil result, string|nil message, string|nil code
function M.screens(terminal, stream)
  local watch = { news = async.signal() }
  local function news(field)
    watch[field] = true
    watch.news:notify()
  end
  local stop = terminal:watch(function(kind)
    news(kind == "closed" and "over" or "dirty")
  end)
  local forget = stream.token:on_cancel(function()
    news("over")
  end)
  local result, message, code = send_pictures(terminal, stream, watch)
  stop()
  forget()
  return result, message, code
end

return M
