-- Colours: what the settings and the terminal make of them, and the sequences of a span.

require "spec.cli.support"

local links = require "efr.cli.render.links"
local palette = require "efr.cli.render.palette"
local style = require "efr.cli.view.style"

describe("cli.render.palette", function()
  it("says a colour as the terminal can show it", function()
    local table_of = {
      { "yellow", true, "33" }, { "bright-blue", false, "94" }, { 0, false, "30" }, { 15, true, "97" },
      { "9", false, "91" }, { "#102030", true, "38;2;16;32;48" }, { "#ff0000", false, "91" },
      { "#800000", false, "31" }, { "#cba6f7", false, "94" }, { "#808080", false, "90" },
      { "#f8f8f8", false, "97" }, { "#101010", false, "30" }, { "mauve", true, nil },
    }
    for _, row in ipairs(table_of) do
      assert.equal(row[3], palette.sgr(row[1], row[2]), row[1])
    end
  end)

  it("takes the theme of the background and the colours of the settings", function()
    local settings = {
      theme = "auto", theme_dark = "nord", theme_light = "catppuccin-latte",
      colors = { accent = "red" },
    }
    local dark = palette.colours(settings, { COLORTERM = "truecolor" })
    local light = palette.colours(settings, { COLORTERM = "24bit", EFR_TERMINAL_BG = "Light" })
    assert.equal("38;2;163;190;140", dark["code.string"])
    assert.equal("38;2;64;160;43", light["code.string"])
    assert.equal("31", dark.accent)
    assert.equal("31", dark.heading)
    assert.equal("34", dark.link)
    assert.equal("35", palette.colours({}, {})["code.keyword"])
  end)
end)

describe("cli.view.style", function()
  local colours = palette.colours({}, {})

  it("joins a role and a look, each once", function()
    local face = style.new({ enabled = true, colour = true, colours = colours, hyperlinks = true })
    assert.equal("\27[33;1;4mx\27[0m", face:paint("x", "heading", { bold = true, underline = true }))
    assert.equal("\27[1;33mx\27[0m", face:paint("x", "warning", { bold = true }))
    assert.equal("\27[2mx\27[0m", face:paint("x", "muted"))
    assert.equal("x", face:paint("x"))
    assert.equal("\27]8;;https://a.b\27\\\27[4;34mx\27[0m\27]8;;\27\\",
      face:paint("x", "link", { link = "https://a.b" }))
  end)

  it("keeps attributes where there are no colours, and nothing where nothing is wanted", function()
    local face = style.new({ enabled = true, colour = false, colours = {} })
    local words = { accent = "1", heading = "1", link = "4", quote = "3", error = "1", warning = "1" }
    for role, codes in pairs(words) do
      assert.equal("\27[" .. codes .. "mx\27[0m", face:paint("x", role, { link = "https://a.b" }), role)
    end
    assert.equal("x", face:paint("x", "code"))
    assert.equal("x", style.new({ enabled = false, colour = true }):paint("x", "link", { bold = true }))
  end)

  it("gives prose its colour, and a muted text that of its own", function()
    local own = palette.colours({ colors = { text = "white", muted = "8" } }, {})
    local face = style.new({ enabled = true, colour = true, colours = own })
    assert.equal("\27[37mx\27[0m", face:paint("x"))
    assert.equal("\27[1;37mx\27[0m", face:paint("x", "bold"))
    assert.equal("\27[90mx\27[0m", face:paint("x", "muted"))
    assert.equal("\27[36mx\27[0m", face:paint("x", "code"))
  end)
end)

describe("cli.render.links", function()
  it("links what a terminal may open, and nothing else", function()
    local targets = {
      ["https://a.b/c d"] = "https://a.b/c%20d", ["HTTP://a"] = "HTTP://a", ["/etc/a#b"] = "file:///etc/a%23b",
      ["mailto:a@b"] = "mailto:a@b", ["https://a/\27\\x"] = "https://a/%1B%5Cx",
    }
    for from, to in pairs(targets) do
      assert.equal(to, links.target(from))
    end
    for _, target in ipairs({ "javascript:x", "data:text/html,x", "src/a", "//host/x", "ssh://a", "" }) do
      assert.is_nil(links.target(target), target)
    end
  end)
end)
