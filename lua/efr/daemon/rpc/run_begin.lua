-- run.begin: prepares the user's own command (`efr run`) as a contained call; the client runs the
-- launcher in its own terminal.
-- Main thread of efrd; waits.

local run_surface = require "efr.daemon.run_surface"

local MAX_ARGUMENTS <const> = 4096
local MAX_ARGUMENT <const> = 131072
local CONVERSATION <const> = "run" -- one private /tmp for all of them

local function real_roots(app, list)
  local out = {}
  for i, path in ipairs(list or {}) do
    local real, err = app.ports.fs.realpath(path)
    if not real then
      return nil, ("write root %s: %s"):format(path, err), "invalid"
    end
    out[i] = real
  end
  return out
end

local function handler(app, session, params)
  if session.peer.model_side then
    return nil, "a command of the model cannot start efr run", "forbidden"
  end
  local cwd, err = app.ports.fs.realpath(params.cwd)
  if not cwd then
    return nil, ("directory %s: %s"):format(params.cwd, err), "invalid"
  end
  local roots, code
  roots, err, code = real_roots(app, params.write)
  if not roots then
    return nil, err, code
  end
  local project = app.projects:containing(cwd)
  if not project and #roots == 0 then
    return nil, cwd .. " is in no project: register it (efr project add) or give --write PATH",
      "invalid"
  end
  local run_id = app.ports.sys.uuid7()
  local call
  call, err = app.sandbox:prepare({
    conversation_id = CONVERSATION, call_id = run_id, argv = params.argv, cwd = cwd,
    project_root = project and project.root, launch = "contained", extra_write = roots,
  })
  if not call then
    return nil, err, "conflict"
  end
  run_surface.begin(app, session, call, {
    conversation_id = CONVERSATION, run_id = run_id, cwd = cwd,
  })
  app.sandbox.runs[run_id] = call
  return {
    run_id = run_id, call_dir = call.dir, launcher = call.launcher,
    notes = #call.notes > 0 and call.notes or nil,
  }
end

return {
  method = "run.begin",
  scope = "terminal",
  params = {
    argv = {
      type = "list", min = 1, max = MAX_ARGUMENTS, items = { type = "string", max = MAX_ARGUMENT },
    },
    cwd = { type = "string", min = 1, max = 4096 },
    write = {
      type = "list", max = 64, items = { type = "string", min = 1, max = 4096 }, optional = true,
    },
  },
  handler = handler,
}
