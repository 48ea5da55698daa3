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

  -- A turn of one call.
  local function turn(id, line)
    local before = refs()
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
end)
