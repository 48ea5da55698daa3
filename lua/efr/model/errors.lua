-- Owns: the error classes of providers, how an HTTP answer becomes one, and what a turn that failed
-- so reports. Pure; knows no provider's wire. Runs in efrd, on the loop thread.
--
-- Policy: a refused key or a missing login is `unauthorized`; a limit or an overload is `busy`
-- (with the wait that the server named); a model that the server does not know is `invalid`;
-- everything else is `internal`.

local M = {}

---Longest text of a server that is repeated, in bytes.
M.MAX_TEXT = 1000 ---@type integer

---@class efr.ProviderError
---@field kind "error"
---@field class string  one of the classes below
---@field message string
---@field status? integer  HTTP status
---@field code? string  the server's own word
---@field retry_after_ms? integer
---@field model? string

local CODE <const> = {
  Unauthorized = "unauthorized",
  NotLoggedIn = "unauthorized",
  Token = "unauthorized",
  RateLimited = "busy",
  Overloaded = "busy",
  UnknownModel = "invalid",
  NotConfigured = "invalid",
  Transport = "internal",
  Api = "internal",
  ContextOverflow = "internal",
  Decode = "internal",
  InvalidStream = "internal",
  Incomplete = "internal",
}

---Whether `name` is a class of this list.
---@param name any
---@return boolean
function M.is_class(name)
  return CODE[name] ~= nil
end

---An error of a provider.
---@param class string
---@param message string
---@param fields? table  status, code, retry_after_ms, model
---@return efr.ProviderError
function M.new(class, message, fields)
  assert(CODE[class], "unknown error class")
  local err = { kind = "error", class = class, message = message }
  for key, value in pairs(fields or {}) do err[key] = value end
  return err
end

-- Cuts at a character, so that the text stays UTF-8.
local function clip(text)
  if #text <= M.MAX_TEXT then return text end
  local cut = M.MAX_TEXT
  while cut > 0 and text:byte(cut + 1) >= 0x80 and text:byte(cut + 1) < 0xC0 do cut = cut - 1 end
  return text:sub(1, cut) .. "..."
end
M.clip = clip

local function word(value)
  if type(value) == "string" and value ~= "" then return value end
  return nil
end

---Reads the error object that chat servers send: {error:{message,code,type}}, {error:"text"} or
---{message}.
---@param value any  decoded JSON
---@return string|nil message
---@return string|nil code
function M.read_body(value)
  if type(value) ~= "table" then return nil end
  local inner = value.error
  if type(inner) == "string" then return word(inner) end
  if type(inner) ~= "table" then inner = value end
  local code = inner.code
  if type(code) ~= "string" then code = inner.type end
  return word(inner.message) or word(inner.detail), word(code)
end

local OVERFLOW <const> = {
  "context length", "context window", "context_length", "maximum context", "context size",
  "too many tokens", "prompt is too long", "exceeds the context", "exceed_context",
}

local function says(text, list)
  text = text:lower()
  for _, part in ipairs(list) do
    if text:find(part, 1, true) then return true end
  end
  return false
end

local UNKNOWN <const> = {
  "not found", "does not exist", "not supported", "unknown model", "no such model",
}

local function is_unknown_model(status, code, text)
  if code == "model_not_found" then return true end
  if status ~= 404 and status ~= 400 then return false end
  text = text:lower()
  if not text:find("model", 1, true) then return false end
  return says(text, UNKNOWN)
end

local function is_overflow(status, text)
  return (status == 400 or status == 413) and says(text, OVERFLOW)
end

local function with_status(status, text)
  local head = ("the model server answered %d"):format(status)
  if text == "" then return head end
  return head .. ": " .. clip(text)
end

---The error of an HTTP answer that is no success.
---@param status integer
---@param text string  the server's own words, or ""
---@param fields? table  code, retry_after_ms, model
---@return efr.ProviderError
function M.from_http(status, text, fields)
  fields = fields or {}
  fields.status = status
  local class = "Api"
  if status == 401 then
    class = "Unauthorized"
  elseif is_unknown_model(status, fields.code, text) then
    class = "UnknownModel"
  elseif is_overflow(status, text .. " " .. (fields.code or "")) then
    class = "ContextOverflow"
  elseif status == 429 then
    class = "RateLimited"
  elseif status == 503 or status == 529 then
    class = "Overloaded"
  end
  return M.new(class, with_status(status, text), fields)
end

---What `turn_failed` says about a provider's error: {code, message, data?}.
---@param err efr.ProviderError
---@return table
function M.failure(err)
  local data = {}
  local code = CODE[err.class] or "internal"
  if code == "busy" then data.retry_after_ms = err.retry_after_ms end
  if err.class == "UnknownModel" then data.model = err.model end
  if err.class == "ContextOverflow" then data.cause = "context_overflow" end
  return { code = code, message = clip(err.message), data = next(data) and data or nil }
end

return M
