-- conversation.diff: what a turn or a run of `efr run` changed.
-- Main thread of efrd; waits.
local changes = require "efr.conv.changes"
local diff = require "efr.undo.diff"

-- The newest turn of a conversation that both started and ended.
local function newest(app, conversation_id)
  local turns, err, code = app.query:turns(conversation_id)
  if not turns then
    return nil, err, code
  end
  for i = #turns, 1, -1 do
    if turns[i].started_at and turns[i].ended_at then
      return turns[i].id
    end
  end
  return nil, "no turn of this conversation has ended yet", "not_found"
end

local function turn_of(app, session, params)
  if params.turn_id then
    return params.turn_id
  end
  local id = params.conversation_id
  if not id then
    local row = session.tty and app.query:conversation_of_tty(session.tty)
    id = row and row.id
  end
  if id then
    return newest(app, id)
  end
  -- Without a conversation: the newest turn or run that touched the place where the client stands.
  local list, err, code = app.undo:list { cwd = params.cwd }
  if not list then
    return nil, err, code
  end
  if not list[1] then
    return nil, "nothing here has snapshots", "not_found"
  end
  return list[1].turn_id
end

local function handler(app, session, params)
  local turn_id, err, code = turn_of(app, session, params)
  if not turn_id then
    return nil, err, code
  end
  local files, text
  files, text, code = diff.of_turn({
    snapshots = app.snapshots, scratch = app.paths.data .. "/scratch",
  }, turn_id, not params.stat)
  if not files then
    return nil, text, code
  end
  local sum = {}
  changes.add(sum, { files = files })
  return {
    turn_id = turn_id, changes = changes.total(sum, app.ports.json.array),
    diff = not params.stat and text or nil,
  }
end

return {
  method = "conversation.diff",
  scope = "read",
  params = {
    conversation_id = { type = "uuid", optional = true },
    turn_id = { type = "uuid", optional = true },
    cwd = { type = "string", min = 1, max = 4096, optional = true },
    stat = { type = "boolean", optional = true },
  },
  handler = handler,
}
