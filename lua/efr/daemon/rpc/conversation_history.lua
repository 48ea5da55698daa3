-- conversation.history: the events of a conversation, page by page, backwards.
-- Main thread of efrd.
local views = require "efr.daemon.views"

local DEFAULT_LIMIT <const> = 100
local MAX_LIMIT <const> = 500
local PAGE_BYTES <const> = 4 * 1024 * 1024

local function page(app, id, before, limit)
  local events, more = app.query:events(id,
    { before = before, limit = limit, max_bytes = PAGE_BYTES })
  if events and #events == 0 and more then -- one event alone is larger than a page
    return app.query:events(id, { before = before, limit = 1 })
  end
  return events, more
end

local function handler(app, _, params)
  local conversation, err, code = app.query:conversation(params.conversation_id)
  if not conversation then
    return nil, err or "unknown conversation", err and code or "not_found"
  end
  local before
  if params.cursor then
    before = views.cursor_seq(params.cursor)
    if not before then
      return nil, "bad cursor", "invalid"
    end
  end
  local events, more = page(app, params.conversation_id, before, params.limit or DEFAULT_LIMIT)
  if not events then
    return nil, more
  end
  local texts = {}
  for i, row in ipairs(events) do
    texts[i] = views.envelope(app, row)
  end
  return ('{"events":[%s]%s}'):format(table.concat(texts, ","),
    more and ',"next_cursor":"' .. views.history_cursor(events[1]) .. '"' or "")
end

return {
  method = "conversation.history",
  scope = "read",
  params = {
    conversation_id = { type = "uuid" },
    cursor = { type = "string", max = 64, optional = true },
    limit = { type = "integer", min = 1, max = MAX_LIMIT, optional = true },
  },
  handler = handler,
}
