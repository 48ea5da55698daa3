-- Owns: what one file looks like to the guard, and whether it is another one than before.
-- Must not know: what the file is for. Runs in efrd, on the loop thread.
--
-- Policy: a file is opened through a directory that is held open, and no link is followed. Its
-- change time, which no program can set, tells whether it changed; a change within the same tick
-- of the clock would not show, so only old ones count, and else the bytes are compared. Bytes are
-- kept up to a limit; what is longer counts as changed whenever it may have.

local M = {}

M.MAX_BYTES = 256 * 1024 ---@type integer
M.SETTLED_NS = 2000000000 ---@type integer

local EXECUTABLE <const> = 73 -- 0111

---@class efr.sbx.guard.Item
---@field path string  absolute
---@field type string  of the entry itself; "unreadable" when it cannot be looked at
---@field id string?  device and inode
---@field stamp string?
---@field settled boolean?  the stamp is old enough to tell
---@field ctime_ns integer?
---@field executable boolean?
---@field mode integer?  permission bits
---@field bytes string?  of a file, or the target of a link
---@field role string?  what it is to git
---@field code efr.GitEntry[]?  of a config that was listed: what runs code
---@field unlisted string?  why a config could not be listed

---The identity and the stamp of a stat.
---@param stat efr.DirStat
---@return string id
---@return string stamp
function M.stamp(stat)
  local id = stat.dev .. ":" .. stat.ino
  return id, ("%s:%d:%d"):format(id, stat.size, stat.ctime_ns)
end

local function read_link(dir, rel)
  local above, name = rel:match("^(.*)/([^/]*)$")
  if not above then return dir:readlink(rel) end
  local parent <close> = dir:open(above)
  return parent and parent:readlink(name)
end

local MISSING <const> = { ENOENT = true, ENOTDIR = true }

---Looks at an entry.
---@param dir efr.Dir
---@param rel string  below dir
---@param path string  the same, absolute
---@param opts {now_ns: integer, old: efr.sbx.guard.Item?, max: integer?}  old: what the last look
---  at this path gave; max: bytes to keep
---@return efr.sbx.guard.Item?  nil: there is nothing
function M.at(dir, rel, path, opts)
  local stat, _, code = dir:stat(rel)
  if not stat then
    if MISSING[code] then return nil end
    return { path = path, type = "unreadable" }
  end
  local id, stamp = M.stamp(stat)
  local old = opts.old
  if old and old.settled and old.stamp == stamp then return old end
  local item = {
    path = path, type = stat.type, id = id, stamp = stamp, ctime_ns = stat.ctime_ns,
    settled = opts.now_ns - stat.ctime_ns > M.SETTLED_NS,
    executable = stat.mode & EXECUTABLE ~= 0, mode = stat.mode,
  }
  local max = opts.max or M.MAX_BYTES
  if stat.type == "file" and stat.size <= max then
    item.bytes = dir:read(rel, max)
  elseif stat.type == "link" then
    item.bytes = read_link(dir, rel)
  end
  return item
end

---Whether an entry may be another one than before.
---@param before efr.sbx.guard.Item?
---@param after efr.sbx.guard.Item
---@return boolean
function M.differs(before, after)
  if not before or before.type ~= after.type then return true end
  if before == after or before.settled and before.stamp == after.stamp then return false end
  if after.type == "unreadable" then return false end
  if before.bytes and after.bytes then
    return before.bytes ~= after.bytes or before.executable ~= after.executable
  end
  if after.type == "dir" then return before.id ~= after.id end
  return true
end

return M
