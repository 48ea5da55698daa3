-- The status row: spinner, state, elapsed time.
-- Owns: ux.md 6.4. Must not know: the terminal. Pure; runs in `efr`.

local rows = require "efr.cli.view.rows"
local summary = require "efr.cli.view.summary"

local M = {}

local FRAMES <const> = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }
local SILENT_S <const> = 20
local MIN_STATE_COLS <const> = 10

--- The spinner's mark at a tick of 100 ms.
function M.spinner(tick, motion)
  return motion and FRAMES[tick % #FRAMES + 1] or "•"
end

local function size_words(bytes)
  if bytes < 1024 then
    return ("%d B"):format(bytes)
  end
  return ("%.1f KB"):format(bytes / 1024)
end

local function silent_words(turn, now_ms, words)
  local silent = (now_ms - turn.life_ms) // 1000
  if silent >= SILENT_S then
    return ("%s, no data for %ds"):format(words, silent)
  end
  return words
end

local STATE <const> = {
  queued = function()
    return "waiting for the running turn"
  end,
  waiting = function(turn, now_ms)
    return silent_words(turn, now_ms, "waiting for the model")
  end,
  writing = function(turn, now_ms)
    return silent_words(turn, now_ms, "writing")
  end,
  thinking = function(_, _, activity)
    local title = activity.detail
    return title and "thinking: " .. rows.safe(title:gsub("\n", " ")) or "thinking"
  end,
  preparing = function(_, _, activity)
    local words = "preparing " .. rows.safe(activity.detail or "a call")
    local bytes = math.tointeger(activity.bytes) or 0
    return bytes > 0 and words .. ", " .. size_words(bytes) or words
  end,
  running = function(_, _, activity)
    return "running " .. rows.safe(activity.detail or "a call")
  end,
  answer = function()
    return "waiting for an answer"
  end,
  interrupting = function()
    return "interrupting"
  end,
}

--- The words of the state.
function M.state(turn, now_ms)
  local activity = turn.activity
  return STATE[activity.kind](turn, now_ms, activity)
end

--- Elapsed time and gauge as spans that follow what runs.
function M.tail_spans(seconds, context, room)
  local spans = {}
  if seconds >= 1 then
    spans[1] = { "  " .. summary.elapsed(seconds), "muted" }
  end
  local gauge, role = summary.gauge(context)
  local used = rows.row_width(spans)
  if gauge and used + 2 + rows.width(gauge) <= room then
    spans[#spans + 1] = { "  ", "muted" }
    spans[#spans + 1] = { gauge, role }
  end
  return spans
end

--- @param ctx {cols: integer, now_ms: number, tick: integer, motion: boolean}
--- @return table row
function M.row(turn, ctx)
  local row = { { M.spinner(ctx.tick, ctx.motion), "accent" }, { " " } }
  local room = ctx.cols - 2
  local tail = M.tail_spans(turn:seconds(ctx.now_ms), turn.context, room - MIN_STATE_COLS)
  local words = rows.cut(M.state(turn, ctx.now_ms), math.max(room - rows.row_width(tail), 1))
  row[#row + 1] = { words, "muted" }
  return rows.extend(row, tail)
end

return M
