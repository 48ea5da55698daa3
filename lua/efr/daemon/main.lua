-- The entry of efrd: flags, signals, start, wait, stop.
-- Main thread of efrd; run is called in a coroutine.
local app = require "efr.daemon.app"
local async = require "efr.util.async"
local log = require "efr.util.log"

local M = {}

local USAGE <const> = [[
usage: efrd [--log FILTER] [--print-config]

The daemon of efr. `efr` starts it when it is needed; with systemd it is a user unit.

  --log FILTER     error, warn, info, debug or trace; or part=level pairs with commas
  --print-config   print every setting with its value and source, and exit
  --version        print the version and exit
  --help           print this text and exit
]]

local EXIT_USAGE <const> = 2

local function unknown(word)
  return nil, "unknown argument " .. word .. "\n" .. USAGE
end

local OPTIONS = {
  ["--print-config"] = function(opts)
    opts.action = "print_config"
    return 1
  end,
  ["--version"] = function(opts)
    opts.action = "version"
    return 1
  end,
  ["--help"] = function(opts)
    opts.action = "help"
    return 1
  end,
  ["--log"] = function(opts, value)
    if not value then
      return nil, "--log needs a filter"
    end
    opts.flags.log = value
    return 2
  end,
}

--- Reads the command line.
--- @param args string[]
--- @return table|nil opts, string|nil message
function M.parse(args)
  local opts, i = { flags = {}, action = "serve" }, 1
  while args[i] do
    local name, value = args[i]:match("^(%-%-[%w-]+)=(.*)$")
    local option = OPTIONS[name or args[i]]
    if not option then
      return unknown(args[i])
    end
    local used, err = option(opts, value or args[i + 1])
    if not used then
      return nil, err
    end
    i = i + (value and 1 or used)
  end
  return opts
end

-- Standard output, whole; a reader that went away is no error of ours.
local function write_out(ports, text)
  while #text > 0 do
    local written = ports.uv.fs_write(1, text)
    if not written then
      return
    end
    text = text:sub(written + 1)
  end
end

local function shown(json, value)
  if value == nil then
    return "(unset)"
  end
  return assert(json.encode(value, { sort = true }))
end

local function print_config(self)
  local ok, err = self:load_settings()
  if not ok then
    return nil, err
  end
  local lines = {}
  for _, entry in ipairs(self.config:all()) do
    lines[#lines + 1] = ("%s = %s  # %s\n"):format(entry.name,
      shown(self.ports.json, entry.value), entry.source)
  end
  write_out(self.ports, table.concat(lines))
  return 0
end

-- SIGTERM and SIGINT end the daemon, SIGHUP reads the settings again.
local function watch_signals(self, stopped)
  local uv, handles = self.ports.uv, {}
  local function on(name, fn)
    local handle = assert(uv.new_signal())
    handle:start(name, fn)
    handles[#handles + 1] = handle
  end
  on("sigterm", function()
    stopped:set("SIGTERM")
  end)
  on("sigint", function()
    stopped:set("SIGINT")
  end)
  on("sighup", function()
    if self.config and self.projects then
      self.config:reload()
      self.projects:reload()
    end
  end)
  return function()
    for _, handle in ipairs(handles) do
      handle:close()
    end
  end
end

local function serve(self)
  local stopped = async.future()
  self.shutdown = function(reason)
    stopped:set(reason)
  end
  local release = watch_signals(self, stopped)
  local ok, err = self:start()
  if ok then
    local reason = stopped:get()
    self.log:info("stopping: %s", reason)
    self.ports.sys.notify("STOPPING=1")
    self:stop()
  end
  release()
  if not ok then
    return nil, err
  end
  return 0
end

local ACTIONS = {
  serve = serve,
  print_config = print_config,
  version = function(self)
    write_out(self.ports, "efrd " .. self.version .. "\n")
    return 0
  end,
  help = function(self)
    write_out(self.ports, USAGE)
    return 0
  end,
}

--- Runs the daemon until it is told to stop.
--- @param ports table
--- @param args string[]
--- @return integer|nil exit_code, string|nil message
function M.run(ports, args)
  local opts, err = M.parse(args)
  if not opts then
    ports.sys.write_stderr("efrd: " .. err .. "\n")
    return EXIT_USAGE
  end
  local logger = log.new(function(level, line)
    ports.sys.log_write(level, line)
  end)
  local self = app.new {
    ports = ports, log = logger, env = ports.sys.environ(), flags = opts.flags,
    version = ports.sys.VERSION,
  }
  return ACTIONS[opts.action](self)
end

return M
