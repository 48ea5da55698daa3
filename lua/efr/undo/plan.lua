-- Owns: what an undo would do to each path, from what the calls of a turn changed and what is on
-- the disk now.
-- Must not know: the disk, git, the store. Pure. Runs in efrd.
--
-- Policy: only paths that the turn's own calls changed. One that is no longer as the last of these
-- calls left it, or that somebody else changed between two of them or at the same time, is skipped
-- unless forced. What a snapshot left out is never touched.

local changes = require "efr.store.snapshot_changes"
local names = require "efr.store.snapshot_names"

local M = {}

local DEFAULT_MODE <const> = 493 -- 0755: of a directory without a mark

---@class efr.UndoEntry
---@field root string
---@field path string  relative to it
---@field is_dir boolean?
---@field action "restore"|"trash"|"skip"|"not_covered"
---@field from efr.SnapshotState?  as it must be now; nil: absent
---@field to efr.SnapshotState?  as it was before; nil: absent
---@field reason string?
---@field forceable boolean?  a skipped row that --force takes

-- Listings ----------------------------------------------------------------------------------------

local function note_parents(dirs, path)
  local dir = path:match("^(.*)/")
  while dir and not dirs[dir] do
    dirs[dir] = DEFAULT_MODE
    dir = dir:match("^(.*)/")
  end
end

---What a tree holds: files by path, and the mode of each directory.
---@param listing table<string, {mode: string, oid: string}>  of store:list
---@return {files: table<string, efr.SnapshotState>, dirs: table<string, integer>,
---owners: table<string, table>}
function M.read(listing)
  local files, dirs, owners = {}, {}, {}
  for name, entry in pairs(listing) do
    local found = names.decode(entry.mode, name)
    if found.kind == "dir" then
      note_parents(dirs, found.path)
      dirs[found.path], owners[found.path] = found.mode, found
    else
      note_parents(dirs, found.path)
      files[found.path] = { kind = found.kind, mode = found.mode, uid = found.uid,
        gid = found.gid, code = found.code, oid = entry.oid, name = name }
    end
  end
  -- A marked directory may be met after what lies in it.
  for path, found in pairs(owners) do dirs[path] = found.mode end
  return { files = files, dirs = dirs, owners = owners }
end

-- One side of several pairs of trees: of each path the first pair that knows it counts.
local function first_of(pairs_of, side)
  local out = { files = {}, dirs = {}, owners = {} }
  for what, into in pairs(out) do
    local known = {}
    for _, pair in ipairs(pairs_of) do
      for _, tree in ipairs({ pair.before, pair.after }) do
        for path in pairs(tree[what]) do
          if not known[path] then
            known[path], into[path] = true, pair[side][what][path]
          end
        end
      end
    end
  end
  return out
end

---The trees before the first and after the last of several spans, where each span's trees hold only
---what its call could change.
---@param pairs_of {before: table, after: table}[]  of M.read, oldest first
---@return table before
---@return table after
function M.put_together(pairs_of)
  local backwards = {}
  for i = #pairs_of, 1, -1 do backwards[#backwards + 1] = pairs_of[i] end
  return first_of(pairs_of, "before"), first_of(backwards, "after")
end

-- Adding up ---------------------------------------------------------------------------------------

local function note(sum, entry, span)
  local known = sum[entry.path]
  if not known then
    known = { path = entry.path, old = entry.old }
    sum[entry.path] = known
  elseif not changes.is_same(known.new, entry.old) then
    known.broken = true
  end
  known.new = entry.new
  known.shared = known.shared or span.shared
  known.unfinished = known.unfinished or span.unfinished
end

---What the calls of a turn did to the files of one root, by path.
---@param spans {diff: efr.SnapshotDiff[], shared: boolean, unfinished: boolean}[]  oldest first
---@return table<string, {path: string, old: efr.SnapshotState?, new: efr.SnapshotState?,
---broken: boolean?, shared: boolean?, unfinished: boolean?}> files
---@return table<string, {shared: boolean, unfinished: boolean}> dirs  whose marks changed
function M.add_up(spans)
  local files, dirs = {}, {}
  for _, span in ipairs(spans) do
    for _, entry in pairs(changes.pairs(span.diff)) do
      if entry.is_dir then
        dirs[entry.path] = { shared = span.shared, unfinished = span.unfinished }
      else
        note(files, entry, span)
      end
    end
  end
  return files, dirs
end

-- Rows --------------------------------------------------------------------------------------------

local function left_out(...)
  for i = 1, select("#", ...) do
    local state = select(i, ...)
    if state and state.kind == "left" then return names.REASONS[state.code] or "it was left out" end
  end
  return nil
end

local function conflict_of(change, now)
  if change.unfinished then return "its call did not finish" end
  if change.shared then return "another call ran at the same time" end
  if change.broken then return "changed between the turn's calls" end
  if not changes.is_same(now, change.new) then return "changed since" end
  return nil
end

local function file_row(root, change, now, force)
  local row = { root = root, path = change.path, from = now, to = change.old }
  local reason = left_out(change.old, change.new, now)
  if reason then
    row.action, row.reason = "not_covered", "the snapshot left it out: " .. reason
    return row
  end
  if changes.is_same(now, change.old) then return nil end
  row.action = change.old and "restore" or "trash"
  local conflict = conflict_of(change, now)
  if conflict and not force then
    row.action, row.reason, row.forceable = "skip", conflict, true
  end
  return row
end

---What a directory is in a tree.
---@param tree table  of M.read
---@param path string
---@return efr.SnapshotState?
function M.dir_state(tree, path)
  if not tree.dirs[path] then return nil end
  local owner = tree.owners[path] or {}
  return { kind = "dir", mode = tree.dirs[path], uid = owner.uid, gid = owner.gid }
end

-- Directories that the undo may have to make, remove or set right.
local function touched_dirs(rows, marked)
  local out = {}
  for _, row in ipairs(rows) do
    if row.action == "restore" or row.action == "trash" then note_parents(out, row.path) end
  end
  for path in pairs(marked) do
    out[path] = DEFAULT_MODE
    note_parents(out, path)
  end
  return out
end

local function same_dir(a, b)
  if a == nil or b == nil then return a == b end
  return a.mode == b.mode and a.uid == b.uid and a.gid == b.gid
end

-- Directories come back to what they were before the turn, where the turn is what changed them.
local function dir_rows(out, root, dirs, trees)
  for path in pairs(dirs) do
    local before = M.dir_state(trees.before, path)
    local after, now = M.dir_state(trees.after, path), M.dir_state(trees.now, path)
    if not same_dir(before, after) and not same_dir(before, now) and (now == nil) == (after == nil)
    then
      out[#out + 1] = { root = root, path = path, is_dir = true, from = now, to = before,
        action = before and "restore" or "trash" }
    elseif before and not now then
      out[#out + 1] = { root = root, path = path, is_dir = true, to = before, action = "restore" }
    end
  end
end

local function by_path(a, b)
  if a.path ~= b.path then return a.path < b.path end
  return (a.is_dir and 1 or 0) < (b.is_dir and 1 or 0)
end

---The rows for one root.
---@param root string
---@param spans table[]  of M.add_up
---@param trees {before: table, after: table, now: table}  of M.read: before the first call of the
---turn, after its last, and now
---@param force boolean
---@return efr.UndoEntry[]
function M.rows(root, spans, trees, force)
  local files, marked = M.add_up(spans)
  local out = {}
  for path, change in pairs(files) do
    if not changes.is_same(change.old, change.new) or change.broken then
      out[#out + 1] = file_row(root, change, trees.now.files[path], force)
    end
  end
  dir_rows(out, root, touched_dirs(out, marked), trees)
  table.sort(out, by_path)
  return out
end

---The rows that take an undo back.
---@param entries efr.UndoEntry[]  of the undo, those that were done
---@param now_of fun(entry: efr.UndoEntry): efr.SnapshotState?
---@param force boolean
---@return efr.UndoEntry[]
function M.reverse(entries, now_of, force)
  local out = {}
  for _, entry in ipairs(entries) do
    local now = now_of(entry)
    local same = entry.is_dir and same_dir or changes.is_same
    local row = { root = entry.root, path = entry.path, is_dir = entry.is_dir, from = now,
      to = entry.from, action = entry.from and "restore" or "trash" }
    if same(now, entry.from) then
      row = nil
    elseif left_out(now) then
      row.action, row.reason = "not_covered", "the snapshot left it out"
    elseif not same(now, entry.to) and not force then
      row.action, row.reason, row.forceable = "skip", "changed since", true
    end
    out[#out + 1] = row
  end
  return out
end

-- The order of the work ---------------------------------------------------------------------------

local function depth_of(path) return select(2, path:gsub("/", "")) end

-- Which round an entry belongs to: files go, then directories that were made, from the inside out;
-- then directories come back from the outside in, then files, then the rights of directories.
local function round_of(entry)
  if not entry.is_dir then return entry.to and 4 or 1 end
  if not entry.to then return 2 end
  return entry.from and 5 or 3
end

---The entries that are carried out, in the order of the work.
---@param rows efr.UndoEntry[]
---@return efr.UndoEntry[]
function M.steps(rows)
  local out = {}
  for _, row in ipairs(rows) do
    if row.action == "restore" or row.action == "trash" then out[#out + 1] = row end
  end
  table.sort(out, function(a, b)
    local one, other = round_of(a), round_of(b)
    if one ~= other then return one < other end
    if a.root ~= b.root then return a.root < b.root end
    if a.is_dir then
      local deep, deeper = depth_of(a.path), depth_of(b.path)
      if deep ~= deeper then
        if one == 3 then return deep < deeper end
        return deep > deeper
      end
    end
    return a.path < b.path
  end)
  return out
end

return M
