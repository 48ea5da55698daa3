-- The question about what a line deleted in its view of a cache, its answers, and what is said.
require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer

local MIB <const> = 1 << 20

local function run(opts)
  local w = world_of.new()
  w.people = opts.people
  w.deletes = { {
    bytes = opts.bytes or 1234 * MIB,
    list = { cache = "/home/u/.cache", other = 0, names = opts.names or { "go-build/a", "go-build/b" } },
  } }
  w.freed = opts.freed or { 2, 1234 * MIB }
  w.provider.script = function(_, n)
    if n == 1 then return answer("t", { { "shell", { command = "go clean -cache" } } }) end
    return answer("end")
  end
  local reply = assert(w:send("go", { new_conversation = true }))
  w.id = reply.conversation_id
  w.request = w:find("approval_requested")[1]
  function w:answer(decision)
    assert(w:call("approve", { conversation_id = reply.conversation_id,
      call_id = w.request.call_id, decision = decision }))
  end
  return w
end

local function output(w) return w:find("tool_call_completed")[1].output end

describe("conv: deletes in caches", function()
  it("asks with the paths and the size; a yes deletes, and the gain is told", function()
    local w = run({})
    assert.equal("cache_delete", w.request.tool)
    assert.equal("delete 1.3 GB in ~/.cache/go-build (2 paths)\n~/.cache/go-build/a\n"
      .. "~/.cache/go-build/b", w.request.summary)
    assert.equal(0, #w:find("tool_call_completed"))
    assert.is_nil(w.prepared[1].cleaned)
    w:answer("allow")
    assert.same({ "go-build/a", "go-build/b" }, w.applied.names)
    local completed = w:find("tool_call_completed")[1]
    assert.same({ "freed 1.3 GB in ~/.cache/go-build (2 paths)" }, completed.sandbox.freed)
    assert.is_truthy(completed.output:find("[efr freed 1.3 GB in ~/.cache/go-build (2 paths)]", 1, true))
    assert.is_true(w.prepared[1].cleaned)
    assert.equal(1, #w:find("turn_completed"))
  end)

  it("a no deletes nothing, and the model reads so", function()
    local w = run({})
    w:answer("deny")
    assert.is_nil(w.applied)
    assert.same({ "go-build/a", "go-build/b" }, w.refused.names)
    assert.is_nil(w:find("tool_call_completed")[1].sandbox.freed)
    assert.is_truthy(output(w):find("[the user did not allow deleting 2 paths in "
      .. "/home/u/.cache/go-build for real: the real cache still has them]", 1, true))
  end)

  it("nobody's answer deletes nothing: nobody is there, or the time is over", function()
    local w = run({ people = false })
    assert.is_nil(w.applied)
    assert.is_truthy(w.refused)
    assert.equal(1, #w:find("approval_expired"))
    assert.is_truthy(output(w):find("nobody allowed deleting 2 paths", 1, true))
    w = run({})
    w.clock.advance(300 * 1000)
    assert.is_nil(w.applied)
    assert.equal(1, #w:find("approval_expired"))
    assert.equal(1, #w:find("turn_completed"))
  end)

  it("an interrupt ends the question", function()
    local w = run({})
    assert(w:call("interrupt", { conversation_id = w.id }))
    assert.is_nil(w.applied)
    assert.equal(1, #w:find("approval_expired"))
  end)

  it("asks about nothing that is small, and shows at most 20 paths", function()
    local w = run({ bytes = MIB - 1 })
    assert.is_nil(w.request)
    assert.is_nil(w.refused)
    assert.equal(1, #w:find("turn_completed"))
    local names = {}
    for i = 1, 25 do names[i] = "d" .. i end
    w = run({ bytes = MIB, names = names })
    assert.is_truthy(w.request.summary:find("^delete 1%.0 MB in ~/%.cache %(25 paths%)\n"))
    assert.is_truthy(w.request.summary:find("\n~/.cache/d20\n... and 5 more", 1, true))
  end)

  it("tells what could not be deleted", function()
    local w = run({ freed = { 1, 5 * MIB, "remove b: Permission denied" } })
    w:answer("allow")
    assert.is_truthy(output(w):find("freed 5.2 MB in ~/.cache/go-build (1 path); some could not", 1, true))
    w = run({ freed = { 0, 0, "remove b: Permission denied" } })
    w:answer("allow")
    assert.is_truthy(output(w):find("could not delete in the real cache: remove b", 1, true))
    assert.is_nil(w:find("tool_call_completed")[1].sandbox.freed)
  end)
end)
