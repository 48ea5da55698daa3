-- Forgetting snapshots: too many turns, too old ones, a store that is too large, one that nobody
-- names; what stays can still be undone. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local snap = require "spec.support.snap"
local world = require "spec.undo.world"

describe("store.snapshot_collect", function()
  local w, snapshots

  setup(snap.setup)
  before_each(function()
    w = world.new("collect")
    snapshots = w.app.snapshots
  end)
  after_each(function() w.remove() end)

  local function turns()
    local out = {}
    for i, item in ipairs(assert(w.app.undo:list {})) do out[i] = item.turn_id end
    return out
  end

  local function collect() snap.wait(snapshots.collect, snapshots) end

  it("keeps the newest turns, and what it takes to undo them", function()
    w.settings["snapshot.keep_turns"] = 2
    w.shell("echo 0 > a")
    for i = 1, 4 do w.call("t" .. i, ("echo %d > a; echo %d > f%d"):format(i, i, i)) end
    collect()
    assert.same({ "t4", "t3" }, turns())
    -- What is no longer named goes at once here, not after an hour.
    w.shell("git --git-dir=$(echo data/snapshots/*.git) prune --expire=now", w.base)
    assert(w.undo())
    assert(w.undo())
    assert.equal("file 644 2\n", w.look().a)
    assert(w.undo { redo = true })
    assert.equal("file 644 3\n", w.look().a)
    assert.same({}, w.errors)
  end)

  it("drops old turns, and stores that no row names", function()
    w.call("t1", "echo 1 > a")
    local real = w.app.ports.sys.now_us
    w.app.ports.sys.now_us = function() return real() + 31 * 86400 * 1000000 end
    w.app.ports.fs.mkdirs(w.base .. "/data/snapshots/0123456789abcdef.git")
    collect()
    assert.same({}, turns())
    assert.is_nil(w.app.ports.fs.lstat(w.base .. "/data/snapshots/0123456789abcdef.git"))
    snapshots:close()
    collect()
    assert.same({}, (w.app.ports.fs.readdir(w.base .. "/data/snapshots")))
  end)

  it("takes the oldest turns of a root whose store is too large", function()
    w.settings["snapshot.max_gib"] = 0 -- less than a setting may say
    w.shell("echo 0 > a")
    for i = 1, 3 do w.call("t" .. i, ("echo %d > a"):format(i)) end
    collect()
    assert.same({}, turns())
    assert.same({}, w.errors)
  end)

  it("keeps a store below its size, also where packs hold what nobody names", function()
    w.settings["snapshot.max_gib"] = 10 / 1024
    for i = 1, 6 do w.call("t" .. i, "head -c 3000000 /dev/urandom > a") end
    collect()
    local left = #turns()
    assert.is_true(left == 2 or left == 3, left)
    -- All lie in packs, and are older than an hour.
    w.shell("cd data/snapshots/*.git; git repack -q -a -d; "
      .. "find objects -type f -exec touch -d '2 hours ago' {} +", w.base)
    for i = 7, 8 do w.call("t" .. i, "head -c 3000000 /dev/urandom > a") end
    collect()
    local pipe <close> = assert(io.popen(("du -sk '%s'/data/snapshots"):format(w.base)))
    assert.is_true(tonumber(pipe:read("a"):match("%d+")) < 11 * 1024)
    assert.equal("t8", turns()[1])
    assert(w.undo())
    assert.same({}, w.errors)
  end)

  it("makes one pack of many", function()
    local function packs()
      local pipe <close> = assert(io.popen(
        ("ls '%s'/data/snapshots/*.git/objects/pack | grep -c pack$"):format(w.base)))
      return tonumber(pipe:read("a"))
    end
    w.shell("mkdir d; i=0; while [ $i -lt 110 ]; do echo $i > d/$i; i=$((i+1)); done")
    for i = 1, 9 do w.call("t" .. i, ("for f in d/*; do echo %d.$f > $f; done"):format(i)) end
    assert.equal(10, packs())
    collect()
    assert.equal(1, packs())
    assert(w.undo())
    assert.equal("file 644 8.d/7\n", w.look()["d/7"])
    assert.same({}, w.errors)
  end)
end)
