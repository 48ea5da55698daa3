-- Snapshots where the disk does not hold still or is unusual: a queue of events that overflows,
-- watches that are refused, directories swapped for links all the time, files that lie about their
-- content, repositories of every form, many files. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local names = require "efr.store.snapshot_names"
local root_of = require "efr.store.snapshot_root"
local snap = require "spec.support.snap"

local IS_LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"

describe("store.snapshot_root where the disk is unusual", function()
  local place, root, limits

  local function new_root()
    return root_of.new {
      ports = place.app.ports, git = place.app.git, path = place.project,
      dir = place.base .. "/data/store.git", ignored = function() end,
      limits = function() return limits end,
    }
  end

  local function take(may_skip)
    return assert(snap.wait(root.take, root, may_skip or false))
  end

  -- path -> its entry in the tree
  local function entries(tree)
    local out = {}
    for name, entry in pairs(assert(snap.wait(root.store.list, root.store, tree))) do
      local found = names.decode(entry.mode, name)
      found.oid = entry.oid
      out[found.path] = found
    end
    return out
  end

  local function blob(entry) return assert(snap.wait(root.store.blob, root.store, entry.oid)) end

  setup(snap.setup)
  before_each(function()
    place = snap.place("faults")
    limits = { max_bytes = 1 << 24, max_entries = 300000 }
    root = new_root()
  end)
  after_each(function()
    root:close()
    place.remove()
  end)

  it("misses nothing when more happens than the queue of events holds", function()
    place.shell("mkdir d; echo 1 > a; echo 1 > last")
    take()
    local pipe <close> = assert(io.open("/proc/sys/fs/inotify/max_queued_events"))
    local most = pipe:read("n")
    local one, two = place.project .. "/a", place.project .. "/b"
    for _ = 1, most // 4 + 100 do -- two renames are four events, and none joins its neighbour
      os.rename(one, two)
      os.rename(two, one)
    end
    place.shell("echo 2 > last") -- its event is lost
    assert.equal("2\n", blob(entries(take(true)).last))
    local quiet = take(true)
    assert.is_true(root.skipped)
    place.shell("echo 3 > last")
    assert.not_equal(quiet, take(true))
  end)

  it("walks each time where a watch is refused", function()
    place.shell("mkdir d; echo 1 > d/a")
    local real = place.app.ports.tree
    -- The walk says so when the kernel has no more watches for this user.
    place.app.ports.tree = { open = function(path)
      local tree = assert(real.open(path))
      return setmetatable({}, { __index = function(_, key)
        return function(_, what, ...)
          if key == "walk" then what.watch = false end
          return tree[key](tree, what, ...)
        end
      end })
    end }
    root:close()
    root = new_root()
    local before = take()
    assert.equal(before, take(true))
    assert.is_false(root.skipped)
    place.shell("echo 2 > d/a")
    assert.not_equal(before, take(true))
  end)

  it("reads nothing outside while a directory is swapped for a link all the time", function()
    place.shell("mkdir d d2; echo in > d/f; ln -s ../../secrets d2/l; mkdir ../secrets; echo top > ../secrets/f; "
      .. "ln -s ../secrets link")
    local script = ([[cd '%s'; while [ ! -e ../stop ]; do mv d hold && mv link d && cat d/f >> ../seen
      mv d link && mv hold d; done]]):format(place.project)
    local proc = assert(place.app.ports.proc.spawn { path = "/bin/sh", argv = { "sh", "-c", script },
      env = { "PATH=/usr/bin:/bin" }, cwd = "/", fds = { [0] = "null", [1] = "null", [2] = "null" },
      on_exit = function() place.ended = true end })
    local rounds, fs = IS_LONG and 400 or 12, place.app.ports.fs
    local function seen() return #(fs.read_file(place.base .. "/seen", 1 << 24) or "") end
    local last = 0
    for i = 1, rounds do
      while seen() == last do place.app.ports.uv.run("nowait") end -- the swaps go on
      last = seen()
      -- A new file, so that content is read in each round.
      assert(fs.write_atomic(place.project .. "/new", tostring(i), 420))
      for path, entry in pairs(entries(take())) do
        if entry.kind == "file" then assert.not_equal("top\n", blob(entry), path) end
      end
    end
    assert(fs.write_atomic(place.base .. "/stop", "", 420))
    while not place.ended do place.app.ports.uv.run("once") end
    proc:close()
    assert.truthy(fs.read_file(place.base .. "/seen", 1 << 24):find("top", 1, true)) -- by name
  end)

  it("keeps pointers of LFS as they are, and leaves out what belongs to other repositories", function()
    place.shell([[G="git -c user.name=a -c user.email=a@b -c protocol.file.allow=always"
      git init -q ../other; cd ../other; echo o > o; git add o; $G commit -qm o; cd ../project
      git init -q .; printf "*.bin filter=lfs diff=lfs merge=lfs -text\n* ident eol=crlf\n" > .gitattributes
      printf "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n" > x.bin
      printf '$Id$ a\n' > text; $G submodule --quiet add ../other sub; $G commit -qm one
      git worktree add -q tree; echo own > tree/own
      printf '%s\n' "$PWD/../other/.git/objects" > .git/objects/info/alternates]])
    local found = entries(take())
    assert.equal("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
      blob(found["x.bin"]))
    assert.equal("$Id$ a\n", blob(found.text))
    assert.equal("N", found.sub.code)
    assert.equal("N", found.tree.code)
    assert.is_nil(found["tree/own"])
    assert.is_nil(found[".git/HEAD"])
  end)

  it("holds many files in one pack, and needs little for the next change", function()
    local count = IS_LONG and 200000 or 3000
    local fs = place.app.ports.fs
    for i = 0, count - 1 do
      local dir = ("%s/d%d/s%d"):format(place.project, i // 1000, i // 20 % 50)
      if i % 20 == 0 then assert(fs.mkdirs(dir, 493)) end
      local file <close> = assert(io.open(("%s/f%d"):format(dir, i), "w"))
      file:write(i, "\n")
    end
    local runs, run = 0, place.app.git.run
    place.app.git.run = function(...)
      runs = runs + 1
      return run(...)
    end
    local first = take()
    assert.equal(1, runs)
    local packs, loose = 0, 0
    for _, entry in ipairs(assert(fs.readdir(root.dir .. "/objects"))) do
      if entry.name == "pack" then
        for _, pack in ipairs(fs.readdir(root.dir .. "/objects/pack")) do
          packs = packs + (pack.name:find("%.pack$") and 1 or 0)
        end
      elseif #entry.name == 2 then
        loose = loose + 1
      end
    end
    assert.same({ 1, 0 }, { packs, loose })
    assert.equal(first, take()) -- what was written right before the first walk is read again
    local before = runs
    assert.equal(first, take(true))
    assert.equal(before, runs)
    place.shell("echo x > d0/s0/f1; rm d0/s0/f2")
    local found = entries(take())
    assert.equal(before + 2, runs) -- and one that lists
    assert.equal("x\n", blob(found["d0/s0/f1"]))
    assert.is_nil(found["d0/s0/f2"])
    assert.equal((count - 1) .. "\n",
      blob(found[("d%d/s%d/f%d"):format((count - 1) // 1000, (count - 1) // 20 % 50, count - 1)]))
    place.shell("rm -r d0/s0; mkdir d0/s0")
    place.shell("printf '1\\n' > d0/s0/f1")
    assert.is_nil(entries(take())["d0/s0/f3"])
  end)

  it("is empty when everything goes", function()
    place.shell("mkdir d; echo 1 > d/a")
    take()
    place.shell("rm -r d")
    assert.same({}, entries(take()))
    place.shell("echo 2 > d")
    assert.equal("2\n", blob(entries(take()).d))
  end)

  it("begins anew when the store lost what the kept walk relies on", function()
    place.shell("echo 1 > a; echo 2 > b")
    take()
    root:close()
    place.shell("rm -r data/store.git/objects; mkdir data/store.git/objects", place.base)
    place.shell("echo 3 > a")
    root = new_root()
    local found = entries(take())
    assert.equal("3\n", blob(found.a))
    assert.equal("2\n", blob(found.b))
  end)
end)
