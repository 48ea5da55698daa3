-- Markdown as rows: what each construct looks like, that pieces do not matter, that the work grows
-- with the text, and that only safe text comes out.

local support = require "spec.cli.support"

local markdown = require "efr.cli.render.markdown"
local prose = require "efr.cli.view.prose"
local rows = require "efr.cli.view.rows"
local style = require "efr.cli.view.style"

local ROUNDS <const> = os.getenv("EFR_TEST_SIZE") == "long" and 2000 or 60

local function read(name)
  local file = assert(io.open(support.root .. "spec/data/render/" .. name))
  local text = file:read("a")
  file:close()
  return text
end

local function render(text, cols, context)
  local document = markdown.new(context or { hyperlinks = true, ticks = false })
  return document:feed(text, true, cols or 60)
end

local function dump(text, cols, context)
  return support.dump(render(text, cols, context))
end

describe("cli.render.markdown", function()
  for _, name in ipairs({ "elements", "lists", "code", "inline", "tables", "limits" }) do
    it("renders " .. name, function()
      local got = dump(read(name .. ".md"))
      assert.equal(support.golden("view/markdown." .. name .. ".txt", got), got)
    end)
  end

  it("keeps a table that fits, and makes records of one that does not", function()
    local text = "| Name | What it is |\n|:-|-:|\n| `a` | x |\n| b | " .. ("y"):rep(9) .. " |\n"
    assert.equal([[
{bold:Name}{muted: │ }{bold:What it is}
{muted:─────┼───────────}
{code:a}   {muted: │ }         x
b   {muted: │ } yyyyyyyyy
]], dump(text, 30))
    assert.equal([[
{bold:Name}: {code:a}
{bold:What it is}: x

{bold:Name}: b
{bold:What it is}:
yyyyyyyyy
]], dump(text, 16))
  end)

  it("shows targets where the terminal has no links, and backticks where it has no colours", function()
    local text = "[a](https://b.c) [https://d.e](https://d.e) `x` ![i](https://f.g)"
    assert.equal("{link:a}{muted: (https://b.c)} {link:https://d.e} {code:`x`} {muted:[image: i]}\n",
      dump(text, 60, { hyperlinks = false, ticks = true }))
  end)

  it("commits lines of a long paragraph before its end, and not the last one", function()
    local document = markdown.new({ hyperlinks = true, ticks = false })
    assert.same({}, document:feed("a\nb\nc\n", false, 60))
    assert.equal("a\nb\nc\n", support.dump(document:feed("a\nb\nc\nd | e\n", false, 60)))
    local out = document:feed("a\nb\nc\nd | e\n---|---\n1 | 2\n\n", false, 60)
    assert.equal("\n{bold:d}{muted: │ }{bold:e}\n{muted:──┼──}\n1{muted: │ }2\n", support.dump(out))
  end)

  it("commits code line by line, a heading at once and an item when the next begins", function()
    local document = markdown.new({ hyperlinks = true, ticks = false })
    local text, seen = "", {}
    for _, line in ipairs({ "# H", "- a", "- b", "", "```sh", "ls", "pwd", "```" }) do
      text = text .. line .. "\n"
      seen[#seen + 1] = #document:feed(text, false, 60)
    end
    assert.same({ 1, 0, 1, 1, 2, 1, 1, 0 }, seen)
  end)
end)

-- ---- random documents ----

local PIECES <const> = {
  "# Head *x*\n", "text with `code`, **bold** and _more_", "\n", "\n\n", "- item", "\n  - inner\n",
  "1. one\n2. two\n", "> quote\n", "> ```\n> code\n> ```\n", "```lua\nlocal a = 1 -- x\n```\n",
  "```\n", "~~~ sh\n", "| a | b |\n|---|--:|\n| 1 | `|` |\n", "a | b\n---|---\n", "***\n", "---\n",
  "===\n", "[l](https://x.y/z \"t\")", "[rel](src/a.lua)", "![i](p.png)", "<b>", "<!-- c -->\n",
  "https://a.b/c?d=(e).", "宽字", "e\u{301}", "🙂", "\27[31m", "\27]8;;evil\7", "\u{202E}", "\t",
  "\r\n", "- [x] done\n", "    code\n", "&amp;&#27;&#x1b;", "\\*", "**", "*", "~~", "``", "[", "](", ")",
  ("long "):rep(40), "  \n", "10. ten\n", "\0", "\x80", "\xF0\x9F", "|",
}

local function random_text()
  local parts = {}
  for i = 1, math.random(1, 60) do
    parts[i] = PIECES[math.random(#PIECES)]
  end
  return table.concat(parts)
end

-- What a terminal may get: printable text, and of sequences SGR and hyperlinks of known schemes.
local function check_safe(bytes)
  local rest = bytes:gsub("\27%[[%d;]*m", "")
  rest = rest:gsub("\27%]8;;([^\27\7]*)\27\\", function(target)
    local scheme = target:match("^(%a+):")
    assert(target == "" or scheme and (" http https mailto file "):find(" " .. scheme:lower() .. " ",
      1, true), target)
    assert(not target:find("[^\33-\126]"), target)
    return ""
  end)
  assert(not rest:find("[\0-\31\127]"), ("%q"):format(rest))
  assert(not rest:find("\xC2[\x80-\x9F]"), ("%q"):format(rest))
  assert(not rest:find("\u{202E}", 1, true), rest)
end

describe("cli.render of random documents", function()
  it("commits the same for any split, only safe text, and rows that fit below", function()
    math.randomseed(tonumber(os.getenv("EFR_TEST_SEED") or "") or 5)
    local face = style.new({ enabled = true, colour = true, colours = {}, hyperlinks = true })
    local context = { hyperlinks = true, ticks = false }
    for round = 1, ROUNDS do
      local text, cols = random_text(), math.random(12, 80)
      local whole = support.dump(prose.new(context):feed({ text = text, done = true }, cols))
      local writer, out, at = prose.new(context), {}, 0
      while at < #text do
        at = math.min(#text, at + math.random(1, 9))
        local list = writer:feed({ text = text:sub(1, at), done = false }, cols)
        out[#out + 1] = support.dump(list)
        for _, row in ipairs(list) do
          check_safe(face:row(row))
        end
        for _, row in ipairs(writer:live_rows(cols)) do
          assert(rows.row_width(row) <= cols, "round " .. round)
          check_safe(face:row(row))
        end
      end
      out[#out + 1] = support.dump(writer:feed({ text = text, done = true }, cols))
      assert.equal(whole, table.concat(out), "round " .. round)
    end
  end)
end)

-- ---- work ----

-- Steps of the Lua machine, and bytes of strings and tables that were made.
local function work(fn)
  local steps = 0
  collectgarbage()
  collectgarbage("stop")
  local before = collectgarbage("count")
  debug.sethook(function()
    steps = steps + 1
  end, "", 1000)
  fn()
  debug.sethook()
  local kib = collectgarbage("count") - before
  collectgarbage("restart")
  return steps, kib
end

describe("cli.render work", function()
  local hostile = {
    ["emphasis that never closes"] = "*a ", ["runs"] = "**a* b*** _c__ ", ["brackets"] = "[",
    ["closed brackets"] = "[a](b", ["images"] = "![", ["backticks"] = "`a`` ", ["angles"] = "<a ",
    ["addresses"] = "http://", ["entities"] = "&amp", ["pipes"] = "|", ["quotes"] = "> ",
    ["items"] = "- ", ["lines"] = "a\n", ["list"] = "- a\n", ["deep list"] = "  - a\n",
    ["table"] = "|a|b|\n|-|-|\n|c|d|\n", ["code"] = "```c\nint a; /* x\n", ["headings"] = "# a\n",
    ["links"] = "[a](https://b.c) ", ["parentheses"] = "[a](b(c)", ["strikes"] = "~~a~ ",
    ["words"] = "some words of a text ", ["bold words"] = "**some** _words_ ",
  }
  for name, piece in pairs(hostile) do
    it("grows with the length: " .. name, function()
      local function run(count)
        local text = piece:rep(count)
        return work(function()
          render(text, 80)
        end)
      end
      run(50)
      local steps, kib = run(3000)
      local more_steps, more_kib = run(6000)
      assert(more_steps <= 2.6 * steps + 20, ("%d, then %d steps"):format(steps, more_steps))
      assert(more_kib <= 2.6 * kib + 200, ("%.0f, then %.0f KiB"):format(kib, more_kib))
    end)
  end
end)
