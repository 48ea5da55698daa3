-- The live tail of a command's output: the newest 4 KiB, for whoever follows.
--
-- Owns: when a tail is given. One that needs a replay comes later, and at most every 200 ms.
-- Must not know: terminals, who follows. Loop thread of efrd.

local async = require "efr.util.async"
local replay = require "efr.shell.replay"

local M = {}

M.TAIL_BYTES = 4096 ---@type integer
local REPLAY_MS <const> = 200

---Gives the tail of a run that has news to its on_output.
---@param run table
---@param screen efr.shell.Screen?
---@param now_ms integer
function M.report(run, screen, now_ms)
  if not run.news or not run.on_output or run.replaying then return end
  if not run.output:moves() then
    run.news = false
    return run.on_output(run.output:tail(M.TAIL_BYTES), run.output.total_bytes)
  end
  if now_ms - (run.reported or 0) < REPLAY_MS then return end
  run.news, run.reported, run.replaying = false, now_ms, true
  async.spawn(function()
    local bytes = run.output.total_bytes
    local text = replay.tail(run.output, screen, M.TAIL_BYTES)
    run.replaying = false
    if not run.answered then run.on_output(text, bytes) end
  end)
end

---The last tail before the result; none comes afterwards.
---@param run table
function M.finish(run)
  if not run.output:moves() then M.report(run, nil, 0) end
  run.answered = true
end

return M
