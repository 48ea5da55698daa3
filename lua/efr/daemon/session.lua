-- One connection: reads lines, keeps the requests in flight, and writes messages through a bounded
-- queue with back pressure.
-- Knows nothing of methods (a handler function is given) and nothing of how the socket was made.
-- Main thread of efrd; send waits for room and runs in a coroutine.
local async = require "efr.util.async"
local wire = require "efr.daemon.wire"

local M = {}

local OUTBOUND_MAX <const> = 64 -- encoded messages
local REQUESTS_MAX <const> = 256 -- in flight; more are refused as busy
local REQUEST_BYTES_MAX <const> = 64 * 1024 * 1024 -- of all lines in flight
local FLUSH_MS <const> = 5000 -- grace on close

--- @class efr.daemon.Session
--- @field origin string|nil   after hello: shell, cli, proxy, phone
--- @field tty string|nil      the terminal that hello named
--- @field pid integer|nil
--- @field scopes table<string, boolean>
--- @field peer {pid: integer, uid: integer, model_side: boolean}
--- @field hello table|nil     the params of hello, once it was accepted
local Session = {}
Session.__index = Session

--- @class efr.daemon.SessionDeps
--- @field pipe table            a connected luv pipe
--- @field json table            efr.json
--- @field log table             a logger
--- @field peer table            see efr.daemon.Session
--- @field scopes table<string, boolean>
--- @field on_message fun(session, message: table)  a parsed line that is a request
--- @field on_close fun(session)
--- @field timer fun(ms: integer, fn: fun()): fun()

--- @param deps efr.daemon.SessionDeps
function M.new(deps)
  return setmetatable({
    pipe = deps.pipe, json = deps.json, log = deps.log, peer = deps.peer, scopes = deps.scopes,
    on_message = deps.on_message, on_close = deps.on_close, timer = deps.timer,
    decoder = wire.decoder(), requests = {}, request_count = 0, request_bytes = 0,
    outbound = {}, writing = 0, room_waiters = {}, enders = {},
  }, Session)
end

local function really_close(self)
  if self.closed then
    return
  end
  self.closed = true
  if self.stop_flush then
    self.stop_flush()
  end
  if not self.pipe:is_closing() then
    self.pipe:close()
  end
  local waiters = self.room_waiters
  self.room_waiters = {}
  for _, wake in ipairs(waiters) do
    wake()
  end
  for _, request in pairs(self.requests) do
    request.token:cancel("connection closed")
  end
  for _, fn in ipairs(self.enders) do
    fn()
  end
  self.on_close(self)
end

--- Calls `fn` when the connection has ended; at once when it has already.
--- @param fn fun()
function Session:at_close(fn)
  if self.closed then
    return fn()
  end
  self.enders[#self.enders + 1] = fn
end

local function wake_waiters(self)
  local room = OUTBOUND_MAX - #self.outbound - self.writing
  for _ = 1, math.min(room, #self.room_waiters) do
    table.remove(self.room_waiters, 1)()
  end
end

-- Hands everything that waits to the kernel in one write; the next write follows its callback.
local function pump(self)
  if self.writing > 0 or self.closed then
    return
  elseif #self.outbound == 0 then
    if self.ending then
      really_close(self)
    end
    return
  end
  local batch = self.outbound
  self.outbound = {}
  self.writing = #batch
  local sent = self.pipe:write(batch, function(err)
    self.writing = 0
    if err then
      return really_close(self)
    end
    pump(self)
    wake_waiters(self)
  end)
  if not sent then
    really_close(self)
  end
end

--- Queues the text of a message. Waits while the queue is full.
--- @param text string
--- @param request table|nil  the message is an item of this request: not sent once it has ended
--- @return boolean sent  false when the connection is closed
function Session:send(text, request)
  while not self.closed and #self.outbound + self.writing >= OUTBOUND_MAX do
    async.await(function(resume)
      self.room_waiters[#self.room_waiters + 1] = resume
    end)
  end
  if self.closed or self.ending or request and request.finished then
    return false
  end
  self.outbound[#self.outbound + 1] = text
  pump(self)
  return true
end

--- Closes after what is queued was written, at most 5 s later.
function Session:close()
  if self.closed or self.ending then
    return
  end
  self.ending = true
  self.pipe:read_stop()
  self.stop_flush = self.timer(FLUSH_MS, function()
    really_close(self)
  end)
  pump(self)
end

--- Closes now.
function Session:abort()
  really_close(self)
end

-- Ends a request with its one response. Later calls do nothing.
local function respond(self, request, text)
  if request.finished then
    return
  end
  request.finished = true
  if self.requests[request.id] == request then
    self.requests[request.id] = nil
    self.request_count = self.request_count - 1
    self.request_bytes = self.request_bytes - request.bytes
  end
  self:send(text)
end

local Request = {}
Request.__index = Request

--- Ends the request with a result (a table, or JSON text).
function Request:result(value)
  local text = type(value) == "string" and value
    or assert(self.session.json.encode(value, { sort = true }))
  respond(self.session, self, wire.result(self.id, text))
end

--- Ends the request with an error.
--- @param err {code: string, message: string, data: table|nil, number: integer|nil}
function Request:error(err)
  respond(self.session, self, wire.error(self.session.json, self.id, err))
end

--- Sends a stream item (a table, or JSON text). Waits for room.
--- @return boolean sent  false when the request or the connection has ended
function Request:send(item)
  if self.finished or self.session.closed then
    return false
  end
  local text = type(item) == "string" and item
    or assert(self.session.json.encode(item, { sort = true }))
  return self.session:send(wire.item(self.id, text), self)
end

local function fail(self, message, number)
  async.spawn(function()
    self:send(wire.error(self.json, nil, { code = "invalid", message = message, number = number }))
    self:close()
  end)
end

local function answer_error(self, id, err)
  async.spawn(function()
    self:send(wire.error(self.json, id, err))
  end)
end

local function begin(self, message, bytes)
  if self.requests[message.id] then
    return answer_error(self, message.id, { code = "invalid",
      message = ("request id %d is already in flight"):format(message.id) })
  elseif self.request_count >= REQUESTS_MAX
    or self.request_bytes + bytes > REQUEST_BYTES_MAX then
    return answer_error(self, message.id, { code = "busy",
      message = "too many requests in flight on this connection" })
  end
  local request = setmetatable({
    session = self, id = message.id, method = message.method, params = message.params,
    token = async.token(), bytes = bytes,
  }, Request)
  self.requests[message.id] = request
  self.request_count = self.request_count + 1
  self.request_bytes = self.request_bytes + bytes
  self.on_message(self, request)
end

local function cancel(self, id)
  local request = self.requests[id]
  if request then
    async.spawn(function()
      request.token:cancel("cancelled by the client")
      request:error { code = "cancelled", message = "cancelled by the client" }
    end)
  end
end

local function take(self, line)
  local message = wire.parse(self.json, line)
  if message.kind == "request" then
    begin(self, message, #line)
  elseif message.kind == "cancel" then
    cancel(self, message.id)
  elseif message.kind == "refused" and message.id then
    answer_error(self, message.id,
      { code = "invalid", message = message.message, number = message.number })
  elseif message.kind == "refused" then
    fail(self, message.message, message.number)
  end
end

local function receive(self, chunk)
  local lines, err = self.decoder:feed(chunk)
  for _, line in ipairs(lines) do
    if self.closed or self.ending then
      return
    end
    take(self, line)
  end
  if err and not self.ending then
    fail(self, err, wire.NOT_JSON)
  end
end

--- Starts to read.
function Session:start()
  self.pipe:read_start(function(err, chunk)
    if self.closed then
      return
    elseif err or not chunk then
      local truncated = self.decoder:finish()
      if truncated then
        self.log:debug("peer %d: %s", self.peer.pid, truncated)
      end
      return really_close(self)
    end
    receive(self, chunk)
  end)
end

return M
