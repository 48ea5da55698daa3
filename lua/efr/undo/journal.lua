-- Owns: the rows of undos: what one is going to do, how it ended, and what is told of that.
-- Must not know: the disk, plans. Runs in efrd; begin and finish wait, in a task.

local exact = require "efr.util.exact"

local M = {}

local HALF_DONE <const> = "SELECT * FROM undos WHERE status IN ('open', 'stopped')"
  .. " ORDER BY created_at, id LIMIT 1"
local INSERT <const> = "INSERT INTO undos (id, turn_id, conversation_id, redo, status, entries,"
  .. " created_at, finished_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
local FINISH <const> = "UPDATE undos SET status = ?, entries = ?, finished_at = ? WHERE id = ?"

local function encode(app, entries)
  return assert(app.ports.json.encode(
    exact.clean(app.ports.json.array(entries), app.ports.text), { sort = true }))
end

---The entries of a row.
---@param app table
---@param text string
---@return efr.UndoEntry[]
function M.decode(app, text)
  return exact.restore(assert(app.ports.json.decode(text)))
end

---The undo that was cut short, or nil.
---@param app table
---@return table? row  with entries
---@return string? err
---@return string? code
function M.half_done(app)
  local rows, err, code = app.db:read(HALF_DONE, {})
  if not rows then return nil, err, code end
  local row = rows[1]
  if row then row.entries = M.decode(app, row.entries) end
  return row
end

---The statement that records an undo.
---@param app table
---@param undo {id: string, turn_id: string, conversation_id: string?, redo: integer,
---entries: efr.UndoEntry[]}
---@param status "open"|"done"
---@return table statement
function M.row(app, undo, status)
  local null, now = app.ports.store.null, app.ports.sys.now_us()
  return { INSERT, { undo.id, undo.turn_id, undo.conversation_id or null, undo.redo, status,
    encode(app, undo.entries), now, status == "done" and now or null } }
end

---Records what an undo is going to do. On the disk when it returns.
---@param app table
---@param undo table  as for row
---@return true?
---@return string? err
---@return string? code
function M.begin(app, undo)
  return app.snapshots:write({ M.row(app, undo, "open") }, true)
end

local function counts_of(entries)
  local out = { restored = 0, trashed = 0, skipped = {}, refs = {} }
  for _, entry in ipairs(entries) do
    if entry.result == "done" and entry.ref then
      out.refs[#out.refs + 1] = entry.path
    elseif entry.result == "done" and not entry.is_dir then
      local key = entry.action == "trash" and "trashed" or "restored"
      out[key] = out[key] + 1
    elseif entry.result == "skip" or entry.action == "skip" then
      out.skipped[#out.skipped + 1] = entry.root .. "/" .. entry.path
    end
  end
  return out
end

-- A repeat of the command gets the answer of the first, and undoes nothing more.
local function receipt_of(undo, counts)
  if not undo.command_id then return nil end
  return { command_id = undo.command_id, method = "turn.undo", result = {
    turn_id = undo.turn_id, undo_id = undo.id, restored = counts.restored,
    trashed = counts.trashed, skipped = counts.skipped, refs = counts.refs,
  } }
end

---Records how an undo ended, and tells of it. One that stopped before it wrote is forgotten.
---@param app table
---@param undo table
---@param stopped string?  why it could not go on
---@param log table
---@return {restored: integer, trashed: integer, skipped: string[], refs: string[]} counts
function M.finish(app, undo, stopped, log)
  local counts, array = counts_of(undo.entries), app.ports.json.array
  local wrote = counts.restored + counts.trashed + #counts.refs > 0
  local null = app.ports.store.null
  local finish = { sql = FINISH, params = { stopped and "stopped" or "done",
    encode(app, undo.entries), app.ports.sys.now_us(), undo.id } }
  if stopped and not wrote then
    finish = { sql = "DELETE FROM undos WHERE id = ?", params = { undo.id } }
  end
  local ok, err = app.store:append {
    durable = true, guards = { finish }, receipt = receipt_of(undo, counts),
    events = { {
      kind = "turn_undone", conversation_id = undo.conversation_id ~= null and undo.conversation_id
        or nil, turn_id = undo.turn_id, undo_id = undo.id, redo = undo.redo == 1,
      restored = counts.restored, trashed = counts.trashed, skipped = array(counts.skipped),
      refs = array(counts.refs), stopped = stopped or nil,
    } },
  }
  if not ok then
    log:error("undo %s: no event tells of it: %s", undo.id, err)
    ok, err = app.snapshots:write({ { finish.sql, finish.params } }, true)
  end
  if not ok then log:error("undo %s: its end is not recorded: %s", undo.id, err) end
  return counts
end

return M
