-- parse as a whole: limits, failures, shape of the tree. The rules one by one: shell_rules_spec.
local ast = require "efr.perm.ast"
local shell = require "efr.perm.shell"

local function only(line)
  local list = assert(shell.parse(line))
  assert.equal(1, #list.items)
  return list.items[1]
end

local function literals(line)
  local out = {}
  for i, word in ipairs(only(line).words) do
    out[i] = ast.literal(word) or false
  end
  return out
end

describe("shell.parse", function()
  it("reads words with their quoting", function()
    assert.same({ "ls", "-l", "a b", "x'y", "é$", "" },
      literals([[ls -l "a b" 'x'\'y "é\$" '']]))
    assert.same({ "f", false, false, false }, literals([[f $x *.c {a,b}]]))
  end)

  it("puts positions on nodes", function()
    local command = only("  cat a >out")
    assert.equal(3, command.pos)
    assert.equal(12, command.stop)
    assert.equal(7, command.words[2].pos)
    assert.equal(7, command.words[2].stop)
    assert.equal(9, command.redirs[1].pos)
  end)

  it("marks a command of plain words, and makes it the same as any other", function()
    for command, around in pairs { ["ls"] = "%s", ["ls -la  /a_b.c,d:e@f%1+2\tx=y"] = "%s ",
      ["ls a"] = "(%s)", ["ls b"] = "%s && pwd", ["ls c"] = "%s&", ["ls d"] = "%s|&wc -l" } do
      local first
      ast.walk(assert(shell.parse((around:gsub("%%s", (command:gsub("%%", "%%%%")))))),
        function(node) first = first or node.kind == "simple" and node or nil end)
      assert.is_true(first.plain, command)
      -- A redirection in front takes the long way.
      local other = only("<i " .. command)
      assert.is_nil(other.plain)
      assert.equal(#other.words, #first.words, command)
      for i, word in ipairs(other.words) do
        local mine, shift = first.words[i], first.words[1].pos - other.words[1].pos
        assert.same({ word.text, word.parts, word.pos + shift, word.stop + shift },
          { mine.text, mine.parts, mine.pos, mine.stop }, command)
      end
    end
    for _, line in ipairs { "ls >o", "2>o ls", "ls &>o", "a=b ls", "ls é", "ls a~", "ls 'a'",
      "ls $x", "ls a\\\nb", "typeset a=b", "nocorrect ls", "ls a!", "ls 2>o" } do
      assert.is_nil(only(line).plain, line)
    end
    assert.equal("func", only("ls() pwd").kind)
    assert.equal("if", only("if a; then b; fi").kind)
  end)

  it("gives the body of a here-document to its redirection", function()
    local list = assert(shell.parse("cat <<A <<-'B' ; ls\nx $y\nA\n\t$z\n\tB\npwd"))
    assert.equal(3, #list.items)
    local first, second = table.unpack(list.items[1].redirs)
    assert.equal("x $y\n", first.heredoc.text)
    assert.equal("param", first.heredoc.body.parts[2].t)
    assert.equal("$z\n", ast.literal(second.heredoc.body))
    assert.equal("pwd", ast.literal(list.items[3].words[1]))
  end)

  it("keeps what a substitution runs", function()
    local found = {}
    ast.walk(shell.parse("f \"$(a `b`)\" <(c) =(d) ${x:-$(e)} $x[$(g)] $((1 + $(h)))"), function(n)
      if n.kind == "simple" then
        found[#found + 1] = ast.literal(n.words[1])
      end
    end)
    assert.same({ "f", "a", "b", "c", "d", "g", "e", "h" }, (function()
      table.sort(found, function(a, b)
        local order = "fabcdgeh"
        return order:find(a) < order:find(b)
      end)
      return found
    end)())
  end)

  it("says why a line is opaque", function()
    assert.same({ nil, "length" }, { shell.parse(("x"):rep(65537)) })
    local _, why = shell.parse(("$("):rep(65) .. (")"):rep(65))
    assert.equal("depth", why)
    local _, no_match, detail = shell.parse("echo 'a")
    assert.equal("no match", no_match)
    assert.equal("closing '", detail.what)
    assert.equal("no match", select(2, shell.parse("a\0b")))
  end)

  -- prefix, opener, inside, closer, suffix
  local NESTING <const> = {
    { "f ", "$(f ", "x", ")", "" }, { "", "( ", "x", ")", "" }, { "", "{ ", "x", "\n}", "" },
    { "f ", "\"$(f ", "x", ")\"", "" }, { "f ", "${x:-", "x", "}", "" },
    { "f ", "\"${x:-", "x", "}\"", "" }, { "f ", "<(f ", "x", ")", "" },
    { "", "if a; then ", "x", "\nfi", "" }, { "", "while a; do ", "x", "\ndone", "" },
    { "", "for i in a; do ", "x", "\ndone", "" }, { "", "repeat 2 ", "x", "", "" },
    { "", "case a in a) ", "x", ";; esac", "" }, { "", "f() ", "x", "", "" },
    { "", "! { ", "x", "; }", "" }, { "", "() { ", "x", "; }", "" },
    { "[[ ", "( ", "a", " )", " ]]" }, { "[[ ", "! ", "a", "", " ]]" },
    { "f ", "{a,", "b", "}", "" }, { "f ", "(a|", "b", ")", "" }, { "f $((", "(", "1", ")", "))" },
    { "f $[", "[", "1", "]", "]" }, { "f ${x[", "[", "1", "]", "]}" }, { "x[", "[", "1", "]", "]=1" },
    { "", "{ x } always { ", "x", "; }", "" }, { "f ", "$((", "1", "))", "" },
    { "f ", "${(f)${x[", "1", "]}}", "" }, { "", "time ", "x", "", "" },
    { "", "foreach i (a)\n", "x", "\nend", "" }, { "", "[[ -n $(", "x", ") ]]", "" },
  }

  it("fits 64 levels of everything that nests, and no more", function()
    for _, row in ipairs(NESTING) do
      local before, open, inside, shut, after = table.unpack(row)
      local function line(levels)
        return before .. open:rep(levels) .. inside .. shut:rep(levels) .. after
      end
      -- Some openers count for two levels, and what stands around them for a few.
      local tree, why, detail = shell.parse(line(20))
      assert(tree, ("%s: %s %s"):format(open, why, detail and detail.what))
      assert(not ast.has_unknown(tree), open)
      assert.equal("depth", select(2, shell.parse(line(66))), open)
      for levels = 21, 65 do
        _, why = shell.parse(line(levels))
        assert(why == nil or why == "depth", ("%s %d: %s"):format(open, levels, why))
      end
    end
  end)
end)
