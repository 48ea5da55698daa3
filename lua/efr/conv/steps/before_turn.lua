-- Step before_turn: directory, scope, settings, $SCRATCH, the hidden shell's place, the prompt
-- message with its live-state block, and turn_started.
-- Must not know: tools' insides, permissions. Runs in efrd, in the turn's task; waits.

local errors = require "efr.model.errors"
local events = require "efr.conv.events"
local git = require "efr.conv.git"
local machine = require "efr.conv.machine"
local prompt = require "efr.conv.prompt"
local scratch = require "efr.conv.scratch"
local settings = require "efr.conv.settings"
local snapshots = require "efr.conv.snapshots"
local time = require "efr.util.time"

local M = {}

local function fail(turn, failure)
  turn:fail(failure.code, failure.message, failure.data)
  return nil
end

-- The directory of the turn: the prompt's, else the conversation's, else home.
local function place(turn)
  local context = turn.prompt.context or {}
  turn.cwd = context.pwd or turn.conv.cwd or turn.conv.known_cwd or turn.app.env.HOME
  turn.home = turn.app.env.HOME
  turn.app.sandbox:answers({ cwd = turn.cwd }) -- what is dead is known from here on
  local registry = turn.app.projects
  local project = registry:containing(turn.app.ports.fs.realpath(turn.cwd) or turn.cwd)
  turn.project_root = project and project.root
  turn.scope = project and { kind = "project", value = project.id }
    or { kind = "path", value = turn.cwd }
  turn.project_roots = {}
  for i, known in ipairs(registry:list()) do turn.project_roots[i] = known.root end
end

-- The probe is a real launch, so it can take its time once.
local function sandbox_status(turn)
  local app = turn.app
  if app.config:get("sandbox.enabled") == false then
    return { available = false, reason = "sandbox.enabled is false" }
  end
  return turn:unless_stopped(app.sandbox.status, app.sandbox) or { available = false }
end

local function resolve(turn)
  local app = turn.app
  local found, message, code, data =
    settings.resolve(app.config, turn.prompt.settings, turn.prompt.origin, function()
      return machine.full(app)
    end)
  if not found then return fail(turn, { code = code, message = message, data = data }) end
  local provider, name = app.providers:active()
  if not provider then
    return fail(turn, { code = "invalid", message = "there is no provider " .. tostring(name) })
  end
  if found.mode == "auto" then
    settings.settle_mode(found, {
      origin = turn.prompt.origin,
      machine = machine.facts(app, { project_roots = turn.project_roots }),
      scope = { kind = turn.scope.kind, root = turn.project_root },
      sandbox = sandbox_status(turn),
    })
    if turn:is_stopped() then return nil end
  end
  if not found.model then
    local model, err = turn:unless_stopped(provider.default_model, provider)
    if turn:is_stopped() then return nil end
    if not model then return fail(turn, errors.failure(err)) end
    found.model = model
  end
  turn.settings, turn.provider = found, provider
  turn.system = app.config:get("model.system_prompt") or prompt.SYSTEM
  turn.max_output_tokens = provider:max_output_tokens(found.model)
    or app.config:get("model.max_output_tokens")
  return true
end

-- Exactly one file-edit tool is offered.
local function offer_tools(turn)
  local other = turn.provider:edit_tool(turn.settings.model) == "edit" and "apply_patch" or "edit"
  turn.tools, turn.tool_by_name = {}, {}
  for _, tool in ipairs(turn.app.tools:list()) do
    if tool.name ~= other then
      turn.tools[#turn.tools + 1] = {
        name = tool.name,
        description = tool.description,
        schema = tool.schema,
      }
      turn.tool_by_name[tool.name] = tool
    end
  end
end

local function make_scratch(turn)
  local app = turn.app
  local date = time.rfc3339(app.ports.sys.now_us()):sub(1, 10)
  local dir, message = scratch.ensure(app.ports.fs, app.paths.data .. "/scratch", {
    id = turn.conv.id,
    title = turn.conv.title or turn.prompt.text,
    date = date,
  })
  if not dir then
    return fail(turn, { code = "internal", message = "make $SCRATCH: " .. tostring(message) })
  end
  turn.scratch, turn.conv.scratch = dir, dir
  return true
end

-- The hidden shell follows the user only when the user moved since the newest earlier turn.
local function follow_user(turn)
  local conv = turn.conv
  local before = conv.cwd or conv.known_cwd
  conv.cwd = turn.cwd
  if not conv.shell_cwd then
    conv.shell_cwd = turn.cwd
  elseif before ~= turn.cwd and conv.shell_cwd ~= turn.cwd then
    if not conv.hidden then
      conv.shell_cwd, turn.moved = turn.cwd, "moved"
    elseif conv.hidden:set_cwd(turn.cwd) then
      conv.shell_cwd, turn.moved = conv.hidden.cwd or turn.cwd, "moved"
    else
      turn.moved = conv.hidden:is_running() and "busy" or "failed"
    end
  end
end

-- What still runs in the hidden shell from an earlier turn.
local function running_line(turn)
  local status = turn.conv.hidden and turn.conv.hidden:status()
  return status and status.state == "running" and status.line or nil
end

local function live_state(turn)
  local context = turn.prompt.context or {}
  local root, branch = git.find(turn.app.ports.fs, turn.app.git, turn.cwd)
  return prompt.preamble({
    user_cwd = turn.cwd,
    user_oldpwd = context.oldpwd,
    shell_cwd = turn.conv.shell_cwd,
    moved = turn.moved,
    shell_runs = running_line(turn),
    git_root = root,
    git_branch = branch,
    project_root = turn.project_root,
    home = turn.home,
    host = context.hostname or turn.app.ports.sys.hostname(),
    os = turn.app.os,
    ssh = context.ssh_connection ~= nil,
    scratch = turn.scratch,
    mode = turn.settings.mode,
    fallback = turn.settings.fallback,
    model = turn.settings.model,
    effort = turn.settings.effort,
    last_command = turn.prompt.last_command,
    last_status = context.last_status,
    recent = turn.prompt.recent_commands,
  })
end

local function start_events(turn)
  local list = { events.make("turn_started", {
    cwd = turn.cwd,
    scope = turn.scope,
    settings = settings.effective(turn.settings),
  }) }
  local from, to = turn.conv.scope, turn.scope
  if from and (from.kind ~= to.kind or from.value ~= to.value) then
    list[2] = events.make("scope_changed", { from = from, to = to })
  end
  return list
end

---@param turn efr.Turn
---@return true|nil  nil = the outcome is set
function M.run(turn)
  turn.began_us = turn.app.ports.sys.now_us()
  place(turn)
  if not resolve(turn) then return nil end
  offer_tools(turn)
  local ok, message = turn.conv.history:open(turn.provider, turn.tool_by_name)
  if not ok then return fail(turn, { code = "internal", message = message }) end
  if not turn:record(start_events(turn)) then return nil end
  turn.started, turn.conv.scope = true, turn.scope
  local text = turn.app.ports.text.clean(turn.prompt.text)
  if not make_scratch(turn) then
    turn:add_message("user", { { kind = "text", text = text } })
    return nil
  end
  snapshots.warm(turn)
  follow_user(turn)
  turn:add_message("user", {
    { kind = "text", text = turn.app.ports.text.clean(live_state(turn)) },
    { kind = "text", text = text },
  })
  return true
end

return M
