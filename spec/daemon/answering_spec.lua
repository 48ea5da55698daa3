local answering = require "efr.daemon.answering"
local helper = require "spec.helper"

describe("daemon.answering", function()
  local async, clock, self, over, left

  before_each(function()
    async, clock = helper.async()
    self, over, left = answering.new(), false, false
  end)

  local function wait()
    async.spawn(function()
      self:wait("c", function() return over end)
      left = true
    end)
  end

  it("knows who can answer", function()
    assert.is_false(self:somebody("c"))
    local one = self:add("c", false)
    assert.is_false(self:somebody("c"))
    local two = self:add("c", true)
    assert.is_true(self:somebody("c"))
    assert.is_false(self:somebody("d"))
    two()
    two()
    assert.is_false(self:somebody("c"))
    one()
    assert.same({}, self.counts)
  end)

  it("waits while somebody can answer, and a moment for one that comes back", function()
    local remove = self:add("c", true)
    wait()
    clock.advance(60000)
    assert.is_false(left)
    remove()
    clock.advance(answering.GRACE_MS - 1)
    assert.is_false(left)
    remove = self:add("c", true)
    clock.advance(60000)
    assert.is_false(left)
    remove()
    clock.advance(answering.GRACE_MS)
    assert.is_true(left)
  end)

  it("does not wait for followers that cannot answer", function()
    self:add("c", false)
    wait()
    assert.is_true(left)
  end)

  it("gives up on a conversation that nobody follows, and on one whose follower cannot answer",
    function()
      wait()
      clock.advance(10)
      assert.is_false(left)
      self:add("c", false)
      assert.is_true(left)
    end)

  it("ends when it is over", function()
    self:add("c", true)
    wait()
    over = true
    assert.is_false(left)
    self:wake("c")
    assert.is_true(left)
    assert.same({}, self.waiting)
  end)
end)
