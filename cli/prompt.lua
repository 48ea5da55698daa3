-- What `efr send` and `efr new` share: the prompt, its context and settings, and the call.
-- Owns: the hand-over variables of the plugin. Must not know: how a turn is shown.
-- Runs in `efr`; run waits in a task.

local conn = require "efr.cli.conn"
local follow = require "efr.cli.follow"
local stdin = require "efr.cli.stdin"
local words = require "efr.cli.words"

local M = {}

local TEXT_MAX <const> = 4 * 1024 * 1024 -- of prompt.send

local WITH_VALUE <const> = {
  ["--context-json"] = true,
  ["--last-command"] = true,
  ["--conversation"] = true,
  ["--mode"] = true,
  ["--model"] = true,
  ["--effort"] = true,
}

-- Fields of a ShellContext and their types.
local CONTEXT <const> = {
  pwd = "string",
  oldpwd = "string",
  tty = "string",
  shell_pid = "number",
  last_status = "number",
  shlvl = "number",
  ssh_connection = "string",
  hostname = "string",
}

-- Variables of the terminal that name a control socket of the desktop.
local DESKTOP <const> = {
  "HYPRLAND_INSTANCE_SIGNATURE", "SWAYSOCK", "I3SOCK", "NIRI_SOCKET", "WAYLAND_DISPLAY", "DISPLAY",
  "XAUTHORITY", "KITTY_LISTEN_ON", "TMUX",
}
local DESKTOP_MAX <const> = 4096

local function desktop(env)
  local out
  for _, name in ipairs(DESKTOP) do
    local value = env.environ[name]
    local fits = value and value ~= "" and #value <= DESKTOP_MAX and env.ports.text.is_utf8(value)
    if fits then
      out = out or {}
      out[name] = value
    end
  end
  return out
end

--- Options that both commands take.
function M.add(parser)
  parser:argument("prompt", "its words; default: EFR_PROMPT, else standard input"):args("*")
  parser:option("--context-json", "the shell's context"):target("context"):argname("JSON")
  parser:option("--last-command", "the command before"):target("last_command"):argname("TEXT")
  parser:option("--mode", "permission mode of this turn"):argname("MODE")
  parser:option("--model", "model of this turn"):argname("MODEL")
  parser:option("--effort", "reasoning effort of this turn"):argname("EFFORT")
end

--- A prompt may hold words with hyphens.
function M.words(args)
  return words.end_options(args, WITH_VALUE)
end

local function usage(message)
  return nil, message, "EFR_USAGE"
end

-- The shell's context as the plugin or a caller gave it. The plugin quotes the bytes of a name as
-- they are; the exact bytes of such a directory are those of our own.
local function read_context(env, text)
  local value, err = env.ports.json.decode(env.ports.text.clean(text))
  if type(value) ~= "table" then
    return usage("the context is no JSON object: " .. tostring(err or type(value)))
  end
  local context = {}
  for name, kind in pairs(CONTEXT) do
    local field = value[name]
    if kind == "number" and type(field) == "string" then
      field = math.tointeger(tonumber(field))
    end
    if type(field) == kind then
      context[name] = field
    elseif field ~= nil and field ~= env.ports.json.null then
      return usage(("the context's %s must be a %s"):format(name, kind))
    end
  end
  if not context.pwd then
    return usage("the context has no pwd")
  end
  local cwd = env.ports.uv.cwd()
  if cwd and env.ports.text.clean(cwd) == context.pwd then
    context.pwd = cwd
  end
  context.desktop = desktop(env)
  return context
end

local function own_context(env)
  local cwd = env.ports.uv.cwd()
  if not cwd then
    return usage("the current directory is unknown")
  end
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  return { pwd = cwd, tty = tty, desktop = desktop(env) }
end

-- The commands before the last one; a broken list is left out, it is only background.
local function recent_commands(env)
  local text = env.private.EFR_RECENT_COMMANDS
  local list = text and env.ports.json.decode(text)
  if type(list) ~= "table" or #list == 0 then
    return nil
  end
  return list
end

local function settings(args, env)
  local out, any = {}, false
  for _, name in ipairs({ "mode", "model", "effort" }) do
    local value = args[name] or env.environ["EFR_" .. name:upper()]
    if value and value ~= "" then
      out[name], any = value, true
    end
  end
  if out.effort and not out.effort:find("^[a-z0-9_-]+$") then
    return usage(("the effort %q is not one lowercase word"):format(out.effort))
  end
  return any and out or false
end

-- The prompt: the words, else what the plugin hands over, else a pipe or a file. All of it is text.
local function prompt_text(args, env)
  local given = args.prompt or {}
  local text = table.concat(given, " ")
  if text == "" then
    text = env.private.EFR_PROMPT or ""
  end
  if #given == 0 and text == "" and not env:is_tty(0) then
    local message, code
    text, message, code = stdin.read_all(env, TEXT_MAX)
    if not text then
      return nil, message, code
    end
    if #text > TEXT_MAX then
      return usage(("the prompt is longer than %d bytes"):format(TEXT_MAX))
    end
    text = text:gsub("\n+$", "")
  end
  if not text:find("%S") then
    return usage("the prompt is empty")
  end
  return text
end

-- The parameters of prompt.send, and the origin of the connection.
local function request(args, env)
  local text, why, kind = prompt_text(args, env)
  if not text then
    return nil, why, kind
  end
  local given = args.context or env.private.EFR_CONTEXT
  local context, message, code
  if given then
    context, message, code = read_context(env, given)
  else
    context, message, code = own_context(env)
  end
  if not context then
    return nil, message, code
  end
  local chosen
  chosen, message, code = settings(args, env)
  if chosen == nil then
    return nil, message, code
  end
  local last = args.last_command or env.private.EFR_LAST_COMMAND
  return {
    command_id = env.ports.sys.uuid7(),
    text = env.ports.text.clean(text),
    context = context,
    last_command = last and env.ports.text.clean(last),
    recent_commands = recent_commands(env),
    settings = chosen or nil,
  }, given and "shell" or "cli"
end

-- A setting the daemon refuses is the caller's mistake: its choices are the next step.
local function refused(message, code, data)
  if code == "invalid" and data and data.setting then
    local choices = type(data.choices) == "table" and table.concat(data.choices, ", ") or nil
    return nil, message, "EFR_USAGE", { hint = choices and "choices: " .. choices or nil }
  end
  return nil, message, code, data
end

--- Sends the prompt and follows its turn.
--- @param more table parameters of prompt.send that name the conversation
function M.run(args, env, more)
  local params, origin, code = request(args, env)
  if not params then
    return nil, origin, code
  end
  for name, value in pairs(more) do
    params[name] = value
  end
  local link, message, data
  link, message, code, data = conn.open(env, { origin = origin, tty = params.context.tty })
  if not link then
    return nil, message, code, data
  end
  local sent
  sent, message, code, data = link:call("prompt.send", params)
  if not sent then
    link:close()
    return refused(message, code, data)
  end
  return follow.run(env, link, sent)
end

return M
