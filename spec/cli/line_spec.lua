-- The line that a person types at a waiting command: keys that edit, what is ignored, its size.
require "spec.cli.support"

local line = require "efr.cli.line"

-- Feeds pieces; returns the text and whether Enter came.
local function feed(...)
  local typed, entered = line.new(), nil
  for _, bytes in ipairs { ... } do
    entered = typed:feed(bytes) or entered
  end
  return typed:text(), entered == "enter"
end

describe("a typed line", function()
  it("holds text, whole characters and nothing else", function()
    assert.equal("ab c", (feed("ab", " c")))
    assert.equal("ä宽", (feed("\xC3", "\xA4\xE5\xAE", "\xBD")))
    assert.equal("ab", (feed("a\1\7\t\0b")))
    assert.equal("ab", (feed("a\xFF\xC3b"))) -- no UTF-8
  end)

  it("is edited by Backspace and Ctrl+U", function()
    assert.equal("a", (feed("ab\127")))
    assert.equal("", (feed("a\8\8\127")))
    assert.equal("a", (feed("a宽\127")))
    assert.equal("new", (feed("old\21new")))
  end)

  it("skips the sequences of other keys, also split", function()
    assert.equal("ab", (feed("a\27[D\27[1;5C\27OPb")))
    assert.equal("ab", (feed("a\27", "[", "3", "~b")))
  end)

  it("ends with Enter, and drops what follows", function()
    local text, entered = feed("yes\rmore")
    assert.equal("yes", text)
    assert.is_true(entered)
    assert.is_true(select(2, feed("\n")))
    assert.is_false(select(2, feed("x")))
  end)

  it("takes 1024 bytes", function()
    assert.equal(line.MAX_BYTES, #feed(("x"):rep(2000)))
    assert.equal(line.MAX_BYTES - 1, #feed(("x"):rep(line.MAX_BYTES - 1) .. "ä"))
  end)

  it("is gone when it is cleared", function()
    local typed = line.new()
    typed:feed("secret\27[")
    typed:clear()
    assert.equal("", typed:text())
    typed:feed("x")
    assert.equal("x", typed:text())
  end)
end)
