-- What a run in the hidden shell takes and gives back.
--
-- Owns: the outcomes. Must not know: the terminal, how a run is ended. Loop thread of efrd.

local handoff = require "efr.shell.handoff"
local live = require "efr.shell.live"
local replay = require "efr.shell.replay"

local M = {}

---@class efr.shell.RunOptions
---@field line string?  the text; needed without `call`
---@field call table?  from sbx.calls: dir, nonce, line_path, launcher, result()
---@field launch "direct"|"contained"|"outside"|nil  default "direct"
---@field check (fun(): boolean, string?)?  right before the line is given to the shell; false: it
---  is not, with the outcome "changed"
---@field trusted string[]?  words that must be no alias and no function while the line runs
---@field search_path string?  the PATH that the line was decided with: with another it does not run
---@field git_env efr.shell.GitEnvironment?  the same of the variables that git reads
---@field forget_sudo "before"|"after"|"both"|nil  when sudo's remembered password goes
---@field timeout_ms integer?  default 30000
---@field may_wait (fun(): boolean)?  asked after the timeout: whether the call waits on
---@field unmarked boolean?  the line was decided for a shell without the integration
---@field nested boolean?  it starts a shell that stays, or is for the one that is open
---@field call_id string?  for whoever looks at the shell
---@field on_output fun(tail: string, bytes: integer)?  at most every 100 ms
---@field on_late_end fun(result: efr.shell.RunResult)?  when a run that was left running ends
---@field on_wait fun(wait: efr.shell.Wait)?  what a person could answer has changed
---@field shell_line boolean?  the line starts a shell or an interpreter that stays
---@field manual_input boolean?  a person may type though no wait is known
---@field token efr.Token?

---@class efr.shell.Wait
---@field kind "none"|"hidden"|"visible"
---@field looks_secret boolean
---@field late boolean  the call has answered; the command was left running
---@field pty_id string

---@class efr.shell.RunResult
---@field outcome "finished"|"timeout"|"interrupted"|"not_started"|"busy"|"exited"|"setup_failed"|
---  "cut_short"|"changed"|"wants_secret"|"nested"|"nested_ended"|"too_long"
---@field output string  text, at most about 1 MiB
---@field truncated boolean
---@field exit_code integer?
---@field cwd string?  the shell's directory afterwards
---@field setup_error string?  why a call was not run
---@field cut_short string?  of cut_short: why the sandbox ended while the command ran
---@field no_shell boolean?  of setup_failed: the hidden shell is what failed, not the sandbox
---@field fresh boolean?  a new shell ran it: variables and functions of the one before are gone
---@field full_screen boolean?  of timeout: the output is the screen of a full-screen program
---@field pty_id string?  of the terminal, when the command goes on
---@field survivors integer?  processes of a line outside that could not be ended
---@field left_running boolean?  the command goes on in the shell; its call's files are in use
---@field nested {line: string, cwd: string?}?  it ran in the shell that this line started
---@field waits efr.shell.WaitKind?  of one that goes on: what it waited for

---A line that was not run; setup_failed is the shell's here.
---@param cwd string
---@param outcome string
---@param message string?
---@return efr.shell.RunResult
function M.refusal(cwd, outcome, message)
  return {
    outcome = outcome, output = "", truncated = false, setup_error = message, cwd = cwd,
    no_shell = outcome == "setup_failed" or nil,
  }
end

-- What a full-screen program shows now, or nil.
local function full_screen(run, screen)
  local snapshot = screen and run.output:full_screen() and screen:snapshot()
  if not snapshot or not snapshot.alternate_screen then return nil end
  local lines = {}
  for i, row in ipairs(snapshot.rows) do
    local cells = {}
    for at, cell in ipairs(row.cells) do cells[at] = cell.text end
    lines[i] = table.concat(cells):gsub("%s+$", "")
  end
  while #lines > 0 and lines[#lines] == "" do lines[#lines] = nil end
  return table.concat(lines, "\n")
end

---A run that goes on after its caller has its answer. Waits.
---@param run table
---@param cwd string
---@param outcome "timeout"|"interrupted"|"wants_secret"|"nested"
---@param screen efr.shell.Screen?
---@return efr.shell.RunResult
function M.running(run, cwd, outcome, screen)
  local shown = full_screen(run, screen)
  return {
    outcome = outcome, output = shown or replay.tail(run.output, screen, live.TAIL_BYTES),
    truncated = true, cwd = cwd, left_running = true, full_screen = shown and true,
    waits = run.stood and run.stood.kind,
  }
end

-- What a contained call's launcher reported.
local function add_report(result, call)
  local report = call:result()
  if not report or report.setup_error or report.launch_error then
    local why = report and (report.setup_error or report.launch_error) or "it left no result"
    if call:has_started() then
      result.outcome, result.cut_short = "cut_short", why
    else
      result.outcome, result.setup_error = "setup_failed", why
    end
    return
  end
  local signal = report.signal
  local code = signal and signal ~= 0 and 128 + signal or report.exit_code
  result.exit_code, result.survivors = code or result.exit_code, report.survivors
end

-- Why a line did not run that was decided with another shell, by the err of its mark.
local OTHER_SHELL <const> = {
  path = "the shell's PATH is not the one that the line was decided with",
  git = "the shell's variables for git are not the ones that the line was decided with",
}

-- The terminal's echo of a line that was typed again can come after the output began.
local ECHO <const> = handoff.FIXED_LINE:gsub("%p", "%%%0")

---A run that has ended. Waits.
---@param run table
---@param cwd string
---@param screen efr.shell.Screen?
---@return efr.shell.RunResult
function M.of(run, cwd, screen)
  local text, truncated = replay.finish(run.output, screen)
  if text:find(handoff.FIXED_LINE, 1, true) then text = text:gsub(ECHO, "") end
  local result = { output = text, truncated = truncated, cwd = cwd }
  if run.ended == "exited" then
    result.outcome, result.exit_code = "exited", run.status
  elseif run.ended == "dropped" then
    result.outcome = "interrupted"
  elseif OTHER_SHELL[run.other_shell] then
    result.outcome, result.setup_error = "setup_failed", OTHER_SHELL[run.other_shell]
  elseif run.unparsed then
    result.outcome = "not_started"
  else
    result.outcome, result.exit_code = "finished", run.status
    if run.launch ~= "direct" then add_report(result, run.call) end
  end
  return result
end

return M
