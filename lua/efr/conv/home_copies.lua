-- Owns: which files outside of all roots a decided call can change, so that they are copied before
-- it and looked at after it; and what is told of them.
-- Must not know: how a copy is made (store.snapshot_home), what is shown. Runs in efrd, in the
-- turn's task.
--
-- Policy: sandbox.md 7. Every path that a call with exits declares or is granted is copied, whoever
-- said yes. A directory comes whole where it is opened or goes whole. What cannot be copied is
-- named; a floor that cannot be copied keeps the call from running.

local events = require "efr.conv.events"
local floors = require "efr.perm.floors"
local paths = require "efr.perm.paths"
local snapshot_changes = require "efr.store.snapshot_changes"
local snapshot_names = require "efr.store.snapshot_names"

local M = {}

local UNITS <const> = "/.config/systemd/user"
local PRIVATE <const> = { "/tmp", "/var/tmp", "/dev", "/proc" } -- of a contained call alone

local function is_in_any(path, roots)
  for _, root in ipairs(roots) do
    if paths.within(path, root) then return true end
  end
  return false
end

-- Whether the line changes which units of the user start: links in their directory do.
local function changes_units(call)
  local line = call.lines and call.lines[call.input.command]
  for _, exit in ipairs(call.exits.list) do
    local lasts = exit.kind == "persistence" and exit.target:sub(1, 1) ~= "/"
    if lasts and line and line.text:find("systemctl", 1, true) then return true end
  end
  return false
end

-- What a call can write: {path, tree}.
local function targets_of(turn, call)
  local out = {}
  for _, item in ipairs(call.requirements) do
    if item.kind == "write" and not item.unknown then
      out[#out + 1] = { path = item.path, tree = item.tree }
    end
  end
  for _, grant in ipairs(call.exits.grants) do
    if grant.kind == "write" then out[#out + 1] = { path = grant.path, tree = true } end
  end
  if changes_units(call) then
    out[#out + 1] = { path = turn.home .. UNITS, tree = true, is_own = true }
  end
  return out
end

local function floor_of(call, path)
  local machine = paths.prepare(call.machine)
  return floors.group(paths.normalise(path, machine) or path, floors.places(machine),
    machine.project_roots)
end

-- A path of home as the store names it; nil: it lies elsewhere.
local function relative(turn, path)
  for _, home in ipairs({ turn.home, turn.app.snapshots.home }) do
    if paths.below(path, home) then return path:sub(#home + 2) end
  end
  return nil
end

-- Why no copy of a path can be made, or nil.
local function uncopied(turn, path)
  if (path .. "/"):find("/.git/", 1, true) then return "no copy" end
  if paths.within(turn.home, path) then return "over the copy limits" end
  return not relative(turn, path) and "outside your home directory" or nil
end

---What has to be copied before a call.
---@param turn efr.Turn
---@param call table  decided
---@param roots string[]  with snapshots of their own
---@return efr.HomePath[]? list
---@return {root: string, note: string}[]|string uncovered  or why the call must not run
function M.paths(turn, call, roots)
  local out, uncovered = {}, {}
  if not call.exits or not turn.app.snapshots.home then return out, uncovered end
  local private = call.launch == "contained" and PRIVATE or {}
  for _, target in ipairs(targets_of(turn, call)) do
    local path = target.path
    if not is_in_any(path, roots) and not is_in_any(path, private) then
      local why, floor = uncopied(turn, path), not target.is_own and floor_of(call, path) or nil
      if why and floor then
        return nil, ("%s runs or configures programs, and efr can keep no copy of it: %s")
          :format(path, why)
      elseif why then
        uncovered[#uncovered + 1] = { root = path, note = why }
      else
        out[#out + 1] = { path = relative(turn, path), tree = target.tree or nil,
          must = floor ~= nil or nil }
      end
    end
  end
  return out, uncovered
end

-- After the call ---------------------------------------------------------------------------------

local function kind_of(old, new)
  if not old then return "added" end
  return new and "modified" or "deleted"
end

local function left_code(state) return state and state.kind == "left" and state.code or nil end

---What a call changed outside of the roots, as events of the turn.
---@param turn efr.Turn
---@param call table
---@return table[] events  home_file_changed, by path
function M.changes(turn, call)
  local snapshots, out = turn.app.snapshots, {}
  for _, span in ipairs(call.snapshot and call.snapshot.done or {}) do
    local root = span.root == snapshots.home and snapshots:root(span.root)
    local diff, err
    if root then diff, err = root.store:diff(span.before, span.after, { all = true }) end
    if err then turn.app.log:error("changes of %s: %s", span.root, err) end
    for _, entry in pairs(snapshot_changes.pairs(diff or {})) do
      if not entry.is_dir and not snapshot_changes.is_same(entry.old, entry.new) then
        local path = turn.home .. "/" .. entry.path
        local code = left_code(entry.old) or left_code(entry.new)
        out[#out + 1] = events.make("home_file_changed", {
          call_id = call.id, path = turn.app.ports.text.clean(path),
          change = kind_of(entry.old, entry.new), covered = code == nil,
          floor = floor_of(call, path) ~= nil or nil, note = code and snapshot_names.REASONS[code],
        })
      end
    end
  end
  table.sort(out, function(a, b) return a.path < b.path end)
  return out
end

return M
