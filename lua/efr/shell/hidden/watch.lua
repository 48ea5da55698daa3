-- What the terminal says of a hidden shell while a line runs in it: marks, bytes, silence.
--
-- Owns: the methods of efr.Hidden that follow marks, tell that a run has started or ended, and type
-- the fixed line anew. Must not know: how a shell starts, who waits for a run. Loop thread of efrd.
--
-- Policy: a run ends only on facts that a command cannot fake (see efr.shell.hidden).

local async = require "efr.util.async"
local handoff = require "efr.shell.handoff"
local live = require "efr.shell.live"
local process = require "efr.shell.process"
local results = require "efr.shell.results"

local TICK_MS <const>, RETYPE_MS <const> = 100, 400
local MAX_TYPED <const> = 10
local SIGKILL <const> = 9

---@class efr.Hidden
local Watch = {}

-- Whether the shell's own group holds its terminal.
function Watch:_has_terminal()
  return self._pty:foreground() == self._pid
end

function Watch:_update_cwd(claimed)
  local cwd = process.cwd(self._ports.fs, self._pid, claimed) or self.cwd
  if cwd == self.cwd then return end
  self.cwd = cwd
  self:_event("cwd_changed", { cwd = cwd })
end

-- The run is over; the next prompt makes the shell ready.
function Watch:_end_run(how, status)
  local run = self._run
  self._run, self._pending = nil, nil
  self._timer:stop()
  if self._pty then self._pty:end_call() end
  run.ended, run.status = how, status
  if self._phase == "busy" then self._phase = self._unmarked and "unmarked" or "prompting" end
  if run.late then
    local late, screen = run.on_late_end, self._terminal:screen()
    if late then async.spawn(function() late(results.of(run, self.cwd, screen)) end) end
  end
  self:_changed()
end

-- An interrupt can keep the shell from ending a launcher that was stopped; it must not outlive its
-- call.
function Watch:_end_launcher()
  local run = self._run
  if run.launch ~= "contained" or not run.interrupted then return end
  local pid = process.launcher(self._ports.fs, self._pid, run.call.dir)
  if pid then self._ports.sys.kill(pid, SIGKILL) end
end

-- D with the nonce of the run came: the fact that ends it, once the shell has the terminal back.
function Watch:_check_end()
  local pending = self._pending
  if not pending or not self:_has_terminal() then return end
  self:_update_cwd(pending.cwd)
  self:_end_launcher()
  self:_end_run("done", pending.status)
end

local on_mark = {}

function on_mark.C(self, mark)
  local run = self._run
  if not run or run.started or mark.aid ~= run.nonce then return end
  run.started, run.unparsed = true, mark.err == "parse"
  run.other_shell = mark.err
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
    self._phase, self._startup = "ready", nil
  elseif self._phase == "prompting" then
    self._phase = "ready"
  elseif mark.aid and run and not run.started and not self._pending then
    -- A new prompt and no C: an interrupt may have swallowed the line.
    self:_type_again(run)
  end
  self:_changed()
end

function Watch:_on_mark(mark)
  local handler = on_mark[mark.kind]
  if handler then handler(self, mark) end
end

function Watch:_on_bytes(bytes)
  local run = self._run
  self._used_ms = self:_now_ms()
  if not run then
    if self._phase == "starting" then self._startup:feed(bytes) end
    return
  end
  if not run.started or self._pending then return end
  run.active, run.news = self:_now_ms(), true
  if not run.unmarked then run.output:feed(bytes) end
  if run.inner then
    run.inner:feed(bytes)
    self:_check_unmarked()
    if run.inner.status then self:_changed() end
  end
end

-- Ten times a second while a command runs.
function Watch:_tick()
  local run = self._run
  if not run then return end
  live.report(run, self._terminal:screen(), self:_now_ms())
  local quiet = self:_now_ms() - run.active
  if quiet >= TICK_MS and self:_has_terminal() then
    -- A command that stopped the terminal's output would keep the shell from saying that it ended.
    self._pty:resume_output()
    if not run.started and quiet >= RETYPE_MS then self:_type_again(run) end
  end
  self:_check_end()
  self:_check_unmarked()
  self:_watch_input()
  if run.nested then self:_changed() end
end

-- Whether an answer of the terminal would reach the program that asked: only a job that reads
-- without line mode or echo. The shell itself must never get one.
function Watch:_wants_reply()
  local run = self._run
  if not run or not run.started or self._pending or self:_has_terminal() then return false end
  local modes = self._pty:modes()
  return modes ~= nil and not (modes.canonical and modes.echo)
end

function Watch:_type_again(run)
  run.typed = run.typed + 1
  if run.typed > MAX_TYPED then return end
  run.active = self:_now_ms()
  -- Rarely zsh comes out of an interrupt so that it shows prompts and runs no hook, hence takes no
  -- line. Another interrupt ends that. One that has taken the line is left alone.
  if run.typed % 3 == 0 and self._handoff:is_open() then return self._pty:interrupt() end
  self._pty:write(handoff.FIXED_LINE)
end

return Watch
