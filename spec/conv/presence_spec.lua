-- Being away: when it begins and ends, and how long questions wait then.
require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer
local MINUTE <const> = 60000

local function start(opts)
  local w = world_of.new(opts or {})
  w.fs.mkdirs("/home/u/p/.git")
  w.provider.script = function(_, n)
    if n == 1 then return answer("t", { { "shell", { command = "sudo ls" } } }) end
    return answer("end")
  end
  w.id = assert(w:send("please", { new_conversation = true })).conversation_id
  return w
end

local function changes(w)
  local out = {}
  for i, event in ipairs(w:find("presence_changed")) do
    out[i] = (event.away and "away " or "here ") .. event.by
  end
  return table.concat(out, ", ")
end

local function call_of(w) return w:find("tool_call_completed")[1] end

local function pass(w, ms)
  for _ = 1, ms // 1000 do w.clock.advance(1000) end
end

describe("conv.presence", function()
  it("lets a question wait without limit while the user may be there", function()
    local w = start()
    pass(w, 9 * MINUTE)
    assert.is_nil(call_of(w))
    assert.equal("", changes(w))
  end)

  it("ends a question 300 seconds after the look that found nobody, which is no refusal", function()
    local w = start()
    pass(w, 10 * MINUTE + 15000)
    assert.equal("away idle", changes(w))
    pass(w, 284000)
    assert.is_nil(call_of(w))
    pass(w, 16000)
    assert.equal("expired", call_of(w).refusal.kind)
    assert.is_truthy(call_of(w).output:find(
      "approval expired: nobody answered while you were away; the call did not run", 1, true))
    assert.equal(1, #w:find("approval_expired"))
    assert.equal(0, #w:find("exit_judged"))
    assert.equal(1, #w:find("turn_completed"))
    assert.equal(0, #w.runs)
  end)

  it("is set by efr away, also for a question that waits, and ended by input", function()
    local w = start()
    w.app.presence:set(true)
    assert.equal("away user", changes(w))
    pass(w, 299000)
    assert.is_nil(call_of(w))
    assert(w:send("another", { conversation_id = w.id }))
    assert.equal("away user, here input", changes(w))
    pass(w, 5 * MINUTE)
    assert.is_nil(call_of(w))
    w.app.presence:set(true)
    pass(w, 5 * MINUTE + 1000)
    assert.equal("expired", call_of(w).refusal.kind)
  end)

  it("counts an answer as input, and from the start of a question that is asked away", function()
    local w = start({ config = { ["presence.away_wait_secs"] = 30 } })
    w.app.presence:set(true)
    assert(w:call("approve", { conversation_id = w.id, decision = "allow",
      call_id = w:find("approval_requested")[1].call_id }))
    assert.equal("away user, here input", changes(w))
    assert.equal(1, #w.runs)
    w.app.presence:set(true)
    w.provider.script = function(_, n)
      if n == 3 then return answer("t", { { "shell", { command = "sudo id" } } }) end
      return answer("end")
    end
    local handler = require("efr.daemon.rpc.presence_set").handler
    assert.is_true(handler(w.app, {}, { away = true }).away)
    assert.is_false(handler(w.app, {}, { away = false }).away)
    assert.equal("away user, here input, away user, here user", changes(w))
  end)

  it("runs no timer without a question", function()
    local w = start()
    assert(w:call("interrupt", { conversation_id = w.id }))
    pass(w, 20000)
    assert.is_nil(next(w.app.presence.waiting))
    assert.is_falsy(w.app.presence.watching)
    pass(w, 20 * MINUTE)
    assert.equal("", changes(w))
    assert.is_true(w.app.presence:is_away())
  end)
end)
