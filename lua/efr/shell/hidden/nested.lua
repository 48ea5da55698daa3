-- A shell that stays inside of the hidden one: bash, ssh, sudo -i.
--
-- Owns: the methods of efr.Hidden that tell that such a shell is open and run a line in it. Must
-- not know: which lines start one, who may. Loop thread of efrd; methods that wait run in a
-- coroutine.
--
-- Policy: the call that starts it answers as soon as somebody reads the terminal. A later call for
-- it is typed only while a job reads the terminal, never at the hidden shell itself. Nothing inside
-- can end the run of the hidden shell or move it.

local replay = require "efr.shell.replay"
local results = require "efr.shell.results"
local sentinel = require "efr.shell.sentinel"

local READS <const> = { input = true, keys = true, visible = true }
local READY_MS <const>, AFTER_INTERRUPT_MS <const> = 5000, 2000

---@class efr.Hidden
local Nested = {}

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

---Whether the shell that a run was to start stands and reads.
---@param run table
---@return boolean
function Nested:_is_open(run)
  return run.nested and run.started and not run.inner and run.wait ~= nil
    and READS[run.wait.kind] == true
end

---Whether a shell inside of this one is open, or was left in the middle of a line.
---@return boolean
function Nested:has_nested()
  return self._run ~= nil and self._run.nested == true and self._run.late == true
end

-- A line's output so far, its end or not.
local function result_of(self, run, inner, outcome)
  local screen = self._terminal:screen()
  local text, truncated = replay.finish(inner.output, screen)
  return {
    outcome = outcome, output = text, truncated = truncated, exit_code = inner.status,
    cwd = self.cwd, nested = { line = run.line, cwd = inner.cwd },
  }
end

-- The end of a line that does not end by itself.
local function stop(self, run, inner)
  self._pty:interrupt()
  self:_wait(self:_now_ms() + AFTER_INTERRUPT_MS, nil, function()
    return run.ended or inner.status or run.wait
  end)
  if run.wait or inner.status then run.inner = nil end
  return result_of(self, run, inner, "interrupted")
end

---Run a line in the shell that is open inside; waits.
---@param opts efr.shell.RunOptions
---@return efr.shell.RunResult
function Nested:_run_nested(opts)
  local run, token = self._run, hex(self._ports.sys.random(8))
  local typed = sentinel.line(token, opts.line)
  if not typed then
    return results.refusal(self.cwd, "too_long")
  end
  local timeout = opts.timeout_ms or 30000
  -- A line of before that goes on is waited for as any other; a prompt only needs its moment.
  local patience = run.inner and not run.inner.status and timeout or READY_MS
  local how = self:_wait(self:_now_ms() + patience, opts.token, function()
    if run.inner and run.inner.status then run.inner = nil end
    return run.ended or self:_is_open(run)
  end)
  if how == "cancelled" then return results.refusal(self.cwd, "interrupted") end
  if how == "timeout" then
    return results.refusal(self.cwd, "busy", "the shell inside it does not read a command now")
  end
  if run.ended or self:_has_terminal() then return results.refusal(self.cwd, "nested_ended") end
  local inner = sentinel.new(token)
  run.inner, run.active, run.wait = inner, self:_now_ms(), nil
  local ok, err = self._pty:write(typed .. "\r")
  if not ok then return results.refusal(self.cwd, "setup_failed", err) end
  how = self:_wait(self:_now_ms() + timeout, opts.token, function()
    return run.ended or inner.status
  end)
  if how == "cancelled" then return stop(self, run, inner) end
  if how == "timeout" then return result_of(self, run, inner, "timeout") end
  run.inner = nil
  return result_of(self, run, inner, inner.status and "finished" or "nested_ended")
end

return Nested
