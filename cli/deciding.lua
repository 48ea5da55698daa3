-- Decisions on command lines inside of `efr`, by the daemon's own engine, without a daemon.
-- Owns: what such a decision rests on: settings, projects, machine, the user's Lua rules.
-- Must not know: how a decision is shown.
-- Loop thread of `efr`; waits for the Lua rules and for git.

local alone = require "efr.cli.alone"
local apply = require "efr.rules.apply"
local client = require "efr.rules.client"
local engine = require "efr.perm.engine"
local explain = require "efr.perm.explain"
local facts = require "efr.perm.facts"
local git = require "efr.sbx.git"
local machine = require "efr.perm.machine"
local modes = require "efr.perm.modes"
local own_rules = require "efr.cli.own_rules"
local projects = require "efr.config.projects"
local sbx_allow = require "efr.sbx.allow"

local M = {}

-- What is decided on ----------------------------------------------------------------------------

local function directory(env, args)
  local cwd = args.cwd or assert(env.ports.uv.cwd())
  if cwd:sub(1, 1) ~= "/" then
    cwd = assert(env.ports.uv.cwd()) .. "/" .. cwd
  end
  return env.ports.fs.realpath(cwd) or cwd
end

--- Everything that a decision rests on but the line and the Lua rules.
--- @param args {mode: string?, cwd: string?}
--- @return table? on, string? message, string? code
function M.setting(env, args)
  local app, message, code = alone.read(env)
  if not app then
    return nil, message, code
  end
  local known = app.projects.list()
  local cwd = directory(env, args)
  local project_roots = {}
  for i, project in ipairs(known) do
    project_roots[i] = project.root
  end
  local project = projects.containing(known, cwd)
  local source = { fs = env.ports.fs, home = env.home, config = app.config, paths = app.paths }
  local here = machine.facts(source, { project_roots = project_roots })
  return {
    cwd = cwd, config = app.config, mode = args.mode or app.config:get("permissions.mode"),
    machine = here,
    allow = { fs = env.ports.fs, home = env.home, config = app.config, machine = here,
      path = env.environ.PATH, zdotdir = env.environ.ZDOTDIR },
    scope = project and { kind = "project", root = project.root } or { kind = "path" },
    ports = facts.ports(env.ports.fs, env.environ.PATH, here, git.new(app)),
  }
end

-- The mode that a turn here would have, and why it is another one.
local function settle_mode(env, on)
  local enabled = on.config:get("sandbox.enabled")
  local mode, fallback = modes.of_turn(on.mode, {
    origin = "cli", machine = on.machine, scope = on.scope,
    sandbox = { available = enabled, reason = not enabled and "sandbox.enabled is false" or nil },
  })
  if mode == "full" then
    local refusal = modes.full_refusal({
      allow_full = on.config:get("permissions.allow_full"), uid = env.ports.sys.getuid(),
      undo = false, zsh = true,
    })
    return mode, refusal and "the mode full cannot be used: " .. refusal
  end
  return mode, fallback and ("auto falls back to cautious: " .. fallback.reason)
end

-- One line --------------------------------------------------------------------------------------

-- Puts the answer of the user's Lua rules into the engine's input.
local function ask_rules(env, on, input, line)
  if not on.rules or on.rules.state == "none" then
    return
  end
  local facts_of_call = {
    cwd = on.cwd, mode = input.mode, tool = "shell", origin = "cli", project = on.scope.root,
    home = env.home,
  }
  local asked = { requirements = input.requirements }
  local answer, question = own_rules.ask(on.rules, line, asked, facts_of_call)
  input.lua = apply.input(answer, question)
  local added = apply.requirements(answer)
  if #added > 0 then
    added[#added + 1] = { kind = "line", text = line.text, cwd = on.cwd }
    input.requirements, input.facts = facts.collect(on.ports, added, env.home)
  end
  if on.rules:has("exit") then
    asked.exits = engine.decide(input).exits
    answer, question = own_rules.ask(on.rules, line, asked, facts_of_call)
    local of_exits = apply.input(answer, question)
    input.lua.exits = of_exits and of_exits.exits or {}
    input.lua.failure = input.lua.failure or of_exits and of_exits.failure
  end
end

-- What a user must know of rules that are broken or off.
local function rules_note(rules)
  local status = rules and rules:status()
  if not status or not status.problem then
    return nil
  end
  local what = status.state == "on" and "the last good version decides"
    or "no version of them works, so everything asks"
  return { state = status.state, problem = client.text_of(status.problem),
    note = client.text_of(status.problem) .. "; " .. what }
end

--- Decides a line. on.rules is a client of the Lua rules, or nil: without them.
--- @return table data of perm.explain
function M.of_line(env, on, line)
  local requirements, known, lines =
    facts.collect(on.ports, { { kind = "line", text = line, cwd = on.cwd } }, env.home)
  known.more_floors = sbx_allow.floors(on.allow)
  known.always = sbx_allow.rules(on.allow, known.more_floors)
  local mode, note = settle_mode(env, on)
  local input = {
    requirements = requirements, tool = "shell", mode = mode, origin = "cli", scope = on.scope,
    machine = on.machine, rules = on.config:get("permissions.rules"), facts = known, lines = lines,
  }
  ask_rules(env, on, input, lines[line])
  if mode == "full" then
    input.facts.mounts = on.ports.mounts()
  end
  local data = explain.data(engine.decide(input), input, line)
  data.cwd, data.note = on.cwd, note or data.note
  data.rules = rules_note(on.rules)
  return data
end

return M
