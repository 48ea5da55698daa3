-- Step run: runs a decided call and passes its output on while it runs.
-- Must not know: what the tool does. Runs in efrd, in the turn's task; waits.
--
-- Policy: a call without a launch was not decided and does not run. A tool that raises fails its
-- call, not the turn.

local async = require "efr.util.async"
local coalesce = require "efr.conv.coalesce"
local events = require "efr.conv.events"
local exit_check = require "efr.conv.exit_check"
local prompt = require "efr.conv.prompt"

local M = {}

local MAX_TAIL <const> = 4096

local function follow_output(turn, call)
  local tail, bytes
  local updates = coalesce.new(turn.app.config:get("conversation.update_interval_ms"), function()
    turn:record({ events.make("tool_call_output_updated", {
      call_id = call.id,
      tail = turn.app.ports.text.clean(tail:sub(-MAX_TAIL)),
      bytes = bytes,
    }) })
  end)
  call.ctx.on_output = function(new_tail, new_bytes)
    tail, bytes = new_tail, new_bytes
    updates:poke()
  end
  call.flush_output = function() updates:now() end
  return updates
end

local function interrupted(turn, result)
  local output = result and result.output or ""
  if output ~= "" then output = output .. "\n" end
  return {
    output = output .. prompt.cut_off(turn.token.reason, true),
    is_error = true,
    truncated = result and result.truncated,
    exit_code = result and result.exit_code,
    changes = result and result.changes,
    diff = result and result.diff,
  }
end

-- The second check of a tool that runs in efrd itself; that of a line comes where it starts. Gives
-- the result of a call that must not run.
local function changed(turn, call)
  if not call.exits or call.name == "shell" then return nil end
  local ok, why = exit_check.again(turn, call)
  if ok then return nil end
  call.refusal = { kind = "changed", reason = why }
  return {
    output = ("efr did not do it: %s. Call again if it is still needed: it is decided anew.")
      :format(why),
    is_error = true,
  }
end

---@param turn efr.Turn
---@param call table
---@return true
function M.run(turn, call)
  assert(call.launch and call.decision, "the call was not decided")
  call.result = changed(turn, call)
  if call.result then return true end
  local updates = follow_output(turn, call)
  local ok, result = async.spawn(call.tool.run, call.input, call.ctx):wait()
  updates:stop()
  call.flush_output = nil
  if not ok then
    turn.app.log:error("tool %s: %s", call.name, result)
    result = { output = "The tool failed with an internal error of efr.", is_error = true }
  end
  -- A call that was complete before the interrupt keeps its own result.
  if turn.token.cancelled and (call.stopped or not ok) then result = interrupted(turn, result) end
  call.result = result
  return true
end

return M
