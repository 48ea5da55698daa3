-- conversation.subscribe: missed events or a snapshot first, then every event (and draft) live.
-- Main thread of efrd; each subscription is a task.
local follow = require "efr.daemon.follow"
local views = require "efr.daemon.views"

local REPLAY_EVENTS <const> = 128
local REPLAY_BYTES <const> = 1024 * 1024

-- The start of the stream and the high-water mark, from one read transaction.
local function read_start(app, params)
  return app.query:read_tx(function()
    local query, id = app.query, params.conversation_id
    local conversation, err, code = query:conversation(id)
    if not conversation then
      return nil, err or "unknown conversation", err and code or "not_found"
    end
    local start = { hwm = assert(query:last_seq(id)), conversation = conversation }
    if params.after_seq then
      local events, more = query:events(id,
        { after = params.after_seq, limit = REPLAY_EVENTS, max_bytes = REPLAY_BYTES })
      if events and not more then
        start.replay = events
        return start
      end
    end
    local events, more = query:events(id, { limit = REPLAY_EVENTS, max_bytes = REPLAY_BYTES })
    start.events, start.more = assert(events, more), more
    return start
  end)
end

local function snapshot_item(app, start)
  local events = {}
  for i, row in ipairs(start.events) do
    events[i] = views.envelope(app, row)
  end
  local cursor = start.more and views.history_cursor(start.events[1], start.hwm)
  return ('{"kind":"snapshot","conversation":%s,"events":[%s]%s,"hwm":%d}'):format(
    views.encode(app, views.conversation(app, start.conversation)), table.concat(events, ","),
    cursor and ',"history_cursor":"' .. cursor .. '"' or "", start.hwm)
end

local function send_start(app, stream, start)
  if not start.replay then
    return stream:send(snapshot_item(app, start))
  end
  for _, row in ipairs(start.replay) do
    if not stream:send(views.event_item(app, row)) then
      return false
    end
  end
  return true
end

local function draft_item(app, draft)
  return views.encode(app, {
    kind = "draft", turn_id = draft.turn_id, after_seq = draft.after_seq, draft = draft.draft,
  })
end

-- Sends what the feed holds until it ends. Events up to the mark were in the start.
local function send_feed(app, stream, feed, mark)
  local last_seq = mark
  while true do
    local item, reason = feed:pop()
    if not item then
      if reason == "overflow" then
        return nil, "this client is too slow for the stream", "overflow", { last_seq = last_seq }
      end
      return {}
    elseif item.draft then
      stream:send(draft_item(app, item.draft))
    elseif item.row.seq > mark then
      stream:send(views.event_item(app, item.row))
      last_seq = item.row.seq
    end
  end
end

-- Undoes what a subscription registered, however it ends.
local function cleanup()
  return setmetatable({}, {
    __close = function(list)
      for _, fn in ipairs(list) do
        fn()
      end
    end,
  })
end

local function handler(app, session, params, stream)
  local id, feed = params.conversation_id, follow.new()
  local undo <close> = cleanup()
  undo[1] = app.store:subscribe(id, function(row)
    feed:event(row)
  end)
  local start, err, code = read_start(app, params)
  if not start then
    return nil, err, code
  end
  undo[2] = app.followers:add(id, session.tty)
  undo[3] = stream.token:on_cancel(function()
    feed:finish("cancelled")
  end)
  undo[4] = app.answering:add(id, params.answers_input == true
    and session.scopes.terminal == true)
  if params.drafts then
    undo[5] = app.conversations:drafts(id, function(draft)
      feed:draft(draft)
    end)
  end
  if not send_start(app, stream, start) then
    return {}
  end
  return send_feed(app, stream, feed, math.max(start.hwm, params.after_seq or 0))
end

return {
  method = "conversation.subscribe",
  scope = "read",
  stream = true,
  params = {
    conversation_id = { type = "uuid" },
    after_seq = { type = "integer", min = 0, optional = true },
    answers_input = { type = "boolean", optional = true },
    drafts = { type = "boolean", optional = true },
  },
  handler = handler,
}
