-- Tool calls, notes and prose as rows.
-- Owns: ux.md 6.5 and the settings notes of 6.3. Must not know: events, the terminal.
-- Pure; runs in `efr`.

local changes = require "efr.cli.view.changes"
local waiting = require "efr.cli.view.input"
local notes_of = require "efr.cli.view.notes"
local rows = require "efr.cli.view.rows"
local status = require "efr.cli.view.status"
local summary = require "efr.cli.view.summary"
local surface = require "efr.cli.view.surface"
local waits = require "efr.cli.view.waits"

local M = {}

local BAR <const> = { "  │ ", "muted" }
local LIVE_COMMAND_ROWS <const> = 4
local TAIL_LINES <const> = 3

local function field(input, name)
  local value = type(input) == "table" and input[name]
  return type(value) == "string" and value or nil
end

local VERB <const> = { read_file = "read", write_file = "write", edit = "edit" }

--- The lines that name a call, safe to print; the first of a shell call starts with `$ `.
--- @return string[] lines
function M.call_lines(call, home)
  local command = call.tool == "shell" and field(call.input, "command")
  if command then
    local lines = {}
    for i, line in ipairs(rows.lines(command)) do
      lines[i] = (i == 1 and "$ " or "  ") .. rows.safe(line)
    end
    return lines
  end
  local path = field(call.input, "path")
  local verb = VERB[call.tool]
  if verb and path then
    return { verb .. " " .. changes.path(path, home) }
  end
  local detail = path and changes.path(path, home) or nil
  return { rows.safe(call.tool) .. (detail and ": " .. detail or "") }
end

-- Where a result's own output ends: what follows the exit code is efr's word to the model.
local function output_end(lines)
  for i = #lines, 1, -1 do
    if lines[i]:find("^%[exit code %-?%d+, cwd .*%]$") then
      return i - 1
    end
    if not lines[i]:find("^%[.*%]$") then
      break
    end
  end
  return #lines
end

-- The last non-empty lines of an output, each cut to the width.
local function tail_rows(output, cols)
  local kept = {}
  local lines = rows.lines(output or "")
  for i = output_end(lines), 1, -1 do
    if #kept == TAIL_LINES then
      break
    end
    local line = lines[i]:gsub("%s+$", "")
    if line ~= "" then
      table.insert(kept, 1, { BAR, { rows.cut(rows.safe(line), cols - 4), "muted" } })
    end
  end
  return kept
end

--- Rows of a running call (live).
--- @param ctx {cols: integer, now_ms: number, tick: integer, motion: boolean, home: string?}
function M.running_rows(call, ctx, context)
  local lines = M.call_lines(call, ctx.home)
  local seconds = (ctx.now_ms - call.started_ms) / 1000
  local tail = status.tail_spans(seconds, context, ctx.cols // 2)
  local room = math.max(ctx.cols - 2 - rows.row_width(tail), 8)
  local first = { { status.spinner(ctx.tick, ctx.motion), "accent" }, { " " } }
  first[#first + 1] = { rows.cut(lines[1], room), "code" }
  local out = { rows.extend(first, tail) }
  local shown = #lines <= LIVE_COMMAND_ROWS and #lines or LIVE_COMMAND_ROWS - 1
  for i = 2, shown do
    out[#out + 1] = { { "  " }, { rows.cut(lines[i], ctx.cols - 2), "code" } }
  end
  if shown < #lines then
    out[#out + 1] = { { ("    (%d more lines)"):format(#lines - shown), "muted" } }
  end
  rows.extend(out, tail_rows(call.tail, ctx.cols))
  if ctx.answers and waits.is_offered(call, ctx.now_ms) then
    out[#out + 1] = { { "  " }, { rows.cut(waiting.OFFER, ctx.cols - 2), "muted" } }
  end
  return out
end

local function setup_error(call)
  return type(call.sandbox) == "table" and call.sandbox.setup_error or nil
end

local function refusal_words(call)
  local refusal = call.refusal
  if type(refusal) ~= "table" then
    return refusal and "refused" or nil
  end
  if refusal.kind == "interrupted" then
    return "did not run"
  end
  local words = "refused"
  if type(refusal.reason) == "string" and refusal.reason ~= "" then
    words = "refused: " .. refusal.reason
  end
  return refusal.kind == "floor" and words .. " (floor)" or words
end

-- The words after the mark, and whether the call failed.
local function result_words(call)
  local failed_setup = setup_error(call)
  if failed_setup then
    return ("the sandbox could not start: %s; nothing of it ran"):format(failed_setup), true
  end
  local refused = refusal_words(call)
  if refused then
    return refused, true
  end
  if call.unfinished then
    return "did not finish", true
  end
  if call.exit_code and call.exit_code ~= 0 then
    return ("exit %d"):format(call.exit_code), true
  end
  if call.is_error then
    return "failed", true
  end
  return nil, false
end

local function result_rows(call, cols)
  local words, failed = result_words(call)
  local time = call.seconds and call.seconds >= 1 and summary.duration(call.seconds) or nil
  if not failed then
    local row = { { "  " }, { "✓", "success" } }
    if time then
      row[#row + 1] = { " " .. time, "muted" }
    end
    return { row }
  end
  local out = {}
  for i, line in ipairs(rows.wrap_indented(rows.safe(words:gsub("\n", " ")), cols - 4, 2)) do
    out[i] = { { i == 1 and "  ✗ " or "    ", "error" }, { line, "error" } }
  end
  if time then
    local last = out[#out]
    last[#last + 1] = { " · " .. time, "muted" }
  end
  return out
end

-- Space that a call freed in caches, each a line.
local function freed_rows(out, call, cols)
  local freed = type(call.sandbox) == "table" and call.sandbox.freed
  for _, words in ipairs(type(freed) == "table" and freed or {}) do
    if type(words) == "string" then
      local line = rows.safe((words:gsub("\n", " ")))
      out[#out + 1] = { { "  " }, { rows.cut(line, cols - 2), "muted" } }
    end
  end
end

--- Rows of a finished call (committed once).
--- @param ctx {cols: integer, home: string?, diff_lines: integer}
function M.finished_rows(call, ctx)
  local out = {}
  for i, line in ipairs(M.call_lines(call, ctx.home)) do
    local wrapped = rows.wrap_code(line, ctx.cols - 2, "code")
    local lead = i == 1 and { "· ", "accent" } or { "  " }
    rows.extend(out, rows.prefix(wrapped, { lead }, { { "  " } }))
  end
  if call.denied then
    return out
  end
  local _, failed = result_words(call)
  local with_diff = call.diff and call.diff ~= "" and ctx.diff_lines > 0 and call.tool ~= "shell"
  if with_diff then
    rows.extend(out, changes.diff_rows(call.diff, { cols = ctx.cols, limit = ctx.diff_lines }))
  elseif failed and not setup_error(call) and not call.refusal then
    rows.extend(out, tail_rows(call.output or call.tail, ctx.cols))
  end
  rows.extend(out, result_rows(call, ctx.cols))
  freed_rows(out, call, ctx.cols)
  local changed = not with_diff and changes.summary_row(call.changes, ctx.home)
  if changed then
    out[#out + 1] = changed
  end
  return out
end

-- The lines of a note, and its role.
local function note_lines(block, ctx)
  if block.changed then
    local lines, serious = surface.lines(block.changed, ctx.home)
    return lines, serious and "warning" or "muted"
  elseif block.quarantined then
    return { surface.place_line(block.quarantined, ctx.home) }, "muted"
  elseif block.report then
    return surface.report_lines(block.report, ctx.home), "muted"
  end
  return rows.lines(block.text), block.role
end

--- Rows of a note.
function M.note_rows(block, ctx)
  local out = {}
  local lines, role = note_lines(block, ctx)
  for _, line in ipairs(lines) do
    for _, row in ipairs(rows.wrap_indented(rows.safe(line), ctx.cols, 2)) do
      out[#out + 1] = { { row, role } }
    end
  end
  return out
end

--- The opening notes of a turn from its effective settings.
--- @param settings table? EffectiveSettings
--- @return string[] notes
function M.settings_notes(settings)
  local notes, parts = {}, {}
  local over = settings and settings.overridden or {}
  for _, name in ipairs({ "mode", "model", "effort" }) do
    if over[name] and type(settings[name]) == "string" then
      parts[#parts + 1] = name .. " " .. settings[name]
    end
  end
  if #parts > 0 then
    notes[1] = table.concat(parts, ", ")
  end
  notes[#notes + 1] = notes_of.fallback(settings)
  return notes
end

return M
