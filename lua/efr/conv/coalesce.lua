-- Owns: doing something at once and then at most every so many milliseconds, while there is
-- reason to. Must not know: what is done. Runs in efrd, on the loop thread.

local async = require "efr.util.async"

local M = {}

---@class efr.Coalescer
local Coalescer = {}
Coalescer.__index = Coalescer

---@param interval_ms integer
---@param flush fun()  may wait; the next one starts only after it
---@return efr.Coalescer
function M.new(interval_ms, flush)
  return setmetatable({
    interval_ms = interval_ms,
    flush = flush,
    dirty = false,
    running = false,
    stopped = false,
  }, Coalescer)
end

---There is something to do. Never waits.
function Coalescer:poke()
  self.dirty = true
  if self.running or self.stopped then return end
  self.running = true
  async.spawn(function()
    while self.dirty and not self.stopped do
      self.dirty = false
      self.flush()
      async.sleep(self.interval_ms)
    end
    self.running = false
  end)
end

---Does now what is left to do. Waits.
function Coalescer:now()
  if not self.dirty then return end
  self.dirty = false
  self.flush()
end

---No flush starts any more.
function Coalescer:stop()
  self.stopped = true
end

return M
