-- efr explain: why a call ran, asked or was refused, and what efr would make of a line.

local apply = require "efr.rules.apply"
local conn = require "efr.cli.conn"
local engine = require "efr.perm.engine"
local explain = require "efr.perm.explain"
local facts = require "efr.perm.facts"
local failure = require "efr.cli.failure"
local machine = require "efr.perm.machine"
local modes = require "efr.perm.modes"
local own_rules = require "efr.cli.own_rules"
local projects = require "efr.config.projects"

local M = { summary = "why a call ran, asked or was refused" }

local FILE_MAX <const> = 1024 * 1024
local INPUT_MAX <const> = 64 * 1024 * 1024
local READ_BYTES <const> = 65536
local UUID <const> = ("%x"):rep(8) .. "%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-" .. ("%x"):rep(12)

function M.add(parser)
  parser:argument("line", "a command line, or the id of a call; none: this terminal's newest call")
    :args("*")
  parser:option("--mode", "the mode to decide in; default: permissions.mode"):argname("MODE")
  parser:option("--cwd", "where the line would start"):argname("DIR")
  parser:flag("--json", "as one JSON object")
  parser:flag("--batch", "lines as JSON strings on stdin, one a row; one object a row comes out")
end

--- Words of the line are no options: the first word that is none ends them.
function M.words(args)
  local out, i = {}, 1
  local takes = { ["--mode"] = true, ["--cwd"] = true }
  while args[i] and args[i] ~= "--" and args[i]:sub(1, 1) == "-" do
    out[#out + 1] = args[i]
    if takes[args[i]] and args[i + 1] then
      i = i + 1
      out[#out + 1] = args[i]
    end
    i = i + 1
  end
  if args[i] == "--" then
    i = i + 1
  end
  if args[i] then
    out[#out + 1] = "--"
    table.move(args, i, #args, #out + 1, out)
  end
  return out
end

-- What is decided on ----------------------------------------------------------------------------

local function registered(env, roots)
  local path = roots.config.path .. "/projects.toml"
  local text, err, code = env.ports.fs.read_file(path, FILE_MAX)
  if not text and code ~= "ENOENT" and code ~= "ENOTDIR" then
    return nil, err, code
  end
  return projects.load(text, path)
end

local function directory(env, args)
  local cwd = args.cwd or assert(env.ports.uv.cwd())
  if cwd:sub(1, 1) ~= "/" then
    cwd = assert(env.ports.uv.cwd()) .. "/" .. cwd
  end
  return env.ports.fs.realpath(cwd) or cwd
end

local function plain_paths(roots)
  local out = {}
  for name, root in pairs(roots) do
    out[name] = root.path
  end
  return out
end

-- Everything but the line, or nil, message, code.
local function setting(env, args)
  local config, message, code = env:config()
  if not config then
    return nil, message, code
  end
  local roots
  roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local known
  known, message, code = registered(env, roots)
  if not known then
    return nil, message, code
  end
  local cwd = directory(env, args)
  local project_roots = {}
  for i, project in ipairs(known) do
    project_roots[i] = project.root
  end
  local project = projects.containing(known, cwd)
  local source = { fs = env.ports.fs, home = env.home, config = config, paths = plain_paths(roots) }
  local here = machine.facts(source, { project_roots = project_roots })
  return {
    cwd = cwd, config = config, mode = args.mode or config:get("permissions.mode"),
    machine = here,
    scope = project and { kind = "project", root = project.root } or { kind = "path" },
    ports = facts.ports(env.ports.fs, env.environ.PATH, here),
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
  if on.rules.state == "none" then
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

local function of_line(env, on, line)
  local requirements, known, lines =
    facts.collect(on.ports, { { kind = "line", text = line, cwd = on.cwd } }, env.home)
  local mode, note = settle_mode(env, on)
  local input = {
    requirements = requirements, tool = "shell", mode = mode, origin = "cli", scope = on.scope,
    machine = on.machine, rules = on.config:get("permissions.rules"), facts = known, lines = lines,
  }
  ask_rules(env, on, input, lines[line])
  local data = explain.data(engine.decide(input), input, line)
  data.cwd, data.note = on.cwd, note or data.note
  return data
end

local function to_json(env, data)
  local json, text = env.ports.json, env.ports.text
  explain.each_list(data, json.array)
  local encoded = json.encode(data, { sort = true })
  if encoded then
    return encoded
  end
  -- Bytes that are no UTF-8 came from the line or from a path.
  local function clean(value)
    if type(value) == "string" then
      return text.clean(value)
    elseif type(value) ~= "table" then
      return value
    end
    for key, inner in pairs(value) do
      value[key] = clean(inner)
    end
    return value
  end
  return assert(json.encode(clean(data), { sort = true }))
end

local function show(env, args, data)
  if args.json then
    env:out(to_json(env, data) .. "\n")
    return failure.OK
  end
  for _, row in ipairs(explain.text(data)) do
    env:say(row)
  end
  return failure.OK
end

-- Many lines ------------------------------------------------------------------------------------

local function read_input(env)
  local parts, total = {}, 0
  while true do
    local bytes, err = env.ports.uv.fs_read(0, READ_BYTES)
    if not bytes then
      return nil, "read stdin: " .. tostring(err), "EIO"
    elseif bytes == "" then
      return table.concat(parts)
    end
    parts[#parts + 1], total = bytes, total + #bytes
    if total > INPUT_MAX then
      return nil, "more than 64 MiB on stdin", "EFR_USAGE"
    end
  end
end

local function batch(env, on)
  local input, message, code = read_input(env)
  if not input then
    return nil, message, code
  end
  local bad = false
  for row in input:gmatch("[^\n]+") do
    local line = env.ports.json.decode(row)
    local data
    if type(line) == "string" then
      data = to_json(env, of_line(env, on, line))
    else
      bad = true
      data = '{"error":"the row is no JSON string"}'
    end
    env:out(data .. "\n")
  end
  return bad and failure.USAGE or failure.OK
end

-- A past call -----------------------------------------------------------------------------------

local function past(env, args, call_id)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  local result
  result, message, code, data = link:call("decision.explain", { call_id = call_id })
  link:close()
  if not result then
    return nil, message, code, data
  end
  return show(env, args, result)
end

function M.run(args, env)
  local words = args.line
  local call_id = #words == 1 and words[1]:match("^" .. UUID .. "$")
  if not args.batch and (#words == 0 or call_id) then
    return past(env, args, call_id or nil)
  end
  local on, message, code = setting(env, args)
  if not on then
    return nil, message, code
  end
  local known = false
  for _, name in ipairs(modes.NAMES) do
    known = known or name == on.mode
  end
  if not known then
    return nil, ("there is no mode %s; the modes are %s"):format(on.mode,
      table.concat(modes.NAMES, ", ")), "EFR_USAGE"
  end
  on.rules, message, code = own_rules.open(env)
  if not on.rules then
    return nil, message, code
  end
  local result
  if args.batch then
    result, message, code = batch(env, on)
  else
    result, message, code = show(env, args, of_line(env, on, table.concat(words, " ")))
  end
  on.rules:close()
  return result, message, code
end

return M
