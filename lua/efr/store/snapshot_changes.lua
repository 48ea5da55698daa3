-- Owns: reading the differences of snapshot trees: which file was what before and is what now, and
-- the list of changes that people are shown.
-- Must not know: git, the disk, who changed it. Pure. Runs in efrd.

local names = require "efr.store.snapshot_names"

local M = {}

---@class efr.SnapshotState
---@field kind "file"|"link"|"dir"|"left"
---@field mode integer?
---@field uid integer?
---@field gid integer?
---@field oid string?
---@field code string?  of what was left out
---@field name string  as it stands in the tree

local function state_of(git_mode, oid, name)
  local found = names.decode(git_mode, name)
  return found.path, {
    kind = found.kind, mode = found.mode, uid = found.uid, gid = found.gid, code = found.code,
    oid = oid, name = name,
  }
end

-- The names of files and of directories do not meet: a directory may take a file's place.
local function entry_of(out, path, state)
  local key = (state.kind == "dir" and "d" or "f") .. path
  local entry = out[key]
  if not entry then
    entry = { path = path, is_dir = state.kind == "dir" }
    out[key] = entry
  end
  return entry
end

---Before and after of each path that differs, by key.
---@param diff efr.SnapshotDiff[]
---@return table<string, {path: string, is_dir: boolean, old: efr.SnapshotState?,
---new: efr.SnapshotState?, item: efr.SnapshotDiff}>
function M.pairs(diff)
  local out = {}
  for i, item in ipairs(diff) do
    local status = item.status
    if status ~= "A" then
      local path, state = state_of(item.old_mode, item.old_oid, item.name)
      local entry = entry_of(out, path, state)
      entry.old, entry.item, entry.at = state, entry.item or item, entry.at or i
    end
    if status ~= "D" then
      local path, state = state_of(item.new_mode, item.new_oid, item.new_name or item.name)
      local entry = entry_of(out, path, state)
      entry.new, entry.item, entry.at = state, item, i
      if status == "R" then entry.from = names.decode(item.old_mode, item.name).path end
    end
  end
  return out
end

---Whether two states are the same to a person and to undo.
---@param a efr.SnapshotState?
---@param b efr.SnapshotState?
---@return boolean
function M.is_same(a, b)
  if a == nil or b == nil then return a == b end
  return a.name == b.name and a.oid == b.oid and a.kind == b.kind and a.mode == b.mode
end

local function kind_of(entry)
  if not entry.old then return "added" end
  return entry.new and "modified" or "deleted"
end

local function is_left(state)
  return state ~= nil and state.kind == "left"
end

-- Where a new file came from, when the old place is gone.
local function source_of(entry, found)
  local source = entry.from and not entry.old and found["f" .. entry.from]
  return source and source.old and not source.new and entry.from or nil
end

-- One change for people; nil: nothing that they would see.
local function change_of(entry, found)
  if entry.is_dir or M.is_same(entry.old, entry.new) then return nil end
  local item = entry.item
  local change = { path = entry.path, kind = kind_of(entry), at = entry.at,
    added = item.added or 0, removed = item.removed or 0 }
  change.left_out = is_left(entry.old) or is_left(entry.new) or nil
  if change.left_out or item.added == false then
    change.binary, change.added, change.removed = true, 0, 0
  end
  change.from = source_of(entry, found)
  if change.from then change.kind = "renamed" end
  return change
end

---The changes that people are shown, by path.
---@param diff efr.SnapshotDiff[]  with renames and counts
---@return table[] changes  {path, kind, from?, added, removed, binary?, left_out?, at}
function M.list(diff)
  local found, out, moved = M.pairs(diff), {}, {}
  for _, entry in pairs(found) do
    local change = change_of(entry, found)
    if change then
      out[#out + 1] = change
      if change.from then moved[change.from] = true end
    end
  end
  for i = #out, 1, -1 do
    if out[i].kind == "deleted" and moved[out[i].path] then table.remove(out, i) end
  end
  table.sort(out, function(a, b) return a.path < b.path end)
  return out
end

return M
