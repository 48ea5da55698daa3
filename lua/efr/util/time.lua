-- Owns: times as text. A time is an integer of microseconds since the epoch, UTC.
-- Must not know: the clock (callers pass the time) or any other part of efr.
-- Runs in every Lua state of efr. Pure.

local M = {}

local SECOND <const> = 1000000
local UNITS <const> = { { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } }

-- Days since the epoch to year, month, day (proleptic Gregorian; eras of 400 years).
local function civil(days)
  local z = days + 719468
  local era = z // 146097
  local doe = z - era * 146097
  local yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
  local doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
  local mp = (5 * doy + 2) // 153
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return year, month, doy - (153 * mp + 2) // 5 + 1
end

---RFC 3339 in UTC: whole seconds without a fraction, else six digits.
---@param us integer
---@return string
function M.rfc3339(us)
  local seconds, fraction = us // SECOND, us % SECOND
  local days, rest = seconds // 86400, seconds % 86400
  local year, month, day = civil(days)
  local text = ("%04d-%02d-%02dT%02d:%02d:%02d"):format(year, month, day, rest // 3600,
    rest % 3600 // 60, rest % 60)
  if fraction > 0 then text = text .. (".%06d"):format(fraction) end
  return text .. "Z"
end

---A span in its two largest units: `30s`, `5m 0s`, `1h 1m`, `2d 7h`. A negative span is `0s`.
---@param us integer
---@return string
function M.span(us)
  local seconds = math.max(us, 0) // SECOND
  for i, unit in ipairs(UNITS) do
    local name, size = unit[1], unit[2]
    if seconds >= size and i < #UNITS then
      local next_name, next_size = UNITS[i + 1][1], UNITS[i + 1][2]
      return ("%d%s %d%s"):format(seconds // size, name, seconds % size // next_size, next_name)
    end
  end
  return seconds .. "s"
end

---A time as seen from now: `5m 0s ago`, `in 52m 0s`.
---@param us integer
---@param now_us integer
---@return string
function M.relative(us, now_us)
  if us > now_us then return "in " .. M.span(us - now_us) end
  return M.span(now_us - us) .. " ago"
end

return M
