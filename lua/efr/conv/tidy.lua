-- Owns: giving back what a turn needed: a whole collection, then the free heap to the system.
-- Must not know: conversations. Runs in efrd, on the loop thread, in a task of its own.
--
-- Policy: a collection of everything takes longer than a frame once there is much history, so it
-- goes in slices of about a millisecond with the loop in between. Without it the garbage of a turn
-- lies between what stays, and the heap grows by several times what the conversation keeps.

local async = require "efr.util.async"

local M = {}

local SLICE_US <const>, STEP_KB <const> = 1000, 64

---@class efr.Tidy
local Tidy = {}
Tidy.__index = Tidy

---@param sys table  mono_us, release_memory
---@return efr.Tidy
function M.new(sys)
  return setmetatable({ _sys = sys, _running = false, _again = false }, Tidy)
end

-- To the end of the collector's cycle. Waits.
local function finish_cycle(sys)
  local done
  repeat
    async.sleep(1)
    local limit = sys.mono_us() + SLICE_US
    repeat done = collectgarbage("step", STEP_KB) until done or sys.mono_us() >= limit
  until done
end

---Collects and gives back soon; asked again meanwhile, it does so once more. Never waits.
function Tidy:soon()
  self._again = true
  if self._running then return end
  self._running = true
  async.spawn(function()
    while self._again do
      self._again = false
      -- The cycle that is under way keeps what died since it began.
      finish_cycle(self._sys)
      finish_cycle(self._sys)
      self._sys.release_memory()
    end
    self._running = false
  end)
end

return M
