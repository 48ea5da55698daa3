require "spec.helper"
local async = require "efr.util.async"
local world_of = require "spec.support.world"

local answer = world_of.answer

describe("conv: interrupts, questions, streaming", function()
  local w, id

  local function opened(config, prompt)
    w = world_of.new({ config = config })
    id = w:send(prompt or "go", { new_conversation = true }).conversation_id
    return w
  end

  local function interrupt(more)
    local params = { conversation_id = id }
    for key, value in pairs(more or {}) do params[key] = value end
    return w:call("interrupt", params)
  end

  local function results()
    w:send("next", { conversation_id = id })
    local messages = w.provider.requests[#w.provider.requests].messages
    return messages[#messages - 1].content, messages
  end

  describe("interrupt", function()
    it("while the model streams: the text stays, the stream ends", function()
      opened()
      w.provider.emit({ kind = "text_delta", text = "partial" })
      local reply = interrupt()
      assert.equal(w:find("turn_started")[1].turn_id, reply.turn_id)
      assert.equal(1, w.provider.cancelled)
      assert.equal("conversation_created prompt_queued turn_started turn_interrupt_requested "
        .. "assistant_message_completed turn_interrupted", w:kinds())
      w.provider.emit({ kind = "text_delta", text = "late" })
      local content, messages = results()
      assert.equal("partial", content[1].text)
      assert.equal(3, #messages)
    end)

    it("while the model list is read", function()
      w = world_of.new()
      w.provider.default_model = function() async.await(function() end) end
      id = w:send("go", { new_conversation = true }).conversation_id
      assert(interrupt())
      assert.equal("turn_interrupted", w.store.events[#w.store.events].kind)
      assert.equal(0, #w.provider.requests)
    end)

    it("while a call runs: it is stopped, later calls do not run", function()
      opened()
      local stopped
      w.run_line = function(opts)
        return async.await(function(resume)
          opts.token:on_cancel(function()
            stopped = true
            resume({ outcome = "interrupted", output = "so far", exit_code = 130 })
          end)
        end)
      end
      w:reply(answer("text", { { "shell", { command = "sleep 9" } }, { "look", { n = 1 } } }))
      assert(interrupt())
      assert.is_true(stopped)
      assert.equal(1, #w.runs)
      local content = results()
      assert.matches("^so far\n%[The user interrupted the turn while this call ran",
        content[1].output)
      assert.equal("The user interrupted the turn before this call ran.", content[2].output)
      assert.is_true(content[1].is_error and content[2].is_error)
      assert.matches("tool_call_completed turn_interrupted prompt_queued", w:kinds())
    end)

    it("a call that ends well at the same moment keeps its result", function()
      opened()
      w.run_line = function(opts)
        return async.await(function(resume)
          opts.token:on_cancel(function()
            resume({ outcome = "finished", output = "whole", exit_code = 0 })
          end)
        end)
      end
      w:reply(answer(nil, { { "shell", { command = "x" } } }))
      assert(interrupt())
      assert.equal("whole", results()[1].output)
    end)

    it("while a question waits: it expires, the call does not run", function()
      opened({ ["permissions.mode"] = "cautious" })
      w:reply(answer(nil, { { "shell", { command = "make" } } }))
      assert.equal(1, #w:find("approval_requested"))
      assert(interrupt())
      assert.equal(1, #w:find("approval_expired"))
      assert.equal(0, #w.runs)
      assert.equal("The user interrupted the turn before this call ran.", results()[1].output)
    end)

    it("withdraws waiting prompts in the same batch, in queue order", function()
      opened()
      local second = w:send("two", { conversation_id = id })
      local third = w:send("three", { conversation_id = id })
      local reply = interrupt({ withdraw = { third.turn_id, second.turn_id } })
      local batch
      for _, b in ipairs(w.store.batches) do
        if b.receipt and b.receipt.method == "turn.interrupt" then batch = b end
      end
      assert.same({ "turn_interrupt_requested", "prompt_withdrawn", "prompt_withdrawn" },
        { batch.events[1].kind, batch.events[2].kind, batch.events[3].kind })
      assert.equal(second.turn_id, batch.events[2].turn_id)
      assert.same({ "two", "three" }, { reply.withdrawn[1].text, reply.withdrawn[2].text })
      assert.equal(reply.seq + 1, reply.withdrawn[1].seq)
      assert.equal(1, #w.provider.requests)
    end)

    it("is a conflict, and does nothing, when it cannot hold", function()
      opened()
      local second = w:send("two", { conversation_id = id })
      for _, more in ipairs({ { turn_id = "another" },
        { withdraw = { second.turn_id, "unknown" } } }) do
        local reply, _, code = interrupt(more)
        assert.is_nil(reply)
        assert.equal("conflict", code)
      end
      assert.equal(0, #w:find("turn_interrupt_requested") + #w:find("prompt_withdrawn"))
      w:reply(answer("one"))
      w:reply(answer("two"))
      local _, _, code = interrupt()
      assert.equal("conflict", code)
    end)

    it("runs the next prompt after the interrupted one", function()
      opened()
      w:send("two", { conversation_id = id })
      assert(interrupt())
      local messages = w.provider.requests[2].messages
      assert.equal("two", messages[#messages].content[2].text)
    end)
  end)

  describe("question", function()
    local function asked(config)
      config = config or {}
      config["permissions.mode"] = "cautious"
      opened(config)
      w:reply(answer(nil, { { "shell", { command = "make install" } } }))
      return w:find("approval_requested")[1]
    end

    local function respond(call_id, decision)
      return w:call("approve",
        { conversation_id = id, call_id = call_id, decision = decision })
    end

    it("shows the line; yes runs it directly; the second answer finds nothing", function()
      local request = asked()
      assert.equal("make install", request.summary)
      assert.equal("shell", request.tool)
      assert.matches("run `make install`", request.reasons[1])
      assert.equal(0, #w:find("tool_call_started"))
      local reply = respond(request.call_id, "allow")
      assert.is_truthy(reply.seq)
      assert.equal("direct", w.runs[1].launch)
      assert.equal("direct", w:find("tool_call_started")[1].launch.kind)
      local again, _, code = respond(request.call_id, "deny")
      assert.is_nil(again)
      assert.equal("not_found", code)
      assert.equal("allow", w:find("approval_resolved")[1].decision)
    end)

    it("two answers at once: one wins, the other finds nothing", function()
      local request = asked()
      local resume
      w.store.hold = function(r) resume = r end
      assert.equal("still waiting", select(2, respond(request.call_id, "allow")))
      w.store.hold = nil
      local _, _, code = respond(request.call_id, "deny")
      assert.equal("not_found", code)
      resume()
      assert.equal(1, #w:find("approval_resolved"))
      assert.equal(1, #w.runs)
    end)

    it("an answer that could not be recorded leaves the question open", function()
      local request = asked()
      w.store.fail = function() return "full", "EFR_FULL" end
      assert.is_nil((respond(request.call_id, "allow")))
      w.store.fail = nil
      assert.equal(0, #w.runs)
      assert(respond(request.call_id, "allow"))
      assert.equal(1, #w.runs)
    end)

    it("no: the call does not run and the model is told", function()
      local request = asked()
      assert(respond(request.call_id, "deny"))
      assert.equal(0, #w.runs)
      local messages = w.provider.requests[2].messages
      assert.equal("The user denied the shell call; it did not run. The user alone can let it run "
        .. "once, with: efr allow-last", messages[3].content[1].output)
      local completed = w:find("tool_call_completed")[1]
      assert.equal("user", completed.refusal.kind)
      assert.matches("approval_requested approval_resolved tool_call_started tool_call_completed",
        w:kinds())
    end)

    it("expires after the timeout", function()
      local request = asked({ ["conversation.approval_timeout_secs"] = 60 })
      w.clock.advance(59999)
      assert.equal(0, #w:find("approval_expired"))
      w.clock.advance(1)
      assert.equal(1, #w:find("approval_expired"))
      assert.matches("Nobody answered", w.provider.requests[2].messages[3].content[1].output)
      local _, _, code = respond(request.call_id, "allow")
      assert.equal("not_found", code)
      w:reply(answer("end"))
      w.clock.advance(70000)
      assert.equal(0, w.clock.pending())
    end)

    it("waits without a timeout as long as the user may be there", function()
      local request = asked()
      w.clock.advance(590000)
      assert(respond(request.call_id, "allow"))
      assert.equal(1, #w.runs)
    end)
  end)

  describe("decision", function()
    it("contains every line in auto, and never runs one outside when the sandbox fails", function()
      opened()
      w.refuse_sandbox = "no namespaces"
      w:reply(answer(nil, { { "shell", { command = "make" } } }))
      assert.equal("contained", w.runs[1].launch)
      assert.equal(0, #w.lines)
      local output = w.provider.requests[2].messages[3].content[1].output
      assert.matches("the sandbox could not start: no namespaces", output)
      local completed = w:find("tool_call_completed")[1]
      assert.equal("no namespaces", completed.sandbox.setup_error)
      assert.is_true(completed.is_error)
    end)

    it("says nothing of a sandbox when the hidden shell failed", function()
      opened()
      w.run_line = function()
        return { outcome = "setup_failed", output = "", setup_error = "no prompt", no_shell = true }
      end
      w:reply(answer(nil, { { "shell", { command = "make" } } }))
      assert.is_nil(w:find("tool_call_completed")[1].sandbox)
    end)

    it("contains a line that a rule of the user asked about, also after a yes", function()
      opened({ ["permissions.rules"] = { { action = "execute", effect = "ask",
        resource = { command = { program = "make" } } } } })
      w:reply(answer(nil, { { "shell", { command = "make" } } }))
      local request = w:find("approval_requested")[1]
      assert.is_truthy(request)
      assert(w:call("approve",
        { conversation_id = id, call_id = request.call_id, decision = "allow" }))
      assert.equal("contained", w.runs[1].launch)
      assert.equal("contained", w:find("tool_call_started")[1].launch.kind)
    end)

    it("cleans a call's directory up, except while its line still runs", function()
      opened()
      local late
      w.run_line = function(opts)
        local over = opts.line == "slow"
        if over then late = opts.on_late_end end
        return { outcome = over and "timeout" or "finished", output = "", exit_code = 0,
          left_running = over }
      end
      w:reply(answer(nil, { { "shell", { command = "fast" } }, { "shell", { command = "slow" } } }))
      assert.is_true(w.prepared[1].cleaned)
      assert.is_nil(w.prepared[2].cleaned)
      late({})
      assert.is_true(w.prepared[2].cleaned)
    end)

    it("ends a turn in auto after three refusals in a row", function()
      opened()
      w.app.tools.list()[2].declare = function(input)
        return { { kind = input.bad and "nested_shell" or "read", path = "/etc/hosts" } }
      end
      local bad, good = { "look", { bad = true } }, { "look", { n = 1 } }
      w:reply(answer(nil, { bad, bad, good, bad, bad }))
      assert.equal(0, #w:find("turn_failed"))
      w:reply(answer(nil, { bad, good, good }))
      local failed = w:find("turn_failed")[1]
      assert.equal("forbidden", failed.error.code)
      assert.matches("^auto stopped this turn: 3 actions were refused in a row",
        failed.error.message)
      assert.equal(1, #w.runs)
      assert.equal("floor", w:find("tool_call_completed")[1].refusal.kind)
    end)

    it("takes null as a parameter that is left out, and keeps it in the history", function()
      opened()
      local null = require("spec.support.json").null
      w:reply(answer(nil, { { "look", { n = 1, boom = null } } }))
      assert.same({ n = 1 }, w.runs[1].input)
      assert.equal(null, w.provider.requests[2].messages[2].content[1].input.boom)
    end)

    it("answers unknown tools, the other edit tool and wrong arguments with a result", function()
      opened()
      local broken = { "look" }
      broken.error = "The arguments are no JSON object; the call did not run."
      w:reply(answer(nil, { { "nothing", {} }, { "apply_patch", {} }, broken, { "shell", {} },
        { "look", { boom = true } } }))
      local content = w.provider.requests[2].messages[3].content
      -- A tool that is not offered stands as text, as it will in later requests.
      assert.matches("which failed:\nThere is no tool named nothing", content[1].text)
      assert.matches("no apply_patch tool, .* Use the edit tool", content[2].text)
      assert.matches("no JSON object", content[3].output)
      assert.equal("command is missing", content[4].output)
      assert.matches("internal error", content[5].output)
      for i = 3, 5 do assert.is_true(content[i].is_error) end
    end)
  end)

  describe("stream", function()
    it("records updates at most every interval and drafts more often, with one offset", function()
      opened()
      local drafts = {}
      w.app.conversations:drafts(id, function(d)
        if d.draft.kind ~= "context" then drafts[#drafts + 1] = d end
      end)
      local text = ""
      for n = 1, 100 do
        local piece = n % 2 == 0 and "é" or "ab"
        text = text .. piece
        w.provider.emit({ kind = "text_delta", text = piece })
        w.clock.advance(10)
      end
      local updates = w:find("assistant_message_updated")
      assert.is_true(#updates >= 5 and #updates <= 7)
      assert.is_true(#drafts >= 50 and #drafts <= 65)
      w:reply(answer("!"))
      local function joined(list, field)
        local out = ""
        for _, item in ipairs(list) do
          local part = field and item[field] or item
          assert.equal(#out, part.offset)
          out = out .. part.delta
        end
        return out
      end
      assert.equal(text .. "!", joined(w:find("assistant_message_updated")))
      assert.equal(text .. "!", joined(drafts, "draft"))
      assert.equal(text .. "!", w:find("assistant_message_completed")[1].text)
      assert.is_truthy(drafts[1].after_seq)
    end)

    it("sends the first text at once and never cuts a character", function()
      opened()
      local drafts = {}
      w.app.conversations:drafts(id, function(d)
        if d.draft.kind ~= "context" then drafts[#drafts + 1] = d.draft end
      end)
      w.provider.emit({ kind = "text_delta", text = "a\xF0\x9F" })
      assert.equal("a", drafts[1].delta)
      w.provider.emit({ kind = "text_delta", text = "\x98\x80b\xC3" })
      w:reply(answer())
      assert.equal("a\xF0\x9F\x98\x80b\xEF\xBF\xBD",
        w:find("assistant_message_completed")[1].text)
      for _, d in ipairs(drafts) do assert.is_truthy(utf8.len(d.delta)) end
    end)

    it("shows reasoning and growing tool input as drafts only", function()
      opened()
      local drafts = {}
      w.app.conversations:drafts(id, function(d)
        if d.draft.kind ~= "context" then drafts[#drafts + 1] = d.draft end
      end)
      w.provider.emit({ kind = "reasoning_delta", text = "hm" })
      w.clock.advance(20)
      w.provider.emit({ kind = "tool_call_start", index = 0, call_id = "p", name = "look" })
      w.provider.emit({ kind = "tool_call_delta", index = 0, delta = "{\"n\":" })
      w.clock.advance(20)
      assert.same({ kind = "reasoning", offset = 0, delta = "hm" }, drafts[1])
      local last = drafts[#drafts]
      assert.same({ "tool_input", "look", 5 }, { last.kind, last.tool, last.bytes })
      assert.equal(3, #w.store.events)
      w.provider.emit({ kind = "tool_call_end", index = 0, call_id = "p", name = "look",
        input = { n = 1 }, raw = "{}" })
      w.provider.emit({ kind = "done", stop_reason = "tool_use" })
      assert.equal(last.call, w:find("tool_call_started")[1].call_id)
    end)

    it("shows how full the context is, also to those who come later", function()
      opened()
      w:reply(answer("a"))
      local first
      w.app.conversations:drafts(id, function(d) first = first or d.draft end)
      assert.same({ kind = "context", tokens = 15, limit = 950, window = 1000 }, first)
    end)

    it("passes the output of a running call on, at most 4096 bytes", function()
      opened()
      w:reply(answer(nil, { { "look", { say = ("x"):rep(5000) } } }))
      local update = w:find("tool_call_output_updated")[1]
      assert.equal(4096, #update.tail)
      assert.equal(5000, update.bytes)
    end)
  end)

  it("ends a running turn as cancelled when the daemon stops, with its messages", function()
    opened()
    w.provider.emit({ kind = "text_delta", text = "partial" })
    local closed
    async.spawn(function()
      w.app.conversations:close()
      closed = true
    end)
    assert.is_true(closed)
    assert.equal("turn_cancelled", w.store.events[#w.store.events].kind)
    assert.equal(2, #w.store.messages)
  end)

  it("tells the model of a call that the end of the daemon stopped", function()
    opened()
    w.run_line = function(opts)
      return async.await(function(resume)
        opts.token:on_cancel(function() resume({ outcome = "interrupted", output = "" }) end)
      end)
    end
    w:reply(answer(nil, { { "shell", { command = "x" } }, { "shell", { command = "y" } } }))
    async.spawn(function() w.app.conversations:close() end)
    local saved = w.store.messages[#w.store.messages].message
    assert.is_truthy(saved:find("efr was stopped while this call ran", 1, true))
    assert.is_truthy(saved:find("efr was stopped before this call ran", 1, true))
    assert.is_nil(saved:find("The user interrupted", 1, true))
  end)

  it("gives a terminal its own conversation until it was idle or its shell ended", function()
    opened()
    local function from(tty, pid)
      return w:send("x", { context = { pwd = "/", tty = tty, shell_pid = pid } }).conversation_id
    end
    w.provider.script = function() return answer("ok") end
    local first = from("/dev/pts/5", 42)
    assert.equal(first, from("/dev/pts/5", 42))
    assert.equal(first, from("/dev/pts/5", 77)) -- 42 lives
    assert.not_equal(first, from("/dev/pts/5", 99)) -- 77 is gone
    local other = from("/dev/pts/6", 42)
    w.clock.advance(13 * 3600 * 1000)
    assert.not_equal(other, from("/dev/pts/6", 42))
  end)
end)
