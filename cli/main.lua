-- The entry of `efr`: reads the arguments, runs one subcommand, prints its failure.
-- Owns: the command line, the environment that commands get, exit codes.
-- Must not know: what a command does. Runs as the first task of `efr`.

local failure = require "efr.cli.failure"

local M = {}

local PREFIX <const> = "efr.cli.commands."

-- Private hand-over variables of the zsh plugin: read once, never given to a child.
local PRIVATE <const> =
  { "EFR_CONTEXT", "EFR_LAST_COMMAND", "EFR_RECENT_COMMANDS", "EFR_PROMPT", "EFR_DRAFT_FILE" }

local USAGE <const> = [[
usage: efr COMMAND [ARGUMENTS]

%s
options:
  -h, --help     this text; efr COMMAND --help explains a command
  -V, --version  the version

In zsh with the plugin, a line that starts with a comma goes to the agent: , fix the test
]]

local Env = {}
Env.__index = Env

--- Writes to stdout. A reader that went away ends the command.
function Env:out(bytes)
  local ok, err, code = self.ports.tty.write(1, bytes)
  if not ok then
    error({ pipe = code == "EPIPE", message = "write to stdout: " .. tostring(err) }, 0)
  end
end

--- Writes to stderr; a failure there has no place to go.
function Env:err(bytes)
  self.ports.tty.write(2, bytes)
end

--- Writes one line to stdout that holds foreign text.
function Env:say(line)
  self:out(self.ports.text.printable(line) .. "\n")
end

--- An `efr: ...` line on stderr.
function Env:warn(line)
  self:err("efr: " .. self.ports.text.printable(line) .. "\n")
end

--- The effective settings of config.toml, read once.
--- @return table? config, string? message, string? code
function Env:config()
  if self.loaded_config then
    return self.loaded_config
  end
  local config, message, code = require("efr.cli.settings").load(self)
  self.loaded_config = config
  return config, message, code
end

--- Whether a descriptor (0, 1, 2) is a terminal.
function Env:is_tty(fd)
  if self.ttys[fd] == nil then
    self.ttys[fd] = self.ports.sys.isatty(fd)
  end
  return self.ttys[fd]
end

-- A child's environment must not hold what the plugin handed over.
local function take_private(environ)
  local private = {}
  for _, name in ipairs(PRIVATE) do
    local value = environ[name]
    private[name] = value ~= "" and value or nil
    environ[name] = nil
  end
  return private
end

local function new_env(ports)
  local environ = ports.sys.environ()
  local private = take_private(environ)
  return setmetatable({
    ports = ports,
    environ = environ,
    private = private,
    home = environ.HOME ~= "" and environ.HOME or nil,
    ttys = {},
  }, Env)
end

local function names()
  local out = {}
  for _, module in ipairs(require("efr.modules").list(PREFIX)) do
    out[#out + 1] = module:sub(#PREFIX + 1)
  end
  return out
end

local function usage()
  local lines = {}
  for _, name in ipairs(names()) do
    lines[#lines + 1] = ("  %-10s %s\n"):format(name, require(PREFIX .. name).summary)
  end
  return USAGE:format("commands:\n" .. table.concat(lines))
end

-- The parser of one command; the others are not even loaded.
local function parser_of(name, command)
  local argparse = require "argparse"
  local parser = argparse("efr " .. name, command.summary)
  parser:add_help(false)
  parser:usage_max_width(100):help_max_width(100)
  command.add(parser)
  return parser
end

local function wants_help(args, command)
  for _, word in ipairs(args) do
    if word == "--" or command.words and word:sub(1, 1) ~= "-" then
      return false
    end
    if word == "-h" or word == "--help" then
      return true
    end
  end
  return false
end

local function usage_error(env, message, name)
  env:warn(message)
  env:err(("see: efr %s--help\n"):format(name and name .. " " or ""))
  return failure.USAGE
end

-- Puts the failure on stderr: what, then the next step.
local function report(env, message, code, data)
  if code ~= "EFR_SILENT" then
    env:warn(message or "failed")
    if data and data.log_lines then
      for line in data.log_lines:gmatch("[^\n]+") do
        env:err("  " .. env.ports.text.printable(line) .. "\n")
      end
    end
    local hint = failure.hint(code, data)
    if hint then
      env:err(env.ports.text.printable(hint) .. "\n")
    end
  end
  return failure.exit(code)
end

-- The arguments as the command gets them. A command that takes none pays for no parser.
local function parse(name, command, args)
  if command.bare and #args == 0 then
    return true, {}
  end
  if command.words then
    args = command.words(args)
  end
  return parser_of(name, command):pparse(args)
end

local function run_command(env, name, args)
  local known = false
  for _, module in ipairs(names()) do
    known = known or module == name
  end
  if not known then
    return usage_error(env, "unknown command " .. name)
  end
  local command = require(PREFIX .. name)
  if wants_help(args, command) then
    env:out(parser_of(name, command):get_help() .. "\n")
    return failure.OK
  end
  local ok, parsed = parse(name, command, args)
  if not ok then
    return usage_error(env, parsed, name)
  end
  local code, message, kind, data = command.run(parsed, env)
  if code then
    return code
  end
  return report(env, message, kind, data)
end

-- `efr` alone: what is set up, and the next step.
local function overview(env)
  local setup = require(PREFIX .. "setup")
  env:out(("efr %s, an agent in your zsh\n"):format(env.ports.sys.VERSION))
  local step = setup.show(env, require("efr.cli.setup").parts(env))
  local ready = ", what is in this directory   (in a zsh with the plugin)"
  env:out(("next:  %s\n"):format(step or ready))
  env:out("       efr --help lists the commands\n")
  return failure.OK
end

local function dispatch(env, args)
  local name = args[1]
  if not name then
    return overview(env)
  end
  if name == "-h" or name == "--help" or name == "help" and not args[2] then
    env:out(usage())
    return failure.OK
  end
  if name == "-V" or name == "--version" then
    env:out("efr " .. env.ports.sys.VERSION .. "\n")
    return failure.OK
  end
  if name == "help" then
    return run_command(env, args[2], { "--help" })
  end
  return run_command(env, name, table.move(args, 2, #args, 1, {}))
end

--- Runs `efr`.
--- @return integer exit_code
function M.run(ports, args)
  local env = new_env(ports)
  local ok, code = xpcall(dispatch, function(err)
    -- A broken pipe is no bug: it ends the command without a word.
    if type(err) == "table" then
      return err
    end
    return { bug = ports.sys.traceback(coroutine.running(), tostring(err)) }
  end, env, args)
  if ok then
    return code
  end
  ports.tty.restore(false)
  if code.bug then
    env:err("efr: internal error: " .. code.bug .. "\n")
    return 70
  end
  if code.pipe then
    return failure.PIPE
  end
  env:warn(code.message)
  return failure.FAILED
end

return M
