local support = require "spec.support.store"

local C <const> = "0199aaaa-0000-7000-8000-000000000001"
local T <const> = "0199aaaa-0000-7000-8000-000000000002"
local CALL <const> = "0199aaaa-0000-7000-8000-000000000003"

local function created()
  return { kind = "conversation_created", conversation_id = C, origin = "shell" }
end

local function queued(text)
  return { kind = "prompt_queued", conversation_id = C, turn_id = T, text = text or "hello",
    origin = "shell", context = { tty = "/dev/pts/7", shell_pid = 42 } }
end

describe("store.log", function()
  local dir, s

  before_each(function()
    support.setup_async()
    dir = support.new_dir()
    s = support.run(function()
      return assert(support.open(dir))
    end)
  end)

  after_each(function()
    s.db:close()
    support.remove_dir(dir)
  end)

  local function append(batch)
    return support.run(function()
      return s.log:append(batch)
    end)
  end

  it("gives ascending numbers and announces in commit order", function()
    local seen = {}
    local stop = s.log:subscribe(C, function(row)
      seen[#seen + 1] = row.seq .. " " .. row.kind
    end)
    assert.same({ 1, 2 }, append { events = { created(), queued() } })
    assert.same({ 3 }, append { events = { { kind = "new_kind", conversation_id = C, x = 1 } } })
    stop()
    append { events = { { kind = "new_kind", conversation_id = C } } }
    assert.same({ "1 conversation_created", "2 prompt_queued", "3 new_kind" }, seen)
  end)

  it("keeps many batches that wait at once in order", function()
    append { events = { created() } }
    local async = require "efr.util.async"
    local seen, left = {}, 600
    s.log:subscribe(nil, function(row)
      seen[#seen + 1] = row.seq
    end)
    for i = 1, 600 do
      async.spawn(function()
        local seqs = assert(s.log:append { events = {
          { kind = "note", conversation_id = C, n = i } }, durable = i % 100 == 0 })
        assert(seqs[1] == i + 1)
        left = left - 1
      end)
    end
    support.run(function()
      s.log:append { events = { { kind = "last", conversation_id = C } } }
    end)
    assert.equal(0, left)
    assert.equal(601, #seen)
    for i, seq in ipairs(seen) do
      assert.equal(i + 1, seq)
    end
  end)

  it("lets a subscriber fail alone", function()
    local seen = 0
    s.log:subscribe(nil, function()
      error("broken")
    end)
    s.log:subscribe(nil, function()
      seen = seen + 1
    end)
    append { events = { created() } }
    assert.equal(1, seen)
    assert.equal(1, #s.errors)
  end)

  it("keeps an unknown kind as it came and advances the cursor", function()
    append { events = { created(), { kind = "from_the_future", conversation_id = C,
      deep = { list = s.ports.json.array { 1, 2 }, big = 9007199254740993 } } } }
    local events = s.query:events(C, { limit = 10 })
    assert.equal('{"deep":{"big":9007199254740993,"list":[1,2]},"kind":"from_the_future"}',
      events[2].payload)
    assert.equal(2, s.query:conversation(C).last_seq)
  end)

  it("keeps text that is no UTF-8 exactly beside the cleaned one", function()
    append { events = { created(), { kind = "cwd_changed", conversation_id = C, pty_id = T,
      cwd = "/a/\xff" } } }
    local event = s.query:events(C, { limit = 10 })[2].event
    assert.equal("/a/\u{FFFD}", event.cwd)
    assert.equal("/a/\xff", require("efr.util.text").unbase64(event.cwd_b64))
  end)

  it("refuses a batch as a whole", function()
    append { events = { created() } }
    local seqs, _, code = append { events = { queued(), created() } }
    assert.is_nil(seqs)
    assert.equal("EFR_CONFLICT", code)
    assert.is_nil(s.query:turn(T))
    seqs, _, code = append { events = { { kind = "note", conversation_id = T } } }
    assert.is_nil(seqs)
    assert.equal("EFR_CONFLICT", code)
    assert.equal(1, #s.query:events(C, { limit = 10 }))
  end)

  it("refuses a second receipt and keeps the first", function()
    local receipt = { command_id = CALL, method = "prompt.send", result = { turn_id = T },
      seq_event = 2 }
    append { events = { created(), queued() }, receipt = receipt }
    local kept = s.query:receipt(CALL)
    assert.equal(2, kept.seq)
    assert.same({ turn_id = T }, kept.result)
    local _, _, code = append { events = { { kind = "note", conversation_id = C } },
      receipt = receipt }
    assert.equal("EFR_CONFLICT", code)
    assert.equal(2, s.query:last_seq(C))
  end)

  it("answers an approval once", function()
    append { events = { created(), queued(),
      { kind = "turn_started", conversation_id = C, turn_id = T, cwd = "/x",
        scope = { kind = "machine" } },
      { kind = "approval_requested", conversation_id = C, turn_id = T, call_id = CALL,
        summary = "run it" } } }
    assert.equal("awaiting_approval", s.query:conversation(C).status)
    local answer = { kind = "approval_resolved", conversation_id = C, turn_id = T,
      call_id = CALL, decision = "allow", origin = "cli" }
    assert.truthy(append { events = { answer } })
    assert.equal("running", s.query:conversation(C).status)
    local _, _, code = append { events = { answer } }
    assert.equal("EFR_CONFLICT", code)
    assert.equal("allow", s.query:approval(CALL).decision)
  end)

  it("checks a guard inside the transaction", function()
    append { events = { created(), queued() } }
    local guard = { sql = "UPDATE turns SET status = status WHERE id = ? AND status = 'running'",
      params = { T } }
    local _, _, code = append { events = { { kind = "note", conversation_id = C } },
      guard = guard }
    assert.equal("EFR_CONFLICT", code)
  end)

  it("refuses a batch on a full disk and goes on when there is room", function()
    append { events = { created() } }
    local pages = s.db:read("PRAGMA page_count")[1].page_count
    local function limit(count)
      return support.run(function()
        return require("efr.util.async").await(function(resume)
          s.db:write({ { "PRAGMA max_page_count = " .. count, {} } }, false, resume)
        end)
      end)
    end
    assert.is_nil(limit(pages + 1))
    local big = { kind = "note", conversation_id = C, text = ("x"):rep(200000) }
    local seqs, _, code = append { events = { big, queued() } }
    assert.is_nil(seqs)
    assert.equal("EFR_FULL", code)
    assert.is_nil(s.query:turn(T))
    assert.equal(1, s.query:last_seq(C))
    assert.is_nil(limit(1000000))
    assert.truthy(append { events = { big, queued() } })
    assert.equal("queued", s.query:turn(T).status)
  end)

  it("forbids changes of events", function()
    append { events = { created() } }
    for _, sql in ipairs { "UPDATE events SET kind = 'x'", "DELETE FROM events" } do
      local err = support.run(function()
        local async = require "efr.util.async"
        return async.await(function(resume)
          s.db:write({ { sql, {} } }, false, resume)
        end)
      end)
      assert.truthy(err:find("events are append-only", 1, true))
    end
  end)

  it("keeps the messages of a turn", function()
    append { events = { created(), queued() } }
    append { events = { { kind = "turn_completed", conversation_id = C, turn_id = T } },
      turn_messages = {
        { conversation_id = C, turn_id = T, position = 1, provider = "p", model = "m",
          message = { role = "user" } },
        { conversation_id = C, turn_id = T, position = 2, provider = "p", model = "m",
          message = '{"role":"assistant","z":1,"a":2}' },
      } }
    local messages = s.query:turn_messages(C)
    assert.equal('{"role":"user"}', messages[1].message)
    assert.equal('{"role":"assistant","z":1,"a":2}', messages[2].message)
    assert.equal(T .. " 2 p m", ("%s %d %s %s"):format(messages[2].turn_id, messages[2].position,
      messages[2].provider, messages[2].model))
  end)

  it("knows whether a conversation had a shell", function()
    append { events = { created(), queued() } }
    assert.is_false(s.query:had_shell(C))
    append { events = {
      { kind = "shell_started", conversation_id = C, pty_id = "p", cwd = "/", pid = 7 },
      { kind = "shell_exited", conversation_id = C, pty_id = "p", exit_code = 0 } } }
    assert.is_true(s.query:had_shell(C))
    assert.is_false(s.query:had_shell(T))
  end)

  it("makes a title and gives a terminal one conversation", function()
    local other = "0199aaaa-0000-7000-8000-000000000009"
    append { events = { created(), queued("  \n\n  " .. ("é"):rep(100) .. "\nmore") } }
    assert.equal(("é"):rep(77) .. "...", s.query:conversation(C).title)
    assert.equal(C, s.query:conversation_of_tty("/dev/pts/7").id)
    assert.equal(42, s.query:conversation_of_tty("/dev/pts/7").shell_pid)
    append { events = { { kind = "conversation_created", conversation_id = other,
      origin = "shell", tty = "/dev/pts/7" } } }
    assert.equal(other, s.query:conversation_of_tty("/dev/pts/7").id)
    assert.is_nil(s.query:conversation(C).tty)
  end)
end)
