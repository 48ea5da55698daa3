-- The projections: which SQL statements follow from one event. The tables conversations, turns,
-- approvals and shells are written here and nowhere else, in the transaction of the event itself,
-- and the rebuild of a migration replays the log through the same functions.
-- Pure: no C module, no database handle. Main thread of efrd.
local M = {}

-- Tables in the order in which a rebuild may empty them (foreign keys).
M.TABLES = { "approvals", "shells", "turns", "conversations" }

-- Kinds that end a turn, with the status that they leave.
M.TERMINAL = {
  turn_completed = "completed",
  turn_failed = "failed",
  turn_interrupted = "interrupted",
  turn_cancelled = "cancelled",
}

local TITLE_MAX <const> = 80

-- The statements of one projector are collected in `out` as {sql, params, expect_changes=}.
local function add(out, expect, sql, ...)
  out[#out + 1] = { sql, { ... }, expect_changes = expect }
end

-- The cut falls between characters.
local function title_of(text)
  local line = text:match("[^\r\n]*%S[^\r\n]*")
  if not line then
    return nil
  end
  line = line:match("^%s*(.-)%s*$")
  local length = utf8.len(line)
  if length and length > TITLE_MAX then
    line = line:sub(1, utf8.offset(line, TITLE_MAX - 2) - 1) .. "..."
  end
  return line
end

local function take_tty(self, out, row, tty, shell_pid)
  add(out, nil, "UPDATE conversations SET tty = NULL, shell_pid = NULL WHERE tty = ? AND id <> ?",
    tty, row.conversation_id)
  add(out, nil, "UPDATE conversations SET tty = ?, shell_pid = ? WHERE id = ?",
    tty, shell_pid or self.null, row.conversation_id)
end

local handlers = {}

function handlers.conversation_created(self, out, row)
  local event, null = row.event, self.null
  add(out, 1, "INSERT INTO conversations (id, origin, status, created_at, updated_at, last_seq)"
    .. " VALUES (?, ?, 'idle', ?, ?, ?) ON CONFLICT DO NOTHING",
    row.conversation_id or null, event.origin, row.at, row.at, row.seq)
  if event.tty then
    take_tty(self, out, row, event.tty)
  end
end

function handlers.prompt_queued(self, out, row)
  local event, null = row.event, self.null
  local context = event.context or {}
  add(out, 1, "INSERT INTO turns (id, conversation_id, command_id, prompt, status, queued_seq,"
    .. " last_seq) VALUES (?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT DO NOTHING",
    event.turn_id, row.conversation_id, event.command_id or null, event.text, row.seq, row.seq)
  add(out, nil, "UPDATE conversations SET title = ? WHERE id = ? AND title IS NULL",
    title_of(event.text) or null, row.conversation_id)
  if context.tty then
    take_tty(self, out, row, context.tty, context.shell_pid)
  end
end

function handlers.prompt_withdrawn(_, out, row)
  add(out, 1, "UPDATE turns SET status = 'withdrawn', ended_at = ?"
    .. " WHERE id = ? AND status = 'queued'", row.at, row.event.turn_id)
end

local function set_scope(self, out, row, scope)
  add(out, nil, "UPDATE conversations SET scope = ? WHERE id = ?",
    self.encode(scope), row.conversation_id)
end

function handlers.turn_started(self, out, row)
  local event = row.event
  add(out, 1, "UPDATE turns SET status = 'running', started_at = ?"
    .. " WHERE id = ? AND status = 'queued'", row.at, event.turn_id)
  if event.cwd then
    add(out, nil, "UPDATE conversations SET cwd = ? WHERE id = ?", event.cwd, row.conversation_id)
  end
  if event.scope then
    set_scope(self, out, row, event.scope)
  end
end

function handlers.scope_changed(self, out, row)
  set_scope(self, out, row, row.event.to)
end

for kind, status in pairs(M.TERMINAL) do
  handlers[kind] = function(_, out, row)
    add(out, 1, "UPDATE turns SET status = '" .. status .. "', ended_at = ?"
      .. " WHERE id = ? AND status IN ('queued', 'running')", row.at, row.event.turn_id)
  end
end

function handlers.approval_requested(self, out, row)
  local event = row.event
  add(out, 1, "INSERT INTO approvals (call_id, conversation_id, turn_id, summary, diff_preview,"
    .. " status, requested_seq, requested_at) VALUES (?, ?, ?, ?, ?, 'pending', ?, ?)"
    .. " ON CONFLICT DO NOTHING",
    event.call_id, row.conversation_id, event.turn_id, event.summary,
    event.diff_preview or self.null, row.seq, row.at)
end

local function end_approval(self, out, row, status)
  local event = row.event
  add(out, 1, "UPDATE approvals SET status = ?, decision = ?, resolved_by = ?, resolved_seq = ?,"
    .. " resolved_at = ? WHERE call_id = ? AND status = 'pending'",
    status, event.decision or self.null, event.origin or self.null, row.seq, row.at,
    event.call_id)
end

function handlers.approval_resolved(self, out, row)
  end_approval(self, out, row, "resolved")
end

function handlers.approval_expired(self, out, row)
  end_approval(self, out, row, "expired")
end

function handlers.shell_started(self, out, row)
  local event, null = row.event, self.null
  add(out, 1, "INSERT INTO shells (pty_id, conversation_id, status, cwd, pid, started_seq,"
    .. " started_at) VALUES (?, ?, 'open', ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    event.pty_id, row.conversation_id, event.cwd or null, event.pid or null, row.seq, row.at)
end

function handlers.shell_exited(self, out, row)
  add(out, 1, "UPDATE shells SET status = 'exited', exit_code = ?, exited_seq = ?, exited_at = ?"
    .. " WHERE pty_id = ? AND status = 'open'",
    row.event.exit_code or self.null, row.seq, row.at, row.event.pty_id)
end

function handlers.cwd_changed(self, out, row)
  local event = row.event
  add(out, nil, "UPDATE shells SET cwd = ?, host = ? WHERE pty_id = ?",
    event.cwd, event.host or self.null, event.pty_id)
  if not event.host then
    add(out, nil, "UPDATE conversations SET cwd = ? WHERE id = ?", event.cwd, row.conversation_id)
  end
end

-- Closes a batch: the newest sequence number of each conversation and turn, and the status,
-- which follows from the turns and approvals as they are now.
local TOUCH_CONVERSATION <const> = [[
UPDATE conversations SET last_seq = ?1, updated_at = ?2, status = CASE
  WHEN NOT EXISTS (SELECT 1 FROM turns t WHERE t.conversation_id = ?3 AND t.status = 'running')
    THEN 'idle'
  WHEN EXISTS (SELECT 1 FROM approvals a JOIN turns t ON t.id = a.turn_id
    WHERE a.conversation_id = ?3 AND a.status = 'pending' AND t.status = 'running')
    THEN 'awaiting_approval'
  ELSE 'running' END
WHERE id = ?3]]

local Projections = {}
Projections.__index = Projections

--- @param deps {null: any, encode: fun(value: any): string}
---   null = the value that binds SQL NULL; encode = JSON text of a value
function M.new(deps)
  return setmetatable({ null = deps.null, encode = deps.encode }, Projections)
end

--- Adds the statements of one event to `out`.
--- @param row {seq: integer, at: integer, kind: string, conversation_id?: string, event: table}
function Projections:event(out, row)
  local handler = handlers[row.kind]
  if handler then
    handler(self, out, row)
  end
end

--- Adds what closes a batch of rows to `out` (after the statements of its events).
function Projections:close(out, rows)
  local conversations, turns, order = {}, {}, {}
  for _, row in ipairs(rows) do
    local id, turn_id = row.conversation_id, row.event.turn_id
    if id then
      if not conversations[id] then
        order[#order + 1] = { conversations, id, TOUCH_CONVERSATION }
      end
      conversations[id] = row
    end
    if turn_id then
      if not turns[turn_id] then
        order[#order + 1] = { turns, turn_id }
      end
      turns[turn_id] = row
    end
  end
  for _, entry in ipairs(order) do
    local row = entry[1][entry[2]]
    if entry[3] then
      add(out, 1, entry[3], row.seq, row.at, entry[2])
    else
      add(out, nil, "UPDATE turns SET last_seq = ? WHERE id = ?", row.seq, entry[2])
    end
  end
end

return M
