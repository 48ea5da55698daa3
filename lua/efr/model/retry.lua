-- Owns: when a request to a provider is sent again, and after how long.
-- Pure: clock and randomness arrive as arguments. Runs in efrd, on the loop thread.
--
-- Policy: at most 4 attempts. A POST goes again only when the server surely did not act: no
-- connection was made, or it answered 408, 429 or 503. A GET also after a timeout, a broken read,
-- 500, 502 and 504. The wait doubles from 0.5 s to 8 s, half of it by chance; a wait that the
-- server names is kept, but one over 60 s means giving up.

local M = {}

M.ATTEMPTS = 4 ---@type integer
M.MAX_WAIT_MS = 60000 ---@type integer

local FIRST_MS <const> = 500
local CAP_MS <const> = 8000

local ANY <const> = { [408] = true, [429] = true, [503] = true }
local GET_STATUS <const> = { [500] = true, [502] = true, [504] = true }
local GET_CODE <const> = { EFR_TIMEOUT = true, EFR_IO = true }

---Whether a failed attempt may be made again.
---@param method "GET"|"POST"
---@param failure {status?: integer, code?: string}  HTTP status, or code of the connection error
---@return boolean
function M.may_retry(method, failure)
  if failure.code == "EFR_CONNECT" or ANY[failure.status] then return true end
  if method ~= "GET" then return false end
  return (GET_STATUS[failure.status] or GET_CODE[failure.code]) == true
end

---The wait before attempt `attempt + 1`, or nil for giving up.
---@param attempt integer  attempts made so far, from 1
---@param random number  0 to 1
---@param retry_after_ms? integer  what the server named
---@return integer|nil ms
function M.wait_ms(attempt, random, retry_after_ms)
  if attempt >= M.ATTEMPTS then return nil end
  if retry_after_ms then
    if retry_after_ms > M.MAX_WAIT_MS then return nil end
    return retry_after_ms
  end
  local full = math.min(FIRST_MS << (attempt - 1), CAP_MS)
  return full // 2 + math.floor(full // 2 * random)
end

local MONTH <const> = {
  Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8, Sep = 9, Oct = 10,
  Nov = 11, Dec = 12,
}

local HTTP_DATE <const> = "^%a+, (%d%d) (%a%a%a) (%d%d%d%d) (%d%d):(%d%d):(%d%d) GMT$"

-- Days from 1970-01-01 to a date of the Gregorian calendar.
local function days_from_civil(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = year // 400
  local yoe = year - era * 400
  local shifted = month + (month > 2 and -3 or 9)
  local doy = (153 * shifted + 2) // 5 + day - 1
  return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468
end

---Seconds since the epoch of an HTTP date such as `Sun, 06 Nov 1994 08:49:37 GMT`, or nil.
---@param text string
---@return integer|nil
function M.http_date(text)
  local day, name, year, h, m, s = text:match(HTTP_DATE)
  local month = name and MONTH[name]
  if not month then return nil end
  local days = days_from_civil(math.tointeger(tonumber(year)), month, math.tointeger(tonumber(day)))
  return days * 86400 + tonumber(h) * 3600 + tonumber(m) * 60 + math.tointeger(tonumber(s))
end

-- A number of milliseconds that a whole number can hold; a huge one only has to stay over the
-- limit.
local function to_ms(value, scale)
  local number = tonumber(value)
  if not number or number < 0 or number ~= number then return nil end
  return math.floor(math.min(number * scale, 1e12))
end

---The wait that response headers name, in milliseconds, or nil.
---@param headers table<string, string>  names in lower case
---@param now_us integer
---@return integer|nil
function M.retry_after_ms(headers, now_us)
  local exact = headers["retry-after-ms"]
  if exact and exact:match("^%d+%.?%d*$") then return to_ms(exact, 1) end
  local value = headers["retry-after"]
  if not value then return nil end
  if value:match("^%d+%.?%d*$") then return to_ms(value, 1000) end
  local at = M.http_date(value)
  if not at then return nil end
  return math.max(0, at * 1000 - now_us // 1000)
end

return M
