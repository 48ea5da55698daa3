-- The connection to efrd: roots, socket, who is behind it, start on demand, hello, retry.
-- Owns: protocol.md 1.5 and 3 on the client's side. Must not know: single methods, views.
-- Loop thread of `efr`; open and call wait in a task.

local async = require "efr.util.async"
local paths = require "efr.config.paths"
local rpc = require "efr.cli.rpc"
local start = require "efr.cli.start"

local M = {}

M.PROTOCOL = 1

local SOCKET_PATH_MAX <const> = 107
local HELLO_MS <const> = 5000
local RETRIES <const> = 20
local RETRY_MS <const> = 250

--- @class efr.cli.conn
--- @field roots table the four roots
--- @field socket string
--- @field server table the result of hello
local Conn = {}
Conn.__index = Conn

-- A root that belongs to somebody else would mix two users' data.
local function check_owner(ports, roots)
  local uid = ports.sys.getuid()
  for _, name in ipairs({ "config", "data", "state", "runtime" }) do
    local path = roots[name].path
    local info = ports.fs.stat(path)
    if info and info.uid ~= uid then
      local words = ("the %s directory %s belongs to user %d, this is user %d")
      return nil, words:format(name, path, info.uid, uid), "EFR_FOREIGN_ROOT"
    end
  end
  return true
end

--- The roots of this user, checked.
--- @return table? roots, string? message, string? code
function M.roots(ports, environ)
  local roots, err = paths.resolve(environ, ports.sys.getuid(), ports.fs)
  if not roots then
    return nil, err, "EFR_ROOTS"
  end
  local ok, message, code = check_owner(ports, roots)
  if not ok then
    return nil, message, code
  end
  return roots
end

--- The socket of a runtime root.
function M.socket_path(roots)
  local path = roots.runtime.path .. "/daemon.sock"
  if #path > SOCKET_PATH_MAX then
    local words = "the socket path %s is longer than %d bytes"
    return nil, words:format(path, SOCKET_PATH_MAX), "EFR_SOCKET_PATH"
  end
  return path
end

-- Connects and checks that the server is this user.
local function connect(self)
  local uv = self.ports.uv
  local pipe = assert(uv.new_pipe(false))
  local err = async.await(function(resume)
    pipe:connect(self.socket, resume)
  end)
  if err then
    pipe:close()
    return nil, ("connect to %s: %s"):format(self.socket, err), err:match("^(E[%u%d]+)") or "EIO"
  end
  local peer = self.ports.sys.peer_cred(pipe:fileno())
  local uid = self.ports.sys.getuid()
  if not peer or peer.uid ~= uid then
    pipe:close()
    local who = peer and ("user %d"):format(peer.uid) or "an unknown user"
    return nil, ("the server at %s is %s, not you"):format(self.socket, who), "EFR_PEER"
  end
  return pipe
end

local function attach(self, pipe)
  local client
  client = rpc.new({
    json = self.ports.json,
    text = self.ports.text,
    write = function(bytes)
      pipe:write(bytes, function(err)
        if err then
          client:drop("the connection to efrd broke: " .. err)
        end
      end)
    end,
    close = function()
      if not pipe:is_closing() then
        pipe:close()
      end
    end,
  })
  pipe:read_start(function(err, bytes)
    if err then
      client:drop("the connection to efrd broke: " .. err)
    elseif bytes then
      client:push(bytes)
    else
      client:eof()
    end
  end)
  return client
end

local function hello(self, client)
  local params = {
    protocol = M.PROTOCOL,
    origin = self.hello.origin,
    client = "efr " .. self.ports.sys.VERSION,
    capabilities = {},
    tty = self.hello.tty,
    pid = self.ports.sys.getpid(),
  }
  local done, result, message, code, data = async.with_timeout(self.hello_ms, function()
    return client:call("hello", params)
  end)
  if not done then
    client:drop("timeout")
    local log = self.roots.state.path .. "/logs/efrd.log"
    local words = ("efrd at %s does not answer"):format(self.socket)
    return nil, words, "EFR_TIMEOUT", self.ports.fs.stat(log) and { log = log } or nil
  end
  if result then
    self.server = result
    return true
  end
  client:drop("hello failed")
  if code == "protocol_mismatch" then
    local words = "efrd speaks protocol %s, this efr speaks protocol %s"
    message = words:format(data.daemon or "?", data.client or M.PROTOCOL)
  end
  return nil, message, code, data
end

local NOBODY <const> = { ENOENT = true, ECONNREFUSED = true, ENOTDIR = true }

-- A connected pipe; starts efrd when nothing answers and that is wanted.
local function reach(self)
  local pipe, message, code = connect(self)
  if pipe or not NOBODY[code] then
    return pipe, message, code
  end
  if not self.start then
    return nil, "efrd does not run", "EFR_NOT_RUNNING"
  end
  return start.run({
    ports = self.ports,
    environ = self.environ,
    roots = self.roots,
    connect = function()
      return connect(self)
    end,
  })
end

-- Connects once: socket and hello.
local function establish(self)
  local pipe, message, code, data = reach(self)
  if not pipe then
    return nil, message, code, data
  end
  local client = attach(self, pipe)
  local ok
  ok, message, code, data = hello(self, client)
  if not ok then
    return nil, message, code, data
  end
  self.client = client
  return true
end

--- Opens a connection and says hello.
--- @param env table the command's environment (main.lua)
--- @param opts table? start (false: never starts efrd), tty, origin, hello_ms
--- @return efr.cli.conn?, string? message, string? code, table? data
function M.open(env, opts)
  opts = opts or {}
  local roots, message, code = M.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local socket
  socket, message, code = M.socket_path(roots)
  if not socket then
    return nil, message, code
  end
  local self = setmetatable({
    ports = env.ports,
    environ = env.environ,
    roots = roots,
    socket = socket,
    start = opts.start ~= false,
    hello_ms = opts.hello_ms or HELLO_MS,
    hello = { origin = opts.origin or "cli", tty = opts.tty },
  }, Conn)
  local ok, why, kind, data = establish(self)
  if not ok then
    return nil, why, kind, data
  end
  return self
end

--- Calls a method. A request with a command_id is sent again on a new connection when its
--- answer was lost: efrd answers a repeat from the receipt.
--- @return any result, string? message, string? code, table? data
function Conn:call(method, params)
  local tries = params.command_id and RETRIES or 0
  while true do
    local result, message, code, data = self.client:call(method, params)
    if code ~= rpc.LOST or tries == 0 then
      return result, message, code, data
    end
    repeat
      tries = tries - 1
      async.sleep(RETRY_MS)
      local ok, why, kind, more = establish(self)
      if not ok and (kind ~= "EFR_NOT_RUNNING" and kind ~= rpc.LOST or tries == 0) then
        return nil, why, kind, more
      end
    until ok
  end
end

--- Starts a stream on the present connection.
function Conn:stream(method, params, on_item, on_end)
  return self.client:stream(method, params, on_item, on_end)
end

--- Cancels a request of the present connection.
function Conn:cancel(id)
  self.client:cancel(id)
end

function Conn:close()
  self.client:drop("closed")
end

return M
