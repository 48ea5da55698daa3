-- With the real efr.fs on real files.
local fake = require "spec.tools.fake"
local fs = require "efr.fs"
local read_file = require "efr.tools.read_file"

describe("tools.read_file", function()
  local disk

  before_each(function() disk = fake.files() end)
  after_each(function() disk.remove() end)

  local function read(input) return disk.call(read_file, input) end

  it("gives the whole file", function()
    disk.put("f", "one\ntwo\n")
    assert.same({ output = "one\ntwo\n", is_error = false }, read { path = "f" })
    disk.put("empty", "")
    assert.equal("[the file is empty]", read({ path = "empty" }).output)
  end)

  it("gives ranges of lines and says which", function()
    disk.put("f", "1\n2\n3\n4\n5")
    local rows = {
      { { offset = 2, limit = 2 }, "2\n3\n[lines 2 to 3 of 5]" },
      { { offset = 4 }, "4\n5\n[lines 4 to 5 of 5]" }, { { limit = 1 }, "1\n[lines 1 to 1 of 5]" },
      { { offset = 5, limit = 9 }, "5\n[lines 5 to 5 of 5]" },
      { { offset = 6 }, "[the file has 5 lines; none from line 6]" },
      { { offset = 2.0, limit = 1.0 }, "2\n[lines 2 to 2 of 5]" },
    }
    for _, row in ipairs(rows) do
      row[1].path = "f"
      assert.equal(row[2], read(row[1]).output)
    end
    disk.put("g", "1\n\n")
    assert.equal("\n[lines 2 to 2 of 2]", read({ path = "g", offset = 2 }).output)
    disk.put("e", "")
    local none = "[the file has 0 lines; none from line 1]"
    assert.equal(none, read({ path = "e", offset = 1 }).output)
  end)

  it("refuses wrong ranges", function()
    disk.put("f", "x")
    for _, bad in ipairs { 0, -1, 1.5, "2" } do
      for _, name in ipairs { "offset", "limit" } do
        local result = read { path = "f", [name] = bad }
        assert.equal(name .. " must be a whole number from 1.", result.output)
      end
    end
  end)

  it("names the real path behind a link", function()
    disk.put("AGENTS.md", "text\n")
    assert(fs.symlink("AGENTS.md", disk.dir .. "/CLAUDE.md"))
    assert.equal(("[CLAUDE.md leads through a link to %s/AGENTS.md]\ntext\n"):format(disk.dir),
      read({ path = "CLAUDE.md" }).output)
  end)

  it("reads regular text files only, up to 16 MiB", function()
    disk.put("nul", "a\0b")
    assert.same({ output = "nul is not a text file.", is_error = true }, read { path = "nul" })
    disk.put("late", ("x"):rep(8192) .. "\0")
    assert.is_false(read({ path = "late" }).is_error)
    assert.equal("no does not exist.", read({ path = "no" }).output)
    assert(fs.mkdir(disk.dir .. "/d", 448))
    assert.equal("d is not a regular file.", read({ path = "d" }).output)
    disk.put("most", ("x"):rep(16 * 1024 * 1024))
    assert.is_false(read({ path = "most" }).is_error)
    disk.put("more", ("x"):rep(16 * 1024 * 1024 + 1))
    assert.equal("more has more than 16 MiB.", read({ path = "more" }).output)
    -- A device could block or never end.
    assert.equal("/dev/zero is not a regular file.", read({ path = "/dev/zero" }).output)
  end)
end)
