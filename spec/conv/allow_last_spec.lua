-- efr allow-last: what was refused last runs once, and nothing else does.
require "spec.helper"
local allow_last = require "efr.conv.allow_last"
local world_of = require "spec.support.world"

local answer = world_of.answer

-- The model runs each of these lines as one call of a turn, then says "end".
local function start(lines, opts)
  opts = opts or {}
  local w = world_of.new(opts)
  w.fs.mkdirs("/home/u/p/.git")
  w.fs.mkdirs("/home/u/notes")
  local at = 0
  w.provider.script = function()
    at = at + 1
    if lines[at] == "end" or not lines[at] then return answer("end") end
    return answer("t", { { "shell", { command = lines[at] } } })
  end
  if opts.prepare then opts.prepare(w) end
  w.id = assert(w:send("please", { new_conversation = true })).conversation_id
  return w
end

local function respond(w, decision)
  local asked = w:find("approval_requested")
  return w:call("approve", { conversation_id = w.id, call_id = asked[#asked].call_id,
    decision = decision })
end

local function allow(w)
  local refused, message, code = allow_last.find(w.app, w.id)
  if not refused then return nil, message, code end
  return w:call("allow_last", { conversation_id = w.id, call_id = refused.call_id })
end

describe("conv.allow_last", function()
  it("runs the denied call once, with no second question", function()
    local w = start { "touch ~/notes/a", "end", "touch ~/notes/a", "touch ~/notes/a" }
    assert(respond(w, "deny"))
    assert.is_truthy(w:find("tool_call_completed")[1].output:find("efr allow-last", 1, true))
    assert(allow(w))
    assert.equal(1, #w.runs)
    assert.equal("contained", w.runs[1].launch)
    local text = w:find("prompt_queued")[2].text
    assert.is_truthy(text:find("touch ~/notes/a", 1, true))
    assert.same({ "allow", "shell" }, { w:find("approval_resolved")[2].decision,
      w:find("approval_resolved")[2].origin })
    -- The same line once more in that turn is asked about.
    assert.equal(3, #w:find("approval_requested"))
    assert.equal(1, #w.runs)
    -- efr's own prompt names nothing.
    local record = w:find("exit_requested")[3].record
    assert.same({ "please" }, record.user_messages)
    assert.is_nil(record.facts.targets[1].named_in_user_messages)
  end)

  it("asks when the call is another one, or leaves the sandbox in another way", function()
    local w = start { "touch ~/notes/a", "end", "touch ~/notes/b" }
    assert(respond(w, "deny"))
    assert(allow(w))
    assert.equal(0, #w.runs)
    assert.equal(2, #w:find("approval_requested"))
    assert(respond(w, "deny"))
    w = start { "touch ~/notes/a", "end", "touch ~/notes/a" }
    assert(respond(w, "deny"))
    w.fs.tree["/home/u/notes/a"] = "there now"
    assert(allow(w))
    assert.equal(0, #w.runs)
    assert.equal(2, #w:find("approval_requested"))
  end)

  it("passes the reviewer that refused, and what expired while the user was away", function()
    local asked = 0
    local w = start({ "touch ~/notes/a", "end", "touch ~/notes/a" }, { prepare = function(world)
      world.app.reviewer = { judge = function()
        asked = asked + 1
        return { verdict = "deny", rationale = "not asked for" }
      end }
    end })
    assert.equal("reviewer", w:find("tool_call_completed")[1].refusal.kind)
    assert.is_truthy(w:find("tool_call_completed")[1].output:find("efr allow-last", 1, true))
    assert(allow(w))
    assert.equal(1, #w.runs)
    assert.equal(1, asked)
    w = start({ "sudo ls", "end", "sudo ls" }, { config = { ["presence.away_wait_secs"] = 10 } })
    w.app.presence:set(true)
    w.clock.advance(10000)
    assert.equal("expired", w:find("tool_call_completed")[1].refusal.kind)
    assert(allow(w))
    assert.equal("outside", w.runs[1].launch)
  end)

  it("opens no floor, and nothing twice", function()
    local w = start { "cat ~/.ssh/id_rsa" }
    assert.equal("floor", w:find("tool_call_completed")[1].refusal.kind)
    assert.equal("not_found", select(3, allow(w)))
    w = start { "touch ~/notes/a", "end", "touch ~/notes/a", "end" }
    assert(respond(w, "deny"))
    assert(allow(w))
    assert.equal("conflict", select(3, allow(w)))
    local handler = require("efr.daemon.rpc.call_allow_last").handler
    assert.equal("forbidden", select(3, handler(w.app, { origin = "phone" }, {})))
    assert.equal("forbidden", select(3, handler(w.app, { origin = "cli",
      peer = { model_side = true } }, {})))
  end)
end)
