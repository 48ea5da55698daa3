local file = require "efr.config.file"
local fs = require "efr.fs"
local sys = require "efr.sys"

describe("config.file", function()
  local dir, path

  before_each(function()
    dir = "/tmp/efr-file-" .. sys.uuid7()
    path = dir .. "/conf/config.toml"
  end)
  after_each(function() assert(fs.rmtree(dir)) end)

  local function read(name) return assert(fs.read_file(name, 1000)) end

  local function to(text)
    return function() return text, "result" end
  end

  it("makes a private file in a private directory", function()
    local ok, result = file.change(fs, path, function(text)
      assert.is_nil(text)
      return "a = 1\n", 7
    end)
    assert.is_true(ok)
    assert.equal(7, result)
    assert.equal("a = 1\n", read(path))
    assert.equal(384, fs.stat(path).mode & 511)
    assert.equal(448, fs.stat(dir .. "/conf").mode & 511)
  end)

  it("writes nothing where nothing changes", function()
    assert.is_true(file.change(fs, path, to ""))
    assert.is_nil(fs.lstat(path))
    assert(file.change(fs, path, to "a = 1\n"))
    local before = fs.stat(path).ino
    assert.is_true(file.change(fs, path, function(text) return text end))
    assert.equal(before, fs.stat(path).ino)
  end)

  it("writes the target of a link and keeps the link", function()
    assert(fs.mkdirs(dir .. "/conf", 448))
    assert(fs.mkdirs(dir .. "/dots", 448))
    assert(fs.write_atomic(dir .. "/dots/efr.toml", "old\n", 420))
    assert(fs.symlink("../dots/efr.toml", path))
    assert.is_true(file.change(fs, path, function(text) return text .. "new\n" end))
    assert.equal("../dots/efr.toml", fs.readlink(path))
    assert.equal("old\nnew\n", read(dir .. "/dots/efr.toml"))
    assert.equal(384, fs.stat(path).mode & 511)
  end)

  it("never goes through a link to nothing", function()
    assert(fs.mkdirs(dir .. "/conf", 448))
    assert(fs.symlink("nowhere.toml", path))
    local ok, err, code = file.change(fs, path, to "x\n")
    assert.is_nil(ok)
    assert.equal("ENOENT", code)
    assert.equal(path .. " is a link to nowhere.toml, which does not exist", err)
    assert.is_nil(fs.lstat(dir .. "/conf/nowhere.toml"))
  end)

  it("keeps a change that came meanwhile", function()
    assert(file.change(fs, path, to "a\n"))
    local ok, err, code = file.change(fs, path, function()
      assert(fs.write_atomic(path, "b\n", 384))
      return "c\n"
    end)
    assert.is_nil(ok)
    assert.equal("conflict", code)
    assert.is_truthy(err:find("changed meanwhile", 1, true))
    assert.equal("b\n", read(path))
  end)

  it("passes a refusal on and writes nothing", function()
    assert(file.change(fs, path, to "a\n"))
    local ok, err, code, place = file.change(fs, path, function()
      return nil, "no", "EFR_CONFIG", { line = 1 }
    end)
    assert.same({ nil, "no", "EFR_CONFIG", { line = 1 } }, { ok, err, code, place })
    assert.equal("a\n", read(path))
  end)
end)
