-- Owns: the cgroup (version 2) below which contained calls get one of their own: whether there is
-- one that efrd may divide, and dividing it.
-- Must not know: what a call is limited to, the plan.
-- Runs in efrd and efr on the loop thread; new waits when systemd is to be asked.
--
-- Policy: efr makes cgroups only where it is allowed to: in a unit with Delegate=yes, or, without
-- systemd, in a cgroup that is this user's (or root's own). efrd moves to `efr-daemon` there, since
-- a cgroup with processes cannot be divided, and calls get `efr-calls/NAME`. Where anything of that
-- fails, nothing is left changed, calls have no cgroup, and the reason is known.

local async = require "efr.util.async"

local M = {}

local SMALL <const> = 65536
local DIR_MODE <const> = 448 -- 0700
local OWN <const> = "efr-daemon"
local CALLS <const> = "efr-calls"
local SYSTEMD <const> = "/run/systemd/system" -- there when systemd manages the machine
local SYSTEMCTL <const> = "/usr/bin/systemctl"
local ASK_MS <const> = 2000
local MAX_ANSWER <const> = 64
local OLD_US <const> = 60 * 1000000

---@class efr.sbx.Cgroup
---@field dir string?  where calls get their own
---@field reason string?  why they get none
local Cgroup = {}
Cgroup.__index = Cgroup

-- Names in mountinfo have blanks as \040.
local function plain(field)
  return (field:gsub("\\(%d%d%d)", function(octal)
    return string.char(tonumber(octal, 8))
  end))
end

---The directory of the cgroup that a process is in. Pure.
---@param own string  /proc/PID/cgroup
---@param mounts string  /proc/self/mountinfo
---@return string? dir
---@return string? reason
function M.locate(own, mounts)
  local path = ("\n" .. own):match("\n0::(/[^\n]*)")
  if not path then return nil, "this system has no cgroups of version 2" end
  if path:find("..", 1, true) then return nil, "efrd's cgroup is not in sight" end
  for line in mounts:gmatch("[^\n]+") do
    local root, point = line:match("^%d+ %d+ %S+ (%S+) (%S+) .* %- cgroup2 ")
    root = root and plain(root)
    local rest = root == "/" and path
      or root == path and "/"
      or root and path:sub(1, #root + 1) == root .. "/" and path:sub(#root + 1)
    if rest then return plain(point) .. (rest == "/" and "" or rest) end
  end
  return nil, "no cgroups of version 2 are mounted"
end

-- Whether a word stands in a list such as cgroup.controllers.
local function lists(text, word)
  return text and (" " .. text:gsub("%s", " ") .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

-- Writes to a file of the kernel's.
local function put(uv, path, text)
  local fd, err, code = uv.fs_open(path, "r+", 0)
  if not fd then return nil, err, code end
  local written
  written, err, code = uv.fs_write(fd, text)
  uv.fs_close(fd)
  if not written then return nil, err, code end
  return true
end

-- What systemd says of a unit's Delegate=, through a pipe. Waits.
local function ask_systemd(ports, unit)
  local stat = ports.fs.stat(SYSTEMCTL)
  if not stat or stat.uid ~= 0 then return nil, "systemctl is not there" end
  local pipe = ports.uv.pipe({ nonblock = true }, {})
  local reader = ports.uv.new_pipe(false)
  reader:open(pipe.read)
  local child
  local done, text = async.with_timeout(ASK_MS, function()
    return async.await(function(resume)
      local said = ""
      child = ports.proc.spawn({
        path = SYSTEMCTL,
        argv = { "systemctl", "--user", "show", "-p", "Delegate", "--value", "--", unit },
        env = { "XDG_RUNTIME_DIR=" .. (ports.sys.getenv("XDG_RUNTIME_DIR") or "") }, cwd = "/",
        fds = { [0] = "null", pipe.write, "null" }, on_exit = function() end,
      })
      ports.uv.fs_close(pipe.write)
      if not child then return resume("") end
      reader:read_start(function(err, bytes)
        said = (said .. (bytes or "")):sub(1, MAX_ANSWER)
        if err or not bytes then resume(said) end
      end)
    end)
  end)
  reader:close()
  if child and not done then child:kill(ports.sys.SIGKILL) end
  if not done then return nil, "systemd does not answer" end
  return text:match("^%s*yes") ~= nil
end

-- Whether efr may divide a cgroup, by whoever manages the machine.
local function check_delegated(ports, dir, ask)
  if not ports.fs.stat(SYSTEMD) then return true end
  local unit = dir:match("([^/]+%.service)$")
  if not unit then return nil, "efrd runs in no unit of its own" end
  local yes, err = ask(ports, unit)
  if yes then return true end
  return nil, err or ("efrd's cgroup is not delegated (Delegate=yes of %s)"):format(unit)
end

-- The cgroup that may be divided, by what its files say.
local function find(ports, ask)
  local fs = ports.fs
  local dir, err = M.locate(fs.read_file("/proc/self/cgroup", SMALL) or "",
    fs.read_file("/proc/self/mountinfo", 16 * SMALL) or "")
  if not dir then return nil, err end
  dir = dir:match("^(.+)/" .. OWN:gsub("%-", "%%-") .. "$") or dir
  local controllers = fs.read_file(dir .. "/cgroup.controllers", SMALL)
  if not lists(controllers, "memory") or not lists(controllers, "pids") then
    return nil, "efrd's cgroup has no memory controller"
  end
  local stat = fs.stat(dir)
  if not stat or stat.uid ~= ports.sys.getuid() or not ports.uv.fs_access(dir, "W") then
    return nil, "efrd's cgroup is not this user's"
  end
  local ok
  ok, err = check_delegated(ports, dir, ask)
  if not ok then return nil, err end
  return dir
end

-- Moves this process to a cgroup of its own and lets the other one have limits. Undone on failure.
local function divide(ports, base)
  local uv, fs, pid = ports.uv, ports.fs, tostring(ports.sys.getpid())
  local own, calls = base .. "/" .. OWN, base .. "/" .. CALLS
  fs.mkdir(own, DIR_MODE)
  fs.mkdir(calls, DIR_MODE)
  local ok, err, code = put(uv, own .. "/cgroup.procs", pid)
  if ok then ok, err, code = put(uv, base .. "/cgroup.subtree_control", "+memory +pids") end
  if ok then ok, err = put(uv, calls .. "/cgroup.subtree_control", "+memory +pids") end
  if ok then return calls end
  put(uv, base .. "/cgroup.procs", pid)
  fs.rmdir(own)
  fs.rmdir(calls)
  return nil, code == "EBUSY" and "other processes are in efrd's cgroup"
    or "efrd's cgroup cannot be divided: " .. tostring(err)
end

-- What launchers left that were killed. A new one has no process yet, so it stays.
local function sweep(ports, dir)
  for _, entry in ipairs(ports.fs.readdir(dir) or {}) do
    local path = dir .. "/" .. entry.name
    local stat = entry.type == "dir" and ports.fs.stat(path)
    if stat and ports.sys.now_us() - stat.mtime_us > OLD_US then ports.fs.rmdir(path) end
  end
end

---A name and place for the cgroup of one call; nil where calls get none.
---@param id string  of the call
---@return {dir: string, name: string}?
function Cgroup:of_call(id)
  if not self.dir then return nil end
  return { dir = self.dir, name = "call-" .. id }
end

---Removes what the launcher of a call left, should it have been killed.
---@param of_call {dir: string, name: string}?
function Cgroup:remove(of_call)
  if of_call then self.ports.fs.rmdir(of_call.dir .. "/" .. of_call.name) end
end

---Looks for a cgroup that can be divided, and divides it. Waits.
---@param ports table  fs, uv, sys, proc
---@param opts {look: boolean?, ask: function?}?  look: nothing is changed; ask: for systemctl
---@return efr.sbx.Cgroup
function M.new(ports, opts)
  local self = setmetatable({ ports = ports }, Cgroup)
  local base, err = find(ports, opts and opts.ask or ask_systemd)
  if base and not (opts and opts.look) then
    self.dir, err = divide(ports, base)
    if self.dir then sweep(ports, self.dir) end
  end
  self.reason = err
  return self
end

return M
