-- What words become: the decoded text of literal ones, and the kinds of the parts of the others. Each
-- row was tried in zsh 5.9.
local ast = require "efr.perm.ast"
local shell = require "efr.perm.shell"

local function words(line)
  local list, why, detail = shell.parse(line)
  assert(list, ("%s: %s %s"):format(line, why, detail and detail.what))
  return list.items[1].words
end

local LITERAL <const> = {
  { "f a", "a" }, { "f ''", "" }, { 'f ""', "" }, { "f 'a'b\"c\"", "abc" }, { "f a\\ b", "a b" },
  { 'f "a\\b"', "a\\b" }, { 'f "a\\\\b"', "a\\b" }, { 'f "\\$x"', "$x" }, { 'f "\\`"', "`" },
  { 'f "a\\\nb"', "ab" }, { "f 'a\\\nb'", "a\\\nb" }, { "f 'a'\\\n'b'", "ab" }, { "f a\\\n  b", "a" },
  { "f $'a\\n\\t\\''", "a\n\t'" }, { "f $'\\x41\\101\\u0041'", "AAA" }, { "f $'\\q\\d'", "qd" },
  { "f $'\\e\\E\\a\\b\\f\\v\\r'", "\27\27\a\b\f\v\r" }, { "f $\"a\"", "$a" }, { "f $", "$" },
  { 'f "a$"', "a$" }, { "f a$/b", "a$/b" }, { "f =", "=" }, { "f a=b", "a=b" }, { "f [", "[" },
  { "f ]", "]" }, { "f a]b", "a]b" }, { "f {}", "{}" }, { "f {a}", "{a}" }, { "f a}b", "a}b" },
  { "f {a", "{a" }, { "f a,b", "a,b" }, { "f !a", "!a" }, { "f -", "-" }, { "f a # b", "a" },
  { "f 'a''b'", "ab" }, { "f %1", "%1" }, { "f @x", "@x" }, { "f a:b", "a:b" }, { "f 12", "12" },
}

local PARTS <const> = {
  { "f $x", "param" }, { "f \"$x\"", "param" }, { "f ${x}y", "param lit" }, { "f $x[1]", "param" },
  { "f *.c", "glob lit" }, { "f a?", "lit glob" }, { "f [a-z]", "glob" }, { "f <1-9>", "glob" },
  { "f (a|b)", "glob" }, { "f *(N)", "glob qual" }, { "f *(a|b)", "glob glob" },
  { "f *(.)(#qN)", "glob qual qual" }, { "f *(e:'x':)", "glob qual" }, { "f a^", "lit glob" },
  { "f a#b", "lit glob lit" }, { "f a~", "lit glob" }, { "f ~", "tilde" }, { "f ~u/a", "tilde lit" },
  { "f =ls", "equals" }, { "f ==", "equals" }, { "f ~[a]", "unknown" }, { "f {a,b}", "brace" },
  { "f {1..3}", "brace" }, { "f {1..$n}", "range" }, { "f {a..bc}", "range" }, { "f '{a,b}'", "lit" },
  { "f $(a)", "command" }, { "f `a`", "command" }, { "f $((1))", "arith" }, { "f $[1]", "arith" },
  { "f $((a) )", "command" }, { "f <(a)", "process" }, { "f a>(b)", "lit process" },
  { "f =(a)", "process" }, { "f $'\\0'", "escape" }, { "f $'\\u00e9'", "escape" },
  { "f $'\\C-a'", "escape" }, { "f $$", "param" }, { "f $$'a'", "param lit" }, { "f $=x", "param" },
  { "f $~", "param" }, { "f $#", "param" }, { "f ${(s.:.)x}", "param" }, { "f ${x:-}}a", "param lit lit" },
  { "f \"${x:-'}'}\"", "param lit" }, { "f ${x y}", "unknown" }, { "f $x[", "unknown" },
}

-- A backslash-newline that puts two halves of one construct together: never guessed.
local OPAQUE <const> = { "f $\\\n(a)", 'f "$\\\n(a)"', "f =\\\n(a)", "i\\\nf a; then b; fi", "f $x\\\ny",
  "x=\\\n(a)", "f a\\", "f 'a", 'f "a', "f $(a", "f ${a", "f `a", "f $((1", "f (a", "f a;; b",
  "f $(cat <<E)\nb\nE\n" }

describe("words", function()
  for _, row in ipairs(LITERAL) do
    it(("%q is literal"):format(row[1]), function()
      assert.equal(row[2], ast.literal(words(row[1])[2]))
    end)
  end

  for _, row in ipairs(PARTS) do
    it(("%q is not"):format(row[1]), function()
      local word = words(row[1])[2]
      local kinds = {}
      for i, part in ipairs(word.parts) do
        kinds[i] = part.t
      end
      assert.equal(row[2], table.concat(kinds, " "))
      assert.equal(row[2] ~= "lit", ast.literal(word) == nil)
    end)
  end

  for _, line in ipairs(OPAQUE) do
    it(("%q is opaque"):format(line), function()
      local _, why = shell.parse(line)
      assert.equal("no match", why)
    end)
  end
end)
