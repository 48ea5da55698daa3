-- With the real efr.fs on real files.
local edit = require "efr.tools.edit"
local fake = require "spec.tools.fake"
local fs = require "efr.fs"

describe("tools.edit", function()
  local disk

  before_each(function() disk = fake.files() end)
  after_each(function() disk.remove() end)

  local function run(old, new, more)
    local input = { path = "f", old_string = old, new_string = new }
    for key, value in pairs(more or {}) do input[key] = value end
    return disk.call(edit, input)
  end

  it("replaces one match", function()
    disk.put("f", "a\nb\nc\n")
    assert(fs.chmod(disk.dir .. "/f", 493))
    local result = run("b\n", "B\nB2\n")
    assert.equal("Success. Replaced 1 match in f.", result.output)
    assert.equal("a\nB\nB2\nc\n", disk.get("f"))
    assert.equal(493, fs.stat(disk.dir .. "/f").mode)
    assert.equal("@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n", result.diff)
    assert.same({ 2, 1 }, { result.changes.added, result.changes.removed })
  end)

  it("takes patterns and replacement signs as plain text", function()
    disk.put("f", "x = f(%d+) [a-z]* $1")
    run("f(%d+) [a-z]*", "%0 %1 \\1")
    assert.equal("x = %0 %1 \\1 $1", disk.get("f"))
  end)

  it("counts several matches, and replaces all when told", function()
    disk.put("f", "aa\naa\naa\n")
    local result = run("aa", "b")
    assert.equal("old_string has 3 matches in f. Add lines around it until it is unique, or set "
      .. "replace_all.", result.output)
    assert.is_true(result.is_error)
    assert.equal("Success. Replaced 3 matches in f.", run("aa", "b", { replace_all = true }).output)
    assert.equal("b\nb\nb\n", disk.get("f"))
  end)

  it("shows the nearest lines when there is no match", function()
    local lines = {}
    for i = 1, 40 do lines[i] = ("local value_%d = compute(%d)"):format(i, i) end
    lines[20] = "\tif ready then go(fast) end"
    disk.put("f", table.concat(lines, "\n") .. "\n")
    local result = run("    if ready then go(fast) end\n  next\n", "x")
    assert.is_true(result.is_error)
    local first, rest = result.output:match("^([^\n]*)\nThe nearest lines:\n(.*)$")
    assert.equal("old_string was not found in f.", first)
    local _, count = rest:gsub("\n", "")
    assert.equal(11, count)
    assert.is_truthy(rest:find("20: \tif ready then go(fast) end", 1, true))
    assert.equal("old_string was not found in f.", run("zzz ###", "x").output)
    local by_third = run("{\n}\nif ready then go(slow) end\n", "x").output
    assert.is_truthy(by_third:find("\n20: \tif ready", 1, true))
    assert.is_truthy(by_third:find("nearest lines:\n15: ", 1, true))
    assert.equal(table.concat(lines, "\n") .. "\n", disk.get("f"))
  end)

  it("refuses strings that cannot work", function()
    disk.put("f", "a")
    assert.is_truthy(run("", "x").output:find("must not be empty"))
    assert.is_truthy(run("a", "a").output:find("are equal"))
    assert.is_truthy(run("a", 1).output:find("new_string must be a string"))
    assert.is_truthy(run("a", "b", { replace_all = "yes" }).output:find("replace_all"))
    assert.equal("no does not exist. Use write_file to create it.",
      run("a", "b", { path = "no" }).output)
    disk.put("f", "a\0b")
    assert.equal("f is not a text file.", run("a", "b").output)
    assert.equal("a\0b", disk.get("f"))
  end)

  it("converts line ends when every line of the file has CRLF", function()
    disk.put("f", "a\r\nb\r\nc\r\n")
    assert.is_false(run("a\nb\n", "x\ny\nz\n").is_error)
    assert.equal("x\r\ny\r\nz\r\nc\r\n", disk.get("f"))
    disk.put("f", "a\r\nb\nc\r\n")
    assert.is_true(run("a\nb\n", "x\n").is_error)
    assert.is_false(run("a\r\nb\n", "x\n").is_error)
    assert.equal("x\nc\r\n", disk.get("f"))
  end)

  it("keeps bytes that are no UTF-8", function()
    local before = "\xff\xfe caf\xe9\nname = 1\n\x80 end"
    disk.put("f", before)
    assert.is_false(run("name = 1", "name = \u{e9}").is_error)
    assert.equal("\xff\xfe caf\xe9\nname = \u{e9}\n\x80 end", disk.get("f"))
    local missed = run("caf\u{FFFD}", "x")
    assert.is_truthy(missed.output:find("bytes that are no UTF-8", 1, true))
  end)

  it("declares the read as well as the write", function()
    disk.put("f", "a")
    assert.same({
      { kind = "read", path = disk.dir .. "/f" }, { kind = "write", path = disk.dir .. "/f" },
    }, edit.declare({ path = "f", old_string = "a", new_string = "b" }, disk.ctx))
  end)

  it("previews what it would do, and writes nothing", function()
    disk.put("f", "a\n")
    local input = { path = "f", old_string = "a", new_string = "b" }
    assert(edit.declare(input, disk.ctx))
    assert.equal("@@ -1 +1 @@\n-a\n+b\n", edit.preview(input, disk.ctx))
    assert.equal("a\n", disk.get("f"))
  end)

  it("keeps its cost linear in the file", function()
    disk.put("f", ("some line of words\n"):rep(40000))
    assert.is_true(run("no such words here", "x").is_error)
    local result = run("some line", "any line", { replace_all = true })
    assert.equal("Success. Replaced 40000 matches in f.", result.output)
  end)
end)
