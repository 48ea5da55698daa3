-- A small efrd over a real unix socket: says hello, answers by a table of methods.
-- Specs run a loop of luv with it. Owns its directory and removes it.

local async = require "efr.util.async"
local json = require "efr.json"
local uv = require "luv"
local wire = require "efr.daemon.wire"

local M = {}

local Fake = {}
Fake.__index = Fake

local function timer(ms, fn)
  local handle = assert(uv.new_timer())
  local function stop()
    if not handle:is_closing() then
      handle:close()
    end
  end
  handle:start(ms, 0, function()
    stop()
    fn()
  end)
  return stop
end

--- Runs fn as a task on a real loop until it ends; raises its error.
function M.run(fn)
  local failed
  async.setup({
    timer = timer,
    on_error = function(text)
      failed = failed or text
    end,
  })
  local finished = false
  async.spawn(function()
    fn()
    finished = true
  end)
  while not finished and not failed and uv.run("once") do end
  if failed then
    error(failed, 0)
  end
  assert(finished, "the task waits for something that cannot come")
end

--- A private directory for the roots.
function M.dir()
  return assert(uv.fs_mkdtemp("/tmp/efr-cli-XXXXXX"))
end

--- @param dir string from M.dir(); the socket lies in dir/runtime
--- @param methods table<string, fun(peer, params, id)>
function M.new(dir, methods)
  local self = setmetatable({ dir = dir, methods = methods, peers = {}, seen = {} }, Fake)
  uv.fs_mkdir(dir .. "/runtime", 448)
  self.server = assert(uv.new_pipe(false))
  assert(self.server:bind(dir .. "/runtime/daemon.sock"))
  local ready = assert(io.open(dir .. "/runtime/daemon.json", "w"))
  ready:write("{}")
  ready:close()
  assert(self.server:listen(16, function()
    self:_accept()
  end))
  return self
end

local Peer = {}
Peer.__index = Peer

function Peer:raw(bytes)
  self.pipe:write(bytes)
end

function Peer:result(id, result)
  self:raw(assert(json.encode({ jsonrpc = "2.0", id = id, result = result })) .. "\n")
end

function Peer:fail(id, code, message, data)
  data = data or {}
  data.code = code
  local err = { code = -32000, message = message, data = data }
  self:raw(assert(json.encode({ jsonrpc = "2.0", id = id, error = err })) .. "\n")
end

function Peer:item(id, item)
  local params = { id = id, item = item }
  self:raw(assert(json.encode({ jsonrpc = "2.0", method = "stream", params = params })) .. "\n")
end

function Peer:close()
  if not self.pipe:is_closing() then
    self.pipe:close()
  end
end

local function hello(peer, _, id)
  peer:result(id, { daemon_id = "d", protocol = 1, version = "0", capabilities = {}, paths = {} })
end

function Fake:_line(peer, line)
  local message = assert(json.decode(line))
  self.seen[#self.seen + 1] = message
  local handler = self.methods[message.method] or message.method == "hello" and hello
  if handler then
    handler(peer, message.params, message.id)
  end
end

function Fake:_accept()
  local peer = setmetatable({ pipe = assert(uv.new_pipe(false)) }, Peer)
  assert(self.server:accept(peer.pipe))
  self.peers[#self.peers + 1] = peer
  local decoder = wire.decoder()
  peer.pipe:read_start(function(_, bytes)
    if not bytes then
      return peer:close()
    end
    for _, line in ipairs(decoder:feed(bytes)) do
      self:_line(peer, line)
    end
  end)
end

--- Requests of a method, in order.
function Fake:requests(method)
  local out = {}
  for _, message in ipairs(self.seen) do
    if message.method == method then
      out[#out + 1] = message
    end
  end
  return out
end

function Fake:close()
  for _, peer in ipairs(self.peers) do
    peer:close()
  end
  self.server:close()
end

--- Lets the clients see that their server is gone, and removes the directory.
function M.clean(dir)
  for _ = 1, 3 do
    uv.run("nowait")
  end
  require("efr.fs").rmtree(dir)
end

--- The environment of a command with its roots below dir.
function M.env(dir, more)
  local ports = { uv = uv, json = json }
  for _, name in ipairs({ "sys", "fs", "text" }) do
    ports[name] = require("efr." .. name)
  end
  for name, port in pairs(more or {}) do
    ports[name] = port
  end
  return {
    ports = ports,
    environ = { HOME = dir, EFR_HOME = dir },
    private = {},
    home = dir,
  }
end

return M
