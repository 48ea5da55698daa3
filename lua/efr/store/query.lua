-- Reads of the store: conversations, turns, events, receipts, approvals, shells. Every read is one
-- statement on the reader connection; `read_tx` groups several into one snapshot.
-- Knows nothing of the wire. Main thread of efrd; nothing here waits.
local M = {}

local Query = {}
Query.__index = Query

--- @param deps {db: table, json: table}
function M.new(deps)
  return setmetatable({ db = deps.db, json = deps.json }, Query)
end

local function rows(self, sql, ...)
  local found, err, code = self.db:read(sql, { ... })
  if not found then
    return nil, "read the store: " .. tostring(err), code
  end
  return found
end

local function one(self, sql, ...)
  local found, err, code = rows(self, sql, ...)
  if not found then
    return nil, err, code
  end
  return found[1]
end

local function decode_field(self, row, field)
  if row and row[field] then
    row[field] = self.json.decode(row[field])
  end
  return row
end

--- Runs `fn` in one read transaction and returns its results.
function Query:read_tx(fn)
  local ok, err, code = self.db:begin_read()
  if not ok then
    return nil, err, code
  end
  local results = table.pack(pcall(fn))
  self.db:end_read()
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

--- A row of `conversations` (scope decoded), or nil.
function Query:conversation(id)
  return decode_field(self, one(self, "SELECT * FROM conversations WHERE id = ?", id), "scope")
end

--- Conversations, newest update first. The cursor is opaque to clients.
--- @param opts {limit: integer, cursor: string|nil}
--- @return table[]|nil list, string|nil next_cursor (or message, code)
function Query:list(opts)
  local before = math.maxinteger
  if opts.cursor then
    before = math.tointeger(tonumber(opts.cursor:match("^c(%d+)$")))
    if not before then
      return nil, "bad cursor", "invalid"
    end
  end
  local found, err, code = rows(self, "SELECT * FROM conversations WHERE last_seq < ?"
    .. " ORDER BY last_seq DESC LIMIT ?", before, opts.limit + 1)
  if not found then
    return nil, err, code
  end
  local cursor
  if #found > opts.limit then
    found[#found] = nil
    cursor = "c" .. found[#found].last_seq
  end
  for _, row in ipairs(found) do
    decode_field(self, row, "scope")
  end
  return found, cursor
end

-- The event is decoded when somebody asks for it: clients get the stored text as it is.
local function as_rows(self, found)
  local lazy = { __index = function(row, key)
    if key == "event" then
      local event = self.json.decode(rawget(row, "payload"))
      rawset(row, "event", event)
      return event
    end
    return nil
  end }
  for _, row in ipairs(found) do
    row.at = row.created_at
    row.created_at = nil
    setmetatable(row, lazy)
  end
  return found
end

local function within_bytes(found, max_bytes)
  local total = 0
  for i, row in ipairs(found) do
    total = total + #row.payload
    if total > max_bytes then
      return i - 1, total
    end
  end
  return #found, total
end

local function reverse(list)
  for i = 1, #list // 2 do
    list[i], list[#list + 1 - i] = list[#list + 1 - i], list[i]
  end
  return list
end

--- Events of a conversation, oldest first. With `after`: the first that follow it; else the newest
--- before `before` (nil = the end). `max_bytes` bounds the payloads (of the newest, without after).
--- Each: {seq, at, kind, conversation_id, turn_id, payload (text), event (decoded when used)}.
--- @param opts {after: integer|nil, before: integer|nil, limit: integer, max_bytes: integer|nil}
--- @return table[]|nil events, boolean|string|nil more  (or message, code)
function Query:events(id, opts)
  local found, err, code
  if opts.after then
    found, err, code = rows(self, "SELECT * FROM events WHERE conversation_id = ? AND seq > ?"
      .. " ORDER BY seq LIMIT ?", id, opts.after, opts.limit + 1)
  else
    found, err, code = rows(self, "SELECT * FROM events WHERE conversation_id = ? AND seq < ?"
      .. " ORDER BY seq DESC LIMIT ?", id, opts.before or math.maxinteger, opts.limit + 1)
  end
  if not found then
    return nil, err, code
  end
  local kept = math.min(opts.limit, (within_bytes(found, opts.max_bytes or math.maxinteger)))
  local more = kept < #found
  for i = #found, kept + 1, -1 do
    found[i] = nil
  end
  if not opts.after then
    reverse(found)
  end
  return as_rows(self, found), more
end

--- All events of one turn, oldest first.
function Query:turn_events(conversation_id, turn_id)
  local found, err, code = rows(self, "SELECT * FROM events WHERE conversation_id = ?"
    .. " AND turn_id = ? ORDER BY seq", conversation_id, turn_id)
  if not found then
    return nil, err, code
  end
  return as_rows(self, found)
end

--- A row of `turns`, or nil.
function Query:turn(id)
  return one(self, "SELECT * FROM turns WHERE id = ?", id)
end

--- The turns of a conversation in queue order.
function Query:turns(conversation_id)
  return rows(self, "SELECT * FROM turns WHERE conversation_id = ? ORDER BY queued_seq",
    conversation_id)
end

--- The waiting prompts of a conversation, oldest first.
function Query:queued(conversation_id)
  return rows(self, "SELECT * FROM turns WHERE conversation_id = ? AND status = 'queued'"
    .. " ORDER BY queued_seq", conversation_id)
end

--- The running turns of a conversation (one at most, but for a damaged history).
function Query:running(conversation_id)
  return rows(self, "SELECT * FROM turns WHERE conversation_id = ? AND status = 'running'"
    .. " ORDER BY queued_seq", conversation_id)
end

--- The running turn of a conversation, or nil.
function Query:running_turn(conversation_id)
  local found, err, code = self:running(conversation_id)
  if not found then
    return nil, err, code
  end
  return found[1]
end

--- Conversations that a restart must reconcile.
function Query:unfinished()
  return rows(self, "SELECT DISTINCT conversation_id AS id FROM turns"
    .. " WHERE status IN ('queued', 'running')"
    .. " UNION SELECT conversation_id FROM approvals WHERE status = 'pending'"
    .. " UNION SELECT conversation_id FROM shells WHERE status = 'open' ORDER BY 1")
end

--- The provider messages of a conversation's ended turns, in order: {turn_id, position, provider,
--- model, message (its JSON text)}.
function Query:turn_messages(conversation_id)
  return rows(self, "SELECT turn_id, position, provider, model, message FROM turn_messages"
    .. " WHERE conversation_id = ? ORDER BY turn_seq, turn_id, position", conversation_id)
end

--- The receipt of a command: {command_id, method, outcome, result (decoded), seq}, or nil.
function Query:receipt(command_id)
  return decode_field(self, one(self, "SELECT * FROM receipts WHERE command_id = ?", command_id),
    "result")
end

--- A row of `approvals`, or nil.
function Query:approval(call_id)
  return one(self, "SELECT * FROM approvals WHERE call_id = ?", call_id)
end

--- The pending approvals of a conversation, oldest first.
function Query:pending_approvals(conversation_id)
  return rows(self, "SELECT * FROM approvals WHERE conversation_id = ? AND status = 'pending'"
    .. " ORDER BY requested_seq", conversation_id)
end

--- Whether a conversation ever had a hidden shell.
--- @return boolean|nil, string|nil message, string|nil code
function Query:had_shell(conversation_id)
  local row, err, code = one(self, "SELECT EXISTS (SELECT 1 FROM shells WHERE conversation_id = ?)"
    .. " AS had", conversation_id)
  if not row then
    return nil, err, code
  end
  return row.had == 1
end

--- The shells of a conversation that have not exited.
function Query:open_shells(conversation_id)
  return rows(self, "SELECT * FROM shells WHERE conversation_id = ? AND status = 'open'"
    .. " ORDER BY started_seq", conversation_id)
end

--- The active conversation of a terminal, or nil. `shell_pid` is the shell that sent its newest
--- prompt from there.
function Query:conversation_of_tty(tty)
  return decode_field(self, one(self, "SELECT * FROM conversations WHERE tty = ?"
    .. " ORDER BY last_seq DESC LIMIT 1", tty), "scope")
end

--- The terminals with a conversation that something happened in since then: {tty}.
function Query:terminals(since_us)
  return rows(self, "SELECT DISTINCT tty FROM conversations WHERE tty IS NOT NULL"
    .. " AND updated_at >= ? ORDER BY tty", since_us)
end

--- The newest event of a conversation (0: none), or of the whole log.
function Query:last_seq(conversation_id)
  local row, err, code
  if conversation_id then
    row, err, code = one(self, "SELECT max(seq) AS seq FROM events WHERE conversation_id = ?",
      conversation_id)
  else
    row, err, code = one(self, "SELECT max(seq) AS seq FROM events")
  end
  if not row and err then
    return nil, err, code
  end
  return row and row.seq or 0
end

--- The highest sequence number that any row names: the next one is above it.
function Query:highest_seq()
  local row, err, code = one(self, "SELECT max((SELECT coalesce(max(seq), 0) FROM events),"
    .. " (SELECT coalesce(max(last_seq), 0) FROM conversations),"
    .. " (SELECT coalesce(max(seq), 0) FROM receipts)) AS seq")
  if not row then
    return nil, err, code
  end
  return row.seq
end

--- {conversations=, running=, shells=} for the status.
function Query:counts()
  return one(self, "SELECT (SELECT count(*) FROM conversations) AS conversations,"
    .. " (SELECT count(*) FROM turns WHERE status = 'running') AS running,"
    .. " (SELECT count(*) FROM shells WHERE status = 'open') AS shells")
end

return M
