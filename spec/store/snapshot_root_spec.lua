-- Snapshots of a real tree with real git: bytes as on disk, modes, links, odd names, what is left
-- out and why, what the watch skips, a store that another run left. Needs efr's own Lua state.
if not package.preload["efr.tree"] then return end

local names = require "efr.store.snapshot_names"
local root_of = require "efr.store.snapshot_root"
local snap = require "spec.support.snap"

describe("store.snapshot_root", function()
  local place, root, ignored

  local function new_root()
    return root_of.new {
      ports = place.app.ports, git = place.app.git, path = place.project,
      dir = place.base .. "/data/store.git",
      ignored = function(paths) return ignored and ignored(paths) end,
      limits = function() return { max_bytes = 1000, max_entries = 300 } end,
    }
  end

  local function take(may_skip)
    return assert(snap.wait(root.take, root, may_skip or false))
  end

  -- path -> what the tree says of it, with its bytes
  local function content(tree)
    local out = {}
    for name, entry in pairs(assert(snap.wait(root.store.list, root.store, tree))) do
      local found = names.decode(entry.mode, name)
      local word = found.kind == "left" and "left " .. found.code
        or ("%s %03o"):format(found.kind, found.mode)
      if found.kind == "file" or found.kind == "link" then
        word = word .. " " .. assert(snap.wait(root.store.blob, root.store, entry.oid))
      end
      assert.is_nil(out[found.path], found.path) -- one name for a path
      out[found.path] = word
    end
    return out
  end

  -- Calls fn right before a method of the tree. Returns the tree without it.
  local function hook(name, fn)
    local real = root.tree
    root.tree = setmetatable({}, { __index = function(_, key)
      return function(_, ...)
        if key == name then fn(...) end
        return real[key](real, ...)
      end
    end })
    return real
  end

  setup(snap.setup)
  before_each(function()
    place, ignored = snap.place("snapshot"), nil
    root = new_root()
  end)
  after_each(function()
    root:close()
    place.remove()
  end)

  it("keeps bytes, modes, links and empty directories", function()
    place.shell([[printf "a\r\n" > a; printf '$Id$' > b; chmod 600 b; mkdir -p d/e; chmod 700 d
      ln -s ../out d/l; echo x > d/x; chmod 755 d/x
      printf "* text=auto ident\n*.z filter=bad\n" > .gitattributes; printf z > f.z]])
    assert.same({
      a = "file 644 a\r\n", b = "file 600 $Id$", d = "dir 700", ["d/e"] = "dir 755",
      ["d/l"] = "link 777 ../out", ["d/x"] = "file 755 x\n", ["f.z"] = "file 644 z",
      [".gitattributes"] = "file 644 * text=auto ident\n*.z filter=bad\n",
    }, content(take()))
  end)

  it("keeps names that git would refuse or that are no text", function()
    local fs = place.app.ports.fs
    assert(fs.mkdirs(place.project .. "/.GIT", 493))
    for _, name in ipairs { "git~1", ".GIT/x", "a\nb", "\255", "c\1m600", '"q\\', ":x", "-n" } do
      assert(fs.write_atomic(place.project .. "/" .. name, name, 420))
    end
    local found = content(take())
    for _, name in ipairs { "git~1", ".GIT/x", "a\nb", "\255", "c\1m600", '"q\\', ":x", "-n" } do
      assert.equal("file 644 " .. name, found[name])
    end
  end)

  it("names what it leaves out", function()
    place.shell([[git init -q nested; echo x > nested/x; mkfifo pipe; head -c 2000 /dev/zero > big
      echo y > y; git init -q .]])
    if place.app.ports.sys.getuid() ~= 0 then place.shell("echo s > shut; chmod 000 shut") end
    local found = content(take())
    assert.equal("left N", found.nested)
    assert.equal("left S", found.pipe)
    assert.equal("left B", found.big)
    assert.equal("file 644 y\n", found.y)
    assert.is_nil(found[".git"])
    if place.app.ports.sys.getuid() ~= 0 then assert.equal("left U", found.shut) end
  end)

  it("leaves out folders of build results only where the project ignores them", function()
    place.shell("mkdir build dist; echo a > build/a; echo b > dist/b; echo /dist > .gitignore")
    local found = content(take())
    assert.equal("file 644 a\n", found["build/a"])
    assert.equal("left P", found.dist)
    assert.is_nil(found["dist/b"])
    place.shell("echo /build > .gitignore")
    found = content(take())
    assert.equal("left P", found.build)
    assert.equal("file 644 b\n", found["dist/b"])
  end)

  it("sees every kind of change, and the same tree for the same disk", function()
    place.shell("echo 1 > a; echo 2 > b; mkdir d; echo 3 > d/c")
    local first = take()
    assert.equal(first, take())
    place.shell("echo 9 > a; rm b; mv d e; chmod 600 e/c; ln -s a l")
    local second = take()
    assert.same({ a = "file 644 9\n", ["e/c"] = "file 600 3\n", l = "link 777 a" },
      content(second))
    place.shell("rm -r l e; mkdir d; echo 1 > a; echo 2 > b; echo 3 > d/c")
    assert.equal(first, take())
    place.shell("rm a; mkdir a; echo x > a/x; rm -r d; echo y > d")
    assert.same({ ["a/x"] = "file 644 x\n", b = "file 644 2\n", d = "file 644 y\n" },
      content(take()))
  end)

  it("skips the walk while nothing happens, and never misses what happens", function()
    place.shell("mkdir d; echo 1 > a; echo 2 > d/b")
    take()
    local walks = 0
    local real = hook("walk", function() walks = walks + 1 end)
    local first = take(true)
    assert.equal(0, walks)
    local before = first
    for _, line in ipairs { "echo 9 > d/b", "chmod 600 a", "mkdir n", "echo x > n/x", "mv n d/n",
      "ln a d/hard", "rm d/hard", "touch -d @1 d/b", "truncate -s 3 a", "rmdir d/n || rm -r d/n" } do
      place.shell(line)
      local after = take(true)
      if line:sub(1, 5) ~= "touch" then assert.not_equal(before, after, line) end
      before = after
    end
    walks = 0
    place.shell("ln a second")
    take(true)
    walks = 0
    take(true)
    assert.equal(1, walks) -- a second name could be written from elsewhere
    root.tree = real
  end)

  it("goes on where another run stopped, and begins anew after a crash", function()
    place.shell("echo 1 > a; echo 2 > b")
    local first = take()
    root:close()
    place.shell("rm b; echo 3 > c")
    root = new_root()
    assert.same({ a = "file 644 1\n", c = "file 644 3\n" }, content(take()))
    root = new_root() -- the other one did not close
    place.shell("rm c; echo 2 > b")
    assert.equal(first, take())
  end)

  it("is not held up by folders in folders, however deep", function()
    place.shell("p=.; i=0; while [ $i -lt 20 ]; do p=$p/build; i=$((i+1)); done; mkdir -p $p; echo x > $p/x; "
      .. "p=.; i=0; while [ $i -lt 200 ]; do p=$p/d; i=$((i+1)); done; mkdir -p $p; echo x > $p/x; echo y > y")
    local found, left = content(take()), 0
    for _, word in pairs(found) do left = left + (word == "left P" and 1 or 0) end
    assert.equal(2, left)
    assert.equal("file 644 y\n", found.y)
    assert.equal(take(), take())
  end)

  it("says when a root has too many files", function()
    place.shell("i=0; while [ $i -lt 400 ]; do : > f$i; i=$((i+1)); done")
    local tree, err, code = snap.wait(root.take, root, false)
    assert.is_nil(tree)
    assert.equal("EFR_NOT_COVERED", code)
    assert.truthy(err:find("snapshot.max_files", 1, true))
  end)

  it("reads nothing outside through a directory that becomes a link", function()
    place.shell("mkdir d; echo in > d/secret; echo top > ../home/secret")
    take()
    local by_name
    local real = hook("feed", function(what)
      if what.links then return end
      place.shell("mv d gone; ln -s ../home d")
      by_name = place.app.ports.fs.read_file(place.project .. "/d/secret")
    end)
    place.shell("echo changed > d/secret")
    local tree = take()
    root.tree = real
    assert.equal("top\n", by_name) -- what a reader by name gets
    assert.equal("left F", content(tree)["d/secret"])
    place.shell("rm d; mv gone d")
    assert.equal("file 644 changed\n", content(take())["d/secret"])
    for path, word in pairs(content(tree)) do
      assert.is_nil(word:find("top", 1, true), path .. ": " .. word)
    end
  end)
end)
