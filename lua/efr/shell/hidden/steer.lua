-- A hidden shell as a person sees and steers it, from outside of any call.
--
-- Owns: the methods of efr.Hidden that say what runs, stop it, and type a person's keys. Must not
-- know: who asks, how a run is started. Loop thread of efrd; methods that wait run in a coroutine.
--
-- Policy: keys go to a program that holds the terminal, never to the shell itself, and never into
-- the sandbox: what asks there for a password is easily made, and the person cannot tell.

local process = require "efr.shell.process"

local AFTER_INTERRUPT_MS <const>, START_MS <const>, TREE_MS <const> = 2000, 200, 4000
local TERM_MS <const>, KILL_MS <const>, LOOK_MS <const>, JOBS_MAX <const> = 2000, 1000, 50, 8
local SIGINT <const>, SIGKILL <const>, SIGTERM <const> = 2, 9, 15

---@class efr.Hidden
local Steer = {}

---@class efr.shell.Status
---@field state "idle"|"running"|"exited"
---@field cwd string
---@field input "none"|"visible"|"hidden"
---@field looks_secret boolean?
---@field line string?  of a running command, as all that follows
---@field since_us integer?
---@field call_id string?
---@field pty_id string?
---@field left boolean?  its call has answered
---@field contained boolean?

---What runs.
---@return efr.shell.Status
function Steer:status()
  local run = self._run
  if not run then
    local ended = self._phase == "none" and self._starts > 0
    return { state = ended and "exited" or "idle", cwd = self.cwd, input = "none" }
  end
  return {
    state = "running", cwd = self.cwd, input = run.input or "none",
    looks_secret = run.input and run.wait.looks_secret or nil,
    line = run.line, since_us = run.since_us, call_id = run.call_id, pty_id = self._pty_id,
    left = run.late, contained = run.launch == "contained" or nil,
  }
end

---The id of the terminal; nil when no shell runs.
---@return string?
function Steer:pty_id()
  return self._pty and self._pty_id
end

---The terminal of the shell that runs, or ran last.
---@return efr.shell.Terminal?
function Steer:terminal()
  return self._terminal
end

-- Stops a run that was sent: SIGINT to the foreground group; a contained call that ignores it loses
-- its launcher, and with it everything inside. That of a call outside is asked to end its tree,
-- which takes it 3 s at most. Afterwards run.ended says whether that was enough.
function Steer:_stop(run)
  local function over() return run.ended end
  run.interrupted = true
  self:_wait(self:_now_ms() + START_MS, nil, function() return run.started or run.ended end)
  if not run.ended then self._pty:interrupt() end
  self:_wait(self:_now_ms() + AFTER_INTERRUPT_MS, nil, over)
  if not run.ended and run.launch ~= "direct" then
    local pid = process.launcher(self._ports.fs, self._pid, run.call.dir)
    local outside = run.launch == "outside"
    if pid then self._ports.sys.kill(pid, outside and SIGTERM or SIGKILL) end
    self:_wait(self:_now_ms() + (outside and TREE_MS or AFTER_INTERRUPT_MS), nil, over)
  end
end

-- Waits until another group than this one holds the terminal, or the run has ended. False: neither.
local function has_left(self, run, group, ms)
  local deadline = self:_now_ms() + ms
  local function over() return run.ended or not self._pty or self._pty:foreground() ~= group end
  while not over() and self:_now_ms() < deadline do
    self:_wait(math.min(deadline, self:_now_ms() + LOOK_MS), nil, over)
  end
  return over()
end

-- Ends the program of a direct call that took no interrupt: SIGTERM for the group that holds the
-- terminal, then SIGKILL. Never for the shell's own, which lives on; it gets SIGINT, so that the
-- rest of its line does not run. A loop may start some more of them. A shell inside of this one has
-- its own way with interrupts, and stays. Waits.
function Steer:_end_job(run)
  if run.launch ~= "direct" or run.nested then return end
  for _ = 1, JOBS_MAX do
    local group = not run.ended and self._pty and self._pty:foreground()
    if not group then return end
    local is_job = group ~= self._pid
    if is_job then
      self._pty:kill(SIGINT)
      self._ports.sys.killpg(group, SIGTERM)
    end
    if not has_left(self, run, group, TERM_MS) then
      if not is_job then return end
      self._ports.sys.killpg(group, SIGKILL)
      if not has_left(self, run, group, KILL_MS) then return end
    end
  end
end

---Stop the command whose call has answered; waits some seconds at most. Only a loop of the shell
---itself, a shell inside of it and what belongs to another user may still run afterwards.
---@return boolean? asked
---@return string? err
function Steer:interrupt_left()
  local run = self._run
  if not run then return nil, "no command runs in the hidden shell" end
  if not run.late then
    return nil, "a call still waits for this command; interrupt the turn (Ctrl+C there) instead"
  end
  self:_stop(run)
  self:_end_job(run)
  return true
end

---Type a person's keys for the program that holds the terminal: as many as it has room for, so that
---none wait in efrd for whoever reads next.
---@param bytes string
---@return integer? count  0: the program has not read the ones before
---@return string? err
function Steer:type_keys(bytes)
  local run = self._run
  if not run or not run.started or self._pending or self:_has_terminal() then
    return nil, "no program reads the hidden shell's terminal"
  end
  if run.launch == "contained" then
    return nil, "the command runs in the sandbox, and efr types nothing into it"
  end
  return self._pty:write_keys(bytes)
end

---Milliseconds since the newest sign of life at a prompt that nobody watches; nil: the shell is in
---use, or none runs.
---@return integer?
function Steer:idle_ms()
  if not self._pty or self._run or self._locked or self._terminal:is_watched() then return nil end
  return self:_now_ms() - self._used_ms
end

return Steer
