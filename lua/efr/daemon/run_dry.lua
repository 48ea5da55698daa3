-- Owns: `efr run --dry`: the trees of what its command would have changed, and keeping them or not.
-- Must not know: how the run was prepared. Main thread of efrd; all waits but new.
--
-- Policy: the command runs in overlays over everything it may write, so nothing changes before the
-- user says so. What has no snapshot cannot be told, so such a run is refused. Git's own directory
-- is part of no snapshot: what the command did there is dropped, and told.

local async = require "efr.util.async"
local caches = require "efr.sbx.caches"
local changes = require "efr.conv.changes"
local diff = require "efr.undo.diff"
local dry = require "efr.undo.dry"
local snapshot_layer = require "efr.store.snapshot_layer"

local M = {}

local INSERT_RUN <const> = "INSERT INTO runs (id, line, cwd, created_at) VALUES (?, ?, ?, ?)"
local INSERT <const> = "INSERT INTO snapshot_spans (id, root, turn_id, call_id, state, tree_before,"
  .. " tree_after, shared, note, created_at) VALUES (?, ?, ?, ?, 'uncovered', ?, ?, 0, ?, ?)"
local SET_AFTER <const> = "UPDATE snapshot_spans SET tree_after = ? WHERE id = ?"
local NOTE <const> = "a dry run"
local LINE_MAX <const> = 4096
local GIT_QUIET <const> = { index = true, ["COMMIT_EDITMSG"] = true, ["FETCH_HEAD"] = true }

--- The conversation of a dry run: a place for its layers and its /tmp that no other run has.
--- @param run_id string
--- @return string
function M.conversation(run_id)
  return "dry-" .. run_id
end

-- Where the writes of a call go.
local function layers_of(app, run_id)
  return ("%s/sandbox/%s"):format(app.paths.state, M.conversation(run_id))
end

local function remove_layers(app, run_id)
  local ok, err = app.ports.fs.rmtree(layers_of(app, run_id))
  if not ok then
    app.log:warn("layers of a dry run: %s", err)
  end
end

local function forget(app, run_id)
  local ok, err = app.snapshots:write({
    { "DELETE FROM snapshot_spans WHERE turn_id = ?", { run_id } },
    { "DELETE FROM runs WHERE id = ?", { run_id } },
  })
  if not ok then
    app.log:error("dry run %s: %s", run_id, err)
  end
end

-- What lay above the overlay of a root.
local function covered_in(call, root)
  local out = {}
  for _, mount in ipairs(call.mounts) do
    if mount.path:sub(1, #root + 1) == root .. "/" then
      out[#out + 1] = mount.path:sub(#root + 2)
    end
  end
  return out
end

-- What the command can write, by its mounts.
local function roots_of(app, call)
  local out = {}
  for _, mount in ipairs(call.mounts) do
    if mount.dry then
      local why = mount.name ~= "git" and app.git:why_not(mount.path)
      if why then
        return nil, ("a dry run needs a snapshot of %s: %s"):format(mount.path, why)
      end
      out[#out + 1] = { path = mount.path, is_git = mount.name == "git",
        shut = covered_in(call, mount.path) }
    end
  end
  return out
end

local function begin_root(app, run_id, item)
  local root, err = app.snapshots:root(item.path)
  if not root then
    return nil, err
  end
  item.before, err = root:alone(root.take, root, false)
  if not item.before then
    return nil, err
  end
  item.id = app.snapshots.next_id
  app.snapshots.next_id = item.id + 1
  return app.snapshots:write({ { INSERT, { item.id, item.path, run_id, run_id, item.before,
    item.before, NOTE, app.ports.sys.now_us() } } })
end

--- The trees before the command.
--- @param app table
--- @param session table
--- @param call table  of sbx.calls; keeps what it needs
--- @param opts table  run_id, argv, cwd
--- @return true|nil, string|nil message
function M.begin(app, session, call, opts)
  local roots, err = roots_of(app, call)
  if not roots then
    remove_layers(app, opts.run_id)
    return nil, err
  end
  call.dry = { run_id = opts.run_id, roots = roots }
  local ok
  ok, err = app.snapshots:write({ { INSERT_RUN, { opts.run_id,
    table.concat(opts.argv, " "):sub(1, LINE_MAX), opts.cwd, app.ports.sys.now_us() } } })
  for _, item in ipairs(roots) do
    if ok and not item.is_git then
      ok, err = begin_root(app, opts.run_id, item)
    end
  end
  if not ok then
    M.drop(app, opts.run_id)
    return nil, err
  end
  session:at_close(function()
    if not call.dry.ended then
      async.spawn(M.drop, app, opts.run_id)
    end
  end)
  return true
end

--- Nothing of a run is kept.
--- @param app table
--- @param run_id string
function M.drop(app, run_id)
  app.sandbox.dry_runs[run_id] = nil
  remove_layers(app, run_id)
  forget(app, run_id)
end

-- Whether git's directory in a layer holds more than what reading commands write.
local function touched_git(app, dir)
  for _, entry in ipairs(app.ports.fs.readdir(dir) or {}) do
    if not GIT_QUIET[entry.name] and not entry.name:find("%.lock$") then
      return true
    end
  end
  return false
end

-- Adds what a root would become to the run.
local function finish_root(app, found, item)
  local upper = ("%s/cache/%s/upper"):format(layers_of(app, found.run_id), caches.name(item.path))
  if item.is_git or touched_git(app, upper .. "/.git") then
    local told = not item.is_git or touched_git(app, upper)
    found.dropped[#found.dropped + 1] = told and (item.is_git and item.path
      or item.path .. "/.git") or nil
  end
  if item.is_git then
    return true
  end
  local root, err = app.snapshots:root(item.path)
  local entries, tree, closed
  if root then
    tree, closed = root:alone(snapshot_layer.tree, root, upper, item.before,
      item.shut)
    err = closed
  end
  if tree then
    entries, err = dry.entries(root, item.before, tree)
  end
  if not entries then
    return nil, err
  end
  for _, path in ipairs(closed) do
    found.dropped[#found.dropped + 1] = item.path .. "/" .. path
  end
  for _, entry in ipairs(entries) do
    if entry.action == "not_covered" then
      found.dropped[#found.dropped + 1] = item.path .. "/" .. entry.path
    end
  end
  table.move(entries, 1, #entries, #found.entries + 1, found.entries)
  return app.snapshots:write({ { SET_AFTER, { tree, item.id } } })
end

local function has_work(entries)
  for _, entry in ipairs(entries) do
    if entry.result == "done" then
      return true
    end
  end
  return false
end

--- What the command would have changed; it waits to be kept.
--- @param app table
--- @param session table
--- @param call table
--- @return table|nil found  changes?, dropped: paths of which nothing can be kept
--- @return string|nil message
function M.finish(app, session, call)
  call.dry.ended = true
  local found = { run_id = call.dry.run_id, entries = {}, dropped = {} }
  local ok, err = true, nil
  for _, item in ipairs(call.dry.roots) do
    if ok then
      ok, err = finish_root(app, found, item)
    end
  end
  remove_layers(app, found.run_id)
  local files
  if ok then
    files, err = diff.of_turn({ snapshots = app.snapshots, scratch = app.paths.data .. "/scratch" },
      found.run_id, false)
  end
  if not files then
    forget(app, found.run_id)
    return nil, err
  end
  local sum = {}
  changes.add(sum, { files = files })
  found.changes = changes.total(sum, app.ports.json.array)
  if not has_work(found.entries) then
    forget(app, found.run_id)
    return found
  end
  app.sandbox.dry_runs[found.run_id] = found
  session:at_close(function()
    if app.sandbox.dry_runs[found.run_id] == found then
      async.spawn(M.drop, app, found.run_id)
    end
  end)
  found.waits = true
  return found
end

--- Keeps what a run would have changed.
--- @param app table
--- @param run_id string
--- @return table|nil done
--- @return string|nil message
--- @return string|nil code
function M.keep(app, run_id)
  local found = app.sandbox.dry_runs[run_id]
  app.sandbox.dry_runs[run_id] = nil
  return dry.keep(app, run_id, found.entries)
end

return M
