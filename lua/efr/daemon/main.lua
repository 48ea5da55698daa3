-- The entry of efrd: signals, start, wait, stop.
-- Main thread of efrd; run is called in a coroutine.
local app = require "efr.daemon.app"
local async = require "efr.util.async"
local lines = require "efr.config.lines"
local log = require "efr.util.log"
local status = require "efr.daemon.status"

local M = {}

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

local function print_config(self)
  local ok, err = self:load_settings()
  if not ok then
    return nil, err
  end
  local out = {}
  for _, entry in ipairs(self.config:all()) do
    local value = entry.value == nil and "(unset)" or lines.value(entry.value)
    out[#out + 1] = ("%s = %s  # %s\n"):format(entry.name, value, entry.source)
  end
  write_out(self.ports, table.concat(out))
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
      status.reload(self)
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
}

--- Reads the arguments that host/main.c makes of the flags: log=FILTER, print-config.
--- @param args string[]
--- @return {action: string, flags: table}
function M.parse(args)
  local opts = { flags = {}, action = "serve" }
  for _, arg in ipairs(args) do
    local filter = arg:match("^log=(.*)$")
    if filter then
      opts.flags.log = filter
    elseif arg == "print-config" then
      opts.action = "print_config"
    end
  end
  return opts
end

-- The collector begins its next round when the heap is a fifth above what the last one left (Lua's
-- own setting lets it double). Measured: the same processor time, and the heap of a conversation
-- grows by what it keeps; garbage that lies for long has live objects between it, and the pages
-- with them stay.
local GC_PAUSE_PERCENT <const> = 120

--- Runs the daemon until it is told to stop.
--- @param ports table
--- @param args string[] see M.parse
--- @return integer|nil exit_code, string|nil message
function M.run(ports, args)
  local opts = M.parse(args)
  collectgarbage("incremental", GC_PAUSE_PERCENT)
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
