-- Connections: accepts peers, checks who they are, gives them their scopes and keeps the list.
-- Knows nothing of methods. Main thread of efrd.
local after = require "efr.util.after"
local async = require "efr.util.async"
local dispatch = require "efr.daemon.dispatch"
local peers = require "efr.daemon.peers"
local session = require "efr.daemon.session"
local socket = require "efr.daemon.socket"

local M = {}

local STAT_MAX <const> = 4096
local CONNECTIONS_MAX <const> = 256

local Server = {}
Server.__index = Server

--- @param app table  ports, log, dispatch (see app.lua), shells (may be nil)
function M.new(app)
  return setmetatable({
    app = app, ports = app.ports, log = app.log:part("server"), sessions = {}, count = 0,
    uid = app.ports.sys.getuid(),
  }, Server)
end

local function read_stat(fs)
  return function(pid)
    return (fs.read_file(("/proc/%d/stat"):format(pid), STAT_MAX))
  end
end

-- Who is it? nil = not served.
local function identify(self, pipe)
  local cred, err = self.ports.sys.peer_cred(pipe:fileno())
  if not cred then
    self.log:warn("peer credentials: %s", err)
    return nil
  elseif cred.uid ~= self.uid then
    self.log:warn("refused a connection of uid %d", cred.uid)
    return nil
  end
  local shells = self.app.shells and self.app.shells:pids() or {}
  return {
    pid = cred.pid, uid = cred.uid,
    model_side = peers.is_model_side(cred.pid, shells, read_stat(self.ports.fs)),
  }
end

--- Serves a connected pipe.
--- @return table|nil session
function Server:accept(pipe)
  local peer = self.count < CONNECTIONS_MAX and identify(self, pipe)
  if not peer then
    pipe:close()
    return nil
  end
  local one = session.new {
    pipe = pipe, json = self.ports.json, log = self.log, peer = peer,
    scopes = dispatch.scopes_up_to(peer.model_side and "read" or "admin"),
    timer = after(self.ports.uv),
    on_message = function(sender, request)
      self.app.dispatch:handle(sender, request)
    end,
    on_close = function(closed)
      self.sessions[closed] = nil
      self.count = self.count - 1
      if self.drained and self.count == 0 then
        self.drained:set()
      end
    end,
  }
  self.sessions[one] = true
  self.count = self.count + 1
  one:start()
  return one
end

--- Opens the socket and serves.
--- @return true|nil, string|nil message, string|nil code
function Server:listen(path)
  local opened, err, code = socket.open(self.ports, path)
  if not opened then
    return nil, err, code
  end
  self.socket = opened
  local ok, why = opened:listen(function(pipe)
    self:accept(pipe)
  end, function(message)
    self.log:warn("%s", message)
  end)
  if not ok then
    opened:close()
    return nil, ("listen on %s: %s"):format(path, why), "EFR_SOCKET"
  end
  return true
end

--- Takes no new connection.
function Server:stop_listening()
  if self.socket then
    self.socket:close()
  end
end

--- Ends the connections. Waits until what is queued was written, at most the 5 s of a session.
function Server:close()
  self:stop_listening()
  self.drained = async.future()
  for one in pairs(self.sessions) do
    one:close()
  end
  if self.count > 0 then
    self.drained:get()
  end
end

return M
