local list = require "efr.util.list"

describe("util.list", function()
  it("finds, maps and filters", function()
    assert.equal(2, list.index_of({ "a", "b" }, "b"))
    assert.is_nil(list.index_of({ "a" }, "b"))
    assert.is_true(list.contains({ "a" }, "a"))
    assert.same({ 2, 4 }, list.map({ 1, 2 }, function(n) return n * 2 end))
    assert.same({ 2 }, list.filter({ 1, 2, 3 }, function(n) return n % 2 == 0 end))
  end)

  it("extends, copies and makes sets", function()
    local first = { 1 }
    local copy = list.copy(first)
    assert.same({ 1, 2, 3 }, list.extend(first, { 2, 3 }))
    assert.same({ 1 }, copy)
    assert.same({ "a", "b" }, list.keys { b = 1, a = 2 })
    assert.same({ a = true }, list.set { "a", "a" })
  end)
end)
