---@meta efr.pty
-- One program on a pseudo-terminal. Loop thread only. Failures are nil, text, code; a closed pty
-- gives nil, "closed", "EFR_CLOSED".
local M = {}

---@class efr.PtyOptions
---@field path string  absolute path of the program
---@field argv string[]  with argv[0] first
---@field env string[]  the whole environment, "NAME=value"
---@field cwd string  absolute
---@field keeper string?  absolute path of efr-sbx: the program gets a keeper
---@field cols integer?  default 80
---@field rows integer?  default 24

---@class efr.Pty
local Pty = {}

---Starts the program as leader of a new session on a new terminal, with no descriptor but it.
---Set on_data and on_exit before the loop runs on.
---@param opts efr.PtyOptions
---@return efr.Pty?
---@return string? err
---@return string? code
function M.open(opts) end

---A command begins: until end_call, everything that the program starts ends should efrd be killed.
---nil: no keeper runs, and the command must not.
---@return boolean?
---@return string? err
---@return string? code
function Pty:begin_call() end

---The command is over; what it left behind lives on.
---@return boolean?
function Pty:end_call() end

---Ends everything that the running command started, then the program and its session, as a kill of
---efrd would. on_exit comes when that is done. nil: no keeper runs.
---@return boolean?
---@return string? err
---@return string? code
function Pty:leave_call() end

---@return integer pid  stays reserved until close
function Pty:pid() end

---@param fn fun(bytes: string)
---@return boolean
function Pty:on_data(fn) end

---Called once, after the last output.
---@param fn fun(exit_code: integer, signal: integer)
---@return boolean
function Pty:on_exit(fn) end

---Queues input; EFR_FULL above 1 MiB.
---@param bytes string
---@return boolean?
function Pty:write(bytes) end

---Writes at most 1025 bytes of a person's keys now, none while as many are unread, and queues nothing.
---@param bytes string
---@return integer? count
function Pty:write_keys(bytes) end

---Whether output is left in the terminal, so that the program waits once it is full. What is there
---at the program's end is read all the same.
---@param paused boolean
---@return boolean?
function Pty:pause(paused) end

---Puts line discipline, modes, flow, exclusive use and size back and throws unread input away.
---@return boolean?
function Pty:restore() end

---Lets stopped output flow.
---@return boolean?
function Pty:resume_output() end

---@return integer? pgrp
function Pty:foreground() end

---@return {echo: boolean, canonical: boolean}?
function Pty:modes() end

---@param cols integer
---@param rows integer
---@return boolean?
function Pty:resize(cols, rows) end

---SIGINT to the foreground group.
---@return boolean?
function Pty:interrupt() end

---@param signum integer
---@return boolean?
function Pty:kill(signum) end

---A signal for every process of the program's session; 0 only counts.
---@param signum integer
---@param with_leader boolean?  the program too
---@return integer? count
function Pty:kill_session(signum, with_leader) end

---Hangs up. No callback comes any more.
---@return boolean
function Pty:close() end

return M
