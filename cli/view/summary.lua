-- Words about times, token counts and a turn's end.
-- Owns: those formats. Must not know: the terminal. Pure; runs in `efr`.

local M = {}

--- Elapsed time in words: 12s, 1m 05s, 1h 02m 05s.
function M.elapsed(seconds)
  local s = math.floor(seconds)
  if s < 60 then
    return ("%ds"):format(s)
  end
  if s < 3600 then
    return ("%dm %02ds"):format(s // 60, s % 60)
  end
  return ("%dh %02dm %02ds"):format(s // 3600, s // 60 % 60, s % 60)
end

--- Like elapsed, but with a decimal below ten seconds.
function M.duration(seconds)
  if seconds < 9.95 then
    return ("%.1fs"):format(seconds)
  end
  return M.elapsed(seconds + 0.5)
end

--- A count in words: 999, 3.2k, 24k, 1.2M.
function M.count(n)
  if n < 1000 then
    return ("%d"):format(n)
  end
  local value, unit = n / 1000, "k"
  if value >= 999.5 then
    value, unit = value / 1000, "M"
  end
  if value < 19.95 then
    return (("%.1f"):format(value):gsub("%.0$", "")) .. unit
  end
  return ("%d%s"):format(math.floor(value + 0.5), unit)
end

--- Percent of the context in use and the role of its colour.
function M.gauge(context)
  if not context or (context.limit or 0) <= 0 then
    return nil
  end
  local percent = (context.tokens or 0) * 100 // context.limit
  local role = percent >= 90 and "alarm" or percent >= 50 and "caution" or "success"
  return ("ctx %d%%"):format(percent), role
end

local function cache_part(usage)
  local input = usage.input_tokens or 0
  if input < 2048 then
    return nil
  end
  return ("cache %d%%"):format((usage.cached_input_tokens or 0) * 100 // input)
end

--- The muted row at the end of a turn.
--- @param info {outcome: string, seconds: number, usage: table?, context: table?}
function M.end_row(info)
  local interrupted = info.outcome == "interrupted"
  local head = interrupted and "interrupted after " or "done in "
  local row = { { head .. M.duration(info.seconds), "muted" } }
  local function part(words, role)
    row[#row + 1] = { ", ", "muted" }
    row[#row + 1] = { words, role or "muted" }
  end
  local gauge, role = M.gauge(info.context)
  if gauge then
    part(gauge, role)
    row[#row + 1] = {
      (" (%s/%s)"):format(M.count(info.context.tokens or 0), M.count(info.context.limit)), "muted",
    }
  end
  local usage = not interrupted and info.usage
  if not usage then
    return row
  end
  if not gauge and (usage.input_tokens or 0) > 0 then
    part(M.count(usage.input_tokens) .. " tokens in")
  end
  if (usage.output_tokens or 0) > 0 then
    part(M.count(usage.output_tokens) .. " out")
  end
  local cache = cache_part(usage)
  if cache then
    part(cache)
  end
  return row
end

return M
