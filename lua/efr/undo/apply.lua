-- Owns: carrying out the entries of an undo on the disk: each path is looked at once more and
-- compared with the plan, what it holds goes to the trash whole, then the old content takes its
-- place. Also what a run that was cut short left behind.
-- Must not know: turns, plans, who asked. Runs in efrd, on the loop thread; run waits.
--
-- Policy: everything happens below descriptors that were opened without links, so what others swap
-- meanwhile leads nowhere. New content is written beside the file and swapped with it at once; what
-- the swap brings out is moved to the trash. At every moment the old bytes are in their place,
-- beside it or in the trash, and the names beside it say of which undo they are, so that a second
-- run finds them.

local async = require "efr.util.async"

local M = {}

local SET_ID <const> = 511 -- 0777
local TRASH_MODE <const> = 448
local MAX_BYTES <const> = 1 << 30
local COPIES <const> = 3 -- of a file that changes meanwhile
local STEPS <const> = 32 -- before the loop has its turn

---@class efr.UndoApply
---@field ports table  dir, fs, sys
---@field id string  of the undo
---@field trash string  real path of a directory of efr's own
---@field load fun(entries: table[])  gets ready what blob is asked for; waits
---@field blob fun(root: string, oid: string): string?, string?  waits
local Apply = {}
Apply.__index = Apply

---@param deps efr.UndoApply
function M.new(deps)
  return setmetatable({
    ports = deps.ports, id = deps.id, trash = deps.trash, blob = deps.blob,
    load = deps.load, tops = {},
    as_root = deps.ports.sys.getuid() == 0,
  }, Apply)
end

local function parts_of(path)
  local parent, name = path:match("^(.*)/([^/]*)$")
  return parent or ".", name or path
end

-- A file beside the path: "n" holds new content, "o" what was taken away.
local function beside(self, entry, what)
  return (".efr-undo-%s.%s%d"):format(self.id:gsub("%-", ""):sub(-12), what, entry.number)
end

local function top_of(self, root)
  local top = self.tops[root]
  if top then return top end
  local err, code
  top, err, code = self.ports.dir.open(root)
  if not top then return nil, err, code end
  self.tops[root] = top
  return top
end

-- Comparing ---------------------------------------------------------------------------------------

local function same_owner(self, stat, state)
  if not self.as_root then return true end
  return stat.uid == (state.uid or 0) and stat.gid == (state.gid or 0)
end

-- Whether an entry of an open directory is in a state. bytes: what the state's blob holds.
local function is_in(self, dir, name, state, bytes)
  local stat, err, code = dir:stat(name)
  if not stat then
    if code ~= "ENOENT" then return nil, err, code end
    return state == nil
  end
  if not state or stat.type ~= state.kind or not same_owner(self, stat, state) then return false end
  if state.kind == "link" then return dir:readlink(name) == bytes end
  if stat.mode & SET_ID ~= state.mode then return false end
  if state.kind == "dir" then return true end
  return stat.size == #bytes and dir:read(name, #bytes) == bytes
end

-- The trash ---------------------------------------------------------------------------------------

-- The directory in the trash for a path, made as needed.
local function trash_dir(self, entry)
  local parent = parts_of(entry.path)
  local at, err, code = self.ports.dir.open(self.trash)
  if not at then return nil, err, code end
  for part in (entry.root:gsub("/", "%%") .. "/" .. parent):gmatch("[^/]+") do
    if part ~= "." then
      at:mkdir(part, TRASH_MODE)
      local below
      below, err, code = at:open(part)
      at:close()
      if not below then return nil, err, code end
      at = below
    end
  end
  return at
end

-- A free name in the trash.
local function free_name(dir, name)
  local free, n = name, 1
  while dir:stat(free) do
    n = n + 1
    free = ("%s.%d"):format(name, n)
  end
  return free
end

-- One copy of an entry on another file system. false: it changed while it was copied.
local function copy(from, name, to, free)
  local stat, err, code = from:stat(name)
  if not stat then return nil, err, code end
  local ok
  if stat.type == "link" then
    local target
    target, err, code = from:readlink(name)
    if not target then return nil, err, code end
    ok, err, code = to:symlink(target, free)
    return ok, err, code
  end
  local bytes
  bytes, err, code = from:read(name, MAX_BYTES)
  if not bytes then return nil, err, code end
  ok, err, code = to:create(free, bytes, stat.mode & SET_ID)
  if not ok then return nil, err, code end
  return from:read(name, MAX_BYTES) == bytes
end

-- Across file systems: a copy, complete before the original goes. Who has the file open may still
-- write to it: then it is copied again.
local function copy_away(from, name, to, shown)
  for _ = 1, COPIES do
    local ok, err, code = copy(from, name, to, free_name(to, shown))
    if ok then return from:remove(name) end
    if ok == nil then return nil, err, code end
  end
  return nil, "it changes all the time", "EAGAIN"
end

-- Moves what an entry of the directory is into the trash.
local function throw(self, entry, dir, name)
  local to <close>, err, code = trash_dir(self, entry)
  if not to then return nil, err, code end
  local _, shown = parts_of(entry.path)
  local ok
  ok, err, code = dir:move(name, to, free_name(to, shown))
  if ok or code ~= "EXDEV" then return ok, err, code end
  if name == shown then
    -- Whoever writes a new file there while this one is copied keeps it.
    name = beside(self, entry, "o")
    ok, err, code = dir:move(shown, dir, name)
    if not ok then return nil, err, code end
  end
  return copy_away(dir, name, to, shown)
end

-- Files -------------------------------------------------------------------------------------------

local function make(self, dir, name, state, bytes)
  local ok, err, code
  if state.kind == "link" then
    ok, err, code = dir:symlink(bytes, name)
  else
    ok, err, code = dir:create(name, bytes, state.mode)
  end
  if ok and self.as_root then
    ok, err, code = dir:chown(name, state.uid or 0, state.gid or 0)
    if ok and state.kind == "file" then ok, err, code = dir:chmod(name, state.mode) end
  end
  return ok, err, code
end

-- Puts the new file in place of the old one; the old one is beside it then.
local function swap(dir, new, name, old)
  local ok, err, code = dir:exchange(new, dir, name)
  if ok then return new end
  if code ~= "EINVAL" and code ~= "ENOSYS" and code ~= "EOPNOTSUPP" then return nil, err, code end
  ok, err, code = dir:move(name, dir, old)
  if not ok then return nil, err, code end
  ok, err, code = dir:move(new, dir, name)
  if not ok then return nil, err, code end
  return old
end

local function put(self, entry, dir, name)
  local new = beside(self, entry, "n")
  local ok, err, code = make(self, dir, new, entry.to, entry.to_bytes)
  if not ok then
    dir:remove(new)
    return nil, err, code
  end
  if not entry.from then return dir:move(new, dir, name) end
  local old
  old, err, code = swap(dir, new, name, beside(self, entry, "o"))
  if not old then
    dir:remove(new)
    return nil, err, code
  end
  return throw(self, entry, dir, old)
end

-- What lies under the name of the new content after a run that was cut short: that content, whole
-- or not, or the old content that it took the place of. Only what is in its place too, or will be,
-- is removed: somebody may have written to either since.
local function clear_new(self, entry, dir, new)
  if entry.to and is_in(self, dir, new, entry.to, entry.to_bytes) then return dir:remove(new) end
  local stat = dir:stat(new)
  local bytes = stat and stat.type == "file" and dir:read(new, MAX_BYTES)
  if bytes and entry.to and entry.to_bytes:sub(1, #bytes) == bytes then return dir:remove(new) end
  return throw(self, entry, dir, new)
end

-- What an earlier run left beside the path. Afterwards nothing is.
local function clean_up(self, entry, dir)
  local new, old = beside(self, entry, "n"), beside(self, entry, "o")
  local ok, err, code = true, nil, nil
  if dir:stat(old) then ok, err, code = throw(self, entry, dir, old) end
  if ok and dir:stat(new) then ok, err, code = clear_new(self, entry, dir, new) end
  return ok, err, code
end

local function apply_file(self, entry, dir, name, again)
  local gone = false
  if again then
    gone = dir:stat(beside(self, entry, "o")) ~= nil
    local ok, err, code = clean_up(self, entry, dir)
    if not ok then return nil, err, code end
    local is_new
    is_new, err, code = is_in(self, dir, name, entry.to, entry.to_bytes)
    if is_new == nil then return nil, err, code end
    if is_new then return "done" end
  end
  local is_old, err, code = is_in(self, dir, name, entry.from, entry.from_bytes)
  if is_old == nil then return nil, err, code end
  if not is_old and gone and is_in(self, dir, name, nil) then
    entry, is_old = setmetatable({ from = false }, { __index = entry }), true
  end
  if not is_old then return "skip", "changed since" end
  local ok
  if entry.to then
    ok, err, code = put(self, entry, dir, name)
  else
    ok, err, code = throw(self, entry, dir, name)
  end
  if not ok and code == "EEXIST" then return "skip", "changed since" end
  if not ok then return nil, err, code end
  return "done"
end

-- Directories -------------------------------------------------------------------------------------

local function set_rights(self, dir, name, state)
  local ok, err, code = true, nil, nil
  if self.as_root then ok, err, code = dir:chown(name, state.uid or 0, state.gid or 0) end
  if ok then ok, err, code = dir:chmod(name, state.mode) end
  return ok and "done" or nil, err, code
end

local function apply_dir(self, entry, dir, name)
  local stat, err, code = dir:stat(name)
  if not stat and code ~= "ENOENT" then return nil, err, code end
  if not entry.to then
    if not stat then return "done" end
    if stat.type ~= "dir" then return "skip", "no directory any more" end
    local ok
    ok, err, code = dir:rmdir(name)
    if ok then return "done" end
    if code == "ENOTEMPTY" or code == "EEXIST" then return "skip", "not empty" end
    return nil, err, code
  end
  if stat and stat.type ~= "dir" then return "skip", "something else is there" end
  if not stat then
    local ok
    -- Nobody else looks in before its rights are right.
    ok, err, code = dir:mkdir(name, TRASH_MODE)
    if not ok then return nil, err, code end
    self.made[#self.made + 1] = entry
    return "done"
  end
  return set_rights(self, dir, name, entry.to)
end

-- Those that were made get their rights when all is in them.
local function finish_dirs(self)
  for i = #self.made, 1, -1 do
    local entry = self.made[i]
    local top = top_of(self, entry.root)
    local parent, name = parts_of(entry.path)
    local dir <close> = top and top:open(parent)
    if dir then set_rights(self, dir, name, entry.to) end
  end
end

-- All ---------------------------------------------------------------------------------------------

local LOST <const> = { ENOENT = true, ENOTDIR = true, ELOOP = true, EXDEV = true }

local function apply_one(self, entry, again)
  local top, err, code = top_of(self, entry.root)
  if not top then return nil, err, code end
  local parent, name = parts_of(entry.path)
  local dir <close>, why, kind = top:open(parent)
  if not dir then
    if kind == "ENOENT" and not entry.to then return "done" end
    if LOST[kind] then return "skip", "its directory is another now" end
    return nil, why, kind
  end
  if entry.is_dir then return apply_dir(self, entry, dir, name) end
  return apply_file(self, entry, dir, name, again)
end

local function load_bytes(self, entry)
  for _, side in ipairs({ "from", "to" }) do
    local state = entry[side]
    if state and not entry.is_dir then
      local bytes, err, code = self.blob(entry.root, state.oid)
      if not bytes then return nil, err, code end
      entry[side .. "_bytes"] = bytes
    end
  end
  return true
end

---Carries out entries in their order. Each gets `result`: "done" or "skip", with a reason. Waits
---between entries.
---@param entries table[]  with number
---@param again boolean  an earlier run may have left something
---@return true?
---@return string? err  a write failed; what comes after it was not tried
---@return string? code
function Apply:run(entries, again)
  self.made = {}
  local ok, err, code = true, nil, nil
  for i, entry in ipairs(entries) do
    if i % STEPS == 1 then self.load(table.move(entries, i, i + STEPS - 1, 1, {})) end
    ok, err, code = load_bytes(self, entry)
    if ok then
      local result, why, kind = apply_one(self, entry, again)
      if result then
        entry.result, entry.reason = result, result == "skip" and why or entry.reason
      else
        ok, err, code = nil, ("%s/%s: %s"):format(entry.root, entry.path, why), kind
      end
    end
    entry.from_bytes, entry.to_bytes = nil, nil
    if not ok then break end
    if i % STEPS == 0 then async.sleep(0) end
  end
  finish_dirs(self)
  for _, top in pairs(self.tops) do top:close() end
  self.tops = {}
  return ok, err, code
end

return M
