-- Owns: the snapshots of a turn: which roots a call can write, the trees around it, what it and the
-- turn changed.
-- Must not know: how a tree is made (store.snapshot), what is shown of a change.
-- Runs in efrd, in the turn's task; waits.
--
-- Policy: a call that may write has a snapshot of the turn's project, of $SCRATCH, and in auto of
-- every other project, and every directory of sandbox.write_roots, that it names. Without one it
-- does not run. What it can write without a snapshot is noted, so that an undo can say so.

local coverage = require "efr.conv.coverage"
local home_copies = require "efr.conv.home_copies"
local snapshot_changes = require "efr.store.snapshot_changes"

local M = {}

-- Requirements that change nothing.
local HARMLESS <const> = {
  read = true, network = true, may_prompt = true, settings = true, needs = true,
}

local function can_write(call)
  for _, item in ipairs(call.requirements or {}) do
    if not HARMLESS[item.kind] then return true end
  end
  return false
end

local function is_within(path, root)
  return path == root or path:sub(1, #root + 1) == root .. "/"
end

-- Adds a root: to those with a snapshot, or to those without.
local function add_root(turn, what, known, path)
  local real = path and turn.app.ports.fs.realpath(path)
  if not real or known[real] then return end
  known[real] = true
  local why = turn.app.git:why_not(real)
  if why then
    what.uncovered[#what.uncovered + 1] = { root = real, note = why }
  else
    what.roots[#what.roots + 1] = real
  end
end

-- A directory of the settings that holds the path; one that overlaps a root with a snapshot would
-- count its files twice.
local function add_write_root(turn, what, known, path)
  local fs = turn.app.ports.fs
  for _, setting in ipairs(turn.app.config:get("sandbox.write_roots") or {}) do
    local root = fs.realpath(setting)
    local is_free = root and is_within(fs.realpath(path) or path, root)
    for _, other in ipairs(what.roots) do
      is_free = is_free and not is_within(other, root) and not is_within(root, other)
    end
    if is_free then add_root(turn, what, known, root) end
  end
end

local function add_named(turn, what, known, call)
  for _, item in ipairs(call.requirements) do
    local project = item.path and turn.app.projects:containing(item.path)
    add_root(turn, what, known, project and project.root)
  end
  for _, item in ipairs(call.requirements) do
    if item.path then add_write_root(turn, what, known, item.path) end
  end
end

local function add_uncovered(what, path)
  for _, root in ipairs(what.roots) do
    if is_within(path, root) then return end
  end
  what.uncovered[#what.uncovered + 1] = { root = path, note = "outside the project" }
end

-- Files that a tool writes with no exit, and that lie in no root.
local function add_outside(what, call)
  if call.name == "shell" or call.exits then return end
  for _, item in ipairs(call.requirements) do
    if item.kind == "write" and not item.unknown then add_uncovered(what, item.path) end
  end
end

local function plan(turn, call)
  local what = {
    turn_id = turn.id, call_id = call.id, conversation_id = turn.conv.id, roots = {},
    uncovered = {}, may_skip = call.launch == "contained" and turn.snapped ~= nil,
  }
  local known = {}
  add_root(turn, what, known, turn.project_root)
  add_root(turn, what, known, turn.scratch)
  if turn.settings.mode == "auto" then add_named(turn, what, known, call) end
  add_outside(what, call)
  table.sort(what.roots)
  local home, more = home_copies.paths(turn, call, what.roots)
  if not home then return nil, more end
  what.home = home
  table.move(more, 1, #more, #what.uncovered + 1, what.uncovered)
  return what
end

-- Each note once in a turn.
local function new_notes(turn, list)
  local out = {}
  turn.uncovered = turn.uncovered or {}
  for _, item in ipairs(list) do
    if not turn.uncovered[item.root] then
      turn.uncovered[item.root] = true
      out[#out + 1] = item
    end
  end
  return out
end

-- Where the references of each root stood before the first call of the turn.
local function read_refs(turn, snapshot)
  turn.refs = turn.refs or {}
  for _, root in ipairs(snapshot.roots) do
    if turn.refs[root] == nil then
      local refs = turn.app.snapshots:refs(root)
      turn.refs[root] = refs and refs:look() or false
    end
  end
end

-- Without its launcher a call cannot start, and git cannot either.
local function launcher_missing(turn, call)
  if call.launch ~= "contained" or call.name ~= "shell" then return nil end
  local path, why = turn.app.sandbox.launcher:path()
  if path then return nil end
  turn.app.sandbox:check_again()
  return ("[the sandbox could not start: %s; nothing of it ran]"):format(why)
end

---Begins with the first snapshot of the project while the model still thinks.
---@param turn efr.Turn
function M.warm(turn)
  local snapshots, root = turn.app.snapshots, turn.project_root
  root = snapshots and root and turn.app.ports.fs.realpath(root)
  if root and not turn.app.git:why_not(root) then snapshots:warm(root) end
end

---The trees before a call.
---@param turn efr.Turn
---@param call table
---@return true?
---@return string? message  the call must not run
---@return string? text  what the model reads, when it is not about the snapshot
function M.before(turn, call)
  local snapshots = turn.app.snapshots
  if not snapshots or not snapshots:enabled() or not can_write(call) then return true end
  local text = launcher_missing(turn, call)
  if text then return nil, "the sandbox could not start", text end
  local what, why = plan(turn, call)
  if not what then return nil, why end
  what.uncovered = new_notes(turn, what.uncovered)
  local found, message = snapshots:begin(what)
  if not found then return nil, message end
  for _, item in ipairs(found.uncovered) do
    turn.uncovered[item.root] = true
  end
  call.snapshot = found
  turn.snapped = turn.snapped or {}
  read_refs(turn, found)
  local held, path = coverage.holds_still(turn, call)
  if held then return true end
  found:finish()
  call.snapshot = nil
  return nil, "not covered", ("[%s changed since this call was decided, and what would be lost "
    .. "cannot be brought back; the call did not run]"):format(path)
end

-- What differs between two trees of a root, with full paths.
local function changes_between(turn, path, before, after)
  local root, err = turn.app.snapshots:root(path)
  local diff
  if root then diff, err = root.store:diff(before, after, { renames = true, counts = true }) end
  if not diff then
    turn.app.log:error("changes of %s: %s", path, err)
    return {}
  end
  local list = snapshot_changes.list(diff)
  for _, change in ipairs(list) do
    change.path = path .. "/" .. change.path
    change.from = change.from and path .. "/" .. change.from
    change.at = nil
  end
  return list
end

local function remember(turn, call)
  for _, span in ipairs(call.snapshot.done) do
    local seen = turn.snapped[span.root]
    if not seen then
      seen = { first = span.before }
      turn.snapped[span.root] = seen
    end
    seen.last, seen.call_id = span.after, call.id
  end
end

---The trees after a call; what it changed, unless its tool said so itself.
---@param turn efr.Turn
---@param call table
---@return {files: table[]}? changes
function M.after(turn, call)
  local snapshot = call.snapshot
  if not snapshot then return call.result.changes end
  local ok, message = snapshot:finish { unfinished = call.stopped or call.left_running or false }
  if not ok then
    turn.app.log:error("call %s: %s", call.id, message)
    turn:fail("internal", "the snapshot after a command failed: " .. tostring(message))
  end
  remember(turn, call)
  if call.result.changes then return call.result.changes end
  local files = {}
  for _, span in ipairs(snapshot.done) do
    local is_home = span.root == turn.app.snapshots.home
    local list = is_home and {} or changes_between(turn, span.root, span.before, span.after)
    table.move(list, 1, #list, #files + 1, files)
  end
  return #files > 0 and { files = files } or nil
end

-- Puts what the trees say in place of what the calls said.
local function replace(turn, root, seen)
  for path in pairs(turn.changes) do
    if is_within(path, root) then turn.changes[path] = nil end
  end
  for _, change in ipairs(changes_between(turn, root, seen.first, seen.last)) do
    if change.left_out then turn.left_out[#turn.left_out + 1] = change.path end
    change.left_out = nil
    turn.changes[change.path] = change
  end
end

-- How many references the turn moved, by root.
local function record_refs(turn)
  local out = turn.app.ports.json.array({})
  for root, before in pairs(turn.refs or {}) do
    local count, err
    if before then
      count, err = turn.app.snapshots:record_refs(
        { turn_id = turn.id, conversation_id = turn.conv.id }, root, before)
      if not count then turn.app.log:error("references of %s: %s", root, err) end
    end
    if (count or 0) > 0 then out[#out + 1] = { root = root, count = count } end
  end
  return out
end

-- The modes in which things change with no question.
local OFFERS <const> = { auto = true, full = true }

---The end of a turn: its changes as the trees say, and whether it can be undone.
---@param turn efr.Turn
---@return {available: boolean, not_covered: string[], refs: {root: string, count: integer}[]?}?
function M.finish(turn)
  local snapshots = turn.app.snapshots
  if not turn.snapped or not snapshots then return nil end
  turn.left_out = {}
  local changed = false
  for root, seen in pairs(turn.snapped) do
    snapshots:settle({ turn_id = turn.id, call_id = seen.call_id,
      conversation_id = turn.conv.id, roots = { root } })
    if root ~= snapshots.home then replace(turn, root, seen) end
    changed = changed or seen.first ~= seen.last
  end
  snapshots:tidy()
  for root in pairs(turn.uncovered or {}) do turn.left_out[#turn.left_out + 1] = root end
  table.sort(turn.left_out)
  local refs = record_refs(turn)
  changed = changed or #refs > 0
  local offers = turn.app.config:get("undo.enabled") and OFFERS[turn.settings.mode]
  if not offers or not changed then return nil end
  return { available = true, not_covered = turn.app.ports.json.array(turn.left_out),
    refs = #refs > 0 and refs or nil }
end

return M
