-- Owns: whether the places of which a call is made answer at all, before anything on the loop looks
-- at them.
-- Must not know: what the places are for.
-- Runs in efrd and efr on the loop thread; answers waits.
--
-- Policy: a project or write root can lie on a network or FUSE mount whose server is gone, and
-- then a look at it ends never. Where every mount is of a local kind nothing is asked. Else all
-- places of a call are looked at in a process, with a limit, and the first that does not answer
-- refuses the call by its name. For a while it is known as dead: nobody waits for it, and the port
-- efr.fs that install() gives fails there at once, whoever asks. What answered is believed for a
-- few seconds; a mount that dies just then holds the loop, as it would any program.

local after = require "efr.util.after"
local async = require "efr.util.async"
local paths = require "efr.perm.paths"

local M = {}

M.LIMIT_MS = 3000 ---@type integer
M.BELIEVED_US = 5000000 ---@type integer  how long an answer counts
M.DEAD_US = 30000000 ---@type integer  how long one that failed to come counts
local MAX_KNOWN <const> = 1024
local MOUNTINFO_MAX <const> = 4 * 1024 * 1024

-- Kinds of mounts that answer without a server (proc(5), mountinfo: the word behind " - ").
local LOCAL <const> = {}
for kind in ([[
  bcachefs binfmt_misc bpf btrfs cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs
  erofs exfat ext2 ext3 ext4 f2fs fusectl hugetlbfs iso9660 jfs mqueue nilfs2 nsfs ntfs3
  overlay proc pstore ramfs reiserfs rootfs securityfs selinuxfs squashfs sysfs tmpfs tracefs
  udf vfat xfs zfs]])
  :gmatch("%S+") do LOCAL[kind] = true end

local LOOKS <const> = {
  "read_file", "read_real", "stat", "lstat", "realpath", "readlink", "readdir", "check_private_dir",
}

local Reach = {}
Reach.__index = Reach

-- Whether a server could keep a look waiting; what cannot be read is not known.
local function has_servers(fs)
  local info = fs.read_file("/proc/self/mountinfo", MOUNTINFO_MAX)
  if not info then return true end
  for kind in info:gmatch(" %- (%S+) ") do
    if not LOCAL[kind] then return true end
  end
  return false
end

-- Asks, and waits for the answers or the limit. nil, the place, "EFR_TIMEOUT": it is dead. The loop
-- calls timers before it reads, so after a long pause of its own an answer may lie there unread:
-- the limit is over one round later.
local function ask(self, list)
  local seconds = M.LIMIT_MS // 1000 + 1
  local fd, err, code = self.ports.reach.ask(table.concat(list, "\0") .. "\0", seconds)
  if not fd then return nil, err, code end
  local pipe, count = self.ports.uv.new_pipe(false), 0
  pipe:open(fd)
  local all = async.await(function(resume)
    local stop
    stop = self.timer(M.LIMIT_MS, function()
      stop = self.timer(1, function() resume(false) end)
    end)
    pipe:read_start(function(_, bytes)
      count = count + #(bytes or "")
      if bytes and count < #list then return end
      stop()
      resume(count >= #list)
    end)
  end)
  pipe:close()
  if all then return true end
  return nil, list[count + 1], "EFR_TIMEOUT"
end

local function note(self, list, dead)
  local now = self.ports.sys.mono_us()
  for _, path in ipairs(list) do
    if path == dead then break end
    self.fine[path], self.dead[path] = now, nil
    self.known = self.known + 1
  end
  if dead then self.fine[dead], self.dead[dead] = nil, now end
  if self.known > MAX_KNOWN then self.fine, self.known = {}, 0 end
end

-- What comes after a dead one is asked again.
local function ask_all(self, list)
  while #list > 0 do
    local ok, err, code = ask(self, list)
    if not ok and code ~= "EFR_TIMEOUT" then return nil, err end
    note(self, list, not ok and err or nil)
    local rest, passed = {}, false
    for _, path in ipairs(ok and {} or list) do
      if passed then rest[#rest + 1] = path end
      passed = passed or path == err
    end
    list = rest
  end
  return true
end

local function is_known(self, path)
  local now = self.ports.sys.mono_us()
  local fine, dead = self.fine[path], self.dead[path]
  return fine and now - fine < M.BELIEVED_US or dead and now - dead < M.DEAD_US
end

---Whether all places answer. Waits.
---@param places string[]  absolute
---@param others string[]?  to be asked as well; one that is dead is known then, and does not count
---@return true? ok
---@return string? err  names the place
---@return string? code  EFR_SANDBOX
function Reach:answers(places, others)
  local listed, list = {}, {}
  for _, paths_of in ipairs({ places, others or {} }) do
    for _, path in ipairs(paths_of) do
      if not listed[path] and not is_known(self, path) then list[#list + 1] = path end
      listed[path] = true
    end
  end
  if #list > 0 and has_servers(self.ports.fs) then
    local ok, err = ask_all(self, list)
    if not ok then return nil, err, "EFR_SANDBOX" end
  end
  for _, path in ipairs(places) do
    if self.dead[path] then return nil, M.words(path), "EFR_SANDBOX" end
  end
  return true
end

-- The dead place at or above a path.
local function dead_over(self, path)
  for place in pairs(self.dead) do
    if paths.within(path, place) then return place end
  end
  return nil
end

---The port efr.fs, but what lies in a place that is known as dead fails at once.
---@param fs table
---@return table
function Reach:guarded(fs)
  local out = setmetatable({}, { __index = fs })
  for _, name in ipairs(LOOKS) do
    out[name] = function(path, ...)
      local place = next(self.dead) and type(path) == "string" and dead_over(self, path)
      if place then return nil, M.words(place), "ETIMEDOUT" end
      return fs[name](path, ...)
    end
  end
  return out
end

---The reason for which a call is refused.
---@param path string
---@return string
function M.words(path)
  return ("%s does not answer (a mount whose server is gone?)"):format(path)
end

---@param ports {reach: table, uv: table, sys: table, fs: table}
---@return table reach
function M.new(ports)
  return setmetatable({
    ports = ports, dead = {}, fine = {}, known = 0, timer = after(ports.uv),
  }, Reach)
end

---Gives a program its reach, and the guarded port efr.fs to all of its parts.
---@param app table  ports; gets reach
function M.install(app)
  app.reach = M.new(app.ports)
  app.ports = setmetatable({ fs = app.reach:guarded(app.ports.fs) }, { __index = app.ports })
end

return M
