-- What a command in the hidden shell waits for, and the one way to give it an answer.
--
-- Owns: the methods of efr.Hidden that look for a wait, report it, type an answer and end a command
-- that asks for what it must not get. Must not know: who answers, events. Loop thread of efrd;
-- looking waits.
--
-- Policy: an answer is typed only while what was reported still holds, looked at in the same step
-- as the write: this call's command runs, the same process group has the terminal, the kind is the
-- same, and for hidden input the terminal still reads a line without echo. A contained command gets
-- no secret, whoever follows: what it prints may look like any prompt, so one that asks is stopped.
-- Every look is at the terminal as it is: a wait ends when the look says so.

local async = require "efr.util.async"
local live = require "efr.shell.live"
local readers = require "efr.shell.readers"
local waits = require "efr.shell.waits"

-- Between two looks: as long as a wait can be expected, and where that is less likely.
local LOOK_MS <const>, SLOW_LOOK_MS <const>, CALM_MS <const> = 100, 500, 5000
-- A look takes at most this part of the time.
local COST_SHARE <const> = 25

local ENDS_MAX <const>, END_MS <const> = 4, 1000
-- Output of which the last line is known without the screen.
local PLAIN_MAX <const> = 16384

local ANSWERED <const> = { hidden = true, visible = true }

---@class efr.Hidden
local Input = {}

-- The command's last line; nothing where a return took the cursor back to its start.
local function last_line(out)
  if out:recent():sub(-1) == "\r" then return "" end
  return out:tail(1024):match("[^\n]*$")
end

-- What the command wrote before the cursor in its row, whether the alternate screen shows, and
-- whether the cursor is hidden. The screen is asked only where the output alone does not tell:
-- before the first line of a command its row can begin with the shell's prompt.
local function cursor_row(self, run)
  local out = run.output
  local is_short = out.total_bytes <= PLAIN_MAX
  local screen = self._terminal:screen()
  if is_short and not out:moves() and not out:full_screen() or not screen then
    return last_line(out), out:full_screen()
  end
  local snapshot = screen:snapshot()
  if not snapshot then return last_line(out), out:full_screen() end
  local row, alternate, no_cursor = waits.cursor_row(snapshot)
  if is_short and not out:recent():find("\n", 1, true) then row = row:gsub("^[%%#] ", "") end
  return row, alternate, no_cursor
end

-- Silence that counts. Where the readers cannot be seen it is no longer than that has been so: a
-- process that is about to run another program cannot be looked at for a moment.
local function silence(self, run, seen)
  local now = self:_now_ms()
  run.unseen = seen.unknown and not seen.reads and (run.unseen or now) or nil
  local quiet = now - run.active
  return run.unseen and math.min(quiet, now - run.unseen) or quiet
end

-- The wait that holds now, or nil.
local function look(self, run)
  local group = self._pty:foreground()
  local modes = group and group ~= self._pid and self._pty:modes()
  if not modes then return nil end
  local seen = readers.scan(self._ports, self._pid, group)
  if not self._pty then return nil end
  local facts = {
    quiet_ms = silence(self, run, seen), echo = modes.echo, canonical = modes.canonical,
    reads = seen.reads, unknown = seen.unknown, contained = run.launch == "contained",
    shell_line = run.shell_line,
  }
  local is_hidden = modes.canonical and not modes.echo
  if not is_hidden and (seen.reads or seen.unknown) then
    facts.row, facts.alternate, facts.no_cursor = cursor_row(self, run)
  end
  local kind, looks_secret = waits.classify(facts)
  return kind and { kind = kind, looks_secret = looks_secret, group = group }
end

local function is_same(a, b)
  if not a or not b then return a == b end
  return a.kind == b.kind and a.looks_secret == b.looks_secret and a.group == b.group
end

local function can_answer(wait)
  return wait ~= nil and ANSWERED[wait.kind] == true
end

-- Keeps what holds now and reports what a person could answer.
local function set_wait(self, run, wait)
  local before = run.wait
  if is_same(before, wait) then return end
  run.wait, run.input = wait, can_answer(wait) and wait.kind or nil
  self:_changed()
  if run.on_wait and (can_answer(before) or can_answer(wait)) then
    if not run.answered then live.report(run, self._terminal:screen(), self:_now_ms()) end
    local shown = can_answer(wait) and wait or { kind = "none", looks_secret = false }
    run.on_wait {
      kind = shown.kind, looks_secret = shown.looks_secret, late = run.late or false,
      pty_id = self._pty_id,
    }
  end
  local secret = can_answer(wait) and (wait.kind == "hidden" or wait.looks_secret)
  if secret and run.launch == "contained" then self:_refuse(run) end
end

-- Looks, in a task of its own. What happened meanwhile makes the look worthless.
local function start_look(self, run)
  run.looking = true
  local at, active = self:_now_ms(), run.active
  async.spawn(function()
    local ok, wait = async.spawn(look, self, run):wait()
    run.looking = false
    if run.ended or run.refused or run ~= self._run then return end
    if not ok then error(wait, 0) end
    local now = self:_now_ms()
    local pause = (run.unseen or now - run.active > CALM_MS) and SLOW_LOOK_MS or LOOK_MS
    run.next_look = now + math.max(pause, (now - at) * COST_SHARE)
    -- Output that came meanwhile may be the end of a wait, and never makes one.
    if run.active == active or not wait then set_wait(self, run, wait) end
  end)
end

---Called while a command runs, some times a second.
function Input:_watch_input()
  local run, now = self._run, self:_now_ms()
  if not run or not run.started or self._pending or run.looking or run.refused then return end
  if self:_has_terminal() then return set_wait(self, run, nil) end
  -- A wait that was reported may end with output, so it is looked at all the time.
  local due = run.wait or now - run.active >= waits.QUIET_MS
  if due and now >= (run.next_look or 0) then start_look(self, run) end
end

-- ---- a command that asks for what it does not get ----

-- Whoever waits for the run ends it; one that nobody waits for is ended here.
function Input:_refuse(run)
  if run.refused then return end
  run.refused = true
  if run.late then
    async.spawn(function() self:_stop(run) end)
  else
    self:_changed()
  end
end

-- A command that takes no interrupt while it reads a line without echo, as passwd does: the end of
-- input is its answer, some times, since it may ask again. Waits.
function Input:_end_input(run)
  for _ = 1, ENDS_MAX do
    local modes = self._pty and not self:_has_terminal() and self._pty:modes()
    if run.ended or not modes or modes.echo or not modes.canonical then return end
    self._pty:write("\4")
    self:_wait(self:_now_ms() + END_MS, nil, function() return run.ended end)
  end
end

---Ends a command that waits for hidden input, since nobody can answer.
---@param call table  of sbx.calls, as it was given to run
function Input:refuse_input(call)
  local run = self._run
  if not run or run.call ~= call or run.ended then return end
  if run.wait and run.wait.kind == "hidden" then self:_refuse(run) end
end

-- ---- answers ----

---@class efr.shell.Answer
---@field text string  one line without control characters
---@field hidden boolean  the kind that the person was asked for
---@field manual boolean?  typed though no wait is known

local function conflict(message)
  return nil, message, "conflict"
end

local function check_kind(self, run, answer)
  local wait = run.wait
  if not can_answer(wait) then return conflict("the command does not wait for input") end
  if wait.kind ~= (answer.hidden and "hidden" or "visible") then
    return conflict("the command waits for input of another kind")
  end
  if self._pty:foreground() ~= wait.group then
    return conflict("another process has the terminal now")
  end
  if run.launch == "contained" and (answer.hidden or wait.looks_secret) then
    return conflict("efr types no secret into the sandbox")
  end
  local modes = self._pty:modes()
  if not modes or answer.hidden ~= (modes.canonical and not modes.echo) then
    return conflict("the terminal has changed")
  end
  return true
end

local function check_manual(self, run)
  if run.launch == "contained" or not run.manual_input then
    return conflict("this call takes no input by hand")
  end
  if self:_has_terminal() then return conflict("no program of the command has the terminal") end
  return true
end

-- Nothing of an answer may wait in efrd: it would go to whoever reads next.
local function type_now(self, bytes)
  local count, err = self._pty:write_keys(bytes)
  if not count then return nil, err end
  if count == #bytes then return true end
  return nil, count == 0 and "the command has not read what was typed before"
    or "the terminal took only a part of it"
end

---Types the answer to a command that waits. Nothing is written unless all still holds.
---@param call table  of sbx.calls, as it was given to run
---@param answer efr.shell.Answer
---@return true? ok
---@return string? message
---@return string? code  "not_found": this call's command does not run; "conflict"
function Input:answer(call, answer)
  local run = self._run
  if not run or run.call ~= call or not run.started or run.ended then
    return nil, "the command of this call does not run", "not_found"
  end
  if self._pending or run.refused then return conflict("the command is at its end") end
  local check = answer.manual and check_manual or check_kind
  local ok, message, code = check(self, run, answer)
  if not ok then return nil, message, code end
  ok, message = type_now(self, answer.text .. "\r")
  if not ok then return conflict(message) end
  -- The answer is activity: should the same prompt come again, it is a new wait.
  run.active = self:_now_ms()
  set_wait(self, run, nil)
  return true
end

return Input
