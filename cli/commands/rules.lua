-- efr rules: the user's own rules in Lua, outside of the daemon: check, test, explain, new.
-- Owns: what these print. Must not know: what a rule can do; that is rules/api, in its own process.

local client = require "efr.rules.client"
local deciding = require "efr.cli.deciding"
local own_rules = require "efr.cli.own_rules"
local perm_line = require "efr.perm.line"

local M = { summary = "check, test, explain your Lua rules" }

local SPEC <const> = "rules_spec.lua"
local SPEC_MAX <const> = 256 * 1024
local STARTER <const> = "docs/examples/rules.lua"
local SPEC_STARTER <const> = "docs/examples/rules_spec.lua"
local FILE_MODE <const> = 384 -- 0600
local DIR_MODE <const> = 448 -- 0700
local ORDER <const> = { allow = 1, ask = 2, deny = 3 }

function M.add(parser)
  parser:command_target("action")
  parser:command("check", "read rules.lua and rules.d/*.lua and show errors"):add_help(false)
  local test = parser:command("test", "run examples: describe, it, expect, judge"):add_help(false)
  test:argument("files", "files with examples; default: rules_spec.lua beside rules.lua"):args("*")
  local explain = parser:command("explain", "which rules match a line"):add_help(false)
  explain:option("--mode", "ask as in this mode; default: permissions.mode")
  explain:option("--cwd", "the directory in which the line starts; default: this one")
  explain:argument("line", "the line; several words are joined with blanks"):args("+")
  parser:command("new", "write a rules.lua and a rules_spec.lua to start from"):add_help(false)
end

local function show_problem(env, problem)
  env:warn(client.text_of(problem))
  for _, other in ipairs(problem.others or {}) do
    env:warn(client.text_of(other))
  end
  return nil, nil, "EFR_SILENT"
end

local function print_all(env, lines)
  for _, text in ipairs(lines) do
    env:say("print: " .. text)
  end
end

-- Loads the files; nil when they do not load.
local function load(env, rules)
  local ok, problem = rules:reload()
  if not ok then
    return show_problem(env, problem)
  end
  if rules.state == "none" then
    env:say("There are no rules in " .. rules.dir .. ". efr rules new writes a file to start from.")
  end
  return true
end

local function counted(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

local ACTIONS = {}

-- What the rules add besides decisions.
local function show_additions(env, rules)
  for _, preset in ipairs(rules:presets()) do
    env:say(("preset %s of %s:%d: %s"):format(preset.name, preset.file, preset.line,
      table.concat(preset.hosts, ", ")))
  end
  for _, hint in ipairs(rules:hints()) do
    local which = hint.some_lines and "for some lines" or "for each line"
    env:say(("hint of %s:%d, %s: %s"):format(hint.file, hint.line, which, hint.text))
  end
end

function ACTIONS.check(env, rules)
  local ok, message, code = load(env, rules)
  if not ok then
    return nil, message, code
  end
  print_all(env, rules.printed)
  if rules.state ~= "none" then
    local files, entries = #rules.files, #rules.entries
    local words = { counted(files, "file"), entries == 1 and "1 entry" or entries .. " entries" }
    show_additions(env, rules)
    env:say(table.concat(words, ", ") .. ": no errors")
  end
  return 0
end

local function read_specs(env, rules, names)
  if #names == 0 then
    names = { rules.dir .. "/" .. SPEC }
  end
  local files = {}
  for i, path in ipairs(names) do
    local text, err, code = env.ports.fs.read_file(path, SPEC_MAX)
    if not text then
      if code == "ENOENT" then
        err = "there is no such file; efr rules test runs the examples in it (docs/lua-api.md)"
      end
      return nil, ("%s: %s"):format(path, err), code
    end
    files[i] = { name = path:match("[^/]*$"), text = text }
  end
  return files
end

local function show_results(env, results)
  local wrong = 0
  for _, test in ipairs(results) do
    env:say(("%s  %s"):format(test.ok and "ok  " or "FAIL", test.name))
    if not test.ok then
      wrong = wrong + 1
      env:say(("      %s:%s: %s"):format(test.file or "?", test.line or "?", test.message))
    end
  end
  env:say(("%s, %d failed"):format(counted(#results, "example"), wrong))
  return wrong == 0 and #results > 0
end

function ACTIONS.test(env, rules, args)
  local ok, message, code = load(env, rules)
  if not ok then
    return nil, message, code
  end
  if rules.state == "none" then
    return nil, nil, "EFR_SILENT"
  end
  local files
  files, message, code = read_specs(env, rules, args.files)
  if not files then
    return nil, message, code
  end
  local reply, problem = rules:test(files)
  if not reply then
    return show_problem(env, problem)
  end
  print_all(env, reply.printed)
  return show_results(env, reply.results) and 0 or 1
end

-- The effect that the rules give: of each subject the last match, of all subjects the strictest.
local function effect_of(answer)
  local last = {}
  for _, match in ipairs(answer.rules) do
    last[match.on .. tostring(match.at or match.path)] = match
  end
  local best
  for _, match in pairs(last) do
    if not best or ORDER[match.effect] > ORDER[best.effect] then
      best = match
    end
  end
  return best
end

local function show_answer(env, answer, line)
  for _, match in ipairs(answer.rules) do
    local part = match.pos and match.stop and line:sub(match.pos, match.stop) or match.path or line
    env:say(("%-6s %s"):format(match.effect, match.text))
    env:say(("       matches %s"):format(part))
  end
  for _, effect in ipairs(answer.effects) do
    local what = effect.path and effect.kind .. " " .. effect.path or effect.kind
    env:say(("adds   %s, by %s"):format(what, effect.text))
  end
  for _, hint in ipairs(answer.hints) do
    env:say(("hint   %s:%d: %s"):format(hint.file, hint.line, hint.text))
  end
  local best = effect_of(answer)
  if best then
    env:say(("your rules say %s, by %s:%d"):format(best.effect, best.file, best.line))
  else
    env:say("none of your rules matches")
  end
end

-- The decision with and without the rules: what they change.
local function show_change(env, on, rules, line)
  on.rules = nil
  local without = deciding.of_line(env, on, line).decision
  on.rules = rules
  local with = deciding.of_line(env, on, line).decision
  local words = with == without and "efr decides %s, with and without them"
    or "efr decides %s; without your rules: %s"
  env:say(words:format(with, without))
end

function ACTIONS.explain(env, rules, args)
  local ok, message, code = load(env, rules)
  if not ok then
    return nil, message, code
  end
  if rules.state == "none" then
    return 0
  end
  local on
  on, message, code = deciding.setting(env, args)
  if not on then
    return nil, message, code
  end
  local line = perm_line.read(table.concat(args.line, " "))
  if not line.ast then
    env:say(("efr cannot read this line (%s); rules see it as a whole, and the names in it"):format(
      line.why))
  end
  local answer = own_rules.ask(rules, line, { requirements = {} }, {
    cwd = on.cwd, home = env.home, tool = "shell", origin = "cli", mode = on.mode,
    project = on.scope.root,
  })
  if answer.failed then
    return nil, answer.failed.text, "EFR_RULES"
  end
  show_answer(env, answer, line.text)
  show_change(env, on, rules, line.text)
  return 0
end

-- Writes a new file; also a link that leads nowhere is a file of the user.
local function write_new(env, path, text)
  local fd, err, code = env.ports.uv.fs_open(path, "wx", FILE_MODE)
  if not fd then
    if code == "EEXIST" then
      return nil, path .. " is already there", code
    end
    return nil, ("%s: %s"):format(path, err), code
  end
  local ok
  ok, err, code = env.ports.sys.write_fd(fd, text)
  env.ports.sys.close_fd(fd)
  if not ok then
    return nil, ("%s: %s"):format(path, err), code
  end
  env:say("wrote " .. path)
  return true
end

function ACTIONS.new(env, rules)
  local ok, err, code = env.ports.fs.mkdirs(rules.dir, DIR_MODE)
  if not ok then
    return nil, ("%s: %s"):format(rules.dir, err), code
  end
  local assets = env.ports.assets
  ok, err, code = write_new(env, rules.dir .. "/rules.lua", assets.get(STARTER))
  if not ok then
    return nil, err, code
  end
  ok, err, code = write_new(env, rules.dir .. "/" .. SPEC, assets.get(SPEC_STARTER))
  if not ok and code == "EEXIST" then
    env:say(err .. "; it stays as it is")
    return 0
  end
  return ok and 0, err, code
end

function M.run(args, env)
  local rules, message, code = own_rules.new(env)
  if not rules then
    return nil, message, code
  end
  local result
  result, message, code = ACTIONS[args.action](env, rules, args)
  rules:close()
  return result, message, code
end

return M
