-- RFC 3339 times of the wire as microseconds, and as people read them.
-- Must not know: the clock (callers pass now). Pure; runs in `efr`.

local time = require "efr.util.time"

local M = {}

-- Days since the epoch of a date (proleptic Gregorian).
local function days(year, month, day)
  if month <= 2 then
    year = year - 1
  end
  local era = year // 400
  local yoe = year - era * 400
  local doy = (153 * (month + (month > 2 and -3 or 9)) + 2) // 5 + day - 1
  return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468
end

--- Microseconds since the epoch; nil for text that is no time in UTC.
function M.parse(at)
  local pattern = "^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)(%.?%d*)[Zz]$"
  local year, month, day, hour, minute, second, fraction = tostring(at):match(pattern)
  if not year then
    return nil
  end
  local seconds = days(tonumber(year), tonumber(month), tonumber(day)) * 86400
    + tonumber(hour) * 3600 + tonumber(minute) * 60 + tonumber(second)
  local micro = (fraction:sub(2) .. "000000"):sub(1, 6)
  return seconds * 1000000 + tonumber(micro)
end

--- `2h 1m ago`; the text itself when it is no time.
function M.relative(at, now_us)
  local us = M.parse(at)
  return us and time.relative(us, now_us) or tostring(at)
end

--- The time without a fraction of a second.
function M.short(at)
  return (tostring(at):gsub("%.%d+Z$", "Z"))
end

return M
