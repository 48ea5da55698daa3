-- decision.explain: how a past call was read and decided, with every reason.
-- Main thread of efrd.
local explain = require "efr.perm.explain"
local list = require "efr.util.list"

local KEEPS <const> = "; it keeps the decisions of the newest calls since it started, about 240"
local FORGOTTEN <const> = "efrd does not know this call" .. KEEPS
local NONE <const> = "efrd remembers no call of this conversation" .. KEEPS

-- The shape of the protocol, with the rest of what explains a decision beside it.
local function view(app, data)
  local out = {}
  for name, value in pairs(data) do out[name] = value end
  out.parts = data.parse and data.parse.commands or {}
  out.exits = list.map(data.exits, function(exit)
    local one = { who = exit.approver }
    for name, value in pairs(exit) do one[name] = value end
    return one
  end)
  explain.each_list(out, app.ports.json.array)
  app.ports.json.array(out.parts)
  return out
end

local function handler(app, session, params)
  local id = params.conversation_id
  if not id and not params.call_id then
    local row = session.tty and app.query:conversation_of_tty(session.tty)
    if not row then
      return nil, "this terminal has no conversation", "not_found"
    end
    id = row.id
  end
  local data = app.conversations:decision(id, params.call_id)
  if not data then
    return nil, params.call_id and FORGOTTEN or NONE, "not_found"
  end
  return view(app, data)
end

return {
  method = "decision.explain",
  scope = "read",
  params = {
    conversation_id = { type = "uuid", optional = true },
    call_id = { type = "string", max = 128, optional = true },
  },
  handler = handler,
}
