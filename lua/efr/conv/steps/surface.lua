-- Step surface: asks, before the next call, whether what an earlier one planted stays.
-- Must not know: what was planted. Runs in efrd, in the turn's task; waits.

local prompt = require "efr.conv.prompt"
local refuse = require "efr.conv.refuse"
local surface = require "efr.conv.surface"

local M = {}

---@param turn efr.Turn
---@param call table
---@return true|nil
function M.run(turn, call)
  surface.ask(turn)
  if turn:is_stopped() then
    return refuse.call(turn, call, prompt.cut_off(turn.token.reason, false),
      { kind = "interrupted", reason = "the turn was interrupted" })
  end
  return true
end

return M
