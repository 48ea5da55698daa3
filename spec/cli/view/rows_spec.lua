-- Wrapping loses nothing and no row is wider than it may be.

require "spec.cli.support"

local rows = require "efr.cli.view.rows"

local WORDS <const> = { "a", "word", "  ", " ", "宽字符", "e\u{301}", ("x"):rep(30), "🙂", "-v" }

local function random_line()
  local parts = {}
  for i = 1, math.random(0, 30) do
    parts[i] = WORDS[math.random(#WORDS)] .. (math.random(2) == 1 and " " or "")
  end
  return table.concat(parts)
end

describe("cli.view.rows", function()
  it("wraps code without losing a byte", function()
    math.randomseed(3)
    for _ = 1, 500 do
      local line, cols = random_line(), math.random(10, 60)
      local joined, indent = {}, ""
      for i, row in ipairs(rows.wrap_code(line, cols, "code")) do
        assert.is_true(rows.row_width(row) <= cols)
        joined[i] = row[1][1]:sub(#indent + 1)
        assert.equal(indent, row[1][1]:sub(1, #indent))
        indent = row[2] and row[2][1] == "\\" and "    " or ""
      end
      assert.equal(line, table.concat(joined))
    end
  end)

  it("wraps prose without losing a word", function()
    math.randomseed(5)
    for _ = 1, 500 do
      local line, cols = random_line(), math.random(2, 60)
      local joined = {}
      for i, row in ipairs(rows.wrap(line, cols)) do
        joined[i] = row:gsub(" +$", "")
        assert.is_true(rows.width(joined[i]) <= cols)
      end
      assert.equal((line:gsub(" ", "")), (table.concat(joined):gsub(" ", "")))
    end
  end)

  it("cuts with an ellipsis and never inside a cluster", function()
    assert.equal("abc", rows.cut("abc", 3))
    assert.equal("ab…", rows.cut("abcd", 3))
    assert.equal("宽…", rows.cut("宽字符", 4))
    assert.equal("e\u{301}…", rows.cut("e\u{301}ab", 2))
    assert.equal("", rows.cut("abc", 0))
  end)

  it("makes foreign text safe", function()
    local safe = rows.safe("a\27[1m\tb\r\u{9b}31m\u{200f}\127")
    assert.is_nil(safe:find("[\0-\31\127]"))
    assert.is_nil(safe:find("\u{9b}", 1, true))
    assert.is_nil(safe:find("\u{200f}", 1, true))
  end)
end)
