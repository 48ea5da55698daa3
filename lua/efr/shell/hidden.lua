-- The hidden zsh of one conversation: one line at a time in it.
--
-- Owns: what is typed (one fixed line, never the model's), who waits for a run, how one is stopped.
-- (hidden/life.lua starts and ends the shell, hidden/watch.lua follows what its terminal says,
-- hidden/input.lua what a command waits for, hidden/steer.lua is for a person who looks,
-- hidden/nested.lua for a shell inside of this one, hidden/unmarked.lua one without marks.)
-- Must not know: permissions, the store, what a line means. Loop thread of efrd; methods that wait
-- run in a coroutine.
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
local input = require "efr.shell.hidden.input"
local life = require "efr.shell.hidden.life"
local live = require "efr.shell.live"
local nested = require "efr.shell.hidden.nested"
local output = require "efr.shell.output"
local results = require "efr.shell.results"
local steer = require "efr.shell.hidden.steer"
local unmarked = require "efr.shell.hidden.unmarked"
local watch = require "efr.shell.hidden.watch"

local M = {}

local AFTER_INTERRUPT_MS <const>, PROMPT_MS <const> = 2000, 1000
local TICK_MS <const>, ASK_AGAIN_MS <const> = 100, 1000

---@class efr.Hidden
---@field cwd string  last known directory of the shell
---@field _phase "none"|"starting"|"ready"|"busy"|"prompting"|"unmarked"
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
---@field first_prompt_ms integer?  default 10000
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
    _starts = opts.had_shell and 1 or 0, _known = opts.had_shell and 1 or 0, _used_ms = 0,
  }, Hidden)
end

for _, part in ipairs { input, life, nested, steer, unmarked, watch } do
  for name, method in pairs(part) do Hidden[name] = method end
end

function Hidden:_now_ms()
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
    local left = deadline - self:_now_ms()
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
  self:_wait(self:_now_ms() + AFTER_INTERRUPT_MS, opts.token, function()
    return not self._pty or self:_has_terminal()
  end)
  if not self._pty or not self:_has_terminal() then
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
  -- From now on another event tells what it waits for, and it can be answered.
  run.stood, run.wait, run.refused, run.next_look = run.wait, nil, nil, 0
  local result = results.running(run, self.cwd, outcome, self._terminal:screen())
  result.pty_id = self._pty_id
  return result
end

-- Stops a run that somebody gave up: takes it back, or ends it.
function Hidden:_interrupt(run, token)
  if not run.started and not run.ended and self._handoff:take_back() then
    self:_end_run("dropped")
    self._phase = "ready"
    return self:_result(run)
  end
  if token.reason == "shutdown" and run.launch == "direct" then
    run.interrupted = true
    self:close()
    if not run.ended then return leave_running(self, run, "interrupted") end
    local result = self:_result(run)
    result.outcome, result.setup_error = "interrupted", nil
    return result
  end
  return self:_stopped(run, "interrupted")
end

-- Ends a run, and what it gives back then.
function Hidden:_stopped(run, outcome)
  self:_stop(run)
  if outcome == "wants_secret" then self:_end_input(run) else self:_end_job(run) end
  if not run.ended then return leave_running(self, run, outcome) end
  local result = self:_result(run)
  if result.outcome ~= "exited" then
    -- A launcher that was killed here leaves no result, which is no failure of the sandbox.
    result.outcome, result.setup_error = outcome, nil
  end
  return result
end

local BUSY <const> = "an earlier command still runs in this conversation's shell"
local NESTED <const> = "the shell that a call with nested_shell started is open in it, and only "
  .. "calls with nested_shell go there"

-- A shell at a prompt with nothing running, or the result that says why not.
function Hidden:_acquire(deadline, token)
  if self:has_nested() then return results.refusal(self.cwd, "busy", NESTED) end
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
  local how = self:_wait(self:_now_ms() + PROMPT_MS, token, function()
    return self._phase == "ready" or self._phase == "none" or self._phase == "unmarked"
  end)
  if how == "cancelled" then return results.refusal(self.cwd, "interrupted") end
  if self._phase == "none" then return self:_acquire(deadline, token) end
  return nil
end

-- What became of a line that was not typed.
function Hidden:_not_typed(opts, again, typed, err, outcome)
  if typed == nil then return results.refusal(self.cwd, outcome or "setup_failed", err) end
  if not self._pty and not again then return self:_run_locked(opts, true) end
  if opts.token and opts.token.cancelled then return results.refusal(self.cwd, "interrupted") end
  return results.refusal(self.cwd, "busy", "another process holds the shell's terminal")
end

-- Waits for the end of a run: until the timeout, and then as long as somebody may still answer it.
function Hidden:_wait_end(run, opts, timeout)
  local how
  local function over() return run.ended or run.refused or self:_is_open(run) end
  repeat
    how = self:_wait(self:_now_ms() + timeout, opts.token, over)
    timeout = ASK_AGAIN_MS
  until how ~= "timeout" or not opts.may_wait or not opts.may_wait()
  return how
end

local function type_any(self, run, opts)
  if self._phase == "unmarked" then return self:_type_unmarked(run, opts) end
  return self:_type(run, opts)
end

local function new_run(self, opts)
  return {
    launch = opts.launch or "direct", call = opts.call, output = output.new(),
    typed = 1, active = self:_now_ms(), on_output = opts.on_output, on_late_end = opts.on_late_end,
    line = opts.line, call_id = opts.call_id, since_us = self._ports.sys.now_us(),
    nested = opts.nested, on_wait = opts.on_wait, shell_line = opts.shell_line,
    manual_input = opts.manual_input,
  }
end

function Hidden:_run_locked(opts, again)
  local timeout, token = opts.timeout_ms or 30000, opts.token
  local refused = self:_acquire(self:_now_ms() + timeout, token)
  if refused then return refused end
  local ok, why = true, nil
  if opts.check then ok, why = opts.check() end
  if not ok then return results.refusal(self.cwd, "changed", why) end
  local run = new_run(self, opts)
  local typed, err, outcome = type_any(self, run, opts)
  if not typed then return self:_not_typed(opts, again, typed, err, outcome) end
  local how = self:_wait_end(run, opts, timeout)
  if how == "cancelled" then return self:_interrupt(run, token) end
  if run.refused and not run.ended then return self:_stopped(run, "wants_secret") end
  if how == "timeout" then return leave_running(self, run, "timeout") end
  if not run.ended then return leave_running(self, run, "nested") end
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
  if opts.nested and self:has_nested() then return self:_run_nested(opts) end
  local result = self:_run_locked(opts)
  -- Not the first: what the shell before knew is gone.
  result.fresh = self._known > 0 and self._starts > self._known or nil
  self._known = self._starts
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
  local result = self:_run_locked { apply = text, cd = cwd ~= self.cwd and cwd, timeout_ms = 5000 }
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

---The variables by which git finds its repository, its settings and its programs in the shell, as
---of its last prompt; nil when they are not known or no shell runs.
---@return efr.shell.GitEnvironment?
function Hidden:git_environment()
  if self._phase == "none" or self._phase == "starting" then return nil end
  return self._handoff:git_environment()
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

return M
