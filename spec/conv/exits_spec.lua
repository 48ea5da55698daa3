-- The exits of a call, end to end but for the sandbox: who decides, what is recorded, what the call
-- gets, and that nothing runs without a yes.
require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer

-- A world whose model calls one tool once and then says "end".
local function start(line, opts)
  opts = opts or {}
  local w = world_of.new(opts)
  w.fs.mkdirs("/home/u/p/.git")
  w.fs.mkdirs("/home/u/notes")
  if opts.prepare then opts.prepare(w) end
  w.provider.script = function(_, n)
    local input = opts.input or { command = line }
    if n == 1 then return answer("t", { { opts.tool or "shell", input } }) end
    return answer("end")
  end
  local reply = assert(w:send("please", { new_conversation = true }))
  w.id = reply.conversation_id
  return w
end

local function respond(w, decision)
  local asked = w:find("approval_requested")
  return w:call("approve", { conversation_id = w.id, call_id = asked[#asked].call_id,
    decision = decision })
end

local function completed(w) return w:find("tool_call_completed")[1] end

describe("conv.exits", function()
  it("asks about an exit, and a yes gives the grant to this call", function()
    local w = start("touch ~/notes/a", { prepare = function(one)
      one.fs.write_atomic("/usr/bin/touch", "", 493)
    end })
    assert.equal(0, #w.runs)
    local request, question = w:find("exit_requested")[1], w:find("approval_requested")[1]
    assert.same({ "write" }, request.kinds)
    assert.equal("predicted", request.source)
    assert.same({ { kind = "write", path = "/home/u/notes/a" } }, request.grants)
    assert.equal(1, request.record.version)
    assert.same({ "please" }, request.record.user_messages)
    assert.equal("touch ~/notes/a", request.record.action.line)
    assert.equal("/home/u/notes/a", request.record.facts.targets[1].path)
    assert.equal("user_data", request.record.facts.targets[1].class)
    assert.equal("contained", question.exit.launch.kind)
    assert.same(request.grants, question.exit.launch.grants)
    assert.is_nil(question.exit.user_only)
    assert.is_truthy(table.concat(question.exit.facts, "|"):find("does not exist yet", 1, true))
    assert.is_truthy(question.reasons[1]:find("efr creates the file first", 1, true))
    assert(respond(w, "allow"))
    assert.equal("contained", w.runs[1].launch)
    assert.same({ { kind = "write", path = "/home/u/notes/a" } }, w.prepared[1].grants)
    assert.same({ "touch" }, w.prepared[1].plain)
    local judged = w:find("exit_judged")[1]
    assert.same({ "user", "allow" }, { judged.judge, judged.verdict })
    assert.same({ kind = "contained", grants = request.grants },
      w:find("tool_call_started")[1].launch)
    assert.is_truthy(w:kinds():find("exit_requested approval_requested approval_resolved exit_judged "
      .. "tool_call_started tool_call_completed", 1, true))
  end)

  it("runs nothing after a no, an expiry or an interrupt", function()
    local w = start("sudo ls")
    assert(respond(w, "deny"))
    assert.equal(0, #w.runs)
    assert.equal("user", completed(w).refusal.kind)
    assert.equal("deny", w:find("exit_judged")[1].verdict)
    w = start("sudo ls", { config = { ["conversation.approval_timeout_secs"] = 5 } })
    w.clock.advance(5000)
    assert.equal(0, #w.runs)
    assert.equal("expired", completed(w).refusal.kind)
    assert.equal(0, #w:find("exit_judged"))
    w = start("sudo ls")
    assert(w:call("interrupt", { conversation_id = w.id }))
    assert.equal(0, #w.runs)
    assert.equal("interrupted", completed(w).refusal.kind)
    assert.equal(0, #w:find("exit_judged"))
    assert.equal(1, #w:find("exit_requested"))
  end)

  it("runs outside only what no sandbox can serve, and alone", function()
    local w = start("sudo -k; sudo true")
    assert.equal(1, #w:find("approval_requested"))
    assert.equal("unsandboxed", w:find("approval_requested")[1].exit.launch.kind)
    assert.is_true(w:find("approval_requested")[1].exit.user_only)
    assert(respond(w, "allow"))
    assert.equal("outside", w.runs[1].launch)
    assert.same({ kind = "unsandboxed" }, w:find("tool_call_started")[1].launch)
    w = start("sudo -v && ./helper")
    assert.equal(0, #w:find("approval_requested"))
    assert.equal(0, #w.runs)
    assert.equal("floor", completed(w).refusal.kind)
    assert.is_truthy(completed(w).refusal.reason:find(
      "a command that must run outside the sandbox must run alone", 1, true))
    assert.same({ "floor", "deny" },
      { w:find("exit_judged")[1].judge, w:find("exit_judged")[1].verdict })
  end)

  it("refuses floors with no question, and names the rule of the user that refuses", function()
    local w = start("cat ~/.ssh/id_rsa")
    assert.equal(0, #w.runs)
    assert.same({ "floor", "deny" },
      { w:find("exit_judged")[1].judge, w:find("exit_judged")[1].verdict })
    w = start("curl https://h", { prepare = function(world)
      world.app.rules = {
        has = function(_, what) return what == "exit" end,
        judge = function(_, question)
          return { rules = {}, effects = {}, hints = {}, exits = #question.exits > 0
            and { { at = 1, effect = "deny", id = "x", why = "no", file = "rules.lua", line = 3 } }
            or {} }
        end,
      }
    end })
    assert.equal(0, #w.runs)
    local judged = w:find("exit_judged")[1]
    assert.same({ "rule", "deny" }, { judged.judge, judged.verdict })
    assert.is_truthy(judged.rule:find("rules.lua", 1, true))
  end)

  it("asks the reviewer where it may decide, and the user when it does not", function()
    local asked, verdict = {}, nil
    local function with(line, found)
      verdict = found
      return start(line, { prepare = function(w)
        w.app.reviewer = { judge = function(_, _, call, record)
          asked[#asked + 1] = { call.name, record.action.line }
          return verdict
        end }
      end })
    end
    local w = with("curl https://h", { verdict = "allow", risk = "low" })
    assert.equal(0, #w:find("approval_requested"))
    assert.equal("contained", w.runs[1].launch)
    assert.same({ "classifier", "allow", "low" }, { w:find("exit_judged")[1].judge,
      w:find("exit_judged")[1].verdict, w:find("exit_judged")[1].risk })
    w = with("curl https://h", { verdict = "deny", rationale = "not asked for" })
    assert.equal(0, #w.runs)
    assert.equal("reviewer", completed(w).refusal.kind)
    w = with("curl https://h", { verdict = "ask_user", rationale = "unsure" })
    assert.equal("unsure", w:find("approval_requested")[1].exit.judged.rationale)
    w = with("curl https://h", nil)
    assert.equal(1, #w:find("approval_requested"))
    assert.equal(4, #asked)
    w = start("curl https://h", { prepare = function(world)
      world.app.reviewer = { judge = function() error("broken") end }
    end })
    assert.equal(1, #w:find("approval_requested"))
    assert.is_truthy(table.concat(w.logged):find("broken", 1, true))
    w = with("sudo ls", { verdict = "allow" })
    assert.equal(1, #w:find("approval_requested"))
    assert.equal(4, #asked)
  end)

  it("asks once for the user's own ask and the exit, with both reasons", function()
    local w = start("git push", { config = { ["permissions.rules"] = { { action = "execute",
      effect = "ask", resource = { command = { program = "git", args = {}, forbid = {} } } } } } })
    local reasons = w:find("approval_requested")[1].reasons
    assert.equal(2, #reasons)
    assert.is_truthy(reasons[1]:find("permissions.rules[0]", 1, true))
    assert.is_truthy(reasons[2]:find("git sends commits", 1, true))
  end)

  it("tells what the call gets in words, and what is missing refuses it", function()
    local w = start("curl https://h")
    local info = w:find("approval_requested")[1].exit
    assert.same({ { kind = "open_network" } }, info.grants)
    assert.is_truthy(info.facts[1]:find("whole network", 1, true))
    assert(respond(w, "allow"))
    assert.same({ { kind = "host_network" } }, w.prepared[1].grants)
    w = start("swaymsg -t get_tree")
    assert.equal(0, #w:find("approval_requested"))
    assert.equal("unavailable", completed(w).refusal.kind)
    assert.is_truthy(completed(w).output:find(
      "efr found no sway session in the terminal of this prompt", 1, true))
  end)

  it("pauses a reviewer that refuses three times in a row, and stops the turn of who is away", function()
    local function with(away)
      local w = world_of.new {}
      w.fs.mkdirs("/home/u/p/.git")
      w.app.reviewer = { judge = function() return { verdict = "deny", rationale = "no" } end }
      w.provider.script = function(_, n)
        if n <= 4 then return answer("t", { { "shell", { command = "curl https://h" .. n } } }) end
        return answer("end")
      end
      assert(w:send("get https://h1", { new_conversation = true }))
      return w, away
    end
    local w = with()
    assert.equal(3, #w:find("exit_judged"))
    local asked = w:find("approval_requested")
    assert.equal(1, #asked)
    assert.is_truthy(table.concat(asked[1].exit.facts, "|"):find(
      "the reviewer is paused for this turn: it refused 3 actions in a row", 1, true))
    local hosts = w:find("exit_requested")
    assert.is_true(hosts[1].record.facts.hosts[1].named_in_user_messages)
    assert.is_nil(hosts[2].record.facts.hosts[1].named_in_user_messages)
    local w2 = world_of.new {}
    w2.fs.mkdirs("/home/u/p/.git")
    w2.provider.script = function(_, n)
      if n > 6 then return answer("end") end
      return answer("t", { { "shell", { command = "curl https://h" .. n } } })
    end
    w2.app.reviewer = { judge = function()
      w2.app.presence:set(true)
      return { verdict = "deny", rationale = "no" }
    end }
    assert(w2:send("x", { new_conversation = true }))
    assert.equal(3, #w2:find("exit_judged"))
    assert.is_truthy(w2:find("turn_failed")[1].error.message:find("auto stopped this turn: the reviewer "
      .. "refused 3 actions in a row and nobody could decide", 1, true))
  end)

  it("offers an always rule for what one covers, and none for a name that cannot be read", function()
    local function offered(line)
      local w = start(line, { prepare = function(world)
        world.fs.mkdirs("/home/u/odd\n")
        world.fs.tree["/home/u/notes/there"] = "x"
        world.fs.tree["/home/u/odd\n/there"] = "x"
      end })
      return w:find("approval_requested")[1].exit.always_rule, w
    end
    assert.equal("write under ~/notes", (offered("cp a ~/notes/there")))
    assert.is_nil((offered("cp a ~/odd$'\\n'/there")))
    assert.is_nil((offered("touch ~/notes/new")))
    assert.is_nil((offered("sudo ls")))
    -- Only a local terminal saves it, and the question stays open.
    local _, w = offered("cp a ~/notes/there")
    local asked = w:find("approval_requested")[1]
    for _, session in ipairs { { origin = "phone", tty = "/dev/pts/1" }, { origin = "cli" },
      { origin = "cli", tty = "/dev/pts/1", peer = { model_side = true } } } do
      local params = { conversation_id = w.id, call_id = asked.call_id, decision = "allow", always = true }
      assert.equal("forbidden", select(3, w:call("approve", params, session)))
    end
    assert.equal(0, #w:find("approval_resolved"))
  end)

  it("does not count a line that only has to be split as a refusal", function()
    local w = world_of.new {}
    w.fs.mkdirs("/home/u/p/.git")
    w.provider.script = function(_, n)
      if n <= 4 then return answer("t", { { "shell", { command = "sudo true && ./x" .. n } } }) end
      return answer("end")
    end
    assert(w:send("x", { new_conversation = true }))
    assert.equal(4, #w:find("tool_call_completed"))
    assert.equal(1, #w:find("turn_completed"))
    assert.is_truthy(w:find("tool_call_completed")[1].output:find("Split it", 1, true))
  end)

  it("names the exits of earlier calls of the turn in a record", function()
    local w = start("sudo ls")
    w.provider.script = function(_, n)
      if n == 2 then return answer("t", { { "shell", { command = "sudo id" } } }) end
      return answer("end")
    end
    assert(respond(w, "deny"))
    assert.same({ { kind = "privilege", verdict = "deny" } },
      w:find("exit_requested")[2].record.facts.previous_exits_this_turn)
  end)

  it("keeps the user's own words of the conversation, oldest first", function()
    local w = start("ls")
    w.provider.script = function(_, n)
      if n == 3 then return answer("t", { { "shell", { command = "sudo id" } } }) end
      return answer("end")
    end
    assert(w:send("and now", { conversation_id = w.id }))
    assert.same({ "please", "and now" }, w:find("exit_requested")[1].record.user_messages)
  end)

  it("explains an asked call with the effect and the launch that count", function()
    local w = start("sudo ls")
    local data = w.app.decisions:get(w.id)
    assert.same({ "ask", "unsandboxed", "privilege" },
      { data.effect, data.launch, data.exits[1].kind })
  end)
end)
