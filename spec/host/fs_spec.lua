-- efr.fs under our own state: the binding. What the C functions do with links, fifos and trees is
-- tests/unit/test_fs.c.
require("spec.helper")
local fs = require("efr.fs")

describe("fs", function()
  local dir

  before_each(function()
    local name = os.tmpname()
    os.remove(name)
    dir = name .. ".d"
    assert(fs.mkdir(dir, tonumber("700", 8)))
  end)

  after_each(function()
    assert(fs.rmtree(dir))
  end)

  local function fails(code, ...)
    local value, text, got = ...
    assert.is_nil(value)
    assert.are.equal(code, got)
    assert.is_string(text)
    return text
  end

  it("reads and writes whole files", function()
    local path = dir .. "/f"
    local bytes = "a\0b\xff\n"
    assert.is_true(fs.write_atomic(path, bytes, tonumber("640", 8)))
    assert.are.equal(bytes, fs.read_file(path))
    assert.are.equal(bytes, fs.read_real(path, #bytes))
    assert.are.equal(tonumber("640", 8), fs.stat(path).mode)
    assert.is_true(fs.write_atomic(path, ""))
    assert.are.equal("", fs.read_file(path))
    assert.are.equal(tonumber("600", 8), fs.stat(path).mode)
    assert.is_true(fs.write_real(path, "x", { mode = tonumber("755", 8), keep = true }))
    assert.are.equal(tonumber("600", 8), fs.stat(path).mode)
    assert.is_true(fs.write_real(dir .. "/new", "x", { mode = tonumber("755", 8) }))
    assert.are.equal(tonumber("755", 8), fs.stat(dir .. "/new").mode)
    assert.matches("larger than 0 bytes", fails("EFR_TOO_BIG", fs.read_file(path, 0)))
    assert.matches(path .. "x", fails("ENOENT", fs.read_file(path .. "x")), 1, true)
    fails("EFR_NOT_REGULAR", fs.read_real(dir))
  end)

  it("describes files", function()
    local path = dir .. "/f"
    fs.write_atomic(path, "12345")
    fs.symlink("f", dir .. "/l")
    local stat = fs.stat(dir .. "/l")
    assert.are.equal("file", stat.type)
    assert.are.equal(5, stat.size)
    assert.are.equal("integer", math.type(stat.mtime_us))
    assert.is_true(math.abs(stat.mtime_us / 1e6 - os.time()) < 100)
    assert.are.equal("link", fs.lstat(dir .. "/l").type)
    assert.are.equal("dir", fs.stat(dir).type)
    assert.are.equal("char", fs.stat("/dev/null").type)
    assert.are.equal("f", fs.readlink(dir .. "/l"))
    assert.are.equal(fs.realpath(path), fs.realpath(dir .. "/l"))
    fails("EINVAL", fs.readlink(path))
    fails("ENOENT", fs.stat(dir .. "/none"))
    fails("ENOENT", fs.lstat(dir .. "/none"))
    fails("ENOENT", fs.realpath(dir .. "/none"))
  end)

  it("lists directories", function()
    assert.are.same({}, fs.readdir(dir))
    fs.write_atomic(dir .. "/.hidden", "")
    fs.mkdirs(dir .. "/a/b", 448)
    fs.symlink("a", dir .. "/l")
    local list = fs.readdir(dir)
    table.sort(list, function(a, b)
      return a.name < b.name
    end)
    assert.are.same({
      { name = ".hidden", type = "file" },
      { name = "a", type = "dir" },
      { name = "l", type = "link" },
    }, list)
    fails("ENOENT", fs.readdir(dir .. "/none"))
    fails("ENOTDIR", fs.readdir(dir .. "/.hidden"))
  end)

  it("changes names, modes and directories", function()
    fs.write_atomic(dir .. "/a", "x")
    assert.is_true(fs.rename(dir .. "/a", dir .. "/b"))
    fails("ENOENT", fs.rename(dir .. "/a", dir .. "/b"))
    assert.is_true(fs.chmod(dir .. "/b", 256))
    assert.are.equal(256, fs.stat(dir .. "/b").mode)
    assert.is_true(fs.unlink(dir .. "/b"))
    fails("ENOENT", fs.unlink(dir .. "/b"))
    assert.is_true(fs.mkdir(dir .. "/d"))
    fails("EEXIST", fs.mkdir(dir .. "/d"))
    assert.is_true(fs.rmdir(dir .. "/d"))
    fails("ENOENT", fs.rmdir(dir .. "/d"))
    assert.is_true(fs.check_private_dir(dir))
    fs.chmod(dir, tonumber("755", 8))
    fails("EFR_NOT_PRIVATE", fs.check_private_dir(dir))
  end)

  it("rejects NUL, empty paths and wrong numbers", function()
    for name, fn in pairs(fs) do
      assert.is_false(pcall(fn, "a\0b", "c", 0), name)
      assert.is_false(pcall(fn, "", "c", 0), name)
      assert.is_false(pcall(fn, {}, "c", 0), name)
    end
    assert.is_false(pcall(fs.rename, "a", "b\0"))
    assert.is_false(pcall(fs.chmod, dir, 65536))
    assert.is_false(pcall(fs.read_file, dir, -1))
    assert.is_false(pcall(fs.write_atomic, dir, "x", "600x"))
    assert.is_false(pcall(fs.write_real, dir .. "/x", "x", { keep = 1 }))
  end)
end)
