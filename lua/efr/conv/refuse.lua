-- Owns: ending a call that does not run: the result for the model and the two events.
-- Must not know: why. Runs in efrd, in the turn's task; waits.

local events = require "efr.conv.events"

local M = {}

---Ends a call that did not run.
---@param turn efr.Turn
---@param call table
---@param text string  what the model reads
---@param refusal table  {kind = "input"|"floor"|"user"|"expired"|"interrupted", reason}
---@return nil
function M.call(turn, call, text, refusal)
  call.result = { output = text, is_error = true }
  turn:record({
    events.make("tool_call_started", {
      call_id = call.id,
      tool = call.name,
      input = call.input or {},
    }),
    events.make("tool_call_completed", {
      call_id = call.id,
      output = text,
      is_error = true,
      refusal = refusal,
    }),
  })
  return nil
end

return M
