-- The surface guard while somebody swaps a directory of the project for a link to a place outside:
-- nothing outside is moved or read. The control is the same guard with files by plain paths, and
-- must reach outside. Sizes: a few hundred looks, 20 000 with EFR_TEST_SIZE=long. Needs efr's own
-- Lua state (C modules), python3.
if not package.preload["efr.fs"] then return end

local git_world = require "spec.support.git_world"
local guard_of = require "efr.sbx.guard"
local look = require "efr.sbx.guard.look"

local LOOKS <const> = os.getenv("EFR_TEST_SIZE") == "long" and 20000 or 150
local CONTROL_LOOKS <const> = 20000 -- at most; the first escape ends it
local MARK <const> = "OUTSIDE"

describe("sbx.guard, racing", function()
  local ports = git_world.ports
  local base, racer, stop

  -- The port efr.dir in its unsafe form: each path is looked up again, through links.
  local function by_path(path)
    local fs, dir = ports.fs, { close = function() end }
    local function at(rel) return rel == "." and path or path .. "/" .. rel end
    local function stat_of(stat)
      if not stat then return nil, "missing", "ENOENT" end
      return { type = stat.type == "directory" and "dir" or stat.type, mode = stat.mode & 4095,
        size = stat.size, dev = stat.dev, ino = stat.ino,
        ctime_ns = stat.ctime.sec * 1000000000 + stat.ctime.nsec }
    end
    function dir.open(_, rel) return by_path(at(rel)) end
    function dir.stat(_, rel) return stat_of(ports.uv.fs_lstat(at(rel))) end
    function dir.read(_, rel, max) return fs.read_file(at(rel), max) end
    function dir.readlink(_, rel) return fs.readlink(at(rel)) end
    function dir.list(_, rel)
      local names, stat = {}, ports.uv.fs_stat(at(rel))
      local found = stat and fs.readdir(at(rel))
      if not found then return nil, "missing", "ENOENT" end
      for _, entry in ipairs(found) do names[entry.name] = entry.type end
      return names, stat_of(stat)
    end
    function dir.move(_, name, other, new_name) return fs.rename(at(name), other.path .. "/" .. new_name) end
    dir.path = path
    return setmetatable(dir, { __close = function() end })
  end

  local function new_guard(dir_port)
    local app = {
      ports = setmetatable({ dir = dir_port }, { __index = ports }),
      env = { HOME = base .. "/home" }, paths = { state = base .. "/state" },
      config = { get = function(_, key)
        return key == "sandbox.surface_files" and { "Makefile" } or nil
      end },
      log = { error = function() end },
      git = { run = function() return { code = 0, out = "" } end },
    }
    return guard_of.new(app)
  end

  local wait = git_world.wait

  local function put(path, text)
    assert(ports.fs.mkdirs(path:match("^(.*)/"), 448))
    assert(ports.fs.write_atomic(path, text))
  end

  local function start_racer()
    local source = (os.getenv("EFR_SOURCE") or ".") .. "/spec/sbx/guard_racer.py"
    assert(os.execute(("mkfifo '%s/stop'"):format(base)))
    racer = io.popen(("exec python3 '%s' '%s/project' <'%s/stop'"):format(source, base, base), "r")
    stop = assert(io.open(base .. "/stop", "w"))
    assert.equal("racing", racer:read("l"))
  end

  -- Returns how often it swapped.
  local function stop_racer()
    if not racer then return nil end
    stop:close()
    local count = racer:read("n")
    racer:close()
    racer = nil
    return count
  end

  setup(git_world.timers)

  before_each(function()
    base = ports.fs.realpath("/tmp") .. "/efr-guard-race." .. ports.sys.getpid()
    for _, name in ipairs { "home", "state", "project/sub/.git/hooks", "outside/.git/hooks" } do
      assert(ports.fs.mkdirs(base .. "/" .. name, 448))
    end
    put(base .. "/project/sub/.git/config", "[core]\n")
    put(base .. "/project/sub/Makefile", "inside\n")
    put(base .. "/outside/.git/config", "[x]\n\ty = " .. MARK .. "\n")
    put(base .. "/outside/.git/commondir", MARK)
    put(base .. "/outside/.git/hooks/pre-commit", MARK)
    put(base .. "/outside/Makefile", MARK)
  end)

  after_each(function()
    stop_racer()
    assert(ports.fs.rmtree(base))
  end)

  -- Whether anything of the place outside was moved or was read into a record.
  local function escaped(guard)
    for _, name in ipairs { "commondir", "config", "hooks/pre-commit" } do
      if not ports.fs.lstat(base .. "/outside/.git/" .. name) then return "moved " .. name end
    end
    for _, entry in ipairs(guard.kept) do
      local function check(item)
        return item.bytes and item.bytes:find(MARK, 1, true) and "read " .. item.path
      end
      for _, item in pairs(entry.record.surface) do
        if check(item) then return check(item) end
      end
      for _, repo in pairs(entry.record.repos) do
        for _, item in pairs(repo.items) do
          if check(item) then return check(item) end
        end
      end
    end
    return nil
  end

  local function race(guard, looks)
    local moved = 0
    local watch = wait(guard.before, guard, {
      conversation_id = "c", call_id = "k", cwd = base .. "/project",
      mounts = { { kind = "root", path = base .. "/project" } },
    })
    start_racer()
    for _ = 1, looks do
      local report = wait(watch.after, watch, base .. "/project/sub")
      moved = moved + #(report.place and report.place.entries or {})
      local how = escaped(guard)
      if how then return moved, how end
    end
    return moved, nil
  end

  it("moves and reads nothing outside", function()
    local moved, how = race(new_guard(ports.dir), LOOKS)
    local swaps = stop_racer()
    assert.is_nil(how)
    assert.is_true(moved > 0, "nothing was found inside")
    assert.is_true(swaps > LOOKS)
    assert.equal(MARK, ports.fs.read_file(base .. "/outside/.git/hooks/pre-commit"))
  end)

  it("would do so with plain paths (control)", function()
    local _, how = race(new_guard({ open = by_path }), CONTROL_LOOKS)
    stop_racer()
    assert.is_string(how)
  end)

  it("sees a file that grows while it is read as another one", function()
    local path = base .. "/project/grow"
    put(path, "x")
    local top <close> = assert(ports.dir.open(base .. "/project"))
    local first = look.at(top, "grow", path, { now_ns = ports.sys.now_us() * 1000 })
    assert.is_false(first.settled)
    local file = assert(io.open(path, "a"))
    file:write(("y"):rep(look.MAX_BYTES))
    file:close()
    local second = look.at(top, "grow", path, { now_ns = ports.sys.now_us() * 1000, old = first })
    assert.is_nil(second.bytes)
    assert.is_true(look.differs(first, second))
  end)
end)
