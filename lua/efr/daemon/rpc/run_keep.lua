-- run.keep: the user's answer to what `efr run --dry` would change.
-- Main thread of efrd; waits.

local run_dry = require "efr.daemon.run_dry"

local function handler(app, session, params)
  if session.peer.model_side then
    return nil, "only you can keep the changes of a dry run", "forbidden"
  end
  if not app.sandbox.dry_runs[params.run_id] then
    return nil, "no dry run waits for this answer", "not_found"
  end
  if not params.keep then
    run_dry.drop(app, params.run_id)
    return {}
  end
  local done, err, code = run_dry.keep(app, params.run_id)
  if not done then
    return nil, err, code
  end
  return {
    written = done.restored, trashed = done.trashed, trash = done.trash, stopped = done.stopped,
    skipped = app.ports.json.array(done.skipped),
  }
end

return {
  method = "run.keep",
  scope = "terminal",
  params = {
    run_id = { type = "uuid" },
    keep = { type = "boolean" },
  },
  handler = handler,
}
