-- Owns: which paths of a call a snapshot covers, so that losing them can be taken back: once ahead
-- of the decision, and once more with the call's own trees.
-- Must not know: what is decided with it. Runs in efrd, in the turn's task; waits.
--
-- Policy: a path is covered when it lies below a root of the call, on the disk and by its real
-- name, and the tree of now holds all that lies there: nothing was left out at it or below it.
-- A root itself is never covered.

local snapshot_names = require "efr.store.snapshot_names"

local M = {}

-- Words of lines that can throw a file away, as the permission code names them. Without one of
-- them nobody asks what is covered.
local WORDS <const> = { "rm", "truncate", "dd" }
local EMPTIES <const> = { "^%s*>", "[;&|\n]%s*>", ":%s*>", "true%s*>" }

local function may_throw_away(requirements)
  for _, item in ipairs(requirements) do
    if item.kind == "destructive" then return true end
    if item.kind == "line" then
      for _, word in ipairs(WORDS) do
        if item.text:find("%f[%w]" .. word .. "%f[%W]") then return true end
      end
      for _, pattern in ipairs(EMPTIES) do
        if item.text:find(pattern) then return true end
      end
    end
  end
  return false
end

-- The names at one level of a tree that stand for a path: what it is, and what was left out.
local function entries_at(store, tree, path)
  local parent = path:match("^(.*)/")
  local at = parent and tree .. ":" .. snapshot_names.encode_path(parent) or tree
  local out = store:command({ "ls-tree", "-z", at })
  if not out then return nil end
  local found = {}
  for mode, kind, _, name in out:gmatch("(%d+) (%l+) (%x+)\t([^%z]+)%z") do
    local full = (parent and snapshot_names.encode_path(parent) .. "/" or "") .. name
    local entry = snapshot_names.decode(mode, full)
    if entry.path == path then found[#found + 1] = { kind = kind, entry = entry, name = full } end
  end
  return found
end

local function tree_is_whole(store, tree, name)
  local out = store:command({ "ls-tree", "-r", "-z", tree .. ":" .. name })
  if not out then return false end
  for mode, inner in out:gmatch("(%d+) %l+ %x+\t([^%z]+)%z") do
    if snapshot_names.decode(mode, inner).kind == "left" then return false end
  end
  return true
end

-- Whether a tree holds all of a path of its root.
local function holds(store, tree, path)
  local entries = entries_at(store, tree, path)
  if not entries or #entries == 0 then return false end
  for _, found in ipairs(entries) do
    if found.entry.kind == "left" then return false end
    if found.kind == "tree" and not tree_is_whole(store, tree, found.name) then return false end
  end
  return true
end

local function is_below(path, root) return path:sub(1, #root + 1) == root .. "/" end

local function is_on(turn)
  local config, snapshots = turn.app.config, turn.app.snapshots
  return turn.settings.mode == "auto" and snapshots and snapshots:enabled()
    and config:get("undo.enabled") and config:get("sandbox.ask_destructive") == "unless_undoable"
end

-- The root that a path lies below, with its tree of now.
local function root_of(turn, real, trees)
  for _, path in ipairs({ turn.project_root or false, turn.scratch or false }) do
    local root = path and turn.app.ports.fs.realpath(path)
    if root and is_below(real, root) and not turn.app.git:why_not(root) then
      local known = trees[root]
      if known == nil then
        local snapshot = turn.app.snapshots:root(root)
        local tree = snapshot and snapshot:alone(snapshot.take, snapshot, false)
        known = tree and { store = snapshot.store, tree = tree, root = root } or false
        trees[root] = known
      end
      return known
    end
  end
  return nil
end

---The paths that the call writes and of which a snapshot holds everything.
---@param turn efr.Turn
---@param call table  with requirements
---@param declared table[]  what the tool declared
---@return table<string, boolean>?
function M.paths(turn, call, declared)
  if not is_on(turn) or not may_throw_away(declared) then return nil end
  local out, trees = {}, {}
  for _, item in ipairs(call.requirements) do
    local real = item.kind == "write" and item.path and turn.app.ports.fs.realpath(item.path)
    -- A name that is a link, or lies behind one, may mean another file when the call runs.
    if real and real == item.path then
      local found = root_of(turn, real, trees)
      if found and holds(found.store, found.tree, real:sub(#found.root + 2)) then
        out[real] = true
      end
    end
  end
  return next(out) and out or nil
end

---Whether the trees before the call hold what the decision relied on.
---@param turn efr.Turn
---@param call table  with its snapshot
---@return boolean ok
---@return string? path  that is not covered any more
function M.holds_still(turn, call)
  local paths = call.facts and call.facts.covered_paths
  if not paths then return true end
  for path in pairs(paths) do
    local held = false
    for _, root in ipairs(call.snapshot and call.snapshot.roots or {}) do
      local snapshot = is_below(path, root) and turn.app.snapshots:root(root)
      held = held or snapshot and snapshot.tree_id
        and holds(snapshot.store, snapshot.tree_id, path:sub(#root + 2))
    end
    if not held then return false, path end
  end
  return true
end

return M
