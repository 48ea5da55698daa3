-- Step end_of_turn: one batch with the terminal event and the messages of the turn.
-- Must not know: how the turn went inside. Runs in efrd, in the turn's task; waits.
--
-- Policy: what lies in quarantine is asked about first. Then the turn is marked ended in memory, so
-- that what comes now belongs to the next one. While the store cannot take the batch (a full disk)
-- it is tried again: the conversation stands still, nothing is lost, and it goes on when there is
-- room.

local async = require "efr.util.async"
local changes = require "efr.conv.changes"
local events = require "efr.conv.events"
local snapshots = require "efr.conv.snapshots"
local surface = require "efr.conv.surface"

local M = {}

local FIRST_RETRY_MS <const> = 500
local MAX_RETRY_MS <const> = 10000

local KIND <const> = {
  completed = "turn_completed",
  failed = "turn_failed",
  interrupted = "turn_interrupted",
  cancelled = "turn_cancelled",
}

-- Zeros are left out.
local function usage_of(turn)
  local usage = {}
  for key, value in pairs(turn.usage) do usage[key] = value > 0 and value or nil end
  usage.context_tokens = turn.context_tokens and turn.context_tokens > 0 and turn.context_tokens
    or nil
  return next(usage) and usage or nil
end

local function changes_of(turn)
  if turn.outcome.kind ~= "completed" then return nil end
  return changes.total(turn.changes, turn.app.ports.json.array)
end

local function terminal(turn)
  local outcome = turn.outcome
  if outcome.kind == "cancelled" then
    return events.make("turn_cancelled", { turn_id = turn.id })
  end
  return events.make(KIND[outcome.kind], {
    turn_id = turn.id,
    error = outcome.error,
    usage = usage_of(turn),
    context = turn:context(),
    changes = changes_of(turn),
    undo = outcome.kind == "completed" and turn.undo or nil,
  })
end

-- The messages as rows of turn_messages.
local function rows_of(turn)
  local rows = {}
  for i, text in ipairs(turn.rows) do
    rows[i] = {
      turn_id = turn.id,
      position = i,
      provider = turn.provider.id,
      model = turn.settings.model,
      message = text,
    }
  end
  return rows
end

local function batch_of(turn)
  local list = { surface.report(turn) }
  list[#list + 1] = terminal(turn)
  local batch = { events = list, durable = true }
  if turn.unsaved then
    turn.app.log:error("turn %s: its messages cannot be kept: %s", turn.id, turn.unsaved)
  elseif turn.started then
    batch.turn_messages = rows_of(turn)
  end
  return batch
end

-- Who follows would otherwise wait without a word: an event cannot be recorded now.
local function say_waits(turn, message)
  turn.conv:send_drafts({ {
    turn_id = turn.id, after_seq = turn.conv.last_seq,
    draft = { kind = "unsaved", message = tostring(message) },
  } })
end

---@param turn efr.Turn
---@return true
function M.run(turn)
  if not turn:is_stopped() or turn.outcome.kind == "completed" then surface.ask(turn) end
  turn.undo = snapshots.finish(turn)
  turn.conv.quarantined = {}
  turn.ended = true
  turn.outcome = turn.outcome or {
    kind = "failed",
    error = { code = "internal", message = "the turn ended without an outcome" },
  }
  local batch, wait = batch_of(turn), FIRST_RETRY_MS
  while true do
    local seqs, message, code = turn.conv:append(batch)
    if seqs then break end
    turn.app.log:error("turn %s: its end could not be recorded: %s", turn.id, message)
    if turn.conv.closed or code == "EFR_CLOSED" or code == "EFR_CONFLICT" then break end
    if wait == FIRST_RETRY_MS then say_waits(turn, message) end
    async.sleep(wait)
    wait = math.min(wait * 2, MAX_RETRY_MS)
  end
  if turn.started then turn.conv.history:turn_ended() end
  return true
end

return M
