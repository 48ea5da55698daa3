-- run.end: the command of run.begin has ended; answers what the launcher recorded.
-- Main thread of efrd; waits.

local run_dry = require "efr.daemon.run_dry"
local run_snapshot = require "efr.daemon.run_snapshot"
local run_surface = require "efr.daemon.run_surface"

-- A run in overlays has changed nothing yet.
local function end_dry(app, session, call, params, result, err)
  if not result or result.setup_error then
    app.sandbox:check_again()
  end
  local found, why = run_dry.finish(app, session, call)
  if not found then
    return nil, why, "internal"
  end
  return {
    exit_code = result and result.exit_code or params.exit_code,
    changes = found.changes, dropped = #found.dropped > 0 and found.dropped or nil,
    waits = found.waits,
    sandbox = {
      confined = true,
      setup_error = not result and err or result and (result.setup_error or result.launch_error),
    },
  }
end

local function handler(app, session, params)
  if session.peer.model_side then
    return nil, "a command of the model cannot end efr run", "forbidden"
  end
  local call = app.sandbox.runs[params.run_id]
  if not call then
    return nil, "unknown run", "not_found"
  end
  app.sandbox.runs[params.run_id] = nil
  local result, err = call:result()
  call:cleanup()
  if call.dry then
    return end_dry(app, session, call, params, result, err)
  end
  local changes, undoable = run_snapshot.finish(app, call, params.run_id)
  local told = run_surface.finish(app, call, params.run_id)
  if not result or result.setup_error then
    app.sandbox:check_again()
  end
  if not result then -- the launcher was killed
    return {
      sandbox = { confined = true, setup_error = err, surface_changes = told.surface_changes },
      changes = changes, undo_id = undoable and params.run_id or nil,
      quarantined = told.quarantined, surface_files = told.files,
    }
  end
  return {
    exit_code = result.exit_code or params.exit_code,
    changes = changes, undo_id = undoable and params.run_id or nil,
    sandbox = {
      confined = true, setup_error = result.setup_error or result.launch_error,
      surface_changes = told.surface_changes,
    },
    quarantined = told.quarantined, surface_files = told.files,
  }
end

return {
  method = "run.end",
  scope = "terminal",
  params = {
    run_id = { type = "uuid" },
    exit_code = { type = "integer", min = 0, max = 255 },
  },
  handler = handler,
}
