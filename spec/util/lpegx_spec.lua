local lpeg = require "lpeg"
local lpegx = require "efr.util.lpegx"

describe("util.lpegx", function()
  it("lets grammars nest deeper than LPeg does by default", function()
    local nested = lpeg.P { "(" * lpeg.V(1) ^ 0 * ")" }
    assert.equal(2001, nested:match(("("):rep(1000) .. (")"):rep(1000)))
  end)

  it("tells line and column", function()
    assert.same({ 1, 1 }, { lpegx.line_column("ab\ncd", 1) })
    assert.same({ 1, 3 }, { lpegx.line_column("ab\ncd", 3) })
    assert.same({ 2, 2 }, { lpegx.line_column("ab\ncd", 5) })
    assert.same({ 2, 3 }, { lpegx.line_column("ab\ncd", 99) })
  end)

  it("matches any case", function()
    assert.equal(4, lpegx.nocase("aBc"):match("AbC"))
    assert.is_nil(lpegx.nocase("a-"):match("A+"))
  end)
end)
