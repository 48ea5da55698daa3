-- The life of a hidden shell: its start, its first prompt, its end.
--
-- Owns: the methods of efr.Hidden that start a shell and end one. Must not know: what is typed,
-- when a run ends. Loop thread of efrd; methods that wait run in a coroutine.

local live = require "efr.shell.live"
local output = require "efr.shell.output"
local process = require "efr.shell.process"
local terminal = require "efr.shell.terminal"

local FIRST_PROMPT_MS <const>, AFTER_INTERRUPT_MS <const> = 10000, 2000
local CLOSE_GRACE_MS <const>, KEEPER_MS <const> = 1000, 8000
local SIGHUP <const>, SIGKILL <const>, SIGCONT <const> = 1, 9, 18

---@class efr.Hidden
local Life = {}

function Life:_on_exit(code, signal)
  self._pty:kill_session(SIGKILL, false)
  self._terminal:close()
  self._timer:close()
  local status = signal ~= 0 and 128 + signal or code
  self:_event("shell_exited", { exit_code = status })
  self._pty, self._pid, self._phase = nil, nil, "none"
  -- Whoever waits may start the next shell at once, so this comes last.
  if self._run then
    self:_end_run("exited", status)
  else
    self:_changed()
  end
end

function Life:_spawn()
  local opts = self._opts
  local cwd = process.first_dir(self._ports.fs, { self.cwd, opts.home }) or "/"
  local argv = { "zsh", "-i" }
  if opts.login then table.insert(argv, 2, "-l") end
  local pty_id = self._ports.sys.uuid7()
  self._handoff:clear()
  local opened, err, code = terminal.open {
    ports = self._ports, worker = opts.worker, warn = opts.warn,
    recording = opts.recording and opts.recording(pty_id),
    spawn = {
      path = opts.program, argv = argv, env = opts.env(cwd), cwd = cwd, cols = 120, rows = 40,
      keeper = opts.keeper,
    },
    on_bytes = function(bytes) self:_on_bytes(bytes) end,
    on_mark = function(mark) self:_on_mark(mark) end,
    on_exit = function(exit_code, signal) self:_on_exit(exit_code, signal) end,
    wants_reply = function() return self:_wants_reply() end,
  }
  if not opened then return nil, "start the shell: " .. err, code end
  self._terminal, self._pty, self._pty_id = opened, opened.pty, pty_id
  self._pid, self.cwd, self._phase = opened.pty:pid(), cwd, "starting"
  self._startup = output.new { limit_bytes = 2 * live.TAIL_BYTES }
  self._timer = self._ports.uv.new_timer()
  self._unmarked = nil
  self._claimed, self._starts, self._used_ms = nil, self._starts + 1, self:_now_ms()
  self:_event("shell_started", { cwd = cwd, pid = self._pid })
  return true
end

-- A shell that stands at its first prompt, or nil with what it showed instead.
function Life:_first_prompt(token)
  local function arrived() return self._phase ~= "starting" end
  local limit = self._opts.first_prompt_ms or FIRST_PROMPT_MS
  if not self:_is_zsh() and self:_try_unmarked(token, limit) then return true end
  local how = self:_wait(self:_now_ms() + limit, token, arrived)
  if how == "timeout" then
    -- A start-up file or a prompt hook that never ends.
    self._pty:interrupt()
    how = self:_wait(self:_now_ms() + AFTER_INTERRUPT_MS, token, arrived)
  end
  if how == "cancelled" then return nil, "interrupted", "EFR_CANCELLED" end
  if self._phase == "ready" then return true end
  if self._phase == "starting" and self:_try_unmarked(token) then return true end
  local shown = self._startup and self._startup:tail(1024) or ""
  local message = self._phase == "none" and "the shell ended before its first prompt"
    or ("the shell showed no prompt within %d s"):format(limit // 1000)
  self:close()
  return nil, message .. (shown:find("%S") and "; it printed:\n" .. shown or "")
end

-- A shell that runs and has shown its first prompt, or why there is none.
function Life:_start(token)
  if self._phase == "none" then
    local ok, err, code = self:_spawn()
    if not ok then return nil, err, code end
  end
  if self._phase == "starting" then return self:_first_prompt(token) end
  return true
end

---End the shell and everything in its session; waits about a second, with a command outside the
---sandbox some more: with it ends whatever it started.
function Life:close()
  local pty = self._pty
  if not pty then return end
  local function gone() return self._pty ~= pty end
  -- A command outside the sandbox may have started what is in no session of the shell.
  if self._run and self._run.launch == "direct" and pty:leave_call()
    and self:_wait(self:_now_ms() + KEEPER_MS, nil, gone) == "done" then
    return
  end
  pty:kill_session(SIGHUP, true)
  pty:kill_session(SIGCONT, true)
  if self:_wait(self:_now_ms() + CLOSE_GRACE_MS, nil, gone) ~= "done" then
    pty:kill_session(SIGKILL, true)
    self:_wait(self:_now_ms() + CLOSE_GRACE_MS, nil, gone)
  end
end

return Life
