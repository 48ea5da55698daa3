-- Copies of single files of the home directory: what is kept, what two calls at a time did, undo and redo over
-- several calls of a turn. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local snap = require "spec.support.snap"
local snapshot_changes = require "efr.store.snapshot_changes"
local world = require "spec.undo.world"

describe("copies of single files", function()
  local w, home

  setup(snap.setup)
  before_each(function()
    w = world.new("home")
    home = w.base .. "/home"
  end)
  after_each(function() w.remove() end)

  local function shell(line) w.shell(line, home) end

  local function call(turn, paths, line)
    return w.call(turn, function() shell(line) end, { roots = {}, home = paths })
  end

  -- "path old>new", sorted, of what a call did.
  local function did(done)
    local out = {}
    for _, span in ipairs(done.done) do
      local diff = snap.wait(function()
        return assert(assert(w.app.snapshots:root(span.root)).store:diff(span.before, span.after, { all = true }))
      end)
      for _, entry in pairs(snapshot_changes.pairs(diff)) do
        if not entry.is_dir then
          out[#out + 1] = ("%s %s>%s"):format(entry.path, entry.old and entry.old.kind or "-",
            entry.new and entry.new.kind or "-")
        end
      end
    end
    table.sort(out)
    return table.concat(out, ", ")
  end

  it("hold what a call may change, and nothing beside it", function()
    shell("mkdir -p d/sub; echo 1 > d/a; echo 2 > d/sub/b; echo 3 > other; echo k > d/hidden; "
      .. "mkdir -p d/repo/.git; echo c > d/repo/.git/config; ln -s /etc/passwd d/link; mkfifo d/fifo")
    local before = w.begin("t1", { roots = {}, home = { { path = "d", tree = true } } })
    assert.same({ { root = home .. "/d/repo/.git", note = "no copy" } }, before.uncovered)
    local root = assert(w.app.snapshots:root(home))
    local names = snap.wait(function() return assert(root.store:list(root.tree_id)) end)
    local text = {}
    for name in pairs(names) do text[#text + 1] = name:gsub("%.%d+%.%d+$", "") end
    table.sort(text)
    local all = table.concat(text, " ")
    for _, want in ipairs { "d/a", "d/sub/b", "d/link", "d/hidden\1uK", "d/fifo\1uS", "d/repo/\1g.git\1uN" } do
      assert.is_truthy((all .. " "):find(want, 1, true), want .. " in " .. all)
    end
    assert.is_nil(all:find("other", 1, true))
    assert.is_nil(all:find("config", 1, true))
    shell("echo 4 > other; echo changed > d/a; echo x >> d/hidden")
    assert.equal("d/a file>file, d/hidden left>left", did(w.finish(before)))
  end)

  it("tell two calls at a time apart", function()
    shell("echo 1 > a; echo 1 > b")
    local one = w.begin("t1", { roots = {}, home = { { path = "a" } } })
    shell("echo 2 > a")
    local two = w.begin("t2", { roots = {}, home = { { path = "b" } } })
    shell("echo 2 > b")
    w.finish(two)
    w.finish(one)
    assert.equal("a file>file, b file>file", did(one)) -- b in the time that they share
    assert.equal("b file>file", did(two))
    assert.is_false(one.done[1].shared)
    assert.is_true(two.done[1].shared)
    -- What is only looked at is no change.
    local lone = w.begin("t3", { roots = {}, home = { { path = "a" } } })
    w.finish(w.begin("t4", { roots = {}, home = { { path = "b" } } }))
    w.finish(lone)
    assert.equal("", did(lone))
  end)

  it("come back over several calls with other files each, with their directories", function()
    shell("mkdir empty; echo 1 > a; mkdir -m 700 private; echo p > private/f")
    local before = w.look(home)
    call("t1", { { path = "a" }, { path = "new/deep/x" } }, "echo 2 > a; mkdir -p new/deep; echo n > new/deep/x")
    call("t1", { { path = "empty/y" }, { path = "private", tree = true } }, "echo y > empty/y; rm -r private")
    call("t1", { { path = "a" } }, "rm a")
    local after = w.look(home)
    local done = assert(w.undo())
    assert.equal(2, done.restored)
    assert.equal(2, done.trashed)
    assert.same(before, w.look(home))
    assert(w.undo { redo = true })
    assert.same(after, w.look(home))
  end)

  it("skip what changed since, and leave a directory of the user's that is not empty", function()
    shell("echo 1 > a")
    call("t1", { { path = "a" }, { path = "n/x" } }, "echo 2 > a; mkdir n; echo x > n/x")
    shell("echo mine > a; echo mine > n/own")
    local plan = assert(w.plan())
    local skipped = 0
    for _, entry in ipairs(plan.entries) do skipped = skipped + (entry.action == "skip" and 1 or 0) end
    assert.equal(1, skipped)
    assert(w.undo())
    assert.equal("file 644 mine\n", w.look(home).a)
    assert.is_nil(w.look(home)["n/x"])
    assert.equal("file 644 mine\n", w.look(home)["n/own"])
  end)

  it("stop at the limits, and refuse what must have a copy and has none", function()
    w.settings["snapshot.home_max_files"] = 4
    shell("mkdir big; for i in 1 2 3 4 5 6; do echo $i > big/$i; done; mkfifo fifo")
    local over = w.begin("t1", { roots = {}, home = { { path = "big", tree = true } } })
    assert.same({ { root = home .. "/big", note = "over the copy limits" } }, over.uncovered)
    w.finish(over)
    local none, err = snap.wait(w.app.snapshots.begin, w.app.snapshots, { turn_id = "t2", call_id = "c",
      roots = {}, may_skip = false, home = { { path = "fifo", must = true } } })
    assert.is_nil(none)
    assert.is_truthy(err:find("cannot be copied: no file or directory", 1, true))
    w.settings["snapshot.home_max_files"] = 1
    shell("mkdir grows")
    local grows = w.begin("t3", { roots = {}, home = { { path = "grows", tree = true } } })
    shell("for i in $(seq 40); do echo $i > grows/$i; done")
    local ok = snap.wait(grows.finish, grows)
    assert.is_nil(ok)
  end)

  it("never read through a link that takes a directory's place", function()
    shell("mkdir d; echo 1 > d/a; mkdir else; echo secret > else/a")
    local one = w.begin("t1", { roots = {}, home = { { path = "d/a" } } })
    shell("rm -r d; ln -s else d")
    w.finish(one)
    assert.equal("d/a file>-", did(one))
  end)
end)
