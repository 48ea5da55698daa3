-- Owns: one line in the hidden shell: the call's directory, the run, the clean-up, and what the
-- shell's directory is afterwards.
-- Must not know: the text that the model gets (tools/shell), how the line was decided.
-- Runs in efrd, in the turn's task; waits.
--
-- Policy: a contained call whose sandbox could not be made is an error and never runs outside. The
-- surface guard looks before and after each one.

local cache_deletes = require "efr.conv.cache_deletes"
local exit_check = require "efr.conv.exit_check"
local exit_grants = require "efr.conv.exit_grants"
local input = require "efr.conv.input"
local left = require "efr.conv.left"
local surface = require "efr.conv.surface"
local trusted = require "efr.perm.trusted"

local M = {}

-- Whether the sandbox still works is looked at again; nothing runs outside instead.
local function look_again(app, call)
  if call.launch == "contained" then app.sandbox:check_again() end
end

-- A call that was not run, for want of a sandbox or of a shell.
local function failed(call, message, no_shell)
  call.no_shell = no_shell
  call.setup_error = not no_shell and message or nil
  return {
    outcome = "setup_failed", output = "", truncated = false, setup_error = message,
    no_shell = no_shell,
  }
end

-- A call that does not run because what was decided is not what would happen now.
local function changed(call, why)
  call.refusal = { kind = "changed", reason = why }
  return { outcome = "changed", output = "", truncated = false, setup_error = why }
end

-- The second check of a call with exits, and what efr makes for it. nil: the call must not run.
local function open_exits(turn, call)
  if not call.exits then return { undo = function() end } end
  local ok, why = exit_check.again(turn, call)
  if not ok then return nil, why end
  local made
  made, why = exit_grants.make(turn.app.ports, call.exits.list, call.facts.reals or {})
  if made then exit_check.renew(turn, call, made.paths) end
  return made, why
end

-- Outcomes after which nothing of a line has run.
local NOTHING_RAN <const> = {
  setup_failed = true, busy = true, not_started = true, changed = true,
}

-- Paths that the call declared: other projects that they lie in may be writable too.
local function named_paths(call)
  local out = {}
  for _, requirement in ipairs(call.requirements or {}) do
    if requirement.path then out[#out + 1] = requirement.path end
  end
  return out
end

-- Full mode starts each command without what sudo remembers.
local function forget_sudo(turn, call)
  if call.launch == "contained" then return nil end
  local before = turn.settings.mode == "full"
  local after = turn.app.config:get("shell.sudo_cache") == "per_call"
  return before and after and "both" or before and "before" or after and "after" or nil
end

-- What the model reads behind the output: what the call could not do, what it left, and what it
-- deleted in caches.
local function notes_of(turn, call, watch, run)
  local notes = surface.after(turn, call, watch, turn.conv.shell_cwd)
  for i, note in ipairs(run.prepared.notes or {}) do
    table.insert(notes, i, ("[efr: %s]"):format(note))
  end
  if run.outcome ~= "finished" then return notes end
  local more = cache_deletes.offer(turn, call, run.prepared)
  return table.move(more, 1, #more, #notes + 1, notes)
end

local function run_options(turn, call, opts)
  return {
    line = opts.line,
    call_id = call.id,
    launch = call.launch,
    trusted = trusted.words(turn.app.config:get("permissions.rules")),
    forget_sudo = forget_sudo(turn, call),
    search_path = call.launch ~= "contained" and call.search_path or nil,
    git_env = call.launch ~= "contained" and call.git_env or nil,
    timeout_ms = opts.timeout_ms,
    nested = call.input.nested_shell or nil,
    unmarked = call.other_shell,
    check = call.exits and function() return exit_check.same(turn, call) end,
    on_output = call.ctx.on_output,
    token = turn.token,
  }
end

-- What a call with grants runs is what its question named: no alias and no function of that name,
-- which an earlier call may have made in the sandbox.
local function plain_words(call)
  local out = {}
  for _, program in ipairs(call.facts.programs or {}) do
    local known = program.resolved or program.builtin
    if known and program.word:find("^[%w_][%w_.+-]*$") then out[#out + 1] = program.word end
  end
  return out
end

local function prepare(turn, call, opts)
  local opened, sandbox = call.exits or {}, turn.app.sandbox
  local wanted = {
    conversation_id = turn.conv.id,
    call_id = call.id,
    line = opts.line,
    cwd = turn.conv.shell_cwd,
    project_root = turn.project_root,
    scratch = turn.scratch,
    launch = call.launch,
    named = named_paths(call),
    grants = opened.grants,
    plain = opened.grants and plain_words(call) or nil,
    env_set = opened.env_set,
  }
  if call.launch == "contained" then
    local ok, message = sandbox:answers(wanted)
    if not ok then return nil, message end
  end
  return sandbox:prepare(wanted)
end

-- The call's directory, its shell, and the watch on git settings; nil with the result of a call
-- that cannot run.
local function get_ready(turn, call, opts)
  local prepared, message = prepare(turn, call, opts)
  if not prepared then
    look_again(turn.app, call)
    return nil, failed(call, message)
  end
  local hidden, watch
  hidden, message = turn.conv:shell()
  if not hidden then
    prepared:cleanup()
    return nil, failed(call, message, true)
  end
  turn.conv.hidden = hidden
  if call.launch == "contained" then
    watch, message = surface.before(turn, call, prepared)
    if not watch then
      prepared:cleanup()
      return nil, failed(call, message)
    end
  end
  return { prepared = prepared, hidden = hidden, watch = watch }
end

-- A process that could not be ended may hold the shell's terminal: the next call gets a new shell.
local function add_survivors(result, hidden)
  if not result.survivors then return end
  result.notes = result.notes or {}
  table.insert(result.notes, ("[efr: %d processes of this command could not be ended; the next "
    .. "command runs in a new hidden shell]"):format(result.survivors))
  hidden:close()
end

local function run_ready(turn, call, opts, ready)
  local conv, prepared, watch, hidden = turn.conv, ready.prepared, ready.watch, ready.hidden
  local line = input.follow(turn, call, hidden, prepared)
  local stays = left.new(conv, turn.id, call.id, opts.line)
  local wanted = line:options(run_options(turn, call, opts))
  wanted.call = prepared
  wanted.on_late_end = function(late)
    line:finish()
    prepared:cleanup()
    stays:ends(late.exit_code)
    if watch then surface.late(turn, call, watch, hidden.cwd) end
  end
  local result = hidden:run(wanted)
  conv.left_behind = conv.left_behind or result.left_running
  call.stopped, call.left_running = result.outcome == "interrupted", result.left_running
  call.no_shell = result.no_shell
  call.setup_error = not result.no_shell and result.setup_error or nil
  if result.outcome == "setup_failed" and not result.no_shell then look_again(turn.app, call) end
  conv.shell_cwd = result.cwd or hidden.cwd or conv.shell_cwd
  local run = { prepared = prepared, outcome = result.outcome }
  if watch then result.notes = notes_of(turn, call, watch, run) end
  add_survivors(result, hidden)
  if result.left_running then
    stays:begins(result.pty_id)
  else
    line:finish()
    prepared:cleanup()
  end
  return result
end

---Runs a line for a decided call.
---@param turn efr.Turn
---@param call table
---@param opts {line: string, timeout_ms: integer}
---@return table result  as hidden:run gives it; outcome "changed": the second check refused it
function M.run(turn, call, opts)
  assert(call.launch, "the call was not decided")
  local made, why = open_exits(turn, call)
  if not made then return changed(call, why) end
  local ready, result = get_ready(turn, call, opts)
  if ready then result = run_ready(turn, call, opts, ready) end
  if result.outcome == "changed" then
    call.setup_error, call.refusal = nil, { kind = "changed", reason = result.setup_error }
  end
  if NOTHING_RAN[result.outcome] then made.undo() end
  return result
end

return M
