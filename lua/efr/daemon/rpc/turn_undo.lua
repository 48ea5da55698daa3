-- turn.undo: what an undo would do, doing it, taking it back, and the list of turns.
-- Main thread of efrd; waits.
--
-- Between turns only: a prompt that is sent meanwhile waits. Never for the model or a phone.

local MAX_ROWS <const> = 2000

local function view_entry(entry)
  local path = entry.ref and entry.path or entry.path == "" and entry.root
    or entry.root .. "/" .. entry.path
  local kind = "ref"
  if not entry.ref then
    kind = (entry.to or entry.from or {}).kind
  end
  return {
    path = path, kind = kind, action = entry.action, reason = entry.reason, result = entry.result,
    forceable = entry.forceable, from = entry.ref and entry.from or nil,
    to = entry.ref and entry.to or nil,
  }
end

-- Directories follow from their files; what is only kept is no row.
local function is_shown(entry)
  return entry.action ~= nil and entry.action ~= "keep" and not entry.is_dir
end

local function view_entries(app, entries)
  local out, more = app.ports.json.array({}), 0
  for _, entry in ipairs(entries) do
    if is_shown(entry) and #out < MAX_ROWS then
      out[#out + 1] = view_entry(entry)
    elseif is_shown(entry) then
      more = more + 1
    end
  end
  return out, more > 0 and more or nil
end

local actions = {}

function actions.list(app, where)
  local list, err, code = app.undo:list(where)
  if not list then
    return nil, err, code
  end
  local out = app.ports.json.array({})
  for i, item in ipairs(list) do
    out[i] = {
      turn_id = item.turn_id, conversation_id = item.conversation_id, title = item.title,
      created_at = item.created_at, undone = item.undone, stopped = item.stopped,
    }
  end
  return { turns = out }
end

function actions.plan(app, where)
  local found, err, code = app.undo:plan(where)
  if not found then
    return nil, err, code
  end
  local entries, more = view_entries(app, found.entries)
  return {
    turn_id = found.turn_id, title = found.title, entries = entries, more = more,
    continues = found.continues, redo = where.redo,
  }
end

function actions.apply(app, where)
  local done, err, code = app.undo:apply(where)
  if not done then
    return nil, err, code
  end
  return {
    turn_id = done.turn_id, undo_id = done.undo_id, restored = done.restored,
    trashed = done.trashed, refs = app.ports.json.array(done.refs),
    skipped = app.ports.json.array(done.skipped), trash = done.trash,
    stopped = done.stopped, redo = done.redo,
  }
end

local function where_of(app, session, params)
  local id = params.conversation_id
  if not id and not params.turn_id then
    local row = session.tty and app.query:conversation_of_tty(session.tty)
    id = row and row.id
  end
  return {
    conversation_id = id, turn_id = params.turn_id, cwd = params.cwd, force = params.force,
    redo = params.redo, command_id = params.command_id,
  }
end

local function handler(app, session, params)
  if session.peer.model_side or session.origin == "phone" then
    return nil, "only you can undo, on this machine", "forbidden"
  end
  local where = where_of(app, session, params)
  if params.action == "list" then
    return actions.list(app, where)
  end
  local release, message, code = app.conversations:hold(where.conversation_id, params.turn_id)
  if not release then
    return nil, message, code
  end
  local results = table.pack(pcall(actions[params.action], app, where))
  release()
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

return {
  method = "turn.undo",
  scope = "operate",
  command = true,
  params = {
    conversation_id = { type = "uuid", optional = true },
    turn_id = { type = "uuid", optional = true },
    cwd = { type = "string", min = 1, max = 4096, optional = true },
    action = { type = "choice", choices = { "list", "plan", "apply" } },
    redo = { type = "boolean", optional = true },
    force = { type = "boolean", optional = true },
  },
  handler = handler,
}
