-- Step before_call: the snapshot before a decided call, and the record that it starts.
-- Must not know: how the call was decided. Runs in efrd, in the turn's task; waits.

local events = require "efr.conv.events"
local input = require "efr.conv.input"
local prompt = require "efr.conv.prompt"
local refuse = require "efr.conv.refuse"
local snapshots = require "efr.conv.snapshots"

local M = {}

local NO_COPY <const> = "[efr could not keep a copy of the files that this call can change, so it "
  .. "did not run: %s. The user can turn these copies off: snapshot.enabled = false]"

local function launch_of(turn, call)
  if call.launch == "outside" then return { kind = "unsandboxed" } end
  if call.launch ~= "contained" then return { kind = "direct" } end
  local grants = call.exits and call.exits.wire or turn.app.ports.json.array({})
  return { kind = "contained", grants = grants }
end

---@param turn efr.Turn
---@param call table
---@return true|nil
function M.run(turn, call)
  if turn:is_stopped() then
    return refuse.call(turn, call, prompt.cut_off(turn.token.reason, false),
      { kind = "interrupted", reason = "the turn was interrupted" })
  end
  local covered, message, text = snapshots.before(turn, call)
  if not covered then
    text = text or NO_COPY:format(message)
    return refuse.call(turn, call, text, { kind = "snapshot", reason = message })
  end
  return turn:record({ events.make("tool_call_started", {
    call_id = call.id,
    tool = call.name,
    input = call.input,
    launch = launch_of(turn, call),
    manual_input = input.takes_manual(call) or nil,
  }) }) and true
end

return M
