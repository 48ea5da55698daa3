-- With the real efr.fs on real files.
local fake = require "spec.tools.fake"
local fs = require "efr.fs"
local write_file = require "efr.tools.write_file"

describe("tools.write_file", function()
  local disk

  before_each(function() disk = fake.files() end)
  after_each(function() disk.remove() end)

  local function write(path, content)
    return disk.call(write_file, { path = path, content = content })
  end

  local function mode(name) return fs.stat(disk.dir .. "/" .. name).mode end

  it("creates a file with its directories", function()
    local result = write("a/b/f", "one\ntwo\n")
    assert.equal("created a/b/f (8 bytes)", result.output)
    assert.equal("one\ntwo\n", disk.get("a/b/f"))
    assert.same({ 420, 493, 493 }, { mode "a/b/f", mode "a/b", mode "a" })
    assert.same({
      files = { { path = disk.dir .. "/a/b/f", kind = "added", added = 2, removed = 0 } },
      added = 2, removed = 0,
    }, result.changes)
    assert.equal("@@ -0,0 +1,2 @@\n+one\n+two\n", result.diff)
  end)

  it("replaces a file and keeps its mode", function()
    disk.put("f", "old\nsame\n")
    assert(fs.chmod(disk.dir .. "/f", 488))
    local result = write("f", "new\nsame\n")
    assert.equal("replaced f (9 bytes)", result.output)
    assert.equal(488, mode "f")
    assert.equal("@@ -1,2 +1,2 @@\n-old\n+new\n same\n", result.diff)
    assert.equal("modified", result.changes.files[1].kind)
    assert.equal("replaced f (1 byte)", write("f", "x").output)
  end)

  it("reports no change when there is none", function()
    disk.put("f", "same\n")
    local result = write("f", "same\n")
    assert.same({ files = {}, added = 0, removed = 0 }, result.changes)
    assert.is_nil(result.diff)
  end)

  it("reports a file that is no text without lines", function()
    disk.put("bin", "a\0b")
    local result = write("bin", "text\n")
    assert.same({
      path = disk.dir .. "/bin", kind = "modified", added = 0, removed = 0, binary = true,
    }, result.changes.files[1])
    assert.is_nil(result.diff)
  end)

  it("writes behind a link and leaves the link", function()
    disk.put("real", "old")
    assert(fs.symlink("real", disk.dir .. "/link"))
    assert(fs.symlink("later", disk.dir .. "/dangling"))
    assert.is_false(write("link", "new").is_error)
    assert.equal("link", fs.lstat(disk.dir .. "/link").type)
    assert.equal("new", disk.get("real"))
    assert.is_false(write("dangling", "made").is_error)
    assert.equal("made", disk.get("later"))
    assert.equal("link", fs.lstat(disk.dir .. "/dangling").type)
  end)

  it("refuses what cannot be written, and leaves nothing behind", function()
    assert(fs.mkdir(disk.dir .. "/d", 448))
    disk.put("f", "x")
    assert.equal("d is not a regular file.", write("d", "x").output)
    assert.is_true(write("f/below", "x").is_error)
    assert.is_true(write("big", ("x"):rep(16 * 1024 * 1024 + 1)).is_error)
    assert.is_true(disk.call(write_file, { path = "f" }).is_error)
    local names = {}
    for _, entry in ipairs(fs.readdir(disk.dir)) do names[#names + 1] = entry.name end
    table.sort(names)
    assert.same({ "d", "f" }, names)
  end)

  it("previews a limited diff", function()
    disk.put("f", "a\n")
    local function preview(content)
      local input = { path = "f", content = content }
      assert(write_file.declare(input, disk.ctx))
      return write_file.preview(input, disk.ctx)
    end
    assert.equal("@@ -1 +1,2 @@\n a\n+b\n", preview "a\nb\n")
    assert.equal("", preview "a\n")
    local long = preview(("line\n"):rep(1000))
    local _, lines = long:gsub("\n", "")
    assert.equal(201, lines)
    assert.is_truthy(long:find("%[%.%.%. %d+ more lines of the diff%]\n$"))
    assert.is_true(#preview(("x"):rep(3000) .. "\n" .. ("y\n"):rep(10000)) <= 16 * 1024 + 64)
    assert.equal("[not text: 2 bytes become 2 bytes]\n", preview "\0\n")
    assert.equal("a\n", disk.get("f"))
  end)
end)
