local lpeg = require "lpeg"
local lpegx = require "efr.util.lpegx"

describe("util.lpegx", function()
  it("matches deep nesting and turns errors into values", function()
    local nested = lpeg.P { "(" * lpeg.V(1) ^ 0 * ")" }
    assert.is_number(lpegx.match(nested, ("("):rep(1000) .. (")"):rep(1000), 5000))
    local _, err, code = lpegx.match(nested, ("("):rep(20000), 50000)
    assert.equal("EFR_PARSE", code)
    assert.is_truthy(err:find("overflow"))
    assert.equal("EFR_TOO_BIG", select(3, lpegx.match(nested, "((", 1)))
    assert.equal("EFR_PARSE", select(3, lpegx.match(nested, "x", 1)))
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
