-- A shell without efr's integration: bash or another as shell.program, a start-up file that
-- executes one, a zsh whose marks never come.
--
-- Owns: the methods of efr.Hidden that find such a shell, type a line at it and tell its end. Must
-- not know: what a line means. Loop thread of efrd; methods that wait run in a coroutine.
--
-- Policy: it is used only when the shell's own process reads the terminal and gives the right
-- answer to a first, harmless line. It runs lines that were decided for such a shell, which is no
-- zsh and has aliases of its own: nothing in them was read or trusted. What needs the integration
-- is refused. The end of a line is what the terminal shows (sentinel.lua), and the shell's group
-- in the foreground.

local async = require "efr.util.async"
local readers = require "efr.shell.readers"
local sentinel = require "efr.shell.sentinel"

local READY_MS <const>, HANDSHAKE_MS <const>, LOOK_MS <const> = 2000, 5000, 100
local QUIET_MS <const> = 300

---@class efr.Hidden
local Unmarked = {}

local NEEDS <const> = "the hidden shell runs without efr's integration (shell.program is no zsh, "
  .. "or a start-up file keeps its marks away), and this needs it: "

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Whether the shell itself, and no job, waits for a line. Waits.
function Unmarked:_reads_itself()
  if not self._pty or not self:_has_terminal() then return false end
  local modes = self._pty:modes()
  if not modes or modes.canonical and not modes.echo then return false end
  local seen = readers.scan(self._ports, self._pid, self._pid)
  return seen.reads and self._pty ~= nil and self:_has_terminal()
end

-- Waits until the shell reads a line. False: it does not, or its first prompt came.
local function wait_ready(self, limit_ms, token)
  local phase, deadline = self._phase, self:_now_ms() + limit_ms
  while not self:_reads_itself() do
    if self:_now_ms() >= deadline then return false end
    local how = self:_wait(self:_now_ms() + LOOK_MS, token, function()
      return self._phase ~= phase
    end)
    if how ~= "timeout" then return false end
  end
  return self._phase == phase
end

---Whether the program is one that loads the integration.
---@return boolean
function Unmarked:_is_zsh()
  return self._opts.program:match("[^/]*$"):find("^zsh") ~= nil
end

---Whether the shell that runs has no integration.
---@return boolean
function Unmarked:is_unmarked()
  return self._pty ~= nil and self._unmarked == true
end

---A shell that has shown no mark: whether it takes lines all the same. Waits.
---@param token efr.Token?
---@param limit_ms integer?
---@return boolean
function Unmarked:_try_unmarked(token, limit_ms)
  if not wait_ready(self, limit_ms or READY_MS, token) then return self._phase == "ready" end
  self._phase, self._unmarked = "unmarked", true
  local result = self:_run_locked {
    line = "true", unmarked = true, timeout_ms = HANDSHAKE_MS, token = token,
  }
  return result.outcome == "finished" and result.exit_code == 0
end

-- The text to evaluate, or why it cannot run here.
local function text_of(opts)
  if opts.apply then
    local dir = opts.cd and "'" .. opts.cd:gsub("'", "'\\''") .. "'"
    return dir and "cd -- " .. dir .. " >/dev/null" or "true"
  end
  if (opts.launch or "direct") ~= "direct" then return nil, NEEDS .. "a call with a launcher" end
  if not opts.unmarked then return nil, NEEDS .. "the line was decided for a shell with it" end
  if opts.nested then return nil, NEEDS .. "nested_shell" end
  if opts.forget_sudo then return nil, NEEDS .. "forgetting what sudo remembers" end
  if opts.search_path or opts.git_env and opts.git_env.told then
    return nil, NEEDS .. "the PATH and git's variables that the line was decided with"
  end
  return opts.line
end

---Types a line. False: busy.
---@param run table
---@param opts efr.shell.RunOptions
---@return boolean? typed
---@return string? err
---@return string? outcome
function Unmarked:_type_unmarked(run, opts)
  local text, err = text_of(opts)
  if not text then return nil, err end
  local token = hex(self._ports.sys.random(8))
  local typed = sentinel.line(token, text)
  if not typed then return nil, nil, "too_long" end
  if not wait_ready(self, READY_MS, opts.token) then return false end
  local ok
  ok, err = self._pty:begin_call()
  if not ok then return nil, err end
  self._terminal:ensure_screen()
  -- No mark ends it: this nonce is never told to anybody.
  run.nonce, run.unmarked, run.started = hex(self._ports.sys.random(16)), true, true
  run.inner, run.shell_line, run.manual_input = sentinel.new(token), true, nil
  run.output = run.inner.output
  self._run, self._phase = run, "busy"
  self._timer:start(LOOK_MS, LOOK_MS, function() self:_tick() end)
  return self._pty:write(typed .. "\r")
end

-- Interrupted shells show their prompt without the rest of the line, so without the end.
local function look_for_prompt(self, run)
  run.probing = true
  async.spawn(function()
    local active = run.active
    local reads = self:_reads_itself()
    run.probing = false
    if not reads or run.ended or run.active ~= active or run.inner.status then return end
    self:_update_cwd(nil)
    self:_end_run("done", 130)
  end)
end

---Whether the line has ended.
function Unmarked:_check_unmarked()
  local run = self._run
  if not run or not run.unmarked or not self:_has_terminal() then return end
  if run.inner.status then
    self:_update_cwd(run.inner.cwd)
    self:_end_run("done", run.inner.status)
  elseif run.interrupted and not run.probing and self:_now_ms() - run.active >= QUIET_MS then
    look_for_prompt(self, run)
  end
end

return Unmarked
