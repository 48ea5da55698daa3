-- efr sandbox allow: the user's always rules, and taking one out.
-- Owns: the list, which of them cover nothing here, the question. Must not know: the layout of the
-- file (config/edit), what a rule covers. Needs no daemon. Runs in `efr`; remove waits.

local allow = require "efr.config.allow"
local alone = require "efr.cli.alone"
local edit = require "efr.config.edit"
local load = require "efr.config.load"
local machine = require "efr.perm.machine"
local sbx_allow = require "efr.sbx.allow"
local settings = require "efr.cli.settings"

local M = {}

--- The command below `efr sandbox`.
function M.add(parser)
  local command = parser:command("allow", "your always rules, or take one out"):add_help(false)
  command:argument("what", "remove"):args("?"):choices({ "remove" })
  command:argument("index", "of the rule, from 0"):args("?")
end

-- The rules as efrd sees them from here.
local function rules(env, app)
  local roots = {}
  for i, project in ipairs(app.projects.list()) do
    roots[i] = project.root
  end
  local source = { fs = env.ports.fs, home = env.home, config = app.config, paths = app.paths }
  source.machine = machine.facts(source, { project_roots = roots })
  source.path, source.zdotdir = env.environ.PATH, env.environ.ZDOTDIR
  return sbx_allow.rules(source, sbx_allow.floors(source))
end

local function disabled_words(rule)
  return ("sandbox.allow[%d] is disabled: %s"):format(rule.index, rule.problem)
end

--- What `efr sandbox check` says of rules that cover nothing.
--- @param app table of cli.alone
--- @return string[]
function M.disabled(env, app)
  local out = {}
  for _, rule in ipairs(rules(env, app)) do
    if rule.problem then
      out[#out + 1] = disabled_words(rule)
    end
  end
  return out
end

local function show(env, app)
  local list = rules(env, app)
  for _, rule in ipairs(list) do
    env:say(rule.cite)
    if rule.problem then
      env:say("  disabled: " .. rule.problem)
    end
  end
  if #list == 0 then
    env:say("no rules; a in a question offers one")
  end
  return 0
end

-- One answer from the terminal; nil: there is none.
local function ask(env, words)
  if not env:is_tty(0) or not env:is_tty(2) then
    return nil
  end
  env:err(words .. "? y/n ")
  local answer = env.ports.tty.read(0)
  return answer ~= nil and answer:find("^%s*[yY]") ~= nil
end

-- The text without the rule, as long as it still stands at its place.
local function without(env, rule, text)
  local path = settings.path(env)
  local config, message, code = load.load({
    schema = settings.schema(env), home = env.home, text = text, path = path,
  })
  if not config then
    return nil, message, code
  end
  local there = config:get("sandbox.allow")[rule.index + 1]
  if not there or not allow.same(there, rule) then
    return nil, ("sandbox.allow[%d] is another rule now; nothing was changed"):format(rule.index),
      "EFR_CONFLICT"
  end
  return edit.remove_entry(text, "sandbox.allow", rule.index + 1)
end

local function remove(env, app, word)
  local index = word and word:find("^%d+$") and math.tointeger(tonumber(word))
  if not index then
    return nil, "remove takes the number of a rule; see: efr sandbox allow", "EFR_USAGE"
  end
  local rule = app.config:get("sandbox.allow")[index + 1]
  if not rule then
    return nil, ("there is no sandbox.allow[%d]"):format(index), "not_found"
  end
  local words = allow.cite(rule, env.home)
  local yes = ask(env, "remove " .. words)
  if yes == nil then
    return nil, "remove asks on a terminal; without one, use: efr config edit", "EFR_USAGE"
  elseif not yes then
    env:say("kept")
    return 0
  end
  local path, message, code = settings.change(env, function(text)
    return without(env, rule, text or "")
  end)
  if not path then
    return nil, message, code
  end
  env:say("removed " .. words)
  return settings.reload_after(env)
end

--- @return integer? exit, string? message, string? code
function M.run(args, env)
  local app, message, code = alone.read(env)
  if not app then
    return nil, message, code
  elseif args.what == "remove" then
    return remove(env, app, args.index)
  end
  return show(env, app)
end

return M
