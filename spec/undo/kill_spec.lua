-- An undo that ends at any write, as by kill -9: the next one completes it, and no byte is lost that
-- is neither in its place nor in the trash. The same where the trash lies on another file system, and
-- where a file system cannot swap names. Every write with EFR_TEST_SIZE=long, else some of them,
-- others in each run. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local faults = require "spec.undo.faults"
local snap = require "spec.support.snap"
local world = require "spec.undo.world"

describe("an undo that was killed", function()
  local w, real_dir, left, opts
  math.randomseed(os.time())

  -- What may happen before a write: an answer in its place, the end of the run.
  local function on_write(dir, name, args)
    if name == "create" and opts.full then return nil, "no space left", "ENOSPC" end
    if name == "exchange" and opts.no_swap then return nil, "no swap", "EINVAL" end
    if name == "move" and opts.far and args[2] ~= dir then return nil, "far", "EXDEV" end
    if opts.before then opts.before(name, args) end
    left = left - 1
    if left == 0 then
      faults.half(dir, name, args)
      error("killed before " .. name, 0)
    end
    return true
  end

  setup(snap.setup)
  before_each(function()
    real_dir, left, opts = snap.ports.dir, math.huge, {}
    w = world.new("kill")
    w.app.ports.dir = faults.port(real_dir, on_write)
  end)
  after_each(function() w.remove() end)

  local function contents(look, into)
    for path, word in pairs(look) do
      if word:sub(1, 4) == "file" then into[word:match("^file %d+ (.*)$")] = path end
    end
    return into
  end

  local function trash()
    local dir = w.base .. "/data/undo-trash"
    return w.app.ports.fs.lstat(dir) and w.look(dir) or {}
  end

  -- One undo killed at write `at`, and completed. Returns whether it was killed at all.
  local function killed_at(at, turn_id)
    w.shell("rm -rf * .e; printf 'a\\n1' > a; echo b > b; chmod 600 b; mkdir -p d/e; echo x > d/x; "
      .. "echo y > d/e/y; ln -s a l; echo t > t; mkdir -m 700 m")
    local before = w.look()
    w.call(turn_id, "echo changed > a; rm b; rm -r d; echo d > d; ln -sf b l; chmod 755 t; "
      .. "mkdir -p n/o; echo new > n/o/f; rmdir m; echo more > more")
    local after = contents(w.look(), {})
    left = at
    local ok, err = pcall(w.undo, { turn_id = turn_id })
    local was_killed = not ok
    if was_killed then assert(tostring(err):find("killed", 1, true), tostring(err)) end
    left = math.huge
    local kept = contents(trash(), contents(w.look(), {}))
    for bytes, path in pairs(after) do
      assert(kept[bytes], ("%s (%q) is lost after %s"):format(path, bytes, tostring(err)))
    end
    if was_killed then
      w.restart()
      assert(w.undo { turn_id = turn_id })
    end
    assert.same(before, w.look(), "killed at " .. at .. ": " .. tostring(err))
    kept = contents(trash(), contents(w.look(), {}))
    for bytes, path in pairs(after) do
      assert(kept[bytes], ("%s (%q) is lost in the end"):format(path, bytes))
    end
    assert.same({}, w.errors)
    return was_killed
  end

  for _, case in ipairs {
    { name = "at every write", opts = {}, step = 3 },
    { name = "at every write, with a trash that is far", opts = { far = true }, step = 8 },
    { name = "at every write, where names cannot be swapped", opts = { no_swap = true }, step = 8 },
  } do
    local step = os.getenv("EFR_TEST_SIZE") == "long" and 1 or case.step
    it("is completed " .. case.name, function()
      opts = case.opts
      local at = math.random(step)
      while killed_at(at, ("k%d"):format(at)) do at = at + step end
      assert.is_true(at > 15, "only " .. at .. " writes")
    end)
  end

  -- The undo runs in a process of its own, which ends itself with SIGKILL.
  it("is completed after a real kill of its process", function()
    local build = os.getenv("EFR_BUILD") or "build"
    local long = os.getenv("EFR_TEST_SIZE") == "long"
    local at = long and 1 or math.random(3)
    local kills = 0
    while true do
      w.shell("rm -rf * .e; echo 1 > a; echo b > b; mkdir -p d/e; echo y > d/e/y; ln -s a l")
      local look = w.look()
      local id = "r" .. at
      w.call(id, "echo 2 > a; rm b; rm -r d; echo d > d; ln -sf b l; mkdir n; echo new > n/f")
      local after, how, code = contents(w.look(), {}), nil, nil
      w.without(function()
        local _
        _, how, code = os.execute(("exec %s/test/efr-lua spec/undo/killed.lua '%s' %s %d"):format(
          build, w.base, id, at))
      end)
      local kept = contents(trash(), contents(w.look(), {}))
      for bytes, path in pairs(after) do
        assert(kept[bytes], ("%s (%q) is lost, killed at %d"):format(path, bytes, at))
      end
      if how == "exit" then
        assert.equal(0, code)
        assert.same(look, w.look())
        break
      end
      assert.equal(9, code)
      kills = kills + 1
      local done, err, kind = w.undo { turn_id = id }
      -- Killed when all was recorded.
      assert(done or kind == "conflict" and err:find("undone already", 1, true), tostring(err))
      assert.same(look, w.look(), "killed at " .. at)
      at = at + (long and 1 or 5)
    end
    assert.is_true(kills >= 3, "only " .. kills)
    assert.same({}, w.errors)
  end)

  it("stops where the disk is full, and goes on when there is room", function()
    w.shell("echo 1 > a; echo 1 > b; echo k > k")
    w.call("t1", "echo 2 > a; rm b; echo n > n")
    opts.full = true
    local done = assert(w.undo())
    assert.truthy(done.stopped:find("no space left", 1, true))
    assert.equal(1, done.trashed) -- what needs no room was done
    local now = w.look()
    assert.equal("file 644 2\n", now.a)
    for path in pairs(now) do assert.is_nil(path:find("efr-undo", 1, true), path) end
    opts.full = false
    assert.is_true(assert(w.plan()).continues)
    done = assert(w.undo())
    assert.is_nil(done.stopped)
    assert.same({ a = "file 644 1\n", b = "file 644 1\n", k = "file 644 k\n" }, w.look())
  end)

  it("keeps what somebody writes while a file is copied to a trash that is far", function()
    w.shell("echo k > k")
    w.call("t1", "echo new > n; echo new > o")
    opts.far = true
    local did = {}
    opts.before = function(name, args)
      if name ~= "create" or did[args[1]] then return end
      did[args[1]] = true
      -- A new file in its place; bytes through a descriptor that was open.
      if args[1] == "n" then w.shell("echo user > .t; mv -f .t n") end
      if args[1] == "o" then w.shell("for f in .efr-undo-*.o*; do [ -e $f ] || f=o; echo more >> $f; done") end
    end
    assert(w.undo())
    local kept = contents(trash(), contents(w.look(), {}))
    for _, bytes in ipairs { "user\n", "new\n", "new\nmore\n" } do
      assert(kept[bytes], ("%q is lost"):format(bytes))
    end
    for path in pairs(w.look()) do assert.is_nil(path:find("efr-undo", 1, true), path) end
  end)

  it("keeps what was swapped out when its place is as the undo found it again", function()
    w.shell("echo 1 > a")
    w.call("t1", "echo 2 > a")
    opts.before = function(name)
      if name == "exchange" then w.shell("echo user > a") end
      if name == "move" then error("killed", 0) end
    end
    assert.is_false(pcall(w.undo))
    opts.before = nil
    w.shell("echo 2 > a")
    w.restart()
    assert(w.undo())
    local kept = contents(trash(), contents(w.look(), {}))
    assert(kept["user\n"], "the bytes of the user are lost")
    assert.equal("file 644 1\n", w.look().a)
  end)

  it("leaves the turn as it was when it could write nothing", function()
    w.shell("echo 1 > a")
    w.call("t1", "echo 2 > a")
    opts.full = true
    assert.truthy(assert(w.undo()).stopped)
    opts.full = false
    assert.is_nil(assert(w.plan()).continues)
    assert(w.undo())
    assert.equal("file 644 1\n", w.look().a)
  end)
end)
