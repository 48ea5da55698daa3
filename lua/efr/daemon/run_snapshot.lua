-- Owns: the snapshots around `efr run`: before its command, after it, and what it changed.
-- Must not know: how a run is prepared. Main thread of efrd; the functions wait.
--
-- Policy: as for a call of the model: without a snapshot the command does not run. A client that
-- goes away leaves a run that did not finish.

local async = require "efr.util.async"
local changes = require "efr.conv.changes"
local diff = require "efr.undo.diff"

local M = {}

local LINE_MAX <const> = 4096

local function record(app, run_id, opts)
  local line = table.concat(opts.argv, " ")
  return app.snapshots:write({ {
    "INSERT INTO runs (id, line, cwd, created_at) VALUES (?, ?, ?, ?)",
    { run_id, line:sub(1, LINE_MAX), opts.cwd, app.ports.sys.now_us() },
  } })
end

-- What the command may write: with a snapshot, or without one and why.
local function plan(app, run_id, opts)
  local what = { turn_id = run_id, call_id = run_id, roots = {}, uncovered = {}, may_skip = false }
  local known = {}
  local function add(path)
    if known[path] then
      return
    end
    known[path] = true
    local info = app.ports.fs.lstat(path)
    local why = info and info.type ~= "dir" and "a single file" or app.git:why_not(path)
    if why then
      what.uncovered[#what.uncovered + 1] = { root = path, note = why }
    else
      what.roots[#what.roots + 1] = path
    end
  end
  if opts.project_root then
    add(app.ports.fs.realpath(opts.project_root) or opts.project_root)
  end
  for _, grant in ipairs(opts.grants) do
    add(grant.path)
  end
  table.sort(what.roots)
  return what
end

--- The trees before the command.
--- @param app table
--- @param session table
--- @param call table  of sbx.calls; keeps the snapshot
--- @param opts table  run_id, argv, cwd, project_root?, grants
--- @return true|nil, string|nil message
function M.begin(app, session, call, opts)
  if not app.snapshots:enabled() then
    return true
  end
  local what = plan(app, opts.run_id, opts)
  if #what.roots == 0 and #what.uncovered == 0 then
    return true
  end
  local ok, err = record(app, opts.run_id, opts)
  if ok then
    call.snapshot, err = app.snapshots:begin(what)
  end
  if not call.snapshot then
    return nil, err
  end
  call.refs = {}
  for _, root in ipairs(call.snapshot.roots) do
    local refs = app.snapshots:refs(root)
    call.refs[root] = refs and refs:look()
  end
  session:at_close(function()
    local snapshot = call.snapshot
    call.snapshot = nil
    if snapshot then
      async.spawn(snapshot.finish, snapshot, { unfinished = true })
    end
  end)
  return true
end

--- The trees after the command, and what it changed.
--- @param app table
--- @param call table
--- @param run_id string
--- @return table|nil changes, boolean undoable
function M.finish(app, call, run_id)
  local snapshot = call.snapshot
  call.snapshot = nil
  if not snapshot then
    return nil, false
  end
  local ok, err = snapshot:finish()
  if not ok then
    app.log:error("efr run: %s", err)
    return nil, false
  end
  local moved = 0
  for root, before in pairs(call.refs) do
    moved = moved + (app.snapshots:record_refs({ turn_id = run_id }, root, before) or 0)
  end
  local files = diff.of_turn({ snapshots = app.snapshots, scratch = app.paths.data .. "/scratch" },
    run_id, false)
  local sum = {}
  changes.add(sum, { files = files })
  local total = changes.total(sum, app.ports.json.array)
  return total, (total ~= nil or moved > 0) and app.config:get("undo.enabled") == true
end

return M
