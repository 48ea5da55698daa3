---@meta efr.proc
-- Starting programs. Failures are nil, text, code; then no process is left.
local M = {}

---@class efr.SpawnOptions
---@field path string  absolute path of the program
---@field argv string[]  with argv[0] first
---@field env string[]  the whole environment, "NAME=value"
---@field cwd string?  default: ours
---@field fds table<integer, integer|"null">?  child -> ours; default of 0 to 2: "null"
---@field umask integer?  default: ours
---@field setsid boolean?  a session of its own
---@field pgrp boolean?  a process group of its own
---@field on_exit fun(code: integer, signal: integer)?  on the loop, once

---@class efr.Child
---@field pid integer
local Child = {}

---Starts a child with default signal actions, no blocked signal, and no descriptor but those of
---fds. on_exit gets signal 0 after an exit, code 0 after a signal. The child counts as open work of
---the loop until it ends or is closed.
---@param options efr.SpawnOptions
---@return efr.Child?
---@return string? err
---@return string? code
function M.spawn(options) end

---Sends a signal to the child alone (sys.killpg reaches its group). ESRCH once it ended.
---@param signal integer
---@return true? ok
---@return string? err
---@return string? code
function Child:kill(signal) end

---Gives the child up: on_exit is not called any more; it is reaped when it ends.
function Child:close() end

---@class efr.DaemonOptions
---@field path string  absolute path of the program
---@field argv string[]
---@field env string[]
---@field cwd string?
---@field output_path string?  file (made 0600, appended) for its output; default /dev/null

---Starts a program that outlives us and is not our child: own session, umask 077, default signals,
---soft limits of the system's first process.
---@param options efr.DaemonOptions
---@return integer? pid
---@return string? err
---@return string? code
function M.start_daemon(options) end

return M
