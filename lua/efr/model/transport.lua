-- Owns: one HTTP request to a provider with its retries, and a GET that is read whole.
-- Knows headers, waits and connection errors; knows no provider's bodies. The http port, the
-- clock and the randomness arrive as ports. Runs in efrd, on the loop thread, in coroutines.
--
-- Policy: retry.lua decides what goes again. Each attempt starts clean; a request of which any byte
-- of an answer was handed on is never made again. Secret headers are never logged or put in errors.

local async = require "efr.util.async"
local errors = require "efr.model.errors"
local retry = require "efr.model.retry"

local M = {}

M.CONNECT_MS = 10000 ---@type integer
M.IDLE_MS = 300000 ---@type integer
M.MAX_BYTES = 16 * 1024 * 1024 ---@type integer

local MAX_ERROR_BODY <const> = 64 * 1024
local LINGER_MS <const> = 1000

---@class efr.TransportRequest
---@field method "GET"|"POST"
---@field url string
---@field base_url string  what a refused connection names
---@field headers string[]
---@field body? string
---@field ca_file? string
---@field model? string  named by an unknown-model error

---Splits the head of an answer into a table with names in lower case; the last of a name wins.
---@param bytes string
---@return table<string, string>
function M.parse_headers(bytes)
  local out = {}
  for line in bytes:gmatch("[^\r\n]+") do
    local name, value = line:match("^([%w!#$%%&'*+.^_`|~-]+):[ \t]*(.-)[ \t]*$")
    if name then out[name:lower()] = value end
  end
  return out
end

local function random(ports)
  local bytes = ports.sys.random(2)
  return (bytes:byte(1) * 256 + bytes:byte(2)) / 65536
end

local function connection_error(request, message, code)
  local text
  if code == "EFR_CONNECT" then
    text = ("cannot connect to the model server at %s: %s"):format(request.base_url, message)
  elseif code == "EFR_TIMEOUT" then
    text = ("the model server at %s was silent too long: %s"):format(request.base_url, message)
  else
    text = ("the connection to the model server at %s failed: %s"):format(request.base_url, message)
  end
  return errors.new("Transport", text)
end

local function status_error(ports, request, attempt)
  local body = table.concat(attempt.body)
  local value = ports.json.decode(body)
  local text, code = errors.read_body(value)
  if not text then text = body:match("^%s*<") and "" or body:gsub("%s+", " "):sub(1, 300) end
  return errors.from_http(attempt.status, ports.text.clean(text), {
    code = code,
    retry_after_ms = attempt.retry_after_ms,
    model = request.model,
  })
end

-- One attempt. Waits; returns nil after a whole 2xx answer, else the error and how it may be
-- retried.
local function attempt_once(ports, request, on_data, flight)
  local attempt = { body = {}, size = 0 }
  local message, code = async.await(function(resume)
    flight.resume = resume
    local failure, failure_code
    flight.handle, failure, failure_code = ports.http.request({
      method = request.method,
      url = request.url,
      headers = request.headers,
      body = request.body,
      connect_timeout_ms = M.CONNECT_MS,
      idle_timeout_ms = M.IDLE_MS,
      max_bytes = M.MAX_BYTES,
      ca_file = request.ca_file,
    }, {
      on_head = function(status, bytes)
        attempt.status = status
        attempt.retry_after_ms = retry.retry_after_ms(M.parse_headers(bytes), ports.sys.now_us())
      end,
      on_data = function(bytes)
        if flight.cancelled then return end
        if attempt.status and attempt.status >= 200 and attempt.status < 300 then
          attempt.answered = true
          on_data(bytes)
        elseif attempt.size < MAX_ERROR_BODY then
          attempt.body[#attempt.body + 1] = bytes
          attempt.size = attempt.size + #bytes
        end
      end,
      on_done = resume,
    })
    if not flight.handle then resume(failure, failure_code) end -- a bad URL, no libcurl
  end)
  flight.handle, flight.resume = nil, nil
  local status = attempt.status
  if flight.cancelled then return errors.new("Transport", "cancelled") end
  if message and not (status and status >= 300) then
    local failure = { code = code }
    return connection_error(request, message, code), not attempt.answered and failure or nil
  end
  if not status or status < 200 or status >= 300 then
    local err = status_error(ports, request, attempt)
    return err, { status = status }
  end
  return nil
end

---Sends a request and its retries. Waits, so it runs in a coroutine.
---@param ports table  http, sys, json, text
---@param request efr.TransportRequest
---@param on_data fun(bytes: string)  bytes of a 2xx answer
---@param flight? table  shared with `cancel`; a fresh table per request
---@return efr.ProviderError|nil err  nil = the whole answer was handed on
function M.send(ports, request, on_data, flight)
  flight = flight or {}
  local tries = 1
  while true do
    local err, failure = attempt_once(ports, request, on_data, flight)
    if not err or flight.cancelled or not failure then return err end
    if not retry.may_retry(request.method, failure) then return err end
    local wait = retry.wait_ms(tries, random(ports), err.retry_after_ms)
    if not wait then return err end
    async.sleep(wait)
    if flight.cancelled then return err end
    tries = tries + 1
  end
end

---Stops a request: no byte of it is handed on any more.
---@param flight table
function M.cancel(flight)
  flight.cancelled = true
  local handle, resume = flight.handle, flight.resume
  if handle then handle:cancel() end
  if resume then resume("cancelled", "EFR_CANCELLED") end
end

---Ends a request whose answer is complete before its connection closed. The server gets a moment to
---close it, so that the connection can be used again; then it is cut.
---@param flight table
function M.let_go(flight)
  local handle, resume = flight.handle, flight.resume
  flight.cancelled = true
  if resume then resume("complete", "EFR_CANCELLED") end
  if not handle then return end
  async.spawn(function()
    async.sleep(LINGER_MS)
    handle:cancel()
  end)
end

---GETs a JSON document. Waits.
---@param ports table
---@param request efr.TransportRequest
---@return any|nil value
---@return efr.ProviderError|nil err
function M.get_json(ports, request)
  local parts = {}
  request.method = "GET"
  local err = M.send(ports, request, function(bytes) parts[#parts + 1] = bytes end)
  if err then return nil, err end
  local value, why = ports.json.decode(table.concat(parts))
  if value == nil then
    return nil, errors.new("Decode", ("%s did not answer with JSON: %s"):format(request.base_url,
      tostring(why)))
  end
  return value
end

return M
