-- Owns: the copies of single files outside of all roots, which a call may change: one store for the
-- home directory, and trees that hold only what calls in flight may change.
-- Must not know: calls, why a path may change. Runs in efrd; take waits, in a task.
-- It has the face of a root (snapshot_root): path, dir, store, alone, take, close.
--
-- Policy: every path is read below the open home directory, no link followed and no mount entered,
-- in Lua and never by git. A link stays a link; the file behind it has a name of its own. What is
-- hidden from commands is never copied. Directories stand in a tree with a mark of their own, so a
-- tree says which ones were there. Before a call a file that cannot be read is a failure.

local async = require "efr.util.async"
local list = require "efr.util.list"
local names = require "efr.store.snapshot_names"
local snapshot_git = require "efr.store.snapshot_git"
local snapshot_root = require "efr.store.snapshot_root"

local M = {}

local TRIES <const> = 3
local ENTRIES_MAX <const> = 100000 -- of one directory
local TOO_MANY <const> = "EFR_TREE_TOO_MANY"
local GROWN <const> = 20 -- times of a limit that a command may make a directory grow
local STEPS <const> = 64 -- before the loop has its turn
local UNSEEN <const> = { EXDEV = "mount", EACCES = "unreadable" }
local GONE <const> = { ENOENT = true, ENOTDIR = true, ELOOP = true }

---@class efr.HomePath
---@field path string  relative to the home directory
---@field tree boolean?  a directory with all below it
---@field must boolean?  without a copy the call must not run

---@class efr.SnapshotHome: efr.SnapshotRoot
---@field is_partial boolean  its trees hold what calls may change, and no more
local Home = { alone = snapshot_root.alone }
Home.__index = Home

---@class efr.SnapshotHomeDeps
---@field ports table  fs, dir, sys, uv
---@field git table
---@field path string  real path of the home directory
---@field dir string  real path of the store
---@field hidden fun(): (fun(path: string): boolean)  asked for each look: whether a full path may
---  not be copied
---@field limits fun(): {max_bytes: integer, max_files: integer, max_total: integer}

---@param deps efr.SnapshotHomeDeps
---@return efr.SnapshotHome
function M.new(deps)
  return setmetatable({
    ports = deps.ports, path = deps.path, dir = deps.dir, hidden = deps.hidden,
    limits = deps.limits, as_root = deps.ports.sys.getuid() == 0, is_partial = true, active = {},
    wanted = {}, kept = {},
    store = snapshot_git.new { git = deps.git, fs = deps.ports.fs, uv = deps.ports.uv,
      root = deps.dir:match("^(.*)/"), dir = deps.dir }, -- git never reads the home directory
  }, Home)
end

-- Looking ----------------------------------------------------------------------------------------

local function full(self, path) return self.path .. "/" .. path end

-- What a path is; nil: nothing. A part of it that is a link leads to a path of its own.
local function stat_of(top, path)
  local info, err, code = top:stat(path)
  if info then return info end
  if GONE[code] then return nil end
  local mark = UNSEEN[code]
  if mark then return { type = "file", mode = 0, size = 0, ctime_ns = 0, mark = mark } end
  return nil, err, code
end

local function add_parents(top, path, found)
  local dir = path:match("^(.*)/")
  while dir and found[dir] == nil do
    local info = stat_of(top, dir)
    local is_dir = info and info.type == "dir"
    found[dir] = is_dir and info or false
    if is_dir then info.empty = true end
    dir = dir:match("^(.*)/")
  end
end

local function mark_of(self, path, info, limits)
  if info.mark then return info.mark end
  if self.is_hidden(full(self, path)) then return "masked" end
  if info.type == "dir" then
    return path:match("[^/]*$"):lower() == ".git" and "nested" or nil
  end
  if info.type ~= "file" and info.type ~= "link" then return "special" end
  return info.type == "file" and info.size > limits.max_bytes and "big" or nil
end

-- Adds a path, and with `deep` all below it, as long as there is room in {left}.
local function look(self, top, path, deep, found, room)
  if found[path] ~= nil and not deep then return true end
  local info, err, code = stat_of(top, path)
  if err then return nil, err, code end
  add_parents(top, path, found)
  if not info then
    found[path] = false
    return true
  end
  info.mark, info.empty = mark_of(self, path, info, self.limits()), info.type == "dir"
  found[path] = info
  room.left = room.left - 1
  if info.type ~= "dir" or info.mark or not deep then return true end
  local entries
  entries, err, code = top:list(path, ENTRIES_MAX)
  if not entries then
    if code == "EACCES" then
      info.mark = "unreadable"
      return true
    end
    return nil, err, code
  end
  for i, name in ipairs(list.keys(entries)) do
    local ok
    if room.left < 0 then return nil, path .. " has too many files", TOO_MANY end
    ok, err, code = look(self, top, path .. "/" .. name, true, found, room)
    if not ok then return nil, err, code end
    if i % STEPS == 0 then async.sleep(0) end
  end
  return true
end

-- Size --------------------------------------------------------------------------------------------

-- Whether a directory is too much to copy.
local function is_over(found, limits)
  local files, bytes = 0, 0
  for _, info in pairs(found) do
    if info then
      files = files + 1
      bytes = bytes + (info.type == "file" and not info.mark and info.size or 0)
    end
  end
  return files > limits.max_files or bytes > limits.max_total
end

-- Looks at one path before it comes into the trees: whether its directory comes whole, and what of
-- it has no copy.
local function look_first(self, top, item, notes)
  local found, limits = {}, self.limits()
  local ok, err, code =
    look(self, top, item.path, item.tree or false, found, { left = limits.max_files })
  if not ok and code ~= TOO_MANY then return nil, err, code end
  local own = found[item.path]
  if item.must and own and own.mark then
    return nil, ("%s cannot be copied: %s"):format(full(self, item.path),
      names.REASONS[names.CODES[own.mark]]), "EFR_NOT_COVERED"
  end
  if item.tree and (not ok or is_over(found, limits)) then
    notes[#notes + 1] = { path = item.path, note = "over the copy limits" }
    item.tree = nil
    return true
  end
  for path, info in pairs(found) do
    local nested = info and info.mark == "nested"
    if nested then notes[#notes + 1] = { path = path, note = "no copy" } end
  end
  return true
end

---Adds paths to those that trees hold. Waits.
---@param paths efr.HomePath[]
---@return {path: string, note: string}[]? notes  what has no copy, and why
---@return string? err
---@return string? code
function Home:add(paths)
  local top <close>, err, code = self.ports.dir.open(self.path)
  if not top then return nil, err, code end
  local notes = {}
  self.is_hidden = self.hidden()
  for _, item in ipairs(paths) do
    local ok
    ok, err, code = look_first(self, top, item, notes)
    if not ok then return nil, err, code end
    self.wanted[item.path] = self.wanted[item.path] or item.tree or false
  end
  return notes
end

---Adds what trees name, for a look at the disk of now. Waits.
---@param trees string[]
---@return true?
---@return string? err
---@return string? code
function Home:include(trees)
  for _, tree in ipairs(trees) do
    local listing, err, code = self.store:list(tree)
    if not listing then return nil, err, code end
    for name, entry in pairs(listing) do
      local path = names.decode(entry.mode, name).path
      self.wanted[path] = self.wanted[path] or false
    end
  end
  return true
end

---Adds single paths. Does not wait.
---@param paths string[]
function Home:include_paths(paths)
  for _, path in ipairs(paths) do self.wanted[path] = self.wanted[path] or false end
end

---Forgets what trees held, when no call is in flight.
function Home:reset()
  self.wanted, self.kept, self.tree_id = {}, {}, nil
end

-- A tree ------------------------------------------------------------------------------------------

local function identity(info)
  return ("%s %s %s %s %s %s"):format(info.type, info.mode, info.size, info.ino, info.ctime_ns,
    info.mark)
end

local function write_blob(uv, fd, mark, bytes)
  local text = ("blob\nmark :%d\ndata %d\n%s\n"):format(mark, #bytes, bytes)
  while text ~= "" do
    local err, count = async.await(function(resume)
      assert(uv.fs_write(fd, text, -1, resume))
    end)
    if err then return nil, "write to git: " .. err, err:match("^%u+") end
    text = text:sub(count + 1)
  end
  return true
end

-- What a file or link holds, read while it stood still. nil: it cannot be read.
local function bytes_of(self, top, path, info)
  for _ = 1, TRIES do
    local bytes, err
    if info.type == "link" then
      local dir, name = path:match("^(.*)/([^/]*)$")
      local at <close> = top:open(dir or ".")
      if at then bytes, err = at:readlink(name or path) end
    else
      bytes, err = top:read(path, self.limits().max_bytes)
    end
    if not bytes then return nil, err or "it is gone" end
    local again = top:stat(path)
    if again and again.ctime_ns == info.ctime_ns and again.ino == info.ino then return bytes end
    if not again or again.type ~= info.type then return nil, "it does not hold still" end
    for key, value in pairs(again) do info[key] = value end
  end
  return nil, "it does not hold still"
end

-- The line of one path, with its content written. A file that cannot be read stands as left out, or
-- is a failure.
local function feed_one(self, top, what, path, fd, mark)
  local info = what.found[path]
  if not info then return nil, mark end
  local mode, name, has_bytes = names.encode(path, info, self.as_root)
  if not has_bytes then return { name = name, mode = mode }, mark end
  local bytes, why = bytes_of(self, top, path, info)
  if not bytes and what.strict then
    return nil, nil, ("%s cannot be read: %s"):format(full(self, path), why), "EACCES"
  end
  if not bytes then info.mark = "unread" end
  mode, name, has_bytes = names.encode(path, info, self.as_root)
  if not has_bytes then return { name = name, mode = mode }, mark end
  local ok, err, code = write_blob(self.ports.uv, fd, mark, bytes)
  if not ok then return nil, nil, err, code end
  return { name = name, mode = mode, mark = mark }, mark + 1
end

-- Writes what is new; the lines of the tree.
local function feed(self, top, what, fd, mark)
  local lines = {}
  for _, path in ipairs(what.changed) do
    local old = self.kept[path]
    local line, err, code
    line, mark, err, code = feed_one(self, top, what, path, fd, mark)
    if not mark then return nil, err, code end
    if old and (not line or old.name ~= line.name) then lines[#lines + 1] = { name = old.name } end
    lines[#lines + 1] = line
    what.kept[path] = line and { name = line.name, id = identity(what.found[path]) } or nil
  end
  return lines
end

local function find_changed(self, found)
  local out, bytes = {}, 0
  for path, info in pairs(found) do
    local old = self.kept[path]
    if (info and identity(info)) ~= (old and old.id or false) then
      out[#out + 1] = path
      bytes = bytes + (info and info.size or 0)
    end
  end
  for path in pairs(self.kept) do
    if found[path] == nil then out[#out + 1] = path end
  end
  table.sort(out)
  return out, bytes
end

local function take(self, strict)
  local ok, err, code = self.store:init()
  if not ok then return nil, err, code end
  local top <close>, why, kind = self.ports.dir.open(self.path)
  if not top then return nil, why, kind end
  local found, room = {}, { left = GROWN * self.limits().max_files }
  self.is_hidden = self.hidden()
  for _, path in ipairs(list.keys(self.wanted)) do
    ok, err, code = look(self, top, path, self.wanted[path], found, room)
    if not ok then return nil, err, code end
  end
  local what = { found = found, strict = strict, kept = {} }
  for path, old in pairs(self.kept) do what.kept[path] = old end
  local bytes
  what.changed, bytes = find_changed(self, found)
  if #what.changed == 0 then return self.tree_id or snapshot_git.EMPTY_TREE end
  local failed, failed_code
  local tree
  tree, err, code = self.store:import {
    base = self.tree_id or snapshot_git.EMPTY_TREE, bytes = bytes,
    content = function(fd, mark)
      local lines
      lines, failed, failed_code = feed(self, top, what, fd, mark)
      return lines, failed, failed_code
    end,
  }
  if not tree then return nil, failed or err, failed_code or code end
  self.kept, self.tree_id = what.kept, tree
  return tree
end

---The tree of what the added paths are now. Waits; the caller runs alone.
---@param strict boolean?  a file that cannot be read is a failure
---@return string? tree
---@return string? err
---@return string? code
function Home:take(strict)
  local tree, err, code = take(self, strict)
  if tree then return tree end
  return nil, ("copy files of %s: %s"):format(self.path, err), code
end

---There is no walk to keep.
function Home:close() end

return M
