-- Which processes of a terminal's foreground group wait for its input, as /proc tells it.
--
-- Owns: the walk below a shell, what /proc/TID/syscall and the memory it points to say. Must not
-- know: terminal modes, prompts, what a wait means. Loop thread of efrd; scan waits.
--
-- Policy: only a thread that sits in a read of this terminal, or in a poll, select or epoll that
-- holds it, waits for it. What cannot be read (set-user-id programs, a closed ptrace) is unknown,
-- never "nobody". Programs choose these bytes; all they can do is to look as if they waited, which
-- they can also do by waiting. Names of descriptors are read as links and never opened: a look at a
-- file of a dead network mount would stop efrd. Their memory is read in libuv's pool, as a page of
-- it may come from such a mount.

local async = require "efr.util.async"

local M = {}

local PROCESSES_MAX <const>, THREADS_MAX <const> = 512, 2048
local POLL_MAX <const>, SELECT_MAX <const> = 256, 1024
local TEXT_MAX <const>, FDINFO_MAX <const> = 4096, 65536
local PTY_MAJOR <const> = 136
-- POLLIN and POLLRDNORM; EPOLLIN and EPOLLRDNORM have the same values.
local READABLE <const> = 0x41

-- System call -> how its arguments name descriptors, and where its time limit stands: "number" in
-- milliseconds or "pointer" to two words.
local COMMON <const> = { [441] = { "epoll", 3, "pointer" } }
local TABLES <const> = {
  x86_64 = {
    [0] = { "read" }, [19] = { "read" }, [7] = { "poll", 2, "number" },
    [271] = { "poll", 2, "pointer" }, [23] = { "select", 4, "pointer" },
    [270] = { "select", 4, "pointer" }, [232] = { "epoll", 3, "number" },
    [281] = { "epoll", 3, "number" },
  },
  generic = {
    [63] = { "read" }, [65] = { "read" }, [73] = { "poll", 2, "pointer" },
    [72] = { "select", 4, "pointer" }, [22] = { "epoll", 3, "number" },
  },
}
local MACHINES <const> = { x86_64 = "x86_64", aarch64 = "generic", riscv64 = "generic" }

-- The terminal's number (stat) as the name that its descriptors have.
local function terminal_name(number)
  if number >> 8 & 0xfff ~= PTY_MAJOR then return nil end
  return ("/dev/pts/%d"):format(number & 0xff | (number >> 12 & 0xfff00))
end

local function read_stat(fs, pid)
  local text = fs.read_file(("/proc/%d/stat"):format(pid), TEXT_MAX)
  -- The name may hold anything, so the last parenthesis ends it.
  local state, group, terminal = (text or ""):match("^.*%) (%a) %-?%d+ (%-?%d+) %-?%d+ (%-?%d+)")
  if not state then return nil end
  return {
    pid = pid, state = state, group = math.tointeger(tonumber(group)),
    terminal = math.tointeger(tonumber(terminal)),
  }
end

local function threads_of(fs, pid)
  local out = {}
  for _, entry in ipairs(fs.readdir(("/proc/%d/task"):format(pid)) or {}) do
    out[#out + 1] = math.tointeger(tonumber(entry.name))
  end
  return out
end

-- Processes below a shell, and the shell where its own group is looked at, each with its threads;
-- nil when there are too many or the kernel does not list children.
local function below(fs, shell, group)
  local found, queue, threads = {}, { shell }, 0
  while #queue > 0 do
    local pid = table.remove(queue)
    local tids = threads_of(fs, pid)
    threads = threads + #tids
    if threads > THREADS_MAX or #found > PROCESSES_MAX then return nil end
    if pid ~= shell or pid == group then found[#found + 1] = { pid = pid, tids = tids } end
    for _, tid in ipairs(tids) do
      local path = ("/proc/%d/task/%d/children"):format(pid, tid)
      local children, _, code = fs.read_file(path, 1 << 20)
      if not children and code ~= "ESRCH" and fs.stat(path:match("^.*/")) then return nil end
      for child in (children or ""):gmatch("%d+") do
        queue[#queue + 1] = math.tointeger(tonumber(child))
      end
    end
  end
  return found
end

---@class efr.shell.Readers
---@field reads boolean  a thread waits for the terminal
---@field unknown boolean  some thread could not be looked at
---@field looked integer  threads that were looked at

local Scan = {}
Scan.__index = Scan

-- Bytes of a process's memory, or nil.
function Scan:_memory(pid, address, length)
  local uv = self.ports.uv
  local fd = uv.fs_open(("/proc/%d/mem"):format(pid), "r", 0)
  if not fd then return nil end
  local bytes = async.await(function(resume)
    uv.fs_read(fd, length, address, function(_, data) resume(data) end)
  end)
  uv.fs_close(fd)
  return bytes and #bytes == length and bytes or nil
end

-- Inside of the sandbox the terminal has a second name, /dev/console, behind which there is no
-- other file system.
function Scan:_is_same_file(process, fd)
  local stat = self.ports.fs.stat
  local here, there = stat(self.name), stat(("/proc/%d/fd/%d"):format(process.pid, fd))
  return here ~= nil and there ~= nil and here.dev == there.dev and here.ino == there.ino
end

-- Whether a descriptor is this terminal; nil: it cannot be seen.
function Scan:_is_terminal(process, fd)
  local known = self.names[process.pid] or {}
  self.names[process.pid] = known
  if known[fd] == nil then
    local name, _, code = self.ports.fs.readlink(("/proc/%d/fd/%d"):format(process.pid, fd))
    if not name and code ~= "ENOENT" then return nil end
    known[fd] = name == self.name or name == "/dev/tty" and process.terminal == self.terminal
      or name == "/dev/console" and self:_is_same_file(process, fd)
  end
  return known[fd]
end

-- Whether one of some descriptors is the terminal.
function Scan:_any(process, fds)
  for _, fd in ipairs(fds) do
    local is_it = self:_is_terminal(process, fd)
    if is_it or is_it == nil then return is_it end
  end
  return false
end

-- Whether a call only looks and does not wait.
function Scan:_is_glance(process, args, where, how)
  local limit = args[where + 1]
  if how == "number" then return limit & 0xffffffff == 0 end
  if limit == 0 then return false end
  local bytes = self:_memory(process.pid, limit, 16)
  return bytes ~= nil and bytes == ("\0"):rep(16)
end

local descriptors = {}

function descriptors.read(_, _, args)
  return { args[1] & 0xffffffff }
end

function descriptors.poll(self, process, args)
  local count = math.min(args[2], POLL_MAX)
  if count <= 0 then return {} end
  local bytes = self:_memory(process.pid, args[1], count * 8)
  if not bytes then return nil end
  local fds, at = {}, 1
  for _ = 1, count do
    local fd, events
    fd, events, at = string.unpack("<i4i2", bytes, at)
    at = at + 2
    if fd >= 0 and events & READABLE ~= 0 then fds[#fds + 1] = fd end
  end
  return fds
end

function descriptors.select(self, process, args)
  local count = math.min(args[1] & 0xffffffff, SELECT_MAX)
  if count == 0 or args[2] == 0 then return {} end
  local bytes = self:_memory(process.pid, args[2], (count + 63) // 64 * 8)
  if not bytes then return nil end
  local fds = {}
  for fd = 0, count - 1 do
    if bytes:byte(fd // 8 + 1) >> fd % 8 & 1 == 1 then fds[#fds + 1] = fd end
  end
  return fds
end

function descriptors.epoll(self, process, args)
  local path = ("/proc/%d/fdinfo/%d"):format(process.pid, args[1] & 0xffffffff)
  local text = self.ports.fs.read_file(path, FDINFO_MAX)
  if not text then return nil end
  local fds = {}
  for fd, events in text:gmatch("tfd:%s*(%d+) events:%s*(%x+)") do
    if tonumber(events, 16) & READABLE ~= 0 then
      fds[#fds + 1] = math.tointeger(tonumber(fd))
    end
  end
  return fds
end

-- "/proc/TID/syscall": the number of the call, six arguments, stack and program counter.
local function parse_call(text)
  local number, rest = text:match("^(%d+) (.*)$")
  if not number then return nil end
  local args = {}
  for arg in rest:gmatch("0x(%x+)") do args[#args + 1] = tonumber(arg, 16) end
  return math.tointeger(tonumber(number)), args
end

-- Whether a thread waits for the terminal; nil: that cannot be told.
function Scan:_thread(process, tid)
  local dir = ("/proc/%d/task/%d"):format(process.pid, tid)
  local text = self.ports.fs.read_file(dir .. "/syscall", TEXT_MAX)
  if not text then
    if self.ports.fs.stat(dir) then return nil end
    return false
  end
  local number, args = parse_call(text)
  local entry = number and self.calls[number]
  if not entry or #args < 6 then return false end
  local kind, where, how = entry[1], entry[2], entry[3]
  local fds = descriptors[kind](self, process, args)
  if not fds then return nil end
  local is_it = self:_any(process, fds)
  if is_it and where and self:_is_glance(process, args, where, how) then return false end
  return is_it
end

---Looks at the foreground group of a shell's terminal. Waits.
---@param ports table  fs, uv
---@param shell integer  whose descendants are looked at, and it itself where the group is its own
---@param group integer
---@return efr.shell.Readers
function M.scan(ports, shell, group)
  local out = { reads = false, unknown = false, looked = 0 }
  local calls = TABLES[MACHINES[ports.uv.os_uname().machine]]
  local own = read_stat(ports.fs, shell)
  local processes = calls and own and below(ports.fs, shell, group)
  local name = own and terminal_name(own.terminal)
  if not processes or not name then
    out.unknown = true
    return out
  end
  local scan = setmetatable({
    ports = ports, names = {}, name = name, terminal = own.terminal,
    calls = setmetatable({}, { __index = function(_, number)
      return calls[number] or COMMON[number]
    end }),
  }, Scan)
  for _, entry in ipairs(processes) do
    local process = read_stat(ports.fs, entry.pid)
    if process and process.group == group and process.state ~= "Z" then
      for _, tid in ipairs(entry.tids) do
        local waits = scan:_thread(process, tid)
        out.looked = out.looked + 1
        out.reads = out.reads or waits == true
        out.unknown = out.unknown or waits == nil
      end
    end
  end
  return out
end

return M
