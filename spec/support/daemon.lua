-- Owns: a daemon's connection side on real socket pairs for specs: real store, dispatch, sessions;
-- stand-ins for the parts of other folders. Needs efr-lua. Test help only.
local answering = require "efr.daemon.answering"
local dispatch = require "efr.daemon.dispatch"
local notices = require "efr.daemon.notices"
local server = require "efr.daemon.server"
local store = require "spec.support.store"

local M = {}

local LIMIT_MS <const> = 60000

M.DAEMON_ID = "0199aaaa-0000-7000-8000-0000000000da"

-- The ports with stand-ins for who the peer is: the spec decides.
local function daemon_ports(opts)
  local ports = store.ports()
  local uid = ports.uv.getuid()
  ports.sys = {
    getuid = function()
      return uid
    end,
    getpid = ports.uv.os_getpid,
    peer_cred = function()
      return { pid = opts.pid or ports.uv.os_getpid(), uid = opts.uid or uid }
    end,
    random = function(n)
      return ("\0"):rep(n)
    end,
    traceback = function(_, text)
      return text
    end,
  }
  ports.fs = {
    read_file = function(path)
      local file = io.open(path, "rb")
      local text = file and file:read("a")
      if file then
        file:close()
      end
      return text
    end,
    mkdirs = function(path)
      os.execute("mkdir -p '" .. path .. "'")
      return true
    end,
  }
  return ports
end

local function all_methods(extra)
  local methods = extra or {}
  for _, module in ipairs(require("efr.modules").list("efr.daemon.rpc.")) do
    methods[#methods + 1] = require(module)
  end
  return methods
end

--- A daemon's app over the database below dir. Call it in a task.
--- @param opts {pid: integer|nil, uid: integer|nil, methods: table|nil, shells: table|nil}
function M.app(dir, opts)
  opts = opts or {}
  local opened = assert(store.open(dir))
  local ports = daemon_ports(opts)
  local app = {
    ports = ports, log = store.quiet, store = opened.log, query = opened.query, db = opened.db,
    daemon_id = M.DAEMON_ID, version = "0.1.0", paths = { data = dir, runtime = dir },
    followers = notices.followers(), answering = answering.new(), drafts = {},
    shells = { pids = function()
      return opts.shells or {}
    end },
  }
  app.conversations = { drafts = function(_, _, fn)
    app.drafts[#app.drafts + 1] = fn
    return function()
      app.drafts_stopped = true
    end
  end }
  app.failures = {}
  app.dispatch = dispatch.new {
    app = app, methods = all_methods(opts.methods), json = ports.json, text = ports.text,
    log = setmetatable({ error = function(_, ...)
      app.failures[#app.failures + 1] = string.format(...)
    end }, { __index = store.quiet }),
    traceback = debug.traceback, store = app.store, query = app.query,
  }
  app.server = server.new(app)
  return app
end

-- Runs the loop until ready() or the limit.
function M.wait(ready, what)
  local uv = require "luv"
  local late = false
  local timer = assert(uv.new_timer())
  timer:start(LIMIT_MS, 0, function()
    late = true
  end)
  while not ready() and not late do
    uv.run("once")
  end
  timer:close()
  assert(not late, "waited too long for " .. (what or "something"))
end

local Client = {}
Client.__index = Client

--- A client on a socket pair with the daemon.
function M.client(app)
  local uv = app.ports.uv
  local fds = assert(uv.socketpair(nil, nil, { nonblock = true }, { nonblock = true }))
  local served, pipe = assert(uv.new_pipe(false)), assert(uv.new_pipe(false))
  assert(served:open(fds[1]))
  assert(pipe:open(fds[2]))
  local self = setmetatable({ app = app, pipe = pipe, messages = {}, rest = "", next_id = 0 },
    Client)
  self.session = app.server:accept(served)
  self:resume()
  return self
end

--- Reads from the daemon (again).
function Client:resume()
  self.pipe:read_start(function(err, chunk)
    if err or not chunk then
      self.ended = true
      return
    end
    self.rest = self.rest .. chunk
    while true do
      local newline = self.rest:find("\n", 1, true)
      if not newline then
        break
      end
      self.messages[#self.messages + 1] =
        assert(self.app.ports.json.decode(self.rest:sub(1, newline - 1)))
      self.rest = self.rest:sub(newline + 1)
    end
  end)
end

--- Stops reading: what the daemon sends stays in the kernel.
function Client:pause()
  self.pipe:read_stop()
end

--- Sends bytes as they are.
function Client:raw(bytes)
  self.pipe:write(bytes)
end

--- Sends a request and gives its id.
function Client:send(method, params)
  self.next_id = self.next_id + 1
  self:raw(assert(self.app.ports.json.encode {
    jsonrpc = "2.0", id = self.next_id, method = method, params = params or {},
  }) .. "\n")
  return self.next_id
end

--- The response to an id; removes it. Waits.
function Client:response(id)
  local found
  M.wait(function()
    for i, message in ipairs(self.messages) do
      if message.id == id and (message.result or message.error) then
        found = table.remove(self.messages, i)
        return true
      end
    end
    return self.ended
  end, "a response")
  return found
end

--- The next stream item; removes it. Waits.
function Client:item()
  local found
  M.wait(function()
    for i, message in ipairs(self.messages) do
      if message.method == "stream" then
        found = table.remove(self.messages, i).params.item
        return true
      end
    end
    return self.ended
  end, "a stream item")
  return found
end

--- One request: its result, or nil and the error.
function Client:call(method, params)
  local message = self:response(self:send(method, params))
  if message then
    return message.result, message.error
  end
  return nil, "closed"
end

--- hello with defaults.
function Client:hello(params)
  local all = { protocol = 1, origin = "cli" }
  for key, value in pairs(params or {}) do
    all[key] = value
  end
  return self:call("hello", all)
end

--- Waits for the end of the connection.
function Client:wait_end()
  M.wait(function()
    return self.ended
  end, "the end of the connection")
end

function Client:close()
  if not self.pipe:is_closing() then
    self.pipe:close()
  end
end

return M
