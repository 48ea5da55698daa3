-- Restart: what the last run left open is ended in the log, before anything new starts. Running
-- turns and queued prompts become cancelled, pending approvals expire, open shells have exited,
-- process-bound outbox rows are cancelled. Nothing continues by itself.
-- Knows nothing of terminals beyond their names. Main thread of efrd, in a coroutine, before the
-- socket opens.
local M = {}

-- The terminal from which a prompt was sent, from its prompt_queued event.
local function tty_of(query, turn)
  local events = query:events(turn.conversation_id, { after = turn.queued_seq - 1, limit = 1 })
  local first = events and events[1]
  return first and first.event.context and first.event.context.tty
end

local function event(out, kind, conversation_id, fields)
  fields.kind = kind
  fields.conversation_id = conversation_id
  out[#out + 1] = fields
end

local function count_lost(lost, tty, conversation_id)
  if tty then
    local entry = lost[tty] or { tty = tty, count = 0 }
    entry.count = entry.count + 1
    entry.conversation_id = conversation_id
    lost[tty] = entry
  end
end

-- The events that end what one conversation left open, in their fixed order.
local function closing_events(query, id, lost)
  local events = {}
  for _, approval in ipairs(assert(query:pending_approvals(id))) do
    event(events, "approval_expired", id,
      { turn_id = approval.turn_id, call_id = approval.call_id })
  end
  for _, turn in ipairs(assert(query:running(id))) do
    event(events, "turn_cancelled", id, { turn_id = turn.id })
  end
  for _, turn in ipairs(assert(query:queued(id))) do
    event(events, "turn_cancelled", id, { turn_id = turn.id })
    count_lost(lost, tty_of(query, turn), id)
  end
  for _, shell in ipairs(assert(query:open_shells(id))) do
    event(events, "shell_exited", id, { pty_id = shell.pty_id })
  end
  return events
end

local function settle_outbox(log, now)
  return log:append {
    durable = false,
    guards = {
      { sql = "UPDATE outbox SET cancelled_at = ? WHERE done_at IS NULL AND cancelled_at IS NULL"
        .. " AND replay_safe = 0", params = { now }, expect = false },
      { sql = "UPDATE outbox SET claimed_at = NULL WHERE done_at IS NULL"
        .. " AND cancelled_at IS NULL AND replay_safe = 1 AND claimed_at IS NOT NULL",
        expect = false },
    },
  }
end

--- @param deps {log: table, query: table, now_us: fun(): integer}
--- @return table|nil lost  list of {tty, count, conversation_id}: prompts that did not run
function M.run(deps)
  local by_tty = {}
  local list, err, code = deps.query:unfinished()
  if not list then
    return nil, err, code
  end
  for _, row in ipairs(list) do
    local events = closing_events(deps.query, row.id, by_tty)
    local ok
    ok, err, code = deps.log:append { events = events, durable = true }
    if not ok then
      return nil, "reconcile conversation " .. row.id .. ": " .. tostring(err), code
    end
  end
  local ok
  ok, err, code = settle_outbox(deps.log, deps.now_us())
  if not ok then
    return nil, "reconcile the outbox: " .. tostring(err), code
  end
  local lost = {}
  for _, entry in pairs(by_tty) do
    lost[#lost + 1] = entry
  end
  table.sort(lost, function(a, b)
    return a.tty < b.tty
  end)
  return lost
end

return M
