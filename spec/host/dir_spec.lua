local dir = require "efr.dir"
local fs = require "efr.fs"
local sys = require "efr.sys"

describe("efr.dir", function()
  local base, top

  before_each(function()
    base = "/tmp/efr-dir-" .. sys.uuid7()
    assert(fs.mkdirs(base .. "/top/sub", 448))
    assert(fs.mkdirs(base .. "/outside", 448))
    assert(fs.write_atomic(base .. "/top/file", "text", 416))
    assert(fs.write_atomic(base .. "/outside/secret", "secret"))
    assert(fs.symlink("../outside", base .. "/top/link"))
    top = assert(dir.open(base .. "/top"))
  end)
  after_each(function()
    top:close()
    assert(fs.rmtree(base))
  end)

  local function code_of(_, _, code) return code end

  it("lists names with their types, and says what the directory is", function()
    local names, stat = top:list(".", 10)
    assert.same({ file = "file", sub = "dir", link = "link" }, names)
    assert.equal("dir", stat.type)
    assert.same(top:stat("."), stat)
    local some = top:list(".", 2)
    local count = 0
    for _ in pairs(some) do count = count + 1 end
    assert.equal(2, count)
    assert.same({}, (top:list("sub", 10)))
  end)

  it("describes an entry, a link itself", function()
    local stat = assert(top:stat("file"))
    assert.equal("file", stat.type)
    assert.equal(416, stat.mode)
    assert.equal(4, stat.size)
    assert.equal(fs.stat(base .. "/top/file").ino, stat.ino)
    assert.is_true(math.abs(stat.ctime_ns // 1000 - sys.now_us()) < 60000000)
    assert.equal("link", top:stat("link").type)
    assert.equal("../outside", top:readlink("link"))
    assert.equal("ENOENT", code_of(top:stat("missing")))
  end)

  it("follows no link and leaves the directory by no path", function()
    assert.equal("ELOOP", code_of(top:stat("link/secret")))
    assert.equal("ELOOP", code_of(top:read("link/secret", 100)))
    assert.equal("ELOOP", code_of(top:list("link", 10)))
    assert.equal("ELOOP", code_of(top:open("link")))
    assert.equal("EXDEV", code_of(top:read("../outside/secret", 100)))
    assert.equal("EXDEV", code_of(top:read(base .. "/outside/secret", 100)))
    assert.equal("ELOOP", code_of(dir.open(base .. "/top/link")))
    assert.equal("ENOTDIR", code_of(dir.open(base .. "/top/file")))
  end)

  it("stays in the directory when its name becomes a link", function()
    local sub <close> = assert(top:open("sub"))
    assert(fs.write_atomic(base .. "/top/sub/secret", "mine"))
    assert(fs.rename(base .. "/top/sub", base .. "/top/sub2"))
    assert(fs.symlink("../outside", base .. "/top/sub"))
    assert.equal("mine", sub:read("secret", 100))
    assert.equal("ELOOP", code_of(top:read("sub/secret", 100)))
  end)

  it("enters no other mount", function()
    local root <close> = assert(dir.open("/"))
    assert.equal("EXDEV", code_of(root:list("proc", 10)))
    assert.equal("EXDEV", code_of(root:stat("proc/version")))
  end)

  it("reads regular files, bounded", function()
    assert.equal("text", top:read("file", 4))
    assert.equal("EFR_TOO_BIG", code_of(top:read("file", 3)))
    assert.equal("EFR_NOT_REGULAR", code_of(top:read("sub", 100)))
    assert.equal(0, (os.execute("mkfifo " .. base .. "/top/fifo")) and 0)
    assert.equal("EFR_NOT_REGULAR", code_of(top:read("fifo", 100)))
    assert.equal("ELOOP", code_of(top:read("link", 100)))
  end)

  it("makes, moves and removes entries, over none that is there", function()
    local sub <close> = assert(top:open("sub"))
    assert.is_true(sub:create("new", "bytes", 493))
    assert.equal("bytes", sub:read("new", 10))
    assert.equal(493, sub:stat("new").mode)
    assert.equal("EEXIST", code_of(sub:create("new", "x", 384)))
    assert.is_true(top:mkdir("made", 448))
    local made <close> = assert(top:open("made"))
    local ino = sub:stat("new").ino
    assert.is_true(sub:move("new", made, "moved"))
    assert.equal(ino, made:stat("moved").ino)
    assert.is_true(made:create("other", "", 384))
    assert.equal("EEXIST", code_of(made:move("moved", made, "other")))
    assert.is_true(top:move("link", made, "link"))
    assert.equal("../outside", made:readlink("link"))
    assert.is_true(made:remove("link"))
    assert.equal("secret", fs.read_file(base .. "/outside/secret"))
    assert.is_true(made:symlink("nowhere", "dangling"))
    assert.equal("nowhere", made:readlink("dangling"))
  end)

  it("takes names of any bytes, and no paths where a name is due", function()
    local odd = ("\255\n"):rep(127) .. "x"
    assert.is_true(top:create(odd, "odd", 384))
    assert.equal("file", top:list(".", 10)[odd])
    assert.equal("odd", top:read(odd, 10))
    for _, bad in ipairs { "a/b", ".", "..", "", "a\0b", "/" } do
      assert.has_error(function() top:create(bad, "", 384) end)
      assert.has_error(function() top:remove(bad) end)
      assert.has_error(function() top:move(bad, top, "x") end)
      assert.has_error(function() top:move("file", top, bad) end)
      assert.has_error(function() top:readlink(bad) end)
      assert.has_error(function() top:mkdir(bad, 448) end)
    end
  end)

  it("removes a tree, follows no link, and takes what is missing as removed", function()
    assert(fs.mkdirs(base .. "/tree/a/b", 448))
    assert(fs.mkdirs(base .. "/kept/in", 448))
    assert(fs.symlink(base .. "/kept", base .. "/tree/a/link"))
    assert(fs.chmod(base .. "/tree/a/b", 0))
    local all <close> = assert(dir.open(base))
    assert.is_true(all:remove_tree("tree"))
    assert.is_nil(fs.lstat(base .. "/tree"))
    assert.is_truthy(fs.lstat(base .. "/kept/in"))
    assert.is_true(all:remove_tree("tree"))
    assert.has_error(function() all:remove_tree("kept/in") end)
    assert.has_error(function() all:remove_tree("..") end)
  end)

  it("can be closed twice, and says that it is", function()
    local one = assert(dir.open(base))
    one:close()
    one:close()
    assert.equal("efr.dir (closed)", tostring(one))
    for _, call in ipairs {
      { "open", "top" }, { "stat", "top" }, { "list", "top", 1 }, { "read", "x", 1 },
      { "create", "x", "", 1 }, { "mkdir", "x", 1 }, { "remove", "x" }, { "remove_tree", "x" }, { "readlink", "x" },
      { "symlink", "x", "y" }, { "move", "x", top, "y" },
    } do
      assert.equal("EFR_CLOSED", code_of(one[call[1]](one, table.unpack(call, 2))))
    end
    assert.equal("EFR_CLOSED", code_of(top:move("file", one, "y")))
  end)
end)
