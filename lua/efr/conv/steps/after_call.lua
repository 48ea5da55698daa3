-- Step after_call: records the end of a call and adds its changes to the turn's.
-- Must not know: the tool. Runs in efrd, in the turn's task; waits.

local changes = require "efr.conv.changes"
local events = require "efr.conv.events"
local home_copies = require "efr.conv.home_copies"
local snapshots = require "efr.conv.snapshots"
local surface = require "efr.conv.surface"

local M = {}

local function sandbox_of(call)
  if call.launch ~= "contained" or call.name ~= "shell" or call.no_shell then return nil end
  return {
    confined = not call.setup_error, setup_error = call.setup_error,
    surface_changes = call.surface and call.surface.changes, freed = call.freed,
  }
end

-- The changes of a tool without those that are told on their own.
local function without(found, outside)
  local told, files = {}, {}
  for _, event in ipairs(outside) do told[event.path] = true end
  for _, file in ipairs(found and found.files or {}) do
    if not told[file.path] then files[#files + 1] = file end
  end
  return { files = files }
end

---@param turn efr.Turn
---@param call table
---@return true|nil
function M.run(turn, call)
  local result, array = call.result, turn.app.ports.json.array
  local own = {}
  local found = snapshots.after(turn, call)
  local outside = home_copies.changes(turn, call)
  changes.add(own, found)
  changes.add(turn.changes, without(found, outside))
  surface.add_changes(turn, result.changes)
  local list = { events.make("tool_call_completed", {
    call_id = call.id,
    output = turn.app.ports.text.clean(result.output),
    truncated = result.truncated or nil,
    is_error = result.is_error or nil,
    exit_code = result.exit_code,
    refusal = call.refusal,
    sandbox = sandbox_of(call),
    changes = changes.total(own, array),
    diff = result.diff,
  }), call.surface }
  return turn:record(table.move(outside, 1, #outside, #list + 1, list)) and true
end

return M
