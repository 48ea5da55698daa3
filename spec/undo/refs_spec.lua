-- References in an undo: branches, tags, the stash, HEAD; compare-and-swap; objects that the repository
-- lost; what is never written. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local snap = require "spec.support.snap"
local world = require "spec.undo.world"

describe("undo of references", function()
  local w, snapshots

  local GIT <const> = "git -c user.name=a -c user.email=a@b "

  setup(snap.setup)
  before_each(function()
    w = world.new("refs")
    snapshots = w.app.snapshots
    w.shell("git init -q -b main .; echo 1 > a; git add a; " .. GIT .. "commit -qm one; git tag v1; "
      .. "git branch old; echo 2 > a; " .. GIT .. "commit -qam two")
  end)
  after_each(function() w.remove() end)

  local function refs() return assert(snap.wait(function() return snapshots:refs(w.project):read() end)) end

  local function look_at_all()
    return snap.wait(function() return snapshots:refs(w.project):look() end)
  end

  local function look() return assert(look_at_all()) end

  -- Counts what git is asked until the next call of the function that is returned.
  local function count_runs()
    local count, run = 0, w.app.git.run
    w.app.git.run = function(...)
      count = count + 1
      return run(...)
    end
    return function()
      w.app.git.run = run
      return count
    end
  end

  -- A turn of one call.
  local function turn(id, line)
    local before = look()
    w.call(id, line)
    return assert(snap.wait(snapshots.record_refs, snapshots, { turn_id = id }, w.project, before))
  end

  for _, case in ipairs {
    { "a commit", "echo 3 > a; " .. GIT .. "commit -qam three" },
    { "a reset", "git reset -q --hard HEAD~1" },
    { "a new branch that is checked out", "git checkout -q -b new; echo 4 > a; " .. GIT .. "commit -qam n" },
    { "a branch that is deleted", "git branch -D old" },
    { "a checkout", "git checkout -q old" },
    { "a detached HEAD", "git checkout -q --detach v1" },
    { "a tag that moves", "git tag -f v1 HEAD" },
    { "a stash", "echo 9 > a; " .. GIT .. "stash -q" },
    { "packed references", "git pack-refs --all; git branch -D old; git tag -d v1" },
    { "objects that are pruned at once", "git reset -q --hard v1; git branch -D old" },
  } do
    it("takes back " .. case[1] .. ", and forth again", function()
      local before = refs()
      local files = w.look().a
      assert.is_true(turn("t1", case[2]) > 0)
      local after = refs()
      w.shell("cp .git/index ../index; cp .git/config ../settings")
      if case[1]:find("pruned") then
        w.shell("git reflog expire --expire=now --all; git gc -q --prune=now")
        w.shell("cp .git/index ../index")
      end
      local done = assert(w.undo())
      assert.same({}, done.skipped)
      assert.same(before, refs())
      assert.equal(files, w.look().a)
      w.shell("cmp .git/index ../index")
      w.shell("cmp .git/config ../settings")
      w.shell("git fsck --strict")
      assert(w.undo { redo = true })
      assert.same(after, refs())
      assert.same({}, w.errors)
    end)
  end

  it("leaves a reference that moved since", function()
    turn("t1", "git branch -f old main; git tag v2")
    w.shell("git branch -f old v1; " .. GIT .. "commit -q --allow-empty -m mine; git branch -f old main")
    local done = assert(w.undo())
    assert.same({ "refs/tags/v2" }, done.refs)
    assert.same({ w.project .. "/refs/heads/old" }, done.skipped)
    assert.equal(refs()["refs/heads/main"], refs()["refs/heads/old"])
  end)

  it("offers a turn that moved nothing but references", function()
    turn("t1", "git tag v3")
    assert.equal("t1", assert(w.app.undo:list {})[1].turn_id)
    assert(w.undo())
    assert.is_nil(refs()["refs/tags/v3"])
  end)

  it("runs no hook, and nothing for a repository with alternates", function()
    w.shell("printf '#!/bin/sh\\ntouch ../ran\\n' > .git/hooks/reference-transaction; "
      .. "chmod 755 .git/hooks/reference-transaction")
    turn("t1", "git -c core.hooksPath=/dev/null tag v3")
    assert(w.undo())
    assert.is_nil(w.app.ports.fs.lstat(w.base .. "/ran"))
    w.shell("echo /tmp > .git/objects/info/alternates")
    assert.is_nil(snapshots:refs(w.project))
  end)

  it("asks git nothing while no reference moves", function()
    w.shell("git pack-refs --all; git update-ref refs/remotes/o/main HEAD; "
      .. "git symbolic-ref refs/remotes/o/HEAD refs/remotes/o/main; git branch $(printf 'b\\303\\251')")
    local ended = count_runs()
    local before = look()
    assert.equal(0, assert(snap.wait(snapshots.record_refs, snapshots, { turn_id = "t1" },
      w.project, before)))
    assert.equal(0, ended())
    assert.same(refs(), before)
  end)

  it("sees from the files what git says, and asks it where they are odd", function()
    for _, line in ipairs {
      "git checkout -q --detach", GIT .. "tag -a -m x v2", "git branch a/b/c", "rm .git/packed-refs || :",
      "touch .git/refs/heads/old.lock", "git symbolic-ref refs/heads/s refs/heads/gone",
      "git pack-refs --all", "git branch a/b/d; git pack-refs --all; git branch -f a/b/d HEAD~1",
    } do
      w.shell(line)
      local ended = count_runs()
      local seen = look()
      assert.equal(0, ended(), line)
      assert.same(refs(), seen, line)
    end
    for _, line in ipairs {
      "ln -s main .git/refs/heads/l", "mkdir .git/reftable", "echo junk > .git/refs/heads/j",
      "echo junk >> .git/packed-refs", "printf x > .git/refs/heads/x",
    } do
      w.shell("rm -rf ../kept && cp -a .git ../kept; " .. line)
      local ended = count_runs()
      local seen = look_at_all()
      assert.equal(1, ended(), line)
      assert.same((snap.wait(function() return snapshots:refs(w.project):read() end)), seen, line)
      w.shell("rm -r .git && mv ../kept .git")
    end
    w.shell("mkfifo .git/refs/heads/f")
    local ended = count_runs()
    assert.is_nil((look_at_all()))
    assert.equal(0, ended()) -- it would wait
  end)

  it("takes back the other places when one was pruned during the turn", function()
    w.shell("git checkout -q -b lost; echo 5 > a; " .. GIT .. "commit -qam five; git checkout -q main")
    assert.equal(1, turn("t1", "git branch -D lost; git branch -f old main; "
      .. "git reflog expire --expire=now --all; git gc -q --prune=now"))
  end)
end)
