-- Owns: keeping what git said of a repository, for as long as every file that it read is the same.
-- Must not know: what was asked of git, what an answer means, the disk (ports).
-- Runs in efrd, on the loop thread. Pure but for its ports.
--
-- Policy: an answer is kept only when nothing on the way to any of its files had changed for two
-- seconds before git was started, until after it ended: no file, no link, no directory above one.
-- So what stands there afterwards is what git read; a file that was not there was not there then.
-- The time is that of the inode's last change, which no program can set. A kept answer is used only
-- while each file has the same device, inode, size and times, or is still not there.

local text = require "efr.util.text"

local M = {}

---How long everything must have been the same; file systems with coarse times are why.
M.SETTLED_NS = 2000000000 ---@type integer
M.ENTRIES_MAX = 64 ---@type integer

local FILES_MAX <const> = 128
local LINKS_MAX <const> = 1
local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }

---@class efr.perm.GitKeptPorts
---@field stat fun(path: string): { stamp: string, changed_ns: integer }?, string?  follows links;
---  the code of a failure second
---@field realpath fun(path: string): string?
---@field readlink fun(path: string): string?  nil for what is no link
---@field now_ns fun(): integer

---@class efr.perm.GitKept
local Kept = {}
Kept.__index = Kept

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

-- The stamp of a path and when it last changed; nil: not known.
local function look(self, path)
  local info, code = self.ports.stat(path)
  if info then return info.stamp, info.changed_ns end
  if NOT_THERE[code] then return "not there", 0 end
  return nil
end

-- Whether a path and every directory above it were the same since a moment.
local function is_settled(self, path, since_ns)
  while true do
    local stamp, changed = look(self, path)
    if not stamp or changed >= since_ns then return false end
    if path == "/" then return true end
    path = parent_of(path)
  end
end

-- Whether the way to a path is known: its own name, or one link to another. What is not there must
-- be missing in a directory of its own name.
local function is_known_way(self, path, since_ns, links)
  local link = self.ports.readlink(path)
  if link then
    if links >= LINKS_MAX or not is_settled(self, parent_of(path), since_ns) then return false end
    local dir = parent_of(path)
    local target = text.fold_path(link:sub(1, 1) == "/" and link or dir .. "/" .. link)
    return self.ports.realpath(dir) == dir and self.ports.realpath(path) == target
      and is_known_way(self, target, since_ns, links + 1)
  end
  if not is_settled(self, path, since_ns) then return false end
  local there = path
  while look(self, there) == "not there" do there = parent_of(there) end
  return self.ports.realpath(there) == there
end

---The time to give to put, taken before git is started.
---@return integer ns
function Kept:now()
  return self.ports.now_ns()
end

---What was kept, when it is still true.
---@param key string
---@return any? value  not to be changed
function Kept:get(key)
  local entry = self.entries[key]
  if not entry then return nil end
  for path, stamp in pairs(entry.stamps) do
    if look(self, path) ~= stamp then
      self.entries[key], self.count = nil, self.count - 1
      return nil
    end
  end
  return entry.value
end

---Keeps an answer, unless it may be of something else than what is there now.
---@param key string
---@param value any
---@param files string[]  every file that git read or would have read: absolute
---@param started_ns integer  what now() gave before git was started
---@return boolean kept
function Kept:put(key, value, files, started_ns)
  if #files > FILES_MAX then return false end
  local since, stamps = started_ns - M.SETTLED_NS, {}
  for _, path in ipairs(files) do
    if not is_known_way(self, path, since, 0) then return false end
    stamps[path] = look(self, path)
    if not stamps[path] then return false end
  end
  if self.count >= M.ENTRIES_MAX then self.entries, self.count = {}, 0 end
  if not self.entries[key] then self.count = self.count + 1 end
  self.entries[key] = { value = value, stamps = stamps }
  return true
end

---@param ports efr.perm.GitKeptPorts
---@return efr.perm.GitKept
function M.new(ports)
  return setmetatable({ ports = ports, entries = {}, count = 0 }, Kept)
end

return M
