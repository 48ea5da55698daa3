-- Waiting on the real loop for the specs of C bindings, with a limit. Knows no module but luv.
local uv = require "luv"

local M = {}

local LIMIT_MS <const> = 20000

--- Runs the loop until ready() is true; fails after the limit.
--- @param ready fun(): any
function M.wait_until(ready)
  local late = false
  local timer, prepare = uv.new_timer(), uv.new_prepare()
  timer:start(LIMIT_MS, 0, function()
    late = true
  end)
  -- Before each poll, so that what a timer brought does not wait for more.
  prepare:start(function()
    if late or ready() then
      uv.stop()
    end
  end)
  while not late and not ready() do
    uv.run()
  end
  timer:close()
  prepare:close()
  uv.run("nowait")
  assert(not late, "nothing came within the limit")
end

return M
