-- A conversation's recorded events as rows, turn by turn.
-- Owns: ux.md 5.5. Must not know: the wire, the terminal. Pure; runs in `efr`.

local block = require "efr.cli.view.block"
local rows = require "efr.cli.view.rows"
local transcript = require "efr.cli.view.transcript"
local turn = require "efr.cli.view.turn"
local when = require "efr.cli.when"

local M = {}

local NO_TURN <const> = {}

-- Turns in the order in which they started; one that never started keeps its place in the queue.
local function group(events)
  local turns, list = {}, {}
  for _, envelope in ipairs(events) do
    local event = envelope.event or NO_TURN
    local id = event.turn_id
    if id then
      local entry = turns[id]
      if not entry then
        entry = { id = id, seq = envelope.seq, events = {} }
        turns[id] = entry
        list[#list + 1] = entry
      end
      if event.kind == "turn_started" then
        entry.seq = envelope.seq
      end
      table.insert(entry.events, envelope)
    end
  end
  table.sort(list, function(a, b)
    return a.seq < b.seq
  end)
  return list
end

local function replay(entry)
  local state
  for _, envelope in ipairs(entry.events) do
    local now_ms = (when.parse(envelope.at) or 0) / 1000
    state = state or turn.new({ id = entry.id, now_ms = now_ms, answers = false, past = true })
    local ok, why = state:event(envelope, now_ms)
    if not ok then
      return nil, why
    end
  end
  return state
end

local function prompt_rows(out, text)
  for _, line in ipairs(rows.lines(text)) do
    out[#out + 1] = { { "> " }, { rows.safe(line), "bold" } }
  end
end

local function settings_rows(out, settings, ctx)
  if type(settings) ~= "table" or not settings.mode then
    return
  end
  local model, effort = settings.model or "default", settings.effort or "default"
  local text = ("mode %s, model %s, effort %s"):format(settings.mode, model, effort)
  out[#out + 1] = { { rows.safe(text), "muted" } }
  if settings.fallback then
    local notes = block.settings_notes({ mode = settings.mode, fallback = settings.fallback })
    rows.extend(out, block.note_rows({ text = notes[1], role = "muted" }, ctx))
  end
end

local function outcome_words(state)
  if state.outcome == "failed" then
    return "failed: " .. tostring(state.error.message or state.error.code), "error"
  end
  local words = {
    interrupted = "interrupted",
    withdrawn = "withdrawn before it ran",
    cancelled = state.started_ms and "cancelled when efrd restarted"
      or "did not run; efrd restarted",
  }
  return words[state.outcome], "muted"
end

local function turn_rows(state, ctx)
  local out = {}
  if state.text then
    prompt_rows(out, state.text)
  end
  settings_rows(out, state.settings, ctx)
  local words, role = outcome_words(state)
  state.outcome = state.outcome and "shown"
  local commit, live = transcript.new(state):frame(ctx)
  if #commit > 0 and #out > 0 then
    out[#out + 1] = {}
  end
  rows.extend(out, commit)
  if #live > 0 then
    out[#out + 1] = {}
    rows.extend(out, live)
  end
  if words then
    out[#out + 1] = {}
    rows.extend(out, block.note_rows({ text = words, role = role }, ctx))
  end
  return out
end

--- Rows of a page of events, oldest first.
--- @param ctx {cols: integer, lines: integer, diff_lines: integer, home: string?}
--- @return table[]? rows, string? error
function M.rows(events, ctx)
  local context = setmetatable({
    now_ms = 0, tick = 0, motion = false, turn_summary = false, answers = false, static = true,
  }, { __index = ctx })
  local out = {}
  for _, entry in ipairs(group(events)) do
    local state, why = replay(entry)
    if not state then
      return nil, why
    end
    if #out > 0 then
      out[#out + 1] = {}
    end
    context.now_ms = state.life_ms
    rows.extend(out, turn_rows(state, context))
  end
  return out
end

return M
