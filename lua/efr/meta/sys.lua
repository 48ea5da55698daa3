---@meta efr.sys
-- The process, its user and its environment. Failures are nil, text, code.
local M = {}

M.VERSION = "0.0.0"
M.SIGHUP = 1
M.SIGINT = 2
M.SIGQUIT = 3
M.SIGKILL = 9
M.SIGUSR1 = 10
M.SIGUSR2 = 12
M.SIGPIPE = 13
M.SIGTERM = 15
M.SIGCONT = 18
M.SIGSTOP = 19
M.SIGTSTP = 20
M.SIGWINCH = 28

---@return integer
function M.getpid() end

---@return integer
function M.getppid() end

---@return integer
function M.getuid() end

---@class efr.UserInfo
---@field name string
---@field home string
---@field shell string

---This user's entry of the user database.
---@return efr.UserInfo?
---@return string? err
---@return string? code
function M.user_info() end

---@return string? name
---@return string? err
---@return string? code
function M.hostname() end

---Where this program's file lies.
---@return string? path
---@return string? err
---@return string? code
function M.exe_path() end

---Shared memory, filled with zeros, as a descriptor.
---@param name string  how /proc shows it
---@param bytes integer
---@return integer? fd
---@return string? err
---@return string? code
function M.memfd(name, bytes) end

---@class efr.PeerCred
---@field pid integer
---@field uid integer
---@field gid integer

---The process at the other end of a Unix stream socket.
---@param fd integer
---@return efr.PeerCred?
---@return string? err
---@return string? code
function M.peer_cred(fd) end

---@param name string
---@return string? value  bytes
function M.getenv(name) end

---All variables. Names and values are bytes; of two equal names the first counts.
---@return table<string, string>
function M.environ() end

---@param count integer  at most 65536
---@return string bytes
function M.random(count) end

---Microseconds since 1970.
---@return integer
function M.now_us() end

---Microseconds of the clock that never jumps.
---@return integer
function M.mono_us() end

---A time-ordered UUID (version 7).
---@return string
function M.uuid7() end

---@class efr.Lock
local Lock = {}

---Releases the lock; twice is fine. The collector does it, too.
function Lock:close() end

---Takes the exclusive lock of a directory or file (made 0600) or fails at once: EWOULDBLOCK when it is held.
---@param path string
---@return efr.Lock?
---@return string? err
---@return string? code
function M.flock(path) end

---The same, waiting for at most ms. Blocks the loop.
---@param path string
---@param ms integer
---@return efr.Lock?
---@return string? err
---@return string? code
function M.lock_wait(path, ms) end

---Signals one process.
---@param pid integer  above 0
---@param signal integer  0 only asks whether it exists
---@return true? ok
---@return string? err
---@return string? code
function M.kill(pid, signal) end

---Signals all processes of a group.
---@param group integer  above 1
---@param signal integer
---@return true? ok
---@return string? err
---@return string? code
function M.killpg(group, signal) end

---@param fd integer
---@return boolean
function M.isatty(fd) end

---@param fd integer
---@return string? path
---@return string? err
---@return string? code
function M.ttyname(fd) end

---Closes a descriptor that came as a number.
---@param fd integer
---@return true? ok
---@return string? err
---@return string? code
function M.close_fd(fd) end

---No core dump, and no other process of the user may trace this one.
---@return true? ok
---@return string? err
---@return string? code
function M.set_nondumpable() end

---Ends the process at once: nothing of Lua is closed. A program ends by returning from run.
---@param code integer
function M.exit(code) end

---Tells the service manager (sd_notify). Without one it does nothing.
---@param text string  "READY=1"
---@return true? ok
---@return string? err
---@return string? code
function M.notify(text) end

---The descriptors of socket activation. Call it once, at the start.
---@return integer[]
function M.listen_fds() end

---Writes to the log of the program.
---@param level "error"|"warn"|"info"|"debug"|"trace"
---@param text string
function M.log_write(level, text) end

---Messages that matter less than level are not written.
---@param level "error"|"warn"|"info"|"debug"|"trace"
function M.log_limit(level) end

---Gives free heap back to the system (malloc_trim(3)).
function M.release_memory() end

---Writes all bytes to a descriptor, blocking.
---@param fd integer
---@param text string
---@return true? ok
---@return string? err
---@return string? code
function M.write_fd(fd, text) end

---The text and the stack of a coroutine.
---@param co thread
---@param text string
---@return string
function M.traceback(co, text) end

return M
