-- The hidden zsh of one conversation: its life, and one line at a time in it.
--
-- Owns: when a shell is ready, what is typed (one fixed line, never the model's), when a run has
-- ended and how. Must not know: permissions, the store, what a line means. Loop thread of efrd;
-- methods that wait run in a coroutine.
--
-- What is typed is one constant line. The shell evaluates what the file "run" says, and whoever
-- takes that file away owns the run: the integration, which will end it with D, or efrd, which then
-- knows that nothing ran and nothing will. So a line that an interrupt swallowed is typed again.
--
-- Policy: a run ends only on facts that a command cannot fake: the mark D with the nonce of this
-- call (for a contained call the end mark before it), and the shell's own group in the foreground.
-- What a contained call did is read from the launcher's files. A timeout kills nothing.

local async = require "efr.util.async"
local handoff = require "efr.shell.handoff"
local live = require "efr.shell.live"
local output = require "efr.shell.output"
local process = require "efr.shell.process"
local results = require "efr.shell.results"
local terminal = require "efr.shell.terminal"

local M = {}

local FIRST_PROMPT_MS <const> = 10000
local AFTER_INTERRUPT_MS <const> = 2000
local CLOSE_GRACE_MS <const>, TICK_MS <const> = 1000, 100
local TAIL_BYTES <const> = live.TAIL_BYTES
local MAX_TYPED <const> = 10
local RETYPE_MS <const>, PROMPT_MS <const> = 400, 1000
local SIGHUP <const>, SIGKILL <const>, SIGCONT <const> = 1, 9, 18

---@class efr.Hidden
---@field cwd string  last known directory of the shell
---@field _phase "none"|"starting"|"ready"|"busy"|"prompting"
local Hidden = {}
Hidden.__index = Hidden

---@class efr.shell.HiddenOptions
---@field ports table  pty, fs, sys, uv
---@field program string  absolute path of zsh
---@field login boolean
---@field control string  directory of this shell's own files, made by the caller
---@field env fun(cwd: string): string[]
---@field cwd string
---@field home string  where a shell starts whose directory is gone
---@field on_event fun(kind: string, fields: table)?
---@field worker string?  path of efr-worker; nil: no screens
---@field keeper string?  path of efr-sbx; nil: only the hang-up ends a call with efrd
---@field recording fun(pty_id: string): efr.shell.Recording?
---@field warn fun(message: string)?

---@param opts efr.shell.HiddenOptions
---@return efr.Hidden
function M.new(opts)
  return setmetatable({
    cwd = opts.cwd, _opts = opts, _ports = opts.ports, _phase = "none",
    _handoff = handoff.new(opts.ports, opts.control), _run = nil, _locked = false, _wake = {},
  }, Hidden)
end

local function now_ms(self)
  return self._ports.sys.mono_us() // 1000
end

function Hidden:_changed()
  local wake = self._wake
  self._wake = {}
  for _, fn in ipairs(wake) do fn() end
end

-- Waits until done() is true: "done", "timeout" or "cancelled".
function Hidden:_wait(deadline, token, done)
  while not done() do
    if token and token.cancelled then return "cancelled" end
    local left = deadline - now_ms(self)
    if left <= 0 then return "timeout" end
    local timer = self._ports.uv.new_timer()
    local forget
    async.await(function(resume)
      timer:start(left, 0, resume)
      self._wake[#self._wake + 1] = resume
      forget = token and token:on_cancel(resume)
    end)
    timer:close()
    if forget then forget() end
  end
  return "done"
end

function Hidden:_event(kind, fields)
  fields.pty_id = self._pty_id
  if self._opts.on_event then self._opts.on_event(kind, fields) end
end

function Hidden:_update_cwd(claimed)
  local cwd = process.cwd(self._ports.fs, self._pid, claimed) or self.cwd
  if cwd == self.cwd then return end
  self.cwd = cwd
  self:_event("cwd_changed", { cwd = cwd })
end

local function foreground_is_shell(self)
  return self._pty:foreground() == self._pid
end

-- The run is over; the next prompt makes the shell ready.
function Hidden:_end_run(how, status)
  local run = self._run
  self._run, self._pending = nil, nil
  self._timer:stop()
  if self._pty then self._pty:end_call() end
  run.ended, run.status = how, status
  if self._phase == "busy" then self._phase = "prompting" end
  if run.late then
    local late, screen = run.on_late_end, self._terminal:screen()
    if late then async.spawn(function() late(results.of(run, self.cwd, screen)) end) end
  end
  self:_changed()
end

-- D with the nonce of the run came: the fact that ends it, once the shell has the terminal back.
function Hidden:_check_end()
  local pending = self._pending
  if not pending or not foreground_is_shell(self) then return end
  self:_update_cwd(pending.cwd)
  self:_end_run("done", pending.status)
end

local on_mark = {}

function on_mark.C(self, mark)
  local run = self._run
  if not run or run.started or mark.aid ~= run.nonce then return end
  run.started, run.unparsed = true, mark.err == "parse"
  run.moved_path = mark.err == "path"
  self:_changed()
end

on_mark["efr-sbx"] = function(self, mark)
  local run = self._run
  if run and run.started and mark.nonce == run.nonce then run.sandbox_ended = true end
end

function on_mark.cwd(self, mark)
  self._claimed = mark.path
end

function on_mark.D(self, mark)
  local run = self._run
  if not run or mark.aid ~= run.nonce or self._pending then return end
  -- Without C, when an interrupt cut preexec short.
  if run.launch == "contained" and run.started and not run.sandbox_ended then return end
  self._pending = { status = mark.status, cwd = self._claimed }
  self:_check_end()
end

-- Flushed input can cut a line that the shell is reading, in the middle of its quotes. The next
-- prompt gets the line anew.
function on_mark.P(self, mark)
  local run = self._run
  if not run or mark.k ~= "s" or not mark.aid then return end
  if mark.aid == run.nonce or mark.aid == run.nonce_before then self._pty:interrupt() end
end

-- The integration's own B carries a nonce, that of the call before; the one in the prompt's text
-- does not, and may come after a line was typed.
function on_mark.B(self, mark)
  local run = self._run
  if self._phase == "starting" then
    self:_update_cwd(nil)
    self._phase = "ready"
  elseif self._phase == "prompting" then
    self._phase = "ready"
  elseif mark.aid and run and not run.started and not self._pending then
    -- A new prompt and no C: an interrupt may have swallowed the line.
    self:_type_again(run)
  end
  self:_changed()
end

function Hidden:_on_bytes(bytes)
  local run = self._run
  if not run then
    if self._phase == "starting" then self._startup:feed(bytes) end
    return
  end
  if not run.started or self._pending then return end
  run.output:feed(bytes)
  run.active, run.news = now_ms(self), true
end

-- Ten times a second while a command runs.
function Hidden:_tick()
  local run = self._run
  if not run then return end
  live.report(run, self._terminal:screen(), now_ms(self))
  local quiet = now_ms(self) - run.active
  if quiet >= TICK_MS and foreground_is_shell(self) then
    -- A command that stopped the terminal's output would keep the shell from saying that it ended.
    self._pty:resume_output()
    if not run.started and quiet >= RETYPE_MS then self:_type_again(run) end
  end
  self:_check_end()
end

function Hidden:_on_exit(code, signal)
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

function Hidden:_spawn()
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
    on_mark = function(mark)
      local handler = on_mark[mark.kind]
      if handler then handler(self, mark) end
    end,
    on_exit = function(exit_code, signal) self:_on_exit(exit_code, signal) end,
    wants_reply = function() return self:_wants_reply() end,
  }
  if not opened then return nil, "start the shell: " .. err, code end
  self._terminal, self._pty, self._pty_id = opened, opened.pty, pty_id
  self._pid, self.cwd, self._phase = opened.pty:pid(), cwd, "starting"
  self._startup = output.new { limit_bytes = 2 * TAIL_BYTES }
  self._timer = self._ports.uv.new_timer()
  self._claimed = nil
  self:_event("shell_started", { cwd = cwd, pid = self._pid })
  return true
end

-- Whether an answer of the terminal would reach the program that asked: only a job that reads
-- without line mode or echo. The shell itself must never get one.
function Hidden:_wants_reply()
  local run = self._run
  if not run or not run.started or self._pending or foreground_is_shell(self) then return false end
  local modes = self._pty:modes()
  return modes ~= nil and not (modes.canonical and modes.echo)
end

-- A shell that stands at its first prompt, or nil with what it showed instead.
function Hidden:_first_prompt(token)
  local function arrived() return self._phase ~= "starting" end
  local how = self:_wait(now_ms(self) + FIRST_PROMPT_MS, token, arrived)
  if how == "timeout" then
    -- A start-up file or a prompt hook that never ends.
    self._pty:interrupt()
    how = self:_wait(now_ms(self) + AFTER_INTERRUPT_MS, token, arrived)
  end
  if how == "cancelled" then return nil, "interrupted", "EFR_CANCELLED" end
  if self._phase == "ready" then return true end
  local shown = self._startup:tail(1024)
  local message = self._phase == "none" and "the shell ended before its first prompt"
    or "the shell showed no prompt within 10 s"
  self:close()
  return nil, message .. (shown:find("%S") and "; it printed:\n" .. shown or "")
end

-- A shell that runs and has shown its first prompt, or why there is none.
function Hidden:_start(token)
  if self._phase == "none" then
    local ok, err, code = self:_spawn()
    if not ok then return nil, err, code end
  end
  if self._phase == "starting" then return self:_first_prompt(token) end
  return true
end

function Hidden:_type_again(run)
  run.typed = run.typed + 1
  if run.typed > MAX_TYPED then return end
  run.active = now_ms(self)
  -- Rarely zsh comes out of an interrupt so that it shows prompts and runs no hook, hence takes no
  -- line. Another interrupt ends that. One that has taken the line is left alone.
  if run.typed % 3 == 0 and self._handoff:is_open() then return self._pty:interrupt() end
  self._pty:write(handoff.FIXED_LINE)
end

-- Types the fixed line at a ready prompt. False: busy.
function Hidden:_type(run, opts)
  run.nonce_before = self._nonce
  local nonce, ok, err
  nonce, err = self._handoff:put(run.launch, opts)
  if not nonce then return nil, err end
  run.nonce, self._nonce = nonce, nonce
  ok, err = self._pty:restore()
  if not ok then return nil, err end
  -- The shell takes its terminal back a moment after a prompt; one that is ending has none.
  self:_wait(now_ms(self) + AFTER_INTERRUPT_MS, opts.token, function()
    return not self._pty or foreground_is_shell(self)
  end)
  if not self._pty or not foreground_is_shell(self) then
    self._handoff:take_back()
    return false
  end
  ok, err = self._pty:begin_call()
  if not ok then
    self._handoff:take_back()
    return nil, err
  end
  self._terminal:ensure_screen()
  self._run, self._phase, self._claimed = run, "busy", nil
  self._timer:start(TICK_MS, TICK_MS, function() self:_tick() end)
  return self._pty:write(handoff.FIXED_LINE)
end

-- What a run that has ended gives back. Waits.
function Hidden:_result(run)
  live.finish(run)
  return results.of(run, self.cwd, self._terminal:screen())
end

-- A run that goes on without its caller.
local function leave_running(self, run, outcome)
  run.late, run.answered = true, true
  return results.running(run, self.cwd, outcome, self._terminal:screen())
end

-- Stops a run: takes it back, or SIGINT to the foreground group; a contained call that ignores it
-- loses its launcher, and with it everything inside.
function Hidden:_interrupt(run)
  local function over() return run.ended end
  if not run.started and not run.ended and self._handoff:take_back() then
    self:_end_run("dropped")
    self._phase = "ready"
    return self:_result(run)
  end
  run.interrupted = true
  self:_wait(now_ms(self) + 200, nil, function() return run.started or run.ended end)
  if not run.ended then self._pty:interrupt() end
  self:_wait(now_ms(self) + AFTER_INTERRUPT_MS, nil, over)
  if not run.ended and run.launch == "contained" then
    local pid = process.launcher(self._ports.fs, self._pid, run.call.dir)
    if pid then self._ports.sys.kill(pid, SIGKILL) end
    self:_wait(now_ms(self) + AFTER_INTERRUPT_MS, nil, over)
  end
  if not run.ended then return leave_running(self, run, "interrupted") end
  local result = self:_result(run)
  if result.outcome ~= "exited" then
    -- A launcher that was killed here leaves no result, which is no failure of the sandbox.
    result.outcome, result.setup_error = "interrupted", nil
  end
  return result
end

local BUSY <const> = "an earlier command still runs in this conversation's shell"

-- A shell at a prompt with nothing running, or the result that says why not.
function Hidden:_acquire(deadline, token)
  if self._run then
    local how = self:_wait(deadline, token, function() return not self._run end)
    if how == "cancelled" then return results.refusal(self.cwd, "interrupted") end
    if how == "timeout" then return results.refusal(self.cwd, "busy", BUSY) end
  end
  local ok, err, code = self:_start(token)
  if not ok then
    local outcome = code == "EFR_CANCELLED" and "interrupted" or "setup_failed"
    return results.refusal(self.cwd, outcome, err)
  end
  -- Not longer: an interrupt can take a prompt's marks along, and a line typed early just waits.
  local how = self:_wait(now_ms(self) + PROMPT_MS, token, function()
    return self._phase == "ready" or self._phase == "none"
  end)
  if how == "cancelled" then return results.refusal(self.cwd, "interrupted") end
  if self._phase == "none" then return self:_acquire(deadline, token) end
  return nil
end

-- What became of a line that was not typed.
function Hidden:_not_typed(opts, again, typed, err)
  if typed == nil then return results.refusal(self.cwd, "setup_failed", err) end
  if not self._pty and not again then return self:_run_locked(opts, true) end
  if opts.token and opts.token.cancelled then return results.refusal(self.cwd, "interrupted") end
  return results.refusal(self.cwd, "busy", "another process holds the shell's terminal")
end

function Hidden:_run_locked(opts, again)
  local timeout, token = opts.timeout_ms or 30000, opts.token
  local refused = self:_acquire(now_ms(self) + timeout, token)
  if refused then return refused end
  local run = {
    launch = opts.launch or "direct", call = opts.call, output = output.new(),
    typed = 1, active = now_ms(self), on_output = opts.on_output, on_late_end = opts.on_late_end,
  }
  local typed, err = self:_type(run, opts)
  if not typed then return self:_not_typed(opts, again, typed, err) end
  local how = self:_wait(now_ms(self) + timeout, token, function() return run.ended end)
  if how == "cancelled" then return self:_interrupt(run) end
  if how == "timeout" then return leave_running(self, run, "timeout") end
  if run.ended == "exited" and not run.started and not again then
    -- The shell had ended at its prompt (the line before took its input away): nothing ran.
    return self:_run_locked(opts, true)
  end
  return self:_result(run)
end

---Run one line; waits. Overlapping runs are busy.
---@param opts efr.shell.RunOptions
---@return efr.shell.RunResult
function Hidden:run(opts)
  if self._locked then return results.refusal(self.cwd, "busy", BUSY) end
  self._locked = true
  local _ <close> = setmetatable({}, { __close = function() self._locked = false end })
  local result = self:_run_locked(opts)
  local report = opts.launch == "contained" and result.outcome == "finished" and opts.call:result()
  if report then
    self:_apply(report.cwd, report.exports)
    result.cwd = self.cwd
  end
  return result
end

-- Directory and variables from outside, as data that the integration reads field by field.
function Hidden:_apply(cwd, exports)
  local text = handoff.apply_text(cwd ~= self.cwd and cwd or nil, exports)
  if text == "" then return true end
  local result = self:_run_locked { apply = text, timeout_ms = 5000 }
  return result.outcome == "finished" and result.exit_code == 0
end

---Move the shell to a directory, without chpwd hooks; waits at most 5 s. A shell that does not run
---starts there.
---@param dir string
---@return boolean moved
function Hidden:set_cwd(dir)
  if self._locked or self._run then return false end
  if self._phase == "none" then
    self.cwd = dir
    return true
  end
  self._locked = true
  local _ <close> = setmetatable({}, { __close = function() self._locked = false end })
  return self:_apply(dir) and self.cwd == dir
end

---The PATH by which the shell finds programs, as of its last prompt; nil when it is not known.
---Starts a shell that does not run; waits for its first prompt.
---@param token efr.Token?
---@return string?
function Hidden:search_path(token)
  if self._phase == "none" or self._phase == "starting" then
    if self._locked then return nil end
    self._locked = true
    local _ <close> = setmetatable({}, { __close = function() self._locked = false end })
    if not self:_start(token) then return nil end
  end
  return self._handoff:search_path()
end

---Pid of the shell and id of its session; nil when none runs.
---@return integer?
function Hidden:pid()
  return self._pid
end

---Whether a command runs in the shell, also one whose call has answered.
---@return boolean
function Hidden:is_running()
  return self._run ~= nil
end

---End the shell and everything in its session; waits about a second at most.
function Hidden:close()
  local pty = self._pty
  if not pty then return end
  local function gone() return self._pty ~= pty end
  pty:kill_session(SIGHUP, true)
  pty:kill_session(SIGCONT, true)
  if self:_wait(now_ms(self) + CLOSE_GRACE_MS, nil, gone) ~= "done" then
    pty:kill_session(SIGKILL, true)
    self:_wait(now_ms(self) + CLOSE_GRACE_MS, nil, gone)
  end
end

return M
