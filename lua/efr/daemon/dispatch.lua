-- From a request to its answer: hello gate, scopes, params, receipts, the handler, errors.
-- Knows nothing of sockets and nothing of what a method does. Main thread of efrd; each request is
-- a task of its own.
local async = require "efr.util.async"
local exact = require "efr.util.exact"
local validate = require "efr.util.validate"
local wire = require "efr.daemon.wire"

local M = {}

-- Each scope includes those before it.
M.SCOPES = { "read", "operate", "approve", "terminal", "admin" }

-- Refusals that a repeat of the command must get again.
local KEPT <const> = { invalid = true, not_found = true, conflict = true }

-- Codes of the layers below that have a name on the wire.
local NAMES <const> = { EFR_CONFLICT = "conflict", EFR_BUSY = "busy", EFR_CANCELLED = "cancelled" }

local COMMAND_FIELD <const> = { command_id = { type = "uuid" } }

--- All scopes up to `highest`.
--- @return table<string, boolean>
function M.scopes_up_to(highest)
  local scopes = {}
  for _, name in ipairs(M.SCOPES) do
    scopes[name] = true
    if name == highest then
      return scopes
    end
  end
  error("no scope " .. tostring(highest))
end

local Dispatch = {}
Dispatch.__index = Dispatch

local function check_method(method, name)
  assert(type(method.method) == "string" and type(method.handler) == "function",
    "rpc/" .. name .. ": not a method")
  return method
end

--- @class efr.daemon.DispatchDeps
--- @field app table           what handlers get
--- @field methods table[]     the tables of daemon/rpc/NAME.lua
--- @field json table
--- @field text table          efr.text
--- @field log table           a logger
--- @field traceback fun(err: any): string
--- @field store table|nil     store.log, for receipts
--- @field query table|nil     store.query, for receipts

--- @param deps efr.daemon.DispatchDeps
function M.new(deps)
  local methods = {}
  for i, method in ipairs(deps.methods) do
    assert(not methods[method.method], "two methods named " .. tostring(method.method))
    methods[method.method] = check_method(method, tostring(i))
  end
  return setmetatable({
    app = deps.app, methods = methods, json = deps.json, text = deps.text, log = deps.log,
    traceback = deps.traceback, store = deps.store, query = deps.query, commands = {},
  }, Dispatch)
end

local function failure(code, message, data, number)
  return { code = code, message = message, data = data, number = number }
end

local function strip_nulls(json, value)
  for key, item in pairs(value) do
    if item == json.null then
      value[key] = nil
    elseif type(item) == "table" then
      strip_nulls(json, item)
    end
  end
  return value
end

-- The error of a handler's second to fourth results.
local function named_failure(self, method, message, code, data)
  local name = wire.CODES[code] and code or NAMES[code]
  if not name then
    name = "internal"
    self.log:error("%s failed: %s (%s)", method.method, message, code or "no code")
  end
  return failure(name, tostring(message), data)
end

-- Runs the handler. Whatever it does, the daemon lives on.
-- @return table|string|nil result, table|nil error
local function run_handler(self, method, session, request)
  local results = table.pack(xpcall(method.handler, self.traceback, self.app, session,
    request.params, request))
  if not results[1] then
    self.log:error("%s raised: %s", method.method, results[2])
    return nil, failure("internal", "internal error in " .. method.method .. "; see the log")
  end
  local result, message, code, data = table.unpack(results, 2, 5)
  if result == nil then
    return nil, named_failure(self, method, message or "failed", code, data)
  end
  return result
end

local function encode_result(self, result)
  if type(result) == "string" then
    return result
  end
  return self.json.encode(exact.clean(result, self.text), { sort = true })
end

local function from_receipt(receipt, method)
  if receipt.method ~= method.method then
    return nil, failure("conflict", "this command id was used for " .. receipt.method)
  elseif receipt.outcome == "rejected" then
    local kept = receipt.result
    return nil, failure(kept.code, kept.message, kept.data)
  end
  local result = receipt.result
  result.seq = receipt.seq
  return result
end

-- The effect is durable already, or the refusal is only kept as a courtesy: a failure to keep it
-- changes nothing in the answer.
local function keep_refusal(self, method, params, err)
  if KEPT[err.code] then
    local ok, why = self.store:reject {
      command_id = params.command_id, method = method.method,
      error = { code = err.code, message = err.message, data = err.data },
    }
    if not ok then
      self.log:warn("a refusal of %s could not be kept: %s", method.method, why)
    end
  end
end

local function checked_run(self, method, session, request)
  local ok, err = validate.check(method.params or {}, request.params)
  if not ok then
    return nil, failure("invalid", err)
  end
  return run_handler(self, method, session, request)
end

-- A command runs once for its id. A repeat while the first still runs waits for it.
local function run_command(self, method, session, request)
  local params = request.params
  local id = params.command_id
  local ok, err = validate.check(COMMAND_FIELD, params)
  if not ok then
    return nil, failure("invalid", err)
  end
  while self.commands[id] do
    self.commands[id]:get()
  end
  local receipt, read_err = self.query:receipt(id)
  if receipt then
    return from_receipt(receipt, method)
  elseif read_err then
    return nil, failure("internal", read_err)
  end
  local done = async.future()
  self.commands[id] = done
  local result, refusal = checked_run(self, method, session, request)
  if refusal then
    keep_refusal(self, method, params, refusal)
  end
  self.commands[id] = nil
  done:set()
  return result, refusal
end

local function gate(session, method, request)
  if not session.hello and request.method ~= "hello" then
    return failure("unauthorized", "must send hello before any other method")
  elseif session.hello and request.method == "hello" then
    return failure("conflict", "hello was sent before")
  elseif not method then
    return failure("invalid", "unknown method " .. request.method, nil, wire.UNKNOWN_METHOD)
  elseif method.scope and not session.scopes[method.scope] then
    return failure("forbidden", ("%s needs the scope %s"):format(request.method, method.scope))
  end
end

local function answer(self, session, request)
  local method = self.methods[request.method]
  local err = gate(session, method, request)
  if err then
    return request:error(err)
  end
  exact.restore(strip_nulls(self.json, request.params))
  local run = method.command and run_command or checked_run
  local result
  result, err = run(self, method, session, request)
  if err then
    -- A message may name a file, and a file name is any bytes.
    request:error(exact.clean(err, self.text))
  else
    local text, why = encode_result(self, method.stream and {} or result)
    if text then
      request:result(text)
    else
      self.log:error("%s: encode the result: %s", request.method, why)
      request:error(failure("internal", "internal error in " .. request.method))
    end
  end
  if err and err.code == "protocol_mismatch" then
    session:close()
  end
end

--- Answers one request, in a task of its own.
function Dispatch:handle(session, request)
  async.spawn(function()
    local ok, traceback = xpcall(answer, self.traceback, self, session, request)
    if not ok then
      self.log:error("request %s raised: %s", request.method, traceback)
      request:error(failure("internal", "internal error; see the log"))
    end
  end)
end

return M
