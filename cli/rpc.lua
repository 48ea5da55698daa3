-- The client's half of the wire: JSON-RPC 2.0, one message a line.
-- Owns: framing, request ids, streams. Must not know: sockets (bytes go through functions),
-- which methods exist. Loop thread of `efr`; call and the end of a stream wait in a task.

local async = require "efr.util.async"
local exact = require "efr.util.exact"

local M = {}

--- The longest line either side may send.
M.LINE_MAX = 16 * 1024 * 1024

--- Code of an error that says the connection is gone (not an error name of the protocol).
M.LOST = "EFR_LOST"

local Rpc = {}
Rpc.__index = Rpc

--- @class efr.cli.rpc_ports
--- @field json table efr.json
--- @field text table efr.text
--- @field write fun(bytes: string)
--- @field close fun()

--- @param ports efr.cli.rpc_ports
function M.new(ports)
  return setmetatable({
    ports = ports,
    next_id = 1,
    pending = {},
    parts = {}, -- pieces of the line that has not ended
    parts_bytes = 0,
    lost = nil, -- why the connection is gone
  }, Rpc)
end

local function answer(self, id, ...)
  local entry = self.pending[id]
  if entry then
    self.pending[id] = nil
    entry.done(...)
  end
end

--- Ends the connection: every open request gets an error.
function Rpc:drop(why)
  if self.lost then
    return
  end
  self.lost = why
  self.parts, self.parts_bytes = {}, 0
  local ids = {}
  for id in pairs(self.pending) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    answer(self, id, nil, why, M.LOST)
  end
  self.ports.close()
end

local function on_error(self, message)
  local err = message.error
  local data = type(err.data) == "table" and err.data or {}
  local code = type(data.code) == "string" and data.code or "internal"
  local words = type(err.message) == "string" and err.message or code
  if math.type(message.id) ~= "integer" then
    return self:drop("efrd refused the connection: " .. words)
  end
  answer(self, message.id, nil, words, code, data)
end

local function on_notification(self, message)
  local params = message.params
  if message.method ~= "stream" or type(params) ~= "table" then
    return
  end
  local entry = self.pending[params.id]
  if entry and entry.on_item then
    entry.on_item(params.item)
  end
end

local function on_line(self, line)
  if not line:find("[^ \t\r]") then
    return
  end
  local message = self.ports.json.decode(line)
  if type(message) ~= "table" then
    return self:drop("efrd sent a line that is no JSON message")
  end
  if message.method then
    on_notification(self, message)
  elseif type(message.error) == "table" then
    on_error(self, message)
  elseif message.result ~= nil then
    answer(self, message.id, message.result)
  else
    self:drop("efrd sent a message that is no response")
  end
end

--- Takes bytes of the peer. Lines that are complete are handled even when a later one is too long.
function Rpc:push(bytes)
  local from = 1
  while not self.lost do
    local newline = bytes:find("\n", from, true)
    local piece = bytes:sub(from, (newline or #bytes + 1) - 1)
    self.parts_bytes = self.parts_bytes + #piece
    if self.parts_bytes > M.LINE_MAX then
      return self:drop("efrd sent a line longer than 16 MiB")
    end
    self.parts[#self.parts + 1] = piece
    if not newline then
      return
    end
    local line = table.concat(self.parts)
    self.parts, self.parts_bytes = {}, 0
    on_line(self, line)
    from = newline + 1
  end
end

--- The peer closed.
function Rpc:eof()
  self:drop(self.parts_bytes > 0 and "efrd closed the connection inside a message"
    or "efrd closed the connection")
end

local function send(self, method, params, entry)
  local id = self.next_id
  self.next_id = id + 1
  local message = {
    jsonrpc = "2.0", id = id, method = method, params = exact.clean(params, self.ports.text),
  }
  local line, err = self.ports.json.encode(message)
  if not line then
    return nil, ("%s: %s"):format(method, err), "invalid"
  end
  if #line > M.LINE_MAX then
    return nil, ("%s: the message is longer than 16 MiB"):format(method), "invalid"
  end
  self.pending[id] = entry
  self.ports.write(line .. "\n")
  return id
end

--- Sends a request and waits for its response.
--- @return any result, string? message, string? code, table? data
function Rpc:call(method, params)
  return async.await(function(resume)
    if self.lost then
      return resume(nil, self.lost, M.LOST)
    end
    local id, err, code = send(self, method, params, { done = resume })
    if not id then
      resume(nil, err, code)
    end
  end)
end

--- Starts a stream. on_item gets each item, on_end the result or nil, message, code, data.
--- @return integer? id, string? message, string? code
function Rpc:stream(method, params, on_item, on_end)
  if self.lost then
    return nil, self.lost, M.LOST
  end
  return send(self, method, params, { done = on_end, on_item = on_item })
end

--- Cancels a request; its end arrives as any other.
function Rpc:cancel(id)
  if self.lost or not self.pending[id] then
    return
  end
  local message = { jsonrpc = "2.0", method = "$/cancel", params = { id = id } }
  self.ports.write(assert(self.ports.json.encode(message)) .. "\n")
end

return M
