-- efr.tree as the source of `git fast-import`: one blob with a mark each, what cannot be read, files
-- that change while they are read, a pipe that breaks. Walks are in store/snapshot_root_spec. Needs
-- efr's own Lua state.
if not package.preload["efr.tree"] then return end

local fs = require "efr.fs"
local sys = require "efr.sys"
local tree_module = require "efr.tree"
local uv = require "luv"

local MIB <const> = 1024 * 1024

describe("efr.tree feed", function()
  local base, tree, pipe

  local function write(name, bytes) assert(fs.write_atomic(base .. "/" .. name, bytes, 420)) end

  before_each(function()
    base = ("%s/efr-tree-spec.%d"):format(assert(fs.realpath("/var/tmp")), sys.getpid())
    assert(fs.mkdirs(base, 448))
    tree = assert(tree_module.open(base))
    pipe = assert(uv.pipe({ nonblock = true }, { nonblock = false }))
  end)
  after_each(function()
    tree:close()
    for _, fd in pairs(pipe) do sys.close_fd(fd) end
    assert(fs.rmtree(base))
  end)

  -- Feeds; `each` runs whenever bytes came. Returns the answer and all bytes.
  local function feed(what, each)
    local out, answer, is_over = {}, nil, false
    local reader = assert(uv.new_pipe(false))
    assert(reader:open(pipe.read))
    pipe.read = nil
    reader:read_start(function(err, bytes)
      assert(not err, err)
      out[#out + 1], is_over = bytes, not bytes
      if each and bytes then each(bytes) end
    end)
    what.fd = pipe.write
    assert(tree:feed(what, function(...) answer = table.pack(...) end))
    while not answer do uv.run("once") end
    sys.close_fd(pipe.write)
    pipe.write = nil
    while not is_over do uv.run("once") end
    reader:close()
    uv.run("nowait")
    return answer, table.concat(out)
  end

  -- mark -> bytes, as git reads it; nothing may be left over
  local function parse(text)
    local found, at = {}, 1
    while at <= #text do
      local mark, size, from = text:match("^blob\nmark :(%d+)\ndata (%d+)\n()", at)
      assert(mark, "no blob at " .. at)
      found[tonumber(mark)] = text:sub(from, from + size - 1)
      assert.equal("\n", text:sub(from + size, from + size))
      at = from + size + 1
    end
    return found
  end

  it("writes bytes and texts of links as they are, and names what it cannot read", function()
    write("a", "x\r\n\0$Id$")
    write("empty", "")
    write("big", ("y"):rep(2000))
    write("name\n\255", "z")
    assert(fs.symlink("../out", base .. "/l"))
    assert(fs.mkdirs(base .. "/d", 448))
    local answer, text = feed { first_mark = 5, max_bytes = 1000,
      paths = { "a", "empty", "big", "name\n\255", "gone", "l", "d", "l/x", "../etc/passwd" } }
    assert.same({ 3, 5, 6, 7, 8, 9 }, answer[1])
    assert.same({ [5] = "x\r\n\0$Id$", [6] = "", [8] = "z" }, parse(text))
  end)

  it("writes links alone where links are asked for", function()
    write("a", "x")
    assert(fs.symlink("../out", base .. "/l"))
    local answer, text = feed { links = true, paths = { "l", "a" } }
    assert.same({ 2 }, answer[1])
    assert.same({ [1] = "../out" }, parse(text))
  end)

  it("reads a file again that changes while it is read", function()
    write("long", ("a"):rep(3 * MIB))
    write("next", "n")
    local is_cut = false
    local answer, text = feed({ paths = { "long", "next" } }, function()
      if not is_cut then
        local fd = assert(uv.fs_open(base .. "/long", "r+", 0))
        assert(uv.fs_ftruncate(fd, 2 * MIB + 7))
        uv.fs_close(fd)
      end
      is_cut = true
    end)
    assert.same({}, answer[1])
    local found = parse(text)
    assert.equal(("a"):rep(2 * MIB + 7), found[1])
    assert.equal("n", found[2])
    assert.is_true(#text > 5 * MIB) -- the first try is in it too
  end)

  it("gives up a file that never holds still, and goes on", function()
    write("long", ("a"):rep(4 * MIB))
    write("next", "n")
    local file <close> = assert(io.open(base .. "/long", "a"))
    file:setvbuf("no")
    -- A byte more for each part that git takes: no try is without one.
    local answer, text = feed({ paths = { "long", "next" } }, function() file:write("b") end)
    assert.same({ 1 }, answer[1])
    assert.equal("n", parse(text)[2])
  end)

  it("says when nobody reads any more", function()
    write("long", ("a"):rep(3 * MIB))
    local answer
    assert(tree:feed({ fd = pipe.write, paths = { "long" } }, function(...)
      answer = table.pack(...)
    end))
    assert.same({ nil, "the tree is in use", "EFR_BUSY" }, { tree:commit() })
    sys.close_fd(pipe.read)
    pipe.read = nil
    while not answer do uv.run("once") end
    assert.is_nil(answer[1])
    assert.equal("EPIPE", answer[3])
  end)
end)
