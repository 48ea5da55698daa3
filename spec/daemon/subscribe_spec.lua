local daemon = require "spec.support.daemon"
local follow = require "efr.daemon.follow"
local store = require "spec.support.store"

local C <const> = "0199aaaa-0000-7000-8000-000000000001"
local T <const> = "0199aaaa-0000-7000-8000-000000000002"
local OTHER <const> = "0199aaaa-0000-7000-8000-000000000003"

describe("conversation.subscribe", function()
  local dir, app, client

  local function append(events)
    return store.run(function()
      return assert(app.store:append { events = events })
    end)
  end

  local function notes(count, size)
    local events = {}
    for i = 1, count do
      events[i] = { kind = "note", conversation_id = C, n = i, pad = ("x"):rep(size or 1) }
    end
    return append(events)
  end

  before_each(function()
    store.setup_async()
    dir = store.new_dir()
    app = store.run(function()
      return daemon.app(dir)
    end)
    client = daemon.client(app)
    client:hello { tty = "/dev/pts/5" }
    append { { kind = "conversation_created", conversation_id = C, origin = "shell",
      tty = "/dev/pts/5" } }
  end)

  after_each(function()
    client:close()
    daemon.wait(function()
      return next(app.server.sessions) == nil
    end)
    assert.same({}, app.followers.counts)
    assert.is_nil(next(app.store.subscribers))
    app.db:close()
    store.remove_dir(dir)
  end)

  local function cancel(id)
    client:raw(('{"jsonrpc":"2.0","method":"$/cancel","params":{"id":%d}}\n'):format(id))
    assert.equal("cancelled", client:response(id).error.data.code)
  end

  it("replays a small gap and goes on live, without gap or repeat", function()
    notes(128)
    local id = client:send("conversation.subscribe", { conversation_id = C, after_seq = 1 })
    for seq = 2, 129 do
      local item = client:item()
      assert.same({ "event", seq }, { item.kind, item.seq })
    end
    notes(3)
    append { { kind = "conversation_created", conversation_id = OTHER, origin = "cli" } }
    notes(1)
    for _, seq in ipairs { 130, 131, 132, 134 } do
      assert.equal(seq, client:item().seq)
    end
    cancel(id)
  end)

  it("sends a snapshot for a larger gap, and history goes on from its cursor", function()
    notes(300)
    client:send("conversation.subscribe", { conversation_id = C, after_seq = 1 })
    local item = client:item()
    assert.equal("snapshot", item.kind)
    assert.equal(301, item.hwm)
    assert.equal(C, item.conversation.id)
    assert.equal(128, #item.events)
    assert.equal(174, item.events[1].seq)
    local cursor, seen = item.history_cursor, 128
    while cursor do
      local page = assert(client:call("conversation.history",
        { conversation_id = C, cursor = cursor, limit = 50 }))
      seen = seen + #page.events
      cursor = page.next_cursor
    end
    assert.equal(301, seen)
  end)

  it("keeps the bound of 1 MiB", function()
    notes(5, 300 * 1024)
    client:send("conversation.subscribe", { conversation_id = C, after_seq = 1 })
    local item = client:item()
    assert.equal("snapshot", item.kind)
    assert.same({ 4, 5, 6 }, { item.events[1].seq, item.events[2].seq, item.events[3].seq })
    notes(1, 2 * 1024 * 1024)
    assert.equal(7, client:item().seq) -- live events have no bound of their own
    local second = daemon.client(app)
    second:hello()
    second:send("conversation.subscribe", { conversation_id = C })
    item = second:item()
    assert.same({ "snapshot", 0, 7 }, { item.kind, #item.events, item.hwm })
    local page = assert(second:call("conversation.history",
      { conversation_id = C, cursor = item.history_cursor }))
    assert.equal(7, page.events[#page.events].seq)
    second:close()
  end)

  it("ends with overflow and the last number when the client is too slow", function()
    local id = client:send("conversation.subscribe", { conversation_id = C })
    assert.equal("snapshot", client:item().kind)
    client:pause()
    local uv = require "luv"
    for _ = 1, 40 do
      notes(50, 4000)
      uv.run("nowait")
    end
    client:resume()
    local response = client:response(id)
    assert.equal("overflow", response.error.data.code)
    local last = 1
    for _, message in ipairs(client.messages) do
      assert.equal(last + 1, message.params.item.seq)
      last = last + 1
    end
    assert.equal(last, response.error.data.last_seq)
    client.messages = {}
    client:send("conversation.subscribe", { conversation_id = C, after_seq = last })
    assert.equal("snapshot", client:item().kind)
  end)

  it("never loses or doubles an event while others write", function()
    local async = require "efr.util.async"
    local writing = true
    async.spawn(function()
      for i = 1, 200 do
        assert(app.store:append { events = { { kind = "note", conversation_id = C, n = i } } })
      end
      writing = false
    end)
    local clients = {}
    for i = 1, 5 do
      clients[i] = daemon.client(app)
      clients[i]:hello()
      clients[i]:send("conversation.subscribe", { conversation_id = C, after_seq = i * 3 })
    end
    daemon.wait(function()
      return not writing
    end)
    for i, one in ipairs(clients) do
      local seq = i * 3
      while seq < 201 do
        local item = one:item()
        if item.kind == "snapshot" then
          seq = item.hwm
        else
          assert.equal(seq + 1, item.seq)
          seq = item.seq
        end
      end
      one:close()
    end
  end)

  it("sends drafts only to those who ask", function()
    client:send("conversation.subscribe", { conversation_id = C, drafts = true })
    client:item()
    assert.equal(1, #app.drafts)
    app.drafts[1] { turn_id = T, after_seq = 1,
      draft = { kind = "text", index = 0, offset = 0, delta = "hi" } }
    local item = client:item()
    assert.same({ "draft", T, 1, "hi" }, { item.kind, item.turn_id, item.after_seq,
      item.draft.delta })
    client:close()
    daemon.wait(function()
      return app.drafts_stopped
    end)
  end)

  it("knows which terminals follow", function()
    assert.is_false(app.followers:has(C, "/dev/pts/5"))
    local id = client:send("conversation.subscribe", { conversation_id = C })
    client:item()
    assert.is_true(app.followers:has(C, "/dev/pts/5"))
    assert.is_false(app.followers:has(C, "/dev/pts/6"))
    cancel(id)
    assert.is_false(app.followers:has(C, "/dev/pts/5"))
  end)

  it("refuses an unknown conversation", function()
    local _, err = client:call("conversation.subscribe", { conversation_id = OTHER })
    assert.equal("not_found", err.data.code)
    _, err = client:call("conversation.history", { conversation_id = OTHER })
    assert.equal("not_found", err.data.code)
    _, err = client:call("conversation.history", { conversation_id = C, cursor = "what" })
    assert.equal("invalid", err.data.code)
    _, err = client:call("conversations.list", { cursor = "what" })
    assert.equal("invalid", err.data.code)
  end)

  it("lists conversations page by page, newest update first", function()
    for i = 1, 9 do
      append { { kind = "conversation_created", origin = "cli",
        conversation_id = OTHER:sub(1, -3) .. "9" .. i } }
    end
    notes(1)
    local page = assert(client:call("conversations.list", { limit = 4 }))
    assert.same({ C, 4 }, { page.conversations[1].id, #page.conversations })
    local seen = 4
    while page.next_cursor do
      page = assert(client:call("conversations.list", { limit = 4, cursor = page.next_cursor }))
      seen = seen + #page.conversations
    end
    assert.equal(10, seen)
  end)
end)

describe("daemon.follow", function()
  local function text(offset, delta, index)
    return { turn_id = T, after_seq = 1,
      draft = { kind = "text", index = index or 0, offset = offset, delta = delta } }
  end

  it("merges drafts that do not fit and never ends because of them", function()
    local feed = follow.new()
    for i = 0, 99 do
      feed:draft(text(i * 2, ("%02d"):format(i)))
      feed:draft { turn_id = T, after_seq = 1, draft = { kind = "context", tokens = i } }
    end
    feed:finish("closed")
    local got, tokens, count = "", nil, 0
    while true do
      local item, reason = feed:pop()
      if not item then
        assert.equal("closed", reason)
        break
      end
      count = count + 1
      local body = item.draft.draft
      if body.kind == "text" then
        assert.equal(#got, body.offset)
        got = got .. body.delta
      else
        tokens = body.tokens
      end
    end
    assert.equal(200, #got)
    assert.equal(99, tokens)
    assert.is_true(count <= 18)
  end)

  it("keeps parts apart and takes the newer text when offsets do not meet", function()
    local feed = follow.new()
    for i = 1, 16 do
      feed:draft(text(i, "x", 9))
    end
    feed:draft(text(0, "ab", 1))
    feed:draft(text(0, "cd", 2))
    feed:draft(text(2, "ef", 1))
    feed:draft(text(9, "zz", 2))
    local seen = {}
    for _ = 1, 18 do
      local body = feed:pop().draft.draft
      if body.index ~= 9 then
        seen[#seen + 1] = body.index .. body.delta
      end
    end
    assert.same({ "1abef", "2zz" }, seen)
  end)

  it("ends with overflow after 64 events", function()
    local feed = follow.new()
    for i = 1, 70 do
      feed:event { seq = i }
    end
    for i = 1, 64 do
      assert.equal(i, feed:pop().row.seq)
    end
    local item, reason = feed:pop()
    assert.is_nil(item)
    assert.equal("overflow", reason)
  end)
end)
