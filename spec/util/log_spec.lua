local log = require "efr.util.log"

local function logger(filter)
  local lines = {}
  return log.new(function(level, line) lines[#lines + 1] = level .. " " .. line end, filter), lines
end

describe("util.log", function()
  it("writes lines of its level and above", function()
    local l, lines = logger("warn")
    l:error("a %d", 1)
    l:warn("100%")
    l:info("c")
    assert.same({ "error a 1", "warn 100%" }, lines)
  end)

  it("filters by part", function()
    local l, lines = logger("warn,store=debug")
    l:part("store"):debug("x")
    l:part("conv"):info("y")
    assert.same({ "debug store: x" }, lines)
    assert.is_true(l:set_filter("info"))
    l:part("conv"):info("y")
    assert.equal("info conv: y", lines[2])
    assert.is_nil((l:set_filter("loud")))
  end)

  it("takes secrets out and never raises", function()
    local l, lines = logger()
    l:info("TOKEN=%s", "abc")
    l:info("%d", "no number")
    assert.equal("info TOKEN=[redacted]", lines[1])
    assert.is_truthy(lines[2]:find("^info %%d %("))
  end)
end)
