-- Stored rows as the protocol shows them.
-- Knows nothing of sockets. Pure but for the json and text ports in `app.ports`. Main thread of
-- efrd.
local exact = require "efr.util.exact"
local time = require "efr.util.time"

local M = {}

--- JSON text of a value, with text that is no UTF-8 as the protocol wants it.
function M.encode(app, value)
  return assert(app.ports.json.encode(exact.clean(value, app.ports.text), { sort = true }))
end

local function envelope_fields(row)
  local id = row.conversation_id
  return ('"seq":%d,%s"at":"%s","event":%s'):format(row.seq,
    id and '"conversation_id":"' .. id .. '",' or "", time.rfc3339(row.at), row.payload)
end

-- A row is shared by its subscribers: its text is made once.
local function fields_of(row)
  row.wire_fields = row.wire_fields or envelope_fields(row)
  return row.wire_fields
end

--- JSON text of an EventEnvelope.
function M.envelope(_, row)
  return "{" .. fields_of(row) .. "}"
end

--- JSON text of the stream item of an event.
function M.event_item(_, row)
  return '{"kind":"event",' .. fields_of(row) .. "}"
end

--- A conversation as conversations.list shows it.
function M.conversation(_, row)
  return {
    id = row.id, title = row.title, status = row.status, tty = row.tty, cwd = row.cwd,
    scope = row.scope, created_at = time.rfc3339(row.created_at),
    updated_at = time.rfc3339(row.updated_at), last_seq = row.last_seq,
  }
end

--- The cursor of the page before `row` (nil: of the page that ends at `mark`).
function M.history_cursor(row, mark)
  return ("h%d"):format(row and row.seq or mark + 1)
end

--- The sequence number that a history cursor names, or nil.
function M.cursor_seq(cursor)
  return math.tointeger(tonumber(cursor:match("^h(%d+)$")))
end

return M
