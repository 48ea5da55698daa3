-- Undo on real trees: restore, trash, skip, what is not covered, the stack, redo, two conversations,
-- hostile names and links, an undo that was cut short. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local snap = require "spec.support.snap"
local world = require "spec.undo.world"

describe("undo", function()
  local w

  setup(snap.setup)
  before_each(function() w = world.new("undo") end)
  after_each(function()
    if w.project:sub(1, 9) == "/dev/shm/" then w.app.ports.fs.rmtree(w.project) end
    w.remove()
  end)

  local function rows(found)
    local out = {}
    for _, entry in ipairs(found.entries) do
      if not entry.is_dir then out[entry.path] = entry.action end
    end
    return out
  end

  it("brings everything back and puts what was there into the trash", function()
    w.shell("printf 'a\\r\\n' > a; echo b > b; chmod 600 b; mkdir -p d/e; chmod 750 d; ln -s a l; "
      .. "echo x > d/x; echo same > same")
    local before = w.look()
    w.call("t1", "echo 2 > a; rm b; rm -r d; ln -sf b l; mkdir -p n/m; echo new > n/m/f; "
      .. "chmod 755 same")
    assert.same({ a = "restore", b = "restore", ["d/x"] = "restore", l = "restore",
      ["n/m/f"] = "trash", same = "restore" }, rows(assert(w.plan())))
    local done = assert(w.undo())
    assert.same(before, w.look())
    assert.equal(5, done.restored)
    assert.equal(1, done.trashed)
    local trash = w.look(done.trash)
    local found = {}
    for path, word in pairs(trash) do
      if word:sub(1, 3) ~= "dir" then found[path:match("[^/]*$")] = word end
    end
    assert.same({ a = "file 644 2\n", f = "file 644 new\n", l = "link b",
      same = "file 755 same\n" }, found)
  end)

  it("takes an undo back, and again", function()
    w.shell("echo 1 > a; mkdir d; echo x > d/x")
    local before = w.look()
    w.call("t1", "echo 2 > a; rm -r d; echo y > d; chmod 600 a; mkdir e")
    local after = w.look()
    for _ = 1, 2 do
      assert(w.undo())
      assert.same(before, w.look())
      assert(w.undo { redo = true })
      assert.same(after, w.look())
    end
  end)

  it("takes several turns back, newest first", function()
    local states = {}
    w.shell("echo 0 > a")
    for i = 1, 3 do
      states[i] = w.look()
      w.call("t" .. i, ("echo %d > a; echo %d > f%d"):format(i, i, i))
    end
    local done, err, code = w.undo { turn_id = "t1" }
    assert.is_nil(done)
    assert.equal("conflict", code)
    assert.truthy(err:find("newer turn", 1, true))
    for i = 3, 1, -1 do
      assert.equal("t" .. i, assert(w.undo()).turn_id)
      assert.same(states[i], w.look())
    end
    done, err, code = w.undo()
    assert.is_nil(done)
    assert.equal("not_found", code)
    assert.truthy(err:find("nothing to undo", 1, true))
  end)

  it("leaves alone what the user changed", function()
    w.shell("echo 1 > a; echo 1 > b; echo 1 > c")
    w.call("t1", "echo 2 > a; echo 2 > b; rm c; echo n > n; echo m > m")
    w.shell("echo user > a; echo mine > c; rm m; echo own > own")
    assert.same({ a = "skip", b = "restore", c = "skip", n = "trash" }, rows(assert(w.plan())))
    local done = assert(w.undo())
    assert.same({ a = "file 644 user\n", b = "file 644 1\n", c = "file 644 mine\n",
      own = "file 644 own\n" }, w.look())
    assert.equal(2, #done.skipped)
  end)

  it("takes what the user changed only when forced, and trashes it", function()
    w.shell("echo 1 > a")
    w.call("t1", "echo 2 > a")
    w.shell("echo user > a")
    local done, err, code = w.undo()
    assert.is_nil(done)
    assert.equal("conflict", code)
    assert.truthy(err:find("--force", 1, true))
    done = assert(w.undo { force = true })
    assert.same({ a = "file 644 1\n" }, w.look())
    local kept = false
    for _, word in pairs(w.look(done.trash)) do kept = kept or word == "file 644 user\n" end
    assert.is_true(kept)
  end)

  it("skips a path that somebody else changed between two calls of the turn", function()
    w.shell("echo 1 > a; echo 1 > b")
    w.call("t1", "echo 2 > a; echo 2 > b")
    w.shell("echo user > a; echo user > other")
    w.call("t1", "echo 3 > a; echo 3 > b")
    assert.same({ a = "skip", b = "restore" }, rows(assert(w.plan())))
    assert(w.undo())
    assert.same({ a = "file 644 3\n", b = "file 644 1\n", other = "file 644 user\n" }, w.look())
  end)

  it("takes back a conversation's own changes only, also when two run at once", function()
    w.shell("echo 1 > a; echo 1 > b; echo 1 > c; echo 1 > e")
    local one = w.begin("t1", { conversation_id = "c1" })
    w.shell("echo 2 > a")
    local two = w.begin("t2", { conversation_id = "c2" })
    w.shell("echo 2 > b") -- whose, nobody knows
    w.finish(one)
    w.shell("echo 2 > c")
    w.finish(two)
    w.shell("echo 2 > e")
    assert.same({ a = "restore", b = "skip" }, rows(assert(w.plan { conversation_id = "c1" })))
    assert.same({ c = "restore", b = "skip" }, rows(assert(w.plan { conversation_id = "c2" })))
    assert(w.undo { conversation_id = "c1" })
    assert.same({ a = "file 644 1\n", b = "file 644 2\n", c = "file 644 2\n", e = "file 644 2\n" },
      w.look())
    assert(w.undo { conversation_id = "c2" })
    assert.equal("file 644 1\n", w.look().c)
  end)

  it("never touches what a snapshot left out", function()
    w.settings["snapshot.max_file_mib"] = 1
    w.shell("head -c 2000000 /dev/zero > big; echo 1 > grows; echo 1 > a; mkfifo p")
    w.call("t1", "echo small > big; head -c 2000000 /dev/zero > grows; echo 2 > a; rm p; echo q > p")
    assert.same({ big = "not_covered", grows = "not_covered", a = "restore", p = "not_covered" },
      rows(assert(w.plan())))
    assert(w.undo())
    local now = w.look()
    assert.equal("file 644 small\n", now.big)
    assert.equal("file 644 1\n", now.a)
    assert.equal("file 644 q\n", now.p)
  end)

  it("needs force for a call that did not finish", function()
    w.shell("echo 1 > a")
    w.call("t1", "echo 2 > a", { unfinished = true })
    local done, _, code = w.undo()
    assert.is_nil(done)
    assert.equal("conflict", code)
    assert(w.undo { force = true })
    assert.equal("file 644 1\n", w.look().a)
    w.begin("t2")
    w.shell("echo 3 > a")
    w.restart() -- killed while the call ran
    done, _, code = w.undo()
    assert.is_nil(done)
    assert.equal("conflict", code)
    assert(w.undo { force = true })
    assert.equal("file 644 1\n", w.look().a)
  end)

  it("writes through no link, and to no other directory", function()
    w.shell("mkdir d; echo 1 > d/f; mkdir ../home/out; echo keep > ../home/out/f")
    w.call("t1", "echo 2 > d/f")
    local plan = w.app.undo.plan
    assert(plan)
    local take = w.app.snapshots.roots[w.project].store.blobs
    w.app.snapshots.roots[w.project].store.blobs = function(...)
      w.shell("mv d moved; ln -s ../home/out d") -- after the plan, before the writing
      return take(...)
    end
    local done = assert(w.undo())
    assert.equal(0, done.restored)
    assert.equal(1, #done.skipped)
    assert.equal("file 644 keep\n", w.look(w.base .. "/home/out").f)
    assert.equal("file 644 2\n", w.look()["moved/f"])
  end)

  it("compares once more right before it writes", function()
    w.shell("echo 1 > a; echo 1 > b")
    w.call("t1", "echo 2 > a; echo 2 > b; echo n > n")
    local store = w.app.snapshots:root(w.project).store
    local take = store.blobs
    store.blobs = function(...)
      w.shell("echo user > a; echo user > n")
      return take(...)
    end
    local done = assert(w.undo())
    assert.same({ a = "file 644 user\n", b = "file 644 1\n", n = "file 644 user\n" }, w.look())
    assert.equal(2, #done.skipped)
  end)

  it("takes back odd names", function()
    local fs = w.app.ports.fs
    local odd = { "git~1", ".GIT", "a\nb", "\255\254", "c\1m600", "\1d755", '"q"', "-n", " " }
    w.call("t1", function()
      for _, name in ipairs(odd) do
        assert(fs.write_atomic(w.project .. "/" .. name, name, 420))
      end
    end)
    local after = w.look()
    assert(w.undo())
    assert.same({}, w.look())
    assert(w.undo { redo = true })
    assert.same(after, w.look())
  end)

  it("refuses while a command runs in the project", function()
    w.shell("echo 1 > a")
    w.call("t1", "echo 2 > a")
    local other = w.begin("t2", { conversation_id = "c9" })
    local done, err, code = w.undo { turn_id = "t1", force = true }
    assert.is_nil(done)
    assert.equal("conflict", code)
    assert.truthy(err:find("a command runs", 1, true))
    w.finish(other)
    assert(w.undo { turn_id = "t1" })
  end)

  it("works for a project on another file system than efr's own", function()
    local fs, real = w.app.ports.fs, w.project
    w.project = ("/dev/shm/efr-undo-spec.%d"):format(w.app.ports.sys.getpid())
    assert(fs.mkdirs(w.project .. "/d", 493))
    w.shell("echo 1 > a; echo 2 > d/b")
    local before = w.look()
    w.call("t1", "echo 3 > a; rm -r d; echo n > n")
    local done = assert(w.undo())
    assert.same(before, w.look())
    local kept = {}
    for path, word in pairs(w.look(done.trash)) do kept[path:match("[^/]*$")] = word end
    assert.equal("file 644 3\n", kept.a)
    assert.equal("file 644 n\n", kept.n)
    assert(fs.rmtree(w.project))
    w.project = real
  end)

  it("runs no call whose snapshot fails, and the next one again", function()
    w.shell("echo 1 > a")
    local run = w.app.git.run
    w.app.git.run = function(self, what)
      if table.concat(what.args, " "):find("fast-import", 1, true) then return nil, "no space left", "EFR_GIT" end
      return run(self, what)
    end
    local call, err = snap.wait(w.app.snapshots.begin, w.app.snapshots, {
      turn_id = "t1", call_id = "k", roots = { w.project }, may_skip = false,
    })
    assert.is_nil(call)
    assert.truthy(err:find("no space left", 1, true))
    w.app.git.run = run
    w.call("t2", "echo 2 > a")
    assert(w.undo())
    assert.equal("file 644 1\n", w.look().a)
  end)
end)
