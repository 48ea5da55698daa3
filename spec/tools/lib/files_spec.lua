-- With the real efr.fs on real files.
local fake = require "spec.tools.fake"
local files = require "efr.tools.lib.files"
local fs = require "efr.fs"
local read_file = require "efr.tools.read_file"
local write_file = require "efr.tools.write_file"

describe("tools.lib.files", function()
  local disk, dir

  before_each(function()
    disk = fake.files()
    dir = disk.dir
  end)

  after_each(function() disk.remove() end)

  local function resolve(path)
    local target, err = files.resolve({ path = path }, disk.ctx)
    return target and target.real, target and target.linked, err
  end

  it("finds the real path of what exists and of what does not", function()
    disk.put("a", "x")
    assert(fs.mkdir(dir .. "/d", 448))
    assert(fs.symlink("d", dir .. "/link"))
    assert(fs.symlink("a", dir .. "/to_a"))
    assert(fs.symlink("link/new", dir .. "/dangling"))
    local rows = {
      { "a", "/a", false }, { dir .. "/a", "/a", false }, { "./d/../a", "/a", false },
      { "new/deep/file", "/new/deep/file", false }, { "to_a", "/a", true },
      { "link/f", "/d/f", true }, { "link/x/y", "/d/x/y", true }, { "dangling", "/d/new", true },
      { "link/../a", "/a", false }, { "~/f", "/home/f", false },
      { "$SCRATCH/f", "/scratch/f", false }, { "$SCRATCHY/f", "/$SCRATCHY/f", false },
      { "~x/f", "/~x/f", false },
    }
    disk.ctx.scratch = dir .. "/scratch"
    for _, row in ipairs(rows) do
      local real, linked = resolve(row[1])
      assert.same({ row[1], dir .. row[2], row[3] }, { row[1], real, linked })
    end
  end)

  it("refuses what names no file", function()
    assert(fs.symlink("loop", dir .. "/loop"))
    disk.put("a", "x")
    for _, path in ipairs { "", "d/", "a\0b", "loop", "a/b", "no/../x" } do
      local real, _, err = resolve(path)
      assert.is_nil(real, path)
      assert.is_string(err)
    end
    assert.is_nil((files.resolve({}, disk.ctx)))
  end)

  it("declares both names", function()
    disk.put("a", "x")
    assert(fs.symlink("a", dir .. "/link"))
    assert.same({
      { kind = "write", path = dir .. "/link" }, { kind = "write", path = dir .. "/a" },
    }, write_file.declare({ path = "link", content = "" }, disk.ctx))
    assert.same({ { kind = "read", path = dir .. "/a" } },
      read_file.declare({ path = dir .. "/a" }, disk.ctx))
  end)

  -- Between the decision and the run, a directory of the path is swapped for a link. The control
  -- run with a write that follows links shows that the swap would work.
  it("does not follow a directory that became a link after the decision", function()
    assert(fs.mkdir(dir .. "/d", 448))
    assert(fs.mkdir(dir .. "/outside", 448))
    disk.put("d/f", "mine")
    disk.put("outside/f", "secret")
    local function swap()
      assert(fs.rename(dir .. "/d", dir .. "/gone"))
      assert(fs.symlink("outside", dir .. "/d"))
    end
    local result = disk.call(write_file, { path = "d/f", content = "new" }, swap)
    assert.is_true(result.is_error)
    assert.equal("d/f changed since this call was judged, and nothing was done. Call again.",
      result.output)
    assert.equal("secret", disk.get("outside/f"))
    disk.ctx.target = { real = dir .. "/d/f", named = dir .. "/d/f", shown = "d/f" }
    assert.is_true(read_file.run({}, disk.ctx).is_error)
    assert(fs.write_atomic(dir .. "/d/f", "control", 420))
    assert.equal("control", disk.get("outside/f"))
  end)

  it("makes no directories behind a link that appeared after the decision", function()
    assert(fs.mkdir(dir .. "/d", 448))
    assert(fs.mkdir(dir .. "/outside", 448))
    local result = disk.call(write_file, { path = "d/new/f", content = "x" }, function()
      assert(fs.rmdir(dir .. "/d"))
      assert(fs.symlink("outside", dir .. "/d"))
    end)
    assert.is_true(result.is_error)
    assert.same({}, fs.readdir(dir .. "/outside"))
    assert(fs.mkdirs(dir .. "/d/new", 493))
    assert.equal(1, #fs.readdir(dir .. "/outside"))
  end)

  it("does not follow a file that became a link after the decision", function()
    disk.put("f", "mine")
    disk.put("secret", "secret")
    local function swap()
      assert(fs.unlink(dir .. "/f"))
      assert(fs.symlink("secret", dir .. "/f"))
    end
    local read = disk.call(read_file, { path = "f" }, swap)
    assert.is_true(read.is_error)
    assert.is_nil(read.output:find("secret"))
    assert.equal("secret", disk.get("f"))
    assert(fs.unlink(dir .. "/f"))
    disk.put("f", "mine")
    assert.is_true(disk.call(write_file, { path = "f", content = "new" }, swap).is_error)
    assert.equal("secret", disk.get("secret"))
  end)

  it("does not follow a link that appeared where there was no file", function()
    disk.put("secret", "secret")
    local result = disk.call(write_file, { path = "new", content = "x" }, function()
      assert(fs.symlink("secret", dir .. "/new"))
    end)
    assert.is_true(result.is_error)
    assert.equal("secret", disk.get("secret"))
  end)

  it("works on names with bytes that are no UTF-8", function()
    local name = "odd\xff.txt"
    local result = disk.call(write_file, { path = name, content = "a\n" })
    assert.is_false(result.is_error)
    assert.equal("a\n", disk.get(name))
    local file = result.changes.files[1]
    assert.equal(disk.ctx.text.clean(dir .. "/" .. name), file.path)
    assert.equal(dir .. "/" .. name, require("efr.util.text").unbase64(file.path_b64))
    assert.is_nil(disk.call(write_file, { path = "even.txt", content = "" })
      .changes.files[1].path_b64)
  end)
end)
