local command = require "spec.perm.commands"
local matching = require "efr.perm.matching"

local CTX = { cwd = "/home/u/p/app/src", home = "/home/u", project = "/home/u/p/app",
  scratch = "/home/u/s" }

local function matches(pattern, line, ctx)
  return matching.command(pattern, command(line), ctx or CTX)
end

describe("perm.matching: forbid forms", function()
  -- form, what it hits, what it does not hit
  local ROWS = {
    { "--output", "--output --output=x --outp --ou=x", "--outputs --oz -- -output x -o" },
    { "--vacuum*", "--vacuum --vacuum-size=1 --vac", "--version -vacuum vacuum" },
    { "-o", "-o -of -ro -xof", "--output o - --o" },
    { "-exec", "-exec", "-execdir -e --exec exec" },
    { "-fprint*", "-fprint -fprintf -fprint0", "-fprin --fprint fprint" },
    { "env", "env $ENVenv .env xenvx", "-env --env ENV" },
    { "=", "a=b =", "-a=b" },
  }
  for _, row in ipairs(ROWS) do
    it("knows " .. row[1], function()
      for word in row[2]:gmatch("%S+") do assert.is_true(matching.hits(row[1], word), word) end
      for word in row[3]:gmatch("%S+") do assert.is_false(matching.hits(row[1], word), word) end
    end)
  end
end)

describe("perm.matching", function()
  it("takes the program as it is written", function()
    assert.is_true(matches({ program = "cargo" }, "cargo test"))
    assert.is_false(matches({ program = "cargo" }, "/usr/bin/cargo test"))
    assert.is_false(matches({ program = "cargo" }, "carg? test"))
    assert.is_false(matches({ program = "cargo" }, "$? test"))
  end)

  it("takes arguments in order, with alternatives and prefixes", function()
    local pattern = { program = "npm", args = { "run|exec", "te*" } }
    assert.is_true(matches(pattern, "npm run test"))
    assert.is_true(matches(pattern, "npm exec te more"))
    assert.is_false(matches(pattern, "npm test run"))
    assert.is_false(matches(pattern, "npm run"))
    assert.is_false(matches(pattern, "npm runs test"))
  end)

  it("counts operands and options behind the arguments", function()
    local pattern = { program = "x", args = { "go" }, min_operands = 1, max_operands = 2,
      max_options = 1 }
    assert.is_true(matches(pattern, "x go a -"))
    assert.is_true(matches(pattern, "x go -v a b"))
    assert.is_true(matches(pattern, "x go -- -a"))
    assert.is_false(matches(pattern, "x go"))
    assert.is_false(matches(pattern, "x go a b c"))
    assert.is_false(matches(pattern, "x go -v -w a"))
    assert.is_false(matches(pattern, "x go -v -- a"))
  end)

  it("lets a pattern of file names meet only patterns that do not look at operands", function()
    assert.is_true(matches({ program = "ls" }, "ls a*"))
    assert.is_true(matches({ program = "ls", forbid = { "-x" } }, "ls a*"))
    assert.is_false(matches({ program = "ls", forbid = { "x" } }, "ls a*"))
    assert.is_false(matches({ program = "ls", max_operands = 9 }, "ls a*"))
    assert.is_false(matches({ program = "ls", args = { "a*" } }, "ls a*"))
    assert.is_false(matches({ program = "ls", args = { "a" } }, "ls a*"))
    assert.is_false(matches({ program = "git", args = { "add" }, check = "ref_names" },
      "git add a*"))
    assert.is_false(matches({ program = "ls", args = { "b|c*" } }, "ls b a*"))
    assert.is_true(matches({ program = "ls", args = { "b|-c*" } }, "ls b a*"))
  end)

  it("lets an unknown word meet only patterns that take everything", function()
    assert.is_true(matches({ program = "ls" }, "ls $?"))
    assert.is_false(matches({ program = "ls", forbid = { "-x" } }, "ls $?"))
    assert.is_false(matches({ program = "ls", args = { "a" } }, "ls a $?"))
    assert.is_false(matches({ program = "ls", forbid = { "-x" } }, "ls *"))
  end)

  it("compares the directory by whole components", function()
    local function under(dir, change)
      local ctx = setmetatable(change or {}, { __index = CTX })
      return matching.command({ program = "x", under = dir }, command "x", ctx)
    end
    assert.is_true(under "project")
    assert.is_true(under "~/p")
    assert.is_true(under "/home/u/p/app/src")
    assert.is_true(under("scratch", { cwd = "/home/u/s" }))
    assert.is_false(under "~/p/ap")
    assert.is_false(under "scratch")
    assert.is_false(under("project", { project = false }))
    local moved = command "x"
    moved.moved = true
    assert.is_false(matching.command({ program = "x", under = "project" }, moved, CTX))
    assert.is_false(matching.command({ program = "x", under = "project" }, command "x", nil))
  end)

  it("never matches what runs as another user", function()
    local one = command "x"
    one.privileged = true
    assert.is_false(matching.command({ program = "x" }, one, CTX))
  end)

  it("says what might match for rules that make something stricter", function()
    local pattern = { program = "rm", args = { "-rf" } }
    assert.is_true(matching.might(pattern, command "rm $?"))
    assert.is_true(matching.might(pattern, command "$? x"))
    assert.is_true(matching.might(pattern, command "rm -rf x"))
    assert.is_false(matching.might(pattern, command "rm x"))
    assert.is_false(matching.might(pattern, command "ls $?"))
  end)
end)
