-- conversations.list: all conversations, newest update first.
-- Main thread of efrd.
local views = require "efr.daemon.views"

local DEFAULT_LIMIT <const> = 50
local MAX_LIMIT <const> = 200

local function handler(app, _, params)
  local list, cursor, code = app.query:list {
    limit = params.limit or DEFAULT_LIMIT, cursor = params.cursor,
  }
  if not list then
    return nil, cursor, code
  end
  local shown = {}
  for i, row in ipairs(list) do
    shown[i] = views.conversation(app, row)
  end
  return { conversations = app.ports.json.array(shown), next_cursor = cursor }
end

return {
  method = "conversations.list",
  scope = "read",
  params = {
    cursor = { type = "string", max = 64, optional = true },
    limit = { type = "integer", min = 1, max = MAX_LIMIT, optional = true },
  },
  handler = handler,
}
