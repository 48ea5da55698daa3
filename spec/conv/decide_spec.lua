-- Step decide: floors, the user's rules, full mode, and the decisions that are kept for those who ask
-- why. Exits have a spec of their own.
require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer

local function run(line, opts)
  local w = world_of.new(opts)
  w.fs.mkdirs("/home/u/p/.git")
  w.provider.script = function(_, n)
    if n == 1 then return answer("t", { { "shell", { command = line } } }) end
    return answer("end")
  end
  local reply = assert(w:send("go", { new_conversation = true }))
  return w, reply.conversation_id
end

local function explained(w, params, session)
  w.app.ports.text.is_utf8 = function(s) return utf8.len(s) ~= nil end
  local result, message, code =
    require("efr.daemon.rpc.decision_explain").handler(w.app, session or {}, params)
  return result, message, code
end

describe("conv: a decision", function()
  it("keeps floors and the user's own rules ", function()
    local w = run("cat ~/.ssh/id_rsa")
    assert.equal(0, #w.runs)
    assert.equal("floor", w:find("tool_call_completed")[1].refusal.kind)
    w = run("make", { config = { ["permissions.rules"] = { { action = "execute", effect = "deny",
      resource = { command = { program = "make", args = {}, forbid = {} } } } } } })
    assert.equal(0, #w.runs)
    assert.is_truthy(w:find("tool_call_completed")[1].refusal.reason:find("permissions.rules[0]", 1, true))
  end)

  it("runs a read-only line at once in cautious, directly", function()
    local w = run("ls -la | head", { config = { ["permissions.mode"] = "cautious" } })
    assert.equal("direct", w.runs[1].launch)
    assert.equal(0, #w:find("approval_requested"))
    w = run("git status", { config = { ["permissions.mode"] = "cautious" } })
    local reasons = w:find("approval_requested")[1].reasons
    assert.is_truthy(reasons[1]:find("does not know whether git's configuration", 1, true))
  end)

  it("asks about every line that another shell than zsh will run", function()
    for _, line in ipairs { "echo hi", "ls", "echo $'a\\'; rm -rf d #'" } do
      local w = world_of.new { config = { ["permissions.mode"] = "cautious" } }
      w.unmarked, w.search_path = true, false
      w.fs.mkdirs("/home/u/p/.git")
      w.provider.script = function(_, n)
        return n == 1 and answer("t", { { "shell", { command = line } } }) or answer("end")
      end
      assert(w:send("go", { new_conversation = true }))
      local asked = w:find("approval_requested")[1]
      assert.is_truthy(asked, line)
      local reasons = table.concat(asked.reasons, "\n")
      assert.is_truthy(reasons:find("integration", 1, true), reasons)
    end
  end)

  it("refuses full mode, which needs undo and its copies", function()
    for _, off in ipairs { "undo.enabled", "snapshot.enabled", false } do
      local config = { ["permissions.allow_full"] = true, ["undo.enabled"] = true,
        ["snapshot.enabled"] = true }
      if off then config[off] = false end
      local w = world_of.new { config = config }
      w.app.ports.sys.getuid, w.app.shells.has_zsh =
        function() return 1000 end, function() return true end
      local reply, text, code = w:send("go", { new_conversation = true, settings = { mode = "full" } })
      assert.equal(not off, reply ~= nil, text)
      assert.equal(off and "invalid" or nil, code)
      assert.is_truthy(not off or text:find("full needs undo", 1, true))
    end
    local w = world_of.new()
    local message = select(2, w:send("go", { new_conversation = true, settings = { mode = "full" } }))
    assert.is_truthy(message:find("permissions.allow_full is not true", 1, true))
  end)

  it("asks a timed question before a guarded delete in full mode, and no answer means no", function()
    local machine = require "efr.conv.machine"
    local before = machine.full
    machine.full = function() return { allow_full = true, uid = 1000, undo = true, zsh = true } end
    local w = world_of.new()
    w.provider.script = function(_, n)
      if n == 1 then return answer("t", { { "shell", { command = "ls; rm -rf ~/.config" } } }) end
      return answer("end")
    end
    local ok, err = pcall(function()
      assert(w:send("go", { new_conversation = true, settings = { mode = "full" } }))
      assert.is_true(w.app.conversations:full_runs())
      local request = w:find("approval_requested")[1]
      assert.same({ seconds = 60, undo = false,
        deletes = { "/home/u/.config: a part of your home directory" } }, request.guard)
      w.clock.advance(59000)
      assert.equal(0, #w:find("approval_expired"))
      w.clock.advance(1000)
      assert.equal(1, #w:find("approval_expired"))
      assert.equal(0, #w.runs)
      assert.is_false(w.app.conversations:full_runs())
      assert.equal(1, w.full_ended)
    end)
    machine.full = before
    assert(ok, err)
  end)

  it("explains the newest call, a call by its id, and none that it does not know", function()
    local w, id = run("ls")
    local call = w:find("tool_call_started")[1].call_id
    for _, params in ipairs { { conversation_id = id }, { call_id = call },
      { conversation_id = id, call_id = call } } do
      local result = assert(explained(w, params))
      assert.equal("ls", result.line)
      assert.same({ "ls" }, result.parts)
      assert.equal(w.app.decisions:get(id).reasons[1], result.reasons[1])
    end
    local other = "0199a0b0-0000-7000-8000-0000000000ff"
    assert.equal("not_found", select(3, explained(w, { conversation_id = other, call_id = call })))
    assert.equal("not_found", select(3, explained(w, { call_id = "x" })))
    assert.equal("not_found", select(3, explained(w, {})))
  end)

  it("keeps a bounded number of decisions", function()
    local w = world_of.new()
    local decisions = require("efr.conv.decisions").new(w.app.ports)
    local decision = { effect = "allow", inside = "allow", reasons = {}, exits = {}, views = {} }
    for i = 1, 300 do
      decisions:add { call_id = "c" .. i, conversation_id = "v", decision = decision, effect = "allow",
        input = { requirements = {}, tool = "look" } }
    end
    assert.is_nil(decisions:get("v", "c44"))
    assert.equal("c65", decisions:get("v", "c65").call_id)
    assert.is_nil(decisions:get("another", "c300"))
    assert.equal("c300", decisions:get("v").call_id)
    assert.equal("c300", decisions:get(nil, "c300").call_id)
    -- In bytes too, however many lines there are; but the newest is always there.
    for i = 1, 9 do
      decisions:add { call_id = "l" .. i, conversation_id = "v", decision = decision,
        effect = "allow", line = ("x"):rep(64 * 1024), input = { requirements = {}, tool = "shell" } }
      assert.equal("l" .. i, decisions:get("v").call_id)
    end
    assert.is_nil(decisions:get("v", "l1"))
    assert.is_nil(decisions:get("v", "c300"))
    assert.equal("l2", decisions:get("v", "l2").call_id)
  end)

  it("explains a line that is no UTF-8", function()
    local w = world_of.new()
    local decisions = require("efr.conv.decisions").new(w.app.ports)
    assert(decisions:add { call_id = "c", conversation_id = "v", effect = "allow", line = "a\xff",
      decision = { effect = "allow", inside = "allow", reasons = {}, exits = {}, views = {} },
      input = { requirements = {}, tool = "shell" } })
    assert.equal("a\u{fffd}", decisions:get("v").line)
    assert.equal("Yf8=", decisions:get("v").line_b64)
  end)
end)
