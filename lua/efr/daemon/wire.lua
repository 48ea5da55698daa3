-- The wire: lines in, messages out. Splits a byte stream into lines, tells what a line is, and
-- builds the text of each message that the daemon sends.
-- Knows nothing of sockets, sessions or methods. Pure but for the json port. Main thread of efrd.
local M = {}

M.PROTOCOL = 1
M.MAX_LINE = 16 * 1024 * 1024
M.MAX_DEPTH = 64

-- Error names (data.code) and their JSON-RPC numbers. The set is closed.
M.CODES = {
  protocol_mismatch = -32001,
  unauthorized = -32002,
  forbidden = -32003,
  not_found = -32004,
  conflict = -32005,
  busy = -32006,
  overflow = -32007,
  cancelled = -32008,
  invalid = -32602,
  internal = -32603,
}
M.NOT_JSON = -32700
M.NOT_A_REQUEST = -32600
M.UNKNOWN_METHOD = -32601

local Decoder = {}
Decoder.__index = Decoder

--- A decoder of one byte stream.
--- @param limit integer|nil  longest line in bytes, without its newline
function M.decoder(limit)
  return setmetatable({ limit = limit or M.MAX_LINE, parts = {}, length = 0 }, Decoder)
end

local function is_blank(line)
  return line == "" or line == "\r"
end

-- Ends the open line with `tail` (the bytes before the newline).
local function take_line(self, tail)
  local line = tail
  if self.length > 0 then
    self.parts[#self.parts + 1] = tail
    line = table.concat(self.parts)
    self.parts, self.length = {}, 0
  end
  return line
end

--- Takes the next bytes. Complete lines that came before an error are in the list; after an error
--- the stream is dead.
--- @param chunk string
--- @return string[] lines, string|nil error
function Decoder:feed(chunk)
  local lines, from = {}, 1
  if self.dead then
    return lines, "the stream has ended"
  end
  while true do
    local newline = chunk:find("\n", from, true)
    local length = self.length + (newline or #chunk + 1) - from
    if length > self.limit then
      self.dead, self.parts = true, {}
      return lines, ("a line is longer than %d bytes"):format(self.limit)
    end
    if not newline then
      break
    end
    local line = take_line(self, chunk:sub(from, newline - 1))
    if not is_blank(line) then
      lines[#lines + 1] = line
    end
    from = newline + 1
  end
  if from <= #chunk then
    self.parts[#self.parts + 1] = from == 1 and chunk or chunk:sub(from)
    self.length = self.length + #chunk - from + 1
  end
  return lines
end

--- The end of the stream.
--- @return string|nil error  when it came inside a line
function Decoder:finish()
  local inside = self.length > 0 and not self.dead
  self.dead, self.parts, self.length = true, {}, 0
  return inside and "the stream ended inside a line" or nil
end

local function is_id(value)
  return math.type(value) == "integer" and value >= 0
end

local function refused(number, message, id)
  return { kind = "refused", number = number, message = message, id = id }
end

local function notification(json, message)
  if message.method ~= "$/cancel" then
    return { kind = "ignored" }
  end
  local params = message.params
  if type(params) ~= "table" or json.is_array(params) or not is_id(params.id) then
    return { kind = "ignored" }
  end
  return { kind = "cancel", id = params.id }
end

local function request(json, message)
  local id = message.id
  if message.jsonrpc ~= "2.0" then
    return refused(M.NOT_A_REQUEST, "jsonrpc must be \"2.0\"", id)
  elseif type(message.method) ~= "string" then
    return refused(M.NOT_A_REQUEST, "method must be a string", id)
  elseif message.method == "$/cancel" then
    return refused(M.NOT_A_REQUEST, "$/cancel is a notification and has no id", id)
  elseif type(message.params) ~= "table" or json.is_array(message.params) then
    return refused(M.CODES.invalid, "params must be an object", id)
  end
  return { kind = "request", id = id, method = message.method, params = message.params }
end

--- What a line is: {kind="request", id, method, params} | {kind="cancel", id} | {kind="ignored"}
--- | {kind="refused", number, message, id|nil}. Refused without an id ends the connection.
--- @param json table efr.json
function M.parse(json, line)
  local message, err = json.decode(line, { max_depth = M.MAX_DEPTH, max_bytes = M.MAX_LINE })
  if message == nil then
    return refused(M.NOT_JSON, "not JSON: " .. tostring(err))
  elseif type(message) ~= "table" then
    return refused(M.NOT_A_REQUEST, "a message must be an object")
  elseif json.is_array(message) then
    return refused(M.NOT_A_REQUEST, "a batch of messages is not supported")
  elseif message.id == nil then
    if type(message.method) ~= "string" then
      return refused(M.NOT_A_REQUEST, "a message must have a method")
    end
    return notification(json, message)
  elseif not is_id(message.id) then
    return refused(M.NOT_A_REQUEST, "id must be a whole number from 0 to 2^63 - 1")
  end
  return request(json, message)
end

--- The text of a response. `result` is JSON text.
function M.result(id, result)
  return ('{"jsonrpc":"2.0","id":%d,"result":%s}\n'):format(id, result)
end

--- The text of a stream item. `item` is JSON text.
function M.item(id, item)
  return ('{"jsonrpc":"2.0","method":"stream","params":{"id":%d,"item":%s}}\n'):format(id, item)
end

--- The text of an error response.
--- @param json table efr.json
--- @param id integer|nil
--- @param err {code: string, message: string, data: table|nil, number: integer|nil}
function M.error(json, id, err)
  local data = { code = err.code }
  for key, value in pairs(err.data or {}) do
    data[key] = value
  end
  return ('{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s,"data":%s}}\n'):format(
    id and ("%d"):format(id) or "null", err.number or assert(M.CODES[err.code], err.code),
    assert(json.encode(err.message)), assert(json.encode(data, { sort = true })))
end

return M
