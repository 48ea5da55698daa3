require "spec.helper"
local json = require "spec.support.json"
local world_of = require "spec.support.world"

local answer = world_of.answer

describe("conv: a turn", function()
  local w

  local function opened(opts)
    w = world_of.new(opts)
    return w
  end

  local function last_event() return w.store.events[#w.store.events].event end

  it("records the prompt with its receipt in one batch, then runs", function()
    opened()
    local reply = assert(w:send("hello", { new_conversation = true }))
    local batch = w.store.batches[1]
    assert.equal("conversation_created", batch.events[1].kind)
    assert.equal("prompt_queued", batch.events[2].kind)
    assert.equal("prompt.send", batch.receipt.method)
    assert.equal(2, batch.receipt.seq_event)
    assert.is_nil(batch.receipt.result.seq)
    assert.equal(2, reply.seq)
    assert.is_nil(reply.queued)
    assert.equal("auto", reply.settings.mode)
    w:reply(answer("hi"))
    assert.equal("conversation_created prompt_queued turn_started assistant_message_completed "
      .. "turn_completed", w:kinds())
    local started = w:find("turn_started")[1]
    assert.equal("/home/u/p", started.cwd)
    assert.same({ kind = "project", value = "p1" }, started.scope)
    assert.equal("fake-model", started.settings.model)
    local done = last_event()
    assert.same({ input_tokens = 10, output_tokens = 5, context_tokens = 15 }, done.usage)
    assert.same({ tokens = 15, limit = 950, window = 1000 }, done.context)
    assert.equal(true, w.store.batches[#w.store.batches].durable)
  end)

  it("sends system prompt, tools and a prompt message with its live state", function()
    opened()
    w:send("fix it", { last_command = "make TOKEN=abcdef", context = { pwd = "/home/u/p",
      last_status = 2, oldpwd = "/tmp" } })
    local request = w.provider.requests[1]
    assert.matches("hidden zsh", request.system)
    assert.equal(0, request.call)
    assert.equal(1, request.turn)
    local names = {}
    for i, tool in ipairs(request.tools) do names[i] = tool.name end
    assert.same({ "shell", "look", "edit" }, names)
    local content = request.messages[1].content
    assert.equal(2, #content)
    local state = content[1].text
    assert.matches("^<live_state>\n.*</live_state>$", state)
    assert.is_truthy(state:find("/home/u/p, before that in /tmp", 1, true))
    assert.is_truthy(state:find("exit status 2", 1, true))
    assert.is_truthy(state:find("Permission mode: auto", 1, true))
    assert.is_nil(state:find("abcdef", 1, true))
    assert.equal("fix it", content[2].text)
    for _, e in ipairs(w.store.events) do
      assert.is_nil(json.encode(e.event):find("TOKEN", 1, true))
    end
  end)

  it("runs calls one after another and puts all results into one user message", function()
    opened()
    w.provider.script = function(_, n)
      if n == 1 then
        return answer("two calls", { { "look", { n = 1, path = "/home/u/p/a" } },
          { "look", { n = 2, path = "/home/u/p/a" } } })
      end
      return answer("done")
    end
    w:send("go")
    local messages = w.provider.requests[2].messages
    assert.equal(3, #messages)
    assert.same({ "text", "tool_call", "tool_call" }, { messages[2].content[1].kind,
      messages[2].content[2].kind, messages[2].content[3].kind })
    assert.equal("p2", messages[2].content[3].call_id)
    assert.same({ "saw 1", "saw 2" }, { messages[3].content[1].output,
      messages[3].content[2].output })
    assert.equal("p1", messages[3].content[1].call_id)
    assert.matches("tool_call_started tool_call_completed tool_call_started tool_call_completed "
      .. "assistant_message_completed turn_completed$", w:kinds())
    local done = last_event()
    assert.same({ { path = "/home/u/p/a", kind = "modified", added = 2, removed = 4 } },
      done.changes.files)
    assert.equal(20, done.usage.input_tokens)
    assert.equal(15, done.usage.context_tokens)
  end)

  it("lets every later request start with the one before, also after a restart", function()
    opened()
    local sent = {}
    w.provider.script = function(request, n)
      sent[n] = {}
      for i, message in ipairs(request.messages) do sent[n][i] = json.encode(message) end
      if n % 3 == 1 then return answer("a" .. n, { { "look", { n = n } } }) end
      if n % 3 == 2 then return answer(nil, { { "shell", { command = "x" .. n } } }) end
      local last = answer("end " .. n)
      last[#last].provider_raw = "raw" .. n
      return last
    end
    local id = w:send("first", { new_conversation = true }).conversation_id
    w:send("second", { conversation_id = id })
    -- A restart: nothing in memory, the store stays.
    w.app.conversations = require("efr.conv.manager").new(w.app)
    w:send("third", { conversation_id = id, context = { pwd = "/home/u/other" } })
    assert.equal(9, #sent)
    for n = 2, 9 do
      assert.is_true(#sent[n] > #sent[n - 1])
      for i, text in ipairs(sent[n - 1]) do assert.equal(text, sent[n][i]) end
    end
  end)

  it("drops an idle history and reads the same bytes again", function()
    opened()
    w.provider.script = function(_, n) return answer("a" .. n) end
    local id = w:send("first", { new_conversation = true }).conversation_id
    local conv = w.app.conversations.open[id]
    local before = conv.history:sent()
    w.clock.advance(1000)
    assert.equal(1, w.released)
    assert.truthy(conv.history.texts)
    w.clock.advance(60000)
    assert.is_nil(conv.history.texts)
    assert.equal(2, w.released)
    w:send("second", { conversation_id = id })
    local sent = w.provider.requests[2].sent
    assert.equal(#before + 1, #sent)
    for i, text in ipairs(before) do assert.equal(text, sent[i]) end
  end)

  describe("a quiet conversation", function()
    local id
    local function is_open() return w.app.conversations.open[id] ~= nil end
    before_each(function()
      opened()
      w.provider.script = function(_, n)
        return n % 2 == 1 and answer(nil, { { "shell", { command = "x" } } }) or answer("end " .. n)
      end
      id = w:send("first", { new_conversation = true }).conversation_id
    end)

    local function ended()
      w.shell_ended = true
      w.shells.hidden.on_event("shell_exited", { exit_code = 0 })
    end

    it("is forgotten with its shell, and goes on where it was", function()
      local before = w.provider.requests[2].sent
      w.shells.hidden.on_event("shell_started", { cwd = "/home/u/p", pid = 77 })
      w.clock.advance(61000)
      assert.is_true(is_open())
      ended()
      assert.is_false(is_open())
      assert.equal(id, w.closed_shell)
      w.lines = {}
      w:send("second", { conversation_id = id })
      assert.is_true(is_open())
      assert.is_true(w.shell_opts.had_shell)
      for i, text in ipairs(before) do assert.equal(text, w.provider.requests[3].sent[i]) end
    end)

    it("stays while somebody listens, and goes when nobody does", function()
      local stop = w.app.conversations:drafts(id, function() end)
      ended()
      assert.is_true(is_open())
      stop()
      assert.is_false(is_open())
      w.app.conversations:drafts(id, function() end)()
      assert.is_false(is_open())
    end)

    it("stays while something is only in memory", function()
      local conv = w.app.conversations.open[id]
      for _, state in ipairs({ { "left_behind", true }, { "quarantined", { {} } },
        { "approvals", { c = {} } }, { "surface_questions", { q = {} } }, { "appending", 2 } }) do
        local was = conv[state[1]]
        conv[state[1]] = state[2]
        ended()
        assert.is_true(is_open(), state[1])
        conv[state[1]] = was
      end
      ended()
      assert.is_false(is_open())
    end)
  end)

  it("leaves another provider's opaque data out of what is sent", function()
    opened()
    w.provider.script = function(_, n)
      local out = answer("a" .. n)
      out[#out].provider_raw = "opaque"
      return out
    end
    local id = w:send("first", { new_conversation = true }).conversation_id
    w:send("second", { conversation_id = id })
    assert.equal("opaque", w.provider.requests[2].messages[2].provider_raw)
    w.provider.id = "another"
    w:send("third", { conversation_id = id })
    assert.is_nil(w.provider.requests[3].messages[2].provider_raw)
    assert.equal("a1", w.provider.requests[3].messages[2].content[1].text)
  end)

  it("shows calls of a tool that is not offered as text, the same each time", function()
    opened()
    local edit_tool = "edit"
    function w.provider.edit_tool() return edit_tool end
    w.provider.script = function(_, n)
      if n == 1 then
        local out = answer("t", { { "edit", { a = 1 } }, { "look", { n = 1 } } })
        out[#out].provider_raw = "opaque"
        return out
      end
      return answer("a" .. n)
    end
    local id = w:send("first", { new_conversation = true }).conversation_id
    edit_tool = "apply_patch"
    w:send("second", { conversation_id = id })
    w:send("third", { conversation_id = id })
    local second = w.provider.requests[3].messages
    assert.is_nil(second[2].provider_raw)
    assert.equal("text tool_call", second[2].content[2].kind .. " " .. second[2].content[3].kind)
    assert.matches('^Earlier tool call `edit` %(id p1%), shown as text.*{"a":1}$',
      second[2].content[2].text)
    assert.equal("Result of the earlier tool call `edit` (id p1):\nedited",
      second[3].content[1].text)
    assert.equal("tool_result", second[3].content[2].kind)
    local before, after = w.provider.requests[3].sent, w.provider.requests[4].sent
    for i = 1, 4 do assert.equal(before[i], after[i]) end
  end)

  it("rebuilds a turn whose messages were not saved", function()
    opened()
    w.provider.script = function(_, n)
      if n == 1 then return answer("look first", { { "look", { n = 1 } } }) end
      return answer("end")
    end
    local id = w:send("first", { new_conversation = true }).conversation_id
    w.store.messages = {}
    w.app.conversations = require("efr.conv.manager").new(w.app)
    w:send("second", { conversation_id = id })
    local messages = w.provider.requests[3].messages
    assert.equal("first", messages[1].content[1].text)
    assert.equal("look first", messages[2].content[1].text)
    assert.equal("look", messages[2].content[2].name)
    assert.equal(messages[2].content[2].call_id, messages[3].content[1].call_id)
    assert.equal("saw 1", messages[3].content[1].output)
    assert.equal("end", messages[4].content[1].text)
    assert.equal(5, #messages)
  end)

  it("queues in order, refuses a full queue, and says that it waits", function()
    opened()
    local id = w:send("p1", { new_conversation = true }).conversation_id
    for i = 2, 4 do
      assert.equal(true, assert(w:send("p" .. i, { conversation_id = id })).queued)
    end
    local reply, _, code = w:send("p5", { conversation_id = id })
    assert.is_nil(reply)
    assert.equal("busy", code)
    for i = 1, 4 do
      local messages = w.provider.requests[i].messages
      assert.equal("p" .. i, messages[#messages].content[2].text)
      w:reply(answer("ok"))
    end
    assert.equal(4, #w:find("turn_completed"))
    assert.equal(4, #w.provider.requests)
  end)

  it("withdraws a prompt that waits, and nothing else", function()
    opened()
    local first = w:send("p1", { new_conversation = true })
    local id = first.conversation_id
    local second = w:send("p2", { conversation_id = id,
      context = { pwd = "/", tty = "/dev/pts/1" } })
    w:send("p3", { conversation_id = id })
    local function withdraw(target)
      return w:call("withdraw", { conversation_id = id, target = target })
    end
    local _, _, code = withdraw({ kind = "turn", turn_id = first.turn_id })
    assert.equal("conflict", code)
    _, _, code = withdraw({ kind = "turn", turn_id = "no-such" })
    assert.equal("not_found", code)
    local reply = withdraw({ kind = "newest_from_tty", tty = "/dev/pts/1" })
    assert.equal(second.turn_id, reply.withdrawn.turn_id)
    assert.equal("p2", reply.withdrawn.text)
    _, _, code = withdraw({ kind = "newest_from_tty", tty = "/dev/pts/1" })
    assert.equal("not_found", code)
    _, _, code = withdraw({ kind = "turn", turn_id = second.turn_id })
    assert.equal("conflict", code)
    w:reply(answer("ok"))
    local messages = w.provider.requests[2].messages
    assert.equal("p3", messages[#messages].content[2].text)
  end)

  it("puts back what was withdrawn when the batch is not recorded", function()
    opened()
    local id = w:send("p1", { new_conversation = true }).conversation_id
    local second = w:send("p2", { conversation_id = id })
    w:send("p3", { conversation_id = id })
    w.store.fail = function() return "disk full", "EFR_FULL" end
    assert.is_nil((w:call("interrupt", {
      conversation_id = id,
      withdraw = { second.turn_id },
    })))
    w.store.fail = nil
    w:reply(answer("ok"))
    local messages = w.provider.requests[2].messages
    assert.equal("p2", messages[#messages].content[2].text)
    assert.equal(0, #w:find("turn_interrupt_requested"))
  end)

  it("stops a turn after 64 model calls", function()
    opened()
    w.provider.script = function() return answer(nil, { { "look", { n = 1 } } }) end
    w:send("loop")
    assert.equal(64, #w.provider.requests)
    local failed = last_event()
    assert.equal("turn_failed", failed.kind)
    assert.equal("internal", failed.error.code)
    assert.equal("stopped after 64 model calls without a final answer", failed.error.message)
  end)

  it("keeps the text that came before a failure, and maps the class", function()
    opened()
    local id = w:send("go", { new_conversation = true }).conversation_id
    w.provider.emit({ kind = "text_delta", text = "half an " })
    w.provider.emit({ kind = "text_delta", text = "answer" })
    w.provider.emit({ kind = "error", class = "RateLimited", message = "slow", retry_after_ms = 9 })
    assert.equal("half an answer", w:find("assistant_message_completed")[1].text)
    assert.same({ code = "busy", message = "slow", data = { retry_after_ms = 9 } },
      last_event().error)
    w:send("again", { conversation_id = id })
    local messages = w.provider.requests[2].messages
    assert.equal("half an answer", messages[2].content[1].text)
    assert.equal("again", messages[3].content[2].text)
  end)

  it("fails a turn with a wrong mode of the settings, and runs the next", function()
    opened()
    local id = w:send("go", { new_conversation = true }).conversation_id
    w:send("next", { conversation_id = id })
    w.app.config.values["permissions.mode"] = "nonsense"
    w:reply(answer("ok"))
    local failed = w:find("turn_failed")[1]
    assert.equal("invalid", failed.error.code)
    assert.equal("mode", failed.error.data.setting)
    assert.equal(1, #w:find("turn_started"))
  end)

  it("refuses wrong settings of a prompt and records nothing", function()
    opened()
    local reply, _, code, data = w:send("go", { settings = { mode = "nonsense" } })
    assert.is_nil(reply)
    assert.equal("invalid", code)
    assert.same({ "manual", "cautious", "auto", "full" }, data.choices)
    assert.equal(0, #w.store.events)
    reply, _, code = w:send("  \n ")
    assert.is_nil(reply)
    assert.equal("invalid", code)
    reply, _, code = w:send("x", { conversation_id = "unknown" })
    assert.is_nil(reply)
    assert.equal("not_found", code)
  end)

  it("falls back from auto without a sandbox and tells the model", function()
    opened({ status = { available = false, reason = "no user namespaces" } })
    w:send("go")
    local settings = w:find("turn_started")[1].settings
    assert.equal("cautious", settings.mode)
    assert.equal("auto", settings.fallback.asked)
    assert.matches("no user namespaces", settings.fallback.reason)
    assert.matches("not in force: .*no user namespaces",
      w.provider.requests[1].messages[1].content[1].text)
  end)

  it("falls back from auto where the project is the home directory", function()
    opened({ projects = { { id = "h", root = "/home/u" } } })
    w:send("go", { context = { pwd = "/home/u/x" } })
    assert.matches("home directory", w:find("turn_started")[1].settings.fallback.reason)
  end)

  it("fails the turn, not the daemon, when a step raises", function()
    opened()
    local id = w:send("go", { new_conversation = true }).conversation_id
    w:send("next", { conversation_id = id })
    w.app.tools.list()[2].declare = function() error("a bug") end
    w:reply(answer(nil, { { "look", { n = 1 } } }))
    assert.equal("internal", w:find("turn_failed")[1].error.code)
    assert.matches("a bug", table.concat(w.logged, "\n"))
    assert.equal(2, #w.provider.requests)
  end)

  it("waits with the end of a turn until the store can take it", function()
    opened()
    local id = w:send("go", { new_conversation = true }).conversation_id
    w.store.fail = function() return "disk full", "EFR_FULL" end
    w:reply(answer("lost?"))
    assert.equal(0, #w:find("turn_failed"))
    w.store.fail = nil
    w.clock.advance(600)
    assert.matches("disk full", w:find("turn_failed")[1].error.message)
    w:send("again", { conversation_id = id })
    assert.equal("lost?", w.provider.requests[2].messages[2].content[1].text)
  end)

  it("moves the hidden shell only when the user moved", function()
    opened()
    w.provider.script = function(_, n)
      if n == 1 or n == 3 then return answer(nil, { { "shell", { command = "cd sub" } } }) end
      return answer("ok")
    end
    w.run_line = function(_, hidden)
      hidden.cwd = hidden.cwd .. "/sub"
      return { outcome = "finished", output = "", exit_code = 0, cwd = hidden.cwd }
    end
    local id = w:send("a", { new_conversation = true }).conversation_id
    w:send("b", { conversation_id = id })
    assert.same({}, w.shells.hidden.moves)
    assert.equal("/home/u/p/sub", w.prepared[2].cwd)
    w:send("c", { conversation_id = id, context = { pwd = "/srv" } })
    assert.same({ "/srv" }, w.shells.hidden.moves)
    local messages = w.provider.requests[5].messages
    assert.matches("was moved to the user's directory", messages[#messages].content[1].text)
    local changed = w:find("scope_changed")
    assert.equal(1, #changed)
    assert.same({ kind = "project", value = "p1" }, changed[1].from)
    assert.same({ kind = "path", value = "/srv" }, changed[1].to)
  end)

  it("makes one scratch directory with a marker and finds it again", function()
    opened()
    w.provider.script = function() return answer("ok") end
    local id = w:send("Fix the Build!", { new_conversation = true }).conversation_id
    w.app.conversations = require("efr.conv.manager").new(w.app)
    w:send("b", { conversation_id = id })
    local found = {}
    for path in pairs(w.fs.tree) do
      if path:find("/scratch/.*/%.efr%-conversation$") then found[#found + 1] = path end
    end
    assert.equal(1, #found)
    assert.matches("/scratch/1970%-01%-01%-fix%-the%-build%-%x+/", found[1])
    assert.equal(id .. "\n", w.fs.tree[found[1]])
  end)
end)
