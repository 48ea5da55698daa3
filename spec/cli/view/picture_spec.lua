-- The picture of another terminal's screen, drawn on a model of the user's.

require "spec.cli.support"

local picture = require "efr.cli.view.picture"

local function cells(text, style)
  local out = {}
  for i = 1, #text do
    out[i] = { text = text:sub(i, i) }
    for name, value in pairs(style or {}) do out[i][name] = value end
  end
  return { cells = out }
end

local function snapshot(rows, cols)
  return {
    kind = "snapshot",
    snapshot = {
      size = { cols = cols or 10, rows = #rows }, rows = rows, alternate_screen = false,
      cursor = { row = 1, col = 2, hidden = false },
    },
  }
end

-- The rows that the bytes draw, by their number.
local function drawn(bytes)
  local out = {}
  bytes = bytes:gsub("\27%[(%d+);1H", "\1%1\2"):gsub("\27%[[%d;?]*%a", "")
  for row, text in bytes:gmatch("\1(%d+)\2([^\1]*)") do
    out[tonumber(row)] = text
  end
  return out
end

describe("cli.view.picture", function()
  it("draws all rows, then the ones that changed", function()
    local shown = picture.new()
    assert.equal("", shown:draw(10, 3))
    assert.is_true(shown:item(snapshot { cells "one", cells "two", cells "" }))
    assert.same({ "one", "two", "" }, drawn(shown:draw(10, 3)))
    assert.same({}, drawn(shown:draw(10, 3)))
    assert.is_true(shown:item {
      kind = "screen", cursor = { row = 0, col = 3, hidden = true },
      changed = { { row = 1, cells = cells("2").cells } },
    })
    assert.same({ [2] = "2" }, drawn(shown:draw(10, 3)))
    assert.same({ "one", "2", "" }, drawn(shown:draw(10, 3, true)))
    assert.same({ "one", "2" }, shown:lines())
    assert.is_false(shown:item { kind = "output", data = "" })
  end)

  it("fits a smaller terminal, and puts the cursor inside", function()
    local shown = picture.new()
    shown:item(snapshot({ cells "abcdef", cells "ghijkl" }, 6))
    local bytes = shown:draw(4, 1)
    assert.same({ "abcd" }, drawn(bytes))
    assert.truthy(bytes:find("\27[1;3H\27[?25h", 1, true))
  end)

  it("lets nothing through but cells as wide as they say", function()
    local shown = picture.new()
    local evil = {
      { text = "\27[31m" }, { text = "a\u{301}" }, { text = "\u{6f22}", wide = true },
      { text = "\u{6f22}" }, { text = "b", wide = true }, { text = "\7" }, { text = "\u{202e}" },
    }
    shown:item(snapshot({ { cells = evil } }, 20))
    local row = drawn(shown:draw(20, 1))[1]
    assert.equal("?", row:sub(1, 1))
    assert.is_nil(row:find("%c"))
    assert.equal(9, require("efr.text").width(row))
    assert.is_nil(row:find("\u{202e}", 1, true))
  end)

  it("keeps colours and attributes", function()
    local shown = picture.new()
    shown:item(snapshot { cells("x", {
      fg = { indexed = 1 }, bg = { rgb = { 1, 2, 3 } }, bold = true, underline = true,
    }), cells("y", { fg = { indexed = 9 }, bg = { indexed = 200 }, inverse = true }) })
    local bytes = shown:draw(10, 2)
    assert.truthy(bytes:find("\27[0;1;4;31;48;2;1;2;3mx\27[0m", 1, true))
    assert.truthy(bytes:find("\27[0;7;91;48;5;200my\27[0m", 1, true))
  end)
end)
