-- Owns: the write roots of a call, and its floors and pins together.
-- Must not know: the disk (asked through `look`) or how anything is mounted.
-- Runs in efrd. Pure but for that function.
--
-- Policy: writable are the project (and others, as sandbox.write_projects says), the scratch
-- directory, the roots of the settings, those of this call, and the recorded git directories of
-- projects whose own lies elsewhere; never /, the home directory or
-- above it, never at or inside a mask (but the scratch directory below efr's data) or a floor.
-- Missing roots and roots that are no directory are skipped. Inside a root stay read-only: git's
-- settings and hooks, and the floors of sbx.floors.

local floors_of = require "efr.sbx.floors"
local git_pins = require "efr.sbx.git_pins"
local masks_of = require "efr.sbx.masks"
local paths = require "efr.perm.paths"

local M = {}

local function in_kernel_tree(path)
  for _, tree in ipairs(masks_of.KERNEL_TREES) do
    if paths.within(path, tree) then return true end
  end
  return false
end

-- Why a directory cannot be a write root, or nil.
local function refusal(real, spec, masks, is_scratch)
  if paths.within(spec.real_home, real) then
    return ("%s cannot be a write root: it is or holds the home directory"):format(real)
  elseif real == "/tmp" or real == "/var/tmp" or in_kernel_tree(real) then
    return ("%s cannot be a write root: every call has its own"):format(real)
  end
  local mask = masks_of.over(masks, real)
  if mask and not is_scratch and not masks_of.over_any(spec.shown, real) then
    return ("%s cannot be a write root: it lies in %s, which is hidden"):format(real, mask.path)
  end
  return nil
end

local function candidates(spec)
  local out = {}
  local function add(path, name)
    if path then out[#out + 1] = { path = path, name = name } end
  end
  add(spec.project_root, "project")
  for _, path in ipairs(spec.other_projects or {}) do add(path, "project") end
  add(spec.scratch, "scratch")
  for _, path in ipairs(spec.write_roots or {}) do add(path, "setting") end
  for _, path in ipairs(spec.extra_write or {}) do add(path, "call") end
  for _, grant in ipairs(spec.granted and spec.granted.write or {}) do add(grant.path, "grant") end
  for _, dir in ipairs(spec.git_roots or {}) do
    add(dir.path, "git")
    out[#out].work_tree = dir.work_tree
  end
  return out
end

-- The scratch directory is one of efr's own, so it must be where it says.
local function scratch_is_real(spec, seen)
  return paths.below(seen.real, spec.real_data)
end

---The write roots, real and without duplicates.
---@param spec efr.sbx.Spec
---@param masks {path: string}[]
---@return {path: string, name: string}[]? roots
---@return string? err
function M.collect(spec, masks)
  local out, known = {}, {}
  for _, root in ipairs(candidates(spec)) do
    local seen = spec.look(root.path)
    local fits = seen and (seen.type == "dir" or root.name == "grant" and seen.type == "file")
    if fits and not known[seen.real] then
      local is_scratch = root.name == "scratch" and scratch_is_real(spec, seen)
      local why = refusal(seen.real, spec, masks, is_scratch)
      if why then return nil, why end
      known[seen.real] = true
      out[#out + 1] = { path = seen.real, name = root.name, work_tree = root.work_tree }
    end
  end
  return out
end

-- A root that lies at or inside a floor would take the floor away.
local function check_roots(roots, floors)
  for _, floor in ipairs(floors) do
    for _, root in ipairs(roots) do
      if floor.kind == "floor" and paths.within(root.path, floor.path) then
        return nil, ("%s cannot be a write root: it lies in %s, which is protected"):format(
          root.path, floor.path)
      end
    end
  end
  return true
end

-- The innermost root over a path.
local function inner_root(roots, path)
  local found
  for _, root in ipairs(roots) do
    if paths.below(path, root.path) and (not found or #root.path > #found.path) then
      found = root
    end
  end
  return found
end

-- The directories between a root and a floor: renamed, they would leave room for another file at
-- the floor's path, which is what runs. Not for git's own directories and those above a nested
-- repository: there the guard looks, and a source tree must be free to move.
local function pins_above(roots, floors)
  local out, known = {}, {}
  for _, floor in ipairs(floors) do
    if floor.kind == "pin" then known[floor.path] = true end
  end
  for _, floor in ipairs(floors) do
    local root = floor.kind == "floor" and not floor.path:find("/%.git$")
      and not floor.path:find("/.git/", 1, true) and inner_root(roots, floor.path)
    local dir = root and floor.path:match("^(.*)/")
    while dir and paths.below(dir, root.path) and not known[dir] do
      known[dir] = true
      out[#out + 1] = { kind = "pin", path = dir }
      dir = dir:match("^(.*)/")
    end
  end
  return out
end

---Floors and pins inside the roots and overlays, as mounts {kind, path}.
---@param spec efr.sbx.Spec
---@param roots {path: string, name: string}[]
---@param overlays {path: string}[]
---@param more {kind: string, path: string}[]  other floors
---@return {kind: string, path: string}[]? floors
---@return string? err
function M.floors(spec, roots, overlays, more)
  local out = table.move(more, 1, #more, 1, {})
  local pins, ok, err
  pins, err = git_pins.collect(spec, roots)
  if not pins then return nil, err end
  table.move(pins, 1, #pins, #out + 1, out)
  ok, err = check_roots(roots, out)
  if not ok then return nil, err end
  local floors
  floors, err = floors_of.collect(spec, roots, overlays)
  if not floors then return nil, err end
  table.move(floors, 1, #floors, #out + 1, out)
  local above = pins_above(roots, out)
  return table.move(above, 1, #above, #out + 1, out)
end

return M
