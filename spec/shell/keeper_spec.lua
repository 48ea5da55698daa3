-- Specs of the keeper beside a hidden shell, seen from efrd: it is there, it comes back, no command
-- runs without it, it goes with the shell. What it does when efrd is killed: tests/e2e/kill.sh.
local async = require "efr.util.async"
local shells = require "spec.support.shells"

local function with(opts, fn)
  return function() shells.world(opts, fn) end
end

local function run(world, line)
  return world:shell():run { line = line, timeout_ms = 30000 }
end

-- Our children that keep a shell, zombies apart.
local function keepers()
  local fs, me, found = shells.ports.fs, shells.ports.sys.getpid(), {}
  local children = fs.read_file(("/proc/%d/task/%d/children"):format(me, me), 65536)
  for pid in children:gmatch("%d+") do
    local argv = fs.read_file(("/proc/%s/cmdline"):format(pid), 4096) or ""
    local shell = argv:match("^efr%-sbx%zkeep%z(%d+)%z$")
    if shell then found[math.tointeger(tonumber(shell))] = math.tointeger(tonumber(pid)) end
  end
  return found
end

describe("keeper of a hidden shell", function()
  it("is one for each shell, and goes with it", with({}, function(world)
    assert.same({}, keepers())
    run(world, "true")
    local shell = world:shell():pid()
    assert.is_number(keepers()[shell])
    assert.equal("exited", run(world, "exit 3").outcome)
    assert.equal("again\n", run(world, "echo again").output)
    assert.is_number(keepers()[world:shell():pid()])
    world:shell():close()
    local limit = os.time() + 10
    while next(keepers()) do
      async.sleep(1) -- the loop has to go on
      assert.is_true(os.time() < limit)
    end
  end))

  it("is started again before the next command", with({}, function(world)
    run(world, "mine=kept")
    local shell = world:shell():pid()
    local first = keepers()[shell]
    assert(shells.ports.sys.kill(first, 9))
    local limit = os.time() + 10
    while keepers()[shell] do assert.is_true(os.time() < limit) end
    assert.equal("kept\n", run(world, "echo $mine").output)
    local second = keepers()[shell]
    assert.is_number(second)
    assert.is_true(second ~= first)
  end))

  it("that does not start leaves no shell", with({ keeper = "/nonexistent/efr-sbx" }, function(world)
    local result = run(world, "touch made")
    assert.equal("setup_failed", result.outcome)
    assert.truthy(result.setup_error:find("keeper", 1, true), result.setup_error)
    assert.is_nil(world:read("made"))
  end))
end)
