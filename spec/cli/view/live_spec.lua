-- Frames on a small model of a terminal.

require "spec.cli.support"

local live = require "efr.cli.view.live"
local model = require "spec.cli.screen_model"
local style = require "efr.cli.view.style"

local function rows(...)
  local out = {}
  for i, words in ipairs({ ... }) do
    out[i] = { { words, i % 2 == 0 and "muted" or nil } }
  end
  return out
end

local function new(cols)
  return live.new(style.new({ enabled = true, colour = true })), model.new(cols)
end

describe("cli.view.live", function()
  it("commits above the live zone and leaves nothing of it", function()
    local zone, screen = new(20)
    local size = { cols = 20, lines = 10 }
    screen:write(zone:frame(rows("one"), rows("live a", "live b"), size))
    assert.same({ "one", "live a", "live b" }, screen.rows)
    assert.is_true(screen.hidden)
    screen:write(zone:frame(rows("two", "three"), rows("live c"), size))
    assert.same({ "one", "two", "three", "live c" }, screen.rows)
    screen:write(zone:finish(20))
    assert.same({ "one", "two", "three", "" }, screen.rows)
    assert.is_false(screen.hidden)
  end)

  it("writes only the rows that changed, and nothing when none did", function()
    local zone, screen = new(20)
    local size = { cols = 20, lines = 10 }
    screen:write(zone:frame({}, rows("spin 1", "tail", "last"), size))
    local bytes = zone:frame({}, rows("spin 2", "tail", "last"), size)
    assert.is_nil(bytes:find("tail", 1, true))
    screen:write(bytes)
    assert.same({ "spin 2", "tail", "last" }, screen.rows)
    assert.equal("", zone:frame({}, rows("spin 2", "tail", "last"), size))
  end)

  it("keeps the zone below the height of the screen", function()
    local zone, screen = new(20)
    screen:write(zone:frame({}, rows("1", "2", "3", "4", "5"), { cols = 20, lines = 4 }))
    assert.same({ "3", "4", "5" }, screen.rows)
  end)

  it("counts the zone's rows again after the screen became narrower", function()
    local zone, screen = new(20)
    local size = { cols = 20, lines = 9 }
    screen:write(zone:frame(rows("done"), rows("0123456789abcdef", "tail"), size))
    screen:shrink(7)
    assert.equal(5, #screen.rows)
    screen:write(zone:frame({}, rows("new"), { cols = 7, lines = 9 }))
    assert.same({ "done", "new" }, screen.rows)
  end)

  it("starts a new zone below after a stop", function()
    local zone, screen = new(20)
    local size = { cols = 20, lines = 10 }
    screen:write(zone:frame({}, rows("live"), size))
    screen:write(zone:finish(20))
    screen:write("shell says\r\n")
    zone:forget()
    screen:write(zone:frame({}, rows("live"), size))
    assert.same({ "shell says", "live" }, screen.rows)
  end)

  it("never writes more than the process can say at its end", function()
    local zone = new(20)
    local many = {}
    for i = 1, 400 do
      many[i] = { { ("x"):rep(20) } }
    end
    zone:frame({}, many, { cols = 20, lines = 500 })
    assert.is_true(#zone:farewell(3) <= 128)
  end)

  it("keeps bold and dim without colour", function()
    local plain = style.new({ enabled = true, colour = false })
    assert.equal("\27[1mx\27[0m", plain:paint("x", "warning"))
    assert.equal("x", plain:paint("x", "success"))
    assert.equal("x", style.new({ enabled = false }):paint("x", "warning"))
  end)
end)
