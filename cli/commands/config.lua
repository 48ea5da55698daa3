-- efr config: shows, checks and changes config.toml.
-- Owns: the actions and what they print. Must not know: the layout of the file (config/edit), the
-- meaning of a key.

local ask = require "efr.cli.ask"
local conn = require "efr.cli.conn"
local edit = require "efr.config.edit"
local editor = require "efr.cli.editor"
local example = require "efr.config.example"
local file = require "efr.config.file"
local json_schema = require "efr.config.json_schema"
local lines = require "efr.config.lines"
local nearest = require "efr.util.nearest"
local settings = require "efr.cli.settings"
local words = require "efr.config.words"

local M = { summary = "show, check and change the settings" }

function M.add(parser)
  parser:command_target("action")
  local function action(name, text)
    return parser:command(name, text):add_help(false)
  end
  action("show", "every key with its value and source"):argument("key", "only this key"):args("?")
  action("check", "check a file"):argument("path", "default: config.toml"):args("?")
  action("edit", "edit the file with $VISUAL or $EDITOR, then check it")
  local set = action("set", "set one key")
  set:argument("key", "such as permissions.mode")
  set:argument("value", "items of a list are separated by commas")
  action("unset", "take one key out of the file"):argument("key")
  action("schema", "a JSON schema of the file")
  action("reload", "let efrd read the file again")
end

-- show -----------------------------------------------------------------------------------------

local function show_settings(env, config)
  local section = ""
  for _, entry in ipairs(config:all()) do
    local head, key = entry.name:match("^(.*)%.([^.]+)$")
    head, key = head or "", key or entry.name
    if head ~= section then
      env:say("")
      env:say(("[%s]"):format(head))
      section = head
    end
    if entry.value == nil then
      env:say(("# %s is unset"):format(key))
    else
      env:say(("%s = %s  # %s"):format(key, lines.value(entry.value), entry.source))
    end
  end
end

local function row(env, key, value)
  env:say(("%s = %s"):format(key, lines.value(value)))
end

-- How this command itself sees its terminal.
local function show_command(env)
  local term, colour, why = env.environ.TERM or "", true, "terminal"
  if not env:is_tty(1) then
    colour, why = false, "no terminal"
  elseif term == "" or term == "dumb" then
    colour, why = false, "TERM"
  elseif (env.environ.NO_COLOR or "") ~= "" then
    colour, why = false, "NO_COLOR"
  end
  env:say("")
  env:say("[efr]")
  row(env, "version", env.ports.sys.VERSION)
  env:say(("colour = %s  # %s"):format(colour, why))
end

local function show_paths(env, roots)
  env:say("")
  env:say("[paths]")
  for _, name in ipairs({ "config", "data", "state", "runtime" }) do
    env:say(("%s = %s  # %s"):format(name, lines.value(roots[name].path), roots[name].source))
  end
end

local function error_words(err)
  return type(err) == "table" and err.message or err
end

local function show_rules(env, rules)
  for _, entry in ipairs(rules) do
    env:say(("# %s %s"):format(entry.active and "active:" or "not active:", entry.path))
    if entry.error then
      local line = entry.error.line and " line " .. entry.error.line or ""
      env:say(("# warning: %s%s: %s"):format(entry.path, line, entry.error.message))
    end
  end
end

-- What the running daemon made of its file.
local function show_daemon(env, path)
  env:say("")
  env:say("[daemon]")
  local link, message, code = conn.open(env, { start = false })
  local status
  if link then
    status, message = link:call("admin.status", {})
    link:close()
  end
  if not status then
    env:say("# " .. (code == "EFR_NOT_RUNNING" and "efrd does not run" or message))
    return
  end
  local config = status.config or {}
  row(env, "socket", link.socket)
  row(env, "file", config.path or "")
  if config.reload_error then
    row(env, "reload_error", error_words(config.reload_error))
  end
  row(env, "restart_needed", config.restart_needed or {})
  show_rules(env, config.rules or {})
  if config.reload_error then
    env:say("# warning: the file has an error; the old settings stay")
  end
  if config.path and config.path ~= path then
    env:say(("# warning: efrd reads %s, this shell reads %s"):format(config.path, path))
  end
end

local function known_key(env, name)
  local keys = settings.schema(env).keys
  if keys[name] then
    return keys[name]
  end
  local names = {}
  for known in pairs(keys) do
    names[#names + 1] = known
  end
  local near = nearest.find(name, names)
  local hint = near and "did you mean " .. near .. "?" or "see efr config show"
  return nil, ("unknown key %s; %s"):format(name, hint), "EFR_USAGE"
end

local function show_key(env, config, name)
  local key, message, code = known_key(env, name)
  if not key then
    return nil, message, code
  end
  local value = config:get(name)
  if value == nil then
    env:say(("# %s is unset"):format(name))
  else
    env:say(("%s = %s  # %s"):format(name, lines.value(value), config:source(name)))
  end
  return 0
end

local function show(args, env)
  local config, message, code = env:config()
  if not config then
    return nil, message, code
  elseif args.key then
    return show_key(env, config, args.key)
  end
  show_settings(env, config)
  show_command(env)
  local roots = assert(conn.roots(env.ports, env.environ))
  show_paths(env, roots)
  show_daemon(env, roots.config.path .. "/config.toml")
  return 0
end

-- check ----------------------------------------------------------------------------------------

local function absolute(env, path)
  return path:sub(1, 1) == "/" and path or assert(env.ports.uv.cwd()) .. "/" .. path
end

local function check(args, env)
  local path, message, code = settings.path(env)
  path = args.path or path
  if not path then
    return nil, message, code
  end
  local text
  text, message, code = file.read(env.ports.fs, absolute(env, path))
  if message then
    return nil, ("%s: %s"):format(path, message), code
  elseif not text and args.path then
    return nil, path .. ": no such file", "ENOENT"
  elseif not text then
    env:say(path .. ": absent; the defaults are in force")
    return 0
  end
  local config
  config, message, code = settings.check(env, text, path)
  if not config then
    return nil, message, code
  end
  env:say(path .. ": fine")
  return 0
end

-- set, unset -----------------------------------------------------------------------------------

local function set(args, env)
  local key, message, code = known_key(env, args.key)
  if not key then
    return nil, message, code
  end
  local value
  value, message = words.read(key, args.value, env.home)
  if value == nil then
    return nil, ("%s %s"):format(args.key, message), "EFR_USAGE"
  end
  local path
  path, message, code = settings.change(env, function(text)
    return edit.set(text or example.text(settings.schema(env)), args.key, value)
  end)
  if not path then
    return nil, message, code
  end
  env:say(("%s = %s  # in %s"):format(args.key, lines.value(value), path))
  return settings.reload_after(env)
end

-- A key that no longer exists, or never did, can be taken out as well: it keeps the file from use.
local function unset(args, env)
  local there = false
  local path, message, code = settings.change(env, function(text)
    local fresh, why, which = edit.unset(text or "", args.key)
    there = fresh ~= nil and fresh ~= (text or "")
    return fresh, why, which
  end)
  if not path then
    return nil, message, code
  elseif there then
    env:say(("%s is taken out of %s"):format(args.key, path))
    return settings.reload_after(env)
  end
  local key
  key, message, code = known_key(env, args.key)
  if not key then
    return nil, message, code
  end
  env:say(("%s is not set in %s"):format(args.key, path))
  return 0
end

-- edit -----------------------------------------------------------------------------------------

-- The file that the editor gets: a link's target, a new file from the example.
local function prepare(env)
  local path, message, code = settings.path(env)
  if not path then
    return nil, message, code
  end
  local ok
  ok, message, code = file.change(env.ports.fs, path, function(text)
    return text or example.text(settings.schema(env))
  end)
  if not ok then
    return nil, message, code
  end
  return path, env.ports.fs.realpath(path) or path
end

local function ask_again(env)
  return ask.possible(env) and ask.yes(env, "edit it again?")
end

local function edit_file(_, env)
  local path, target, code = prepare(env)
  if not path then
    return nil, target, code
  end
  local ok, message
  repeat
    ok, message = editor.run(env, target)
    if not ok then
      return nil, message, "EFR_EDITOR"
    end
    local text
    text, message = file.read(env.ports.fs, path)
    ok = not message
    if ok then
      ok, message = settings.check(env, text, path)
    end
    if not ok then
      env:warn(message)
    end
  until ok or not ask_again(env)
  if not ok then
    return nil, message, "EFR_SILENT"
  end
  return settings.reload_after(env)
end

-- schema, reload -------------------------------------------------------------------------------

local function print_schema(_, env)
  local schema = json_schema.build(settings.schema(env))
  env:out(assert(env.ports.json.encode(schema, { sort = true, pretty = true })) .. "\n")
  return 0
end

local function reload(_, env)
  local applied, message, code, data = settings.reload(env)
  if code == "EFR_NOT_RUNNING" then
    return nil, message .. "; it reads the file when it starts", "EFR_NO_DAEMON"
  elseif not applied then
    return nil, message, code, data
  end
  env:say("applied")
  return 0
end

local ACTIONS <const> = {
  show = show, check = check, edit = edit_file, set = set, unset = unset, schema = print_schema,
  reload = reload,
}

function M.run(args, env)
  return ACTIONS[args.action](args, env)
end

return M
