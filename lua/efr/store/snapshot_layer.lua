-- Owns: the tree that a root would be with what the layer of an overlay over it holds: what a
-- command wrote that ran in an overlay of the root.
-- Must not know: how the overlay was mounted, what becomes of the tree. Runs in efrd; tree waits.
--
-- Policy: what stood above the overlay (floors, masks) is closed: no path at or below it changes.
-- The layer is read as a root is, by descriptors and without links. In a layer a character
-- device stands for "removed", and a directory with the attribute hides what lies below it. Where
-- the root's own tree left something out, nothing of the layer counts: it is told, and not kept.

local async = require "efr.util.async"
local list = require "efr.util.list"
local names = require "efr.store.snapshot_names"
local snapshot_root = require "efr.store.snapshot_root"

local M = {}

local OPAQUE <const> = "user.overlay.opaque"
local DIR_MODE <const> = 493 -- 0755: of a directory without a mark
local STEPS <const> = 64 -- before the loop has its turn

local function parent_of(path) return path:match("^(.*)/[^/]*$") end

-- The root's own tree -----------------------------------------------------------------------------

-- Files and what was left out by path, and directories, with the names that they have.
local function read_base(listing)
  local base = { files = {}, dirs = {} }
  for name, entry in pairs(listing) do
    local found = names.decode(entry.mode, name)
    found.name = name
    base[found.kind == "dir" and "dirs" or "files"][found.path] = found
  end
  local implied = {}
  for _, kind in pairs(base) do
    for path in pairs(kind) do
      local dir = parent_of(path)
      while dir and not base.dirs[dir] and not implied[dir] do
        implied[dir] = true
        dir = parent_of(dir)
      end
    end
  end
  for path in pairs(implied) do base.dirs[path] = { path = path, kind = "dir", mode = DIR_MODE } end
  return base
end

-- The layer ---------------------------------------------------------------------------------------

-- Which directories of the layer hide what lies below them.
local function find_opaque(ports, upper, entries)
  local top <close>, err, code = ports.dir.open(upper)
  if not top then return nil, err, code end
  local out, steps = {}, 0
  for path, entry in pairs(entries) do
    if entry.type == "dir" and not entry.mark then
      local dir <close>, why, kind = top:open(path)
      if not dir then return nil, why, kind end
      out[path] = dir:xattr(OPAQUE) == "y"
      steps = steps + 1
      if steps % STEPS == 0 then async.sleep(0) end
    end
  end
  return out
end

local function read_layer(walked, upper)
  local changes, err, code = snapshot_root.find_changes(walked)
  if not changes then return nil, err, code end
  local layer = { entries = {} }
  for _, change in ipairs(changes) do
    if change.after then layer.entries[change.path] = change.after end
  end
  layer.opaque, err, code = find_opaque(walked.ports, upper, layer.entries)
  if not layer.opaque then return nil, err, code end
  return layer
end

local function is_gone(entry) return entry ~= nil and entry.type == "char" end

-- Both --------------------------------------------------------------------------------------------

-- Paths at or below which the layer does not count: the root's tree left them out, or the layer
-- holds there what no tree takes.
local function find_closed(base, layer, shut)
  local closed = {}
  for _, path in ipairs(shut) do closed[path] = true end
  for path, found in pairs(base.files) do
    if found.kind == "left" then closed[path] = true end
  end
  for path, entry in pairs(layer.entries) do
    if entry.type == "dir" and entry.mark and base.dirs[path] then closed[path] = true end
  end
  return closed
end

local function closed_over(closed, path)
  while path do
    if closed[path] then return path end
    path = parent_of(path)
  end
  return nil
end

-- Whether the layer hides what the root has at a path.
local function is_hidden(layer, path)
  local dir = parent_of(path)
  while dir do
    local entry = layer.entries[dir]
    if entry and (entry.type ~= "dir" or layer.opaque[dir]) then return true end
    dir = parent_of(dir)
  end
  return false
end

local function note_child(full, path)
  local dir = parent_of(path)
  while dir and not full[dir] do
    full[dir] = true
    dir = parent_of(dir)
  end
end

local function keep_dir(self, path)
  local found = self.base.dirs[path]
  self.dirs[path] = { type = "dir", mode = found.mode, uid = found.uid or 0, gid = found.gid or 0 }
  note_child(self.full, path)
end

-- A directory in which something closed lies stays, whatever became of it in the layer.
local function keep_above_closed(self)
  for path in pairs(self.closed) do
    local there = self.base.files[path] or self.base.dirs[path]
    local dir = there and parent_of(path)
    while dir do
      self.fixed[dir] = true
      keep_dir(self, dir)
      dir = parent_of(dir)
    end
  end
end

-- What stays of the root's own tree.
local function keep_base(self)
  for path in pairs(self.base.dirs) do
    local over = self.layer.entries[path]
    if closed_over(self.closed, path)
      or not is_hidden(self.layer, path) and (not over or over.type == "dir") then
      keep_dir(self, path)
    end
  end
  keep_above_closed(self)
  for path, found in pairs(self.base.files) do
    if closed_over(self.closed, path)
      or not self.layer.entries[path] and not is_hidden(self.layer, path) then
      self.kept[path] = found.name
      note_child(self.full, path)
    end
  end
end

local function add_entry(self, path, entry)
  note_child(self.full, path)
  if entry.type == "dir" and not entry.mark then
    self.dirs[path] = { type = "dir", mode = entry.mode, uid = entry.uid, gid = entry.gid }
    return
  end
  local mode, name, has_bytes = names.encode(path, entry, self.as_root)
  local old = self.base.files[path]
  local same = old and old.name == name and name or nil
  self.kept[path] = same
  table.insert(self.lines, { name = name, mode = mode, has_bytes = has_bytes, old_name = same,
    change = { path = path, after = entry } })
end

local function add_layer(self)
  local told = {}
  for path, entry in pairs(self.layer.entries) do
    local shut = closed_over(self.closed, path)
      or entry.type ~= "dir" and self.fixed[path] and path
    if shut then
      told[shut] = true
    elseif not is_gone(entry) then
      add_entry(self, path, entry)
    end
  end
  return list.keys(told)
end

-- The names that go, and those of directories that come.
local function finish_names(self)
  local lines = self.lines
  for path, found in pairs(self.base.files) do
    if not self.kept[path] then lines[#lines + 1] = { name = found.name } end
  end
  for path, dir in pairs(self.dirs) do
    dir.empty = not self.full[path]
    local mode, name = names.encode(path, dir, self.as_root)
    local old = self.base.dirs[path] and self.base.dirs[path].name
    if old ~= name and name then lines[#lines + 1] = { name = name, mode = mode } end
    if old ~= name and old then lines[#lines + 1] = { name = old } end
  end
  for path, found in pairs(self.base.dirs) do
    if not self.dirs[path] and found.name then lines[#lines + 1] = { name = found.name } end
  end
end

---What becomes of the names of a tree. Pure.
---@param listing table<string, {mode: string, oid: string}>  of the root's tree
---@param layer {entries: table<string, efr.TreeEntry>, opaque: table<string, boolean>}
---@param opts {as_root: boolean, shut: string[]}  shut: paths that were covered by other mounts
---@return table[] lines  {name, mode?, change?, old_name?, has_bytes?}
---@return string[] closed  what of the layer does not count, sorted
function M.merge(listing, layer, opts)
  local self = { base = read_base(listing), layer = layer, as_root = opts.as_root, lines = {},
    dirs = {}, full = {}, kept = {}, fixed = {} }
  self.closed = find_closed(self.base, layer, opts.shut)
  keep_base(self)
  local told = add_layer(self)
  finish_names(self)
  return self.lines, told
end

-- Into the store ----------------------------------------------------------------------------------

local function by_path(a, b) return a.change.path < b.change.path end

local function import(walked, base, lines)
  local files, links, bytes = {}, {}, 0
  for _, line in ipairs(lines) do
    local entry = line.change and line.has_bytes and line.change.after
    if entry then
      table.insert(entry.type == "link" and links or files, line)
      bytes = bytes + entry.size
    end
  end
  table.sort(files, by_path)
  table.sort(links, by_path)
  return walked.store:import {
    base = base, bytes = bytes,
    content = function(fd, mark)
      local err, code
      mark, err, code = snapshot_root.feed(walked, lines, files,
        { fd = fd, first_mark = mark, max_bytes = walked.limits().max_bytes })
      if mark then
        mark, err, code = snapshot_root.feed(walked, lines, links,
          { fd = fd, first_mark = mark, links = true })
      end
      return mark and lines, err, code
    end,
  }
end

---The tree of a root with a layer over it. Waits; the caller runs alone in the root.
---@param root efr.SnapshotRoot  whose store is there
---@param upper string  real path of the layer
---@param base string  the root's own tree
---@param shut string[]  paths in the root that other mounts covered
---@return string? tree
---@return string[]|string|nil closed  paths of which the layer's part is not in the tree; or err
---@return string? code
function M.tree(root, upper, base, shut)
  local listing, err, code = root.store:list(base)
  if not listing then return nil, err, code end
  local walked = { ports = root.ports, path = upper, store = root.store, as_root = root.as_root,
    ignored = root.ignored, limits = root.limits }
  walked.tree, err, code = root.ports.tree.open(upper)
  if not walked.tree then return nil, err, code end
  for _, name in ipairs(snapshot_root.FOLDERS) do assert(walked.tree:ask_for(name)) end
  local layer, lines, closed, tree
  layer, err, code = read_layer(walked, upper)
  if layer then
    lines, closed = M.merge(listing, layer, { as_root = root.as_root, shut = shut })
    tree = base
    if #lines > 0 then tree, err, code = import(walked, base, lines) end
  end
  walked.tree:close()
  if not tree then return nil, err, code end
  return tree, closed
end

return M
