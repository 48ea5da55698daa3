-- Specs of many calls in one hidden shell, a third of them interrupted at random moments: from before
-- the line is read to after the command's end, by a turn that is interrupted. Every result belongs to
-- its call, nothing runs twice, the shell lives on. Direct calls, and contained ones with a small
-- program in the launcher's place. CI size 120 calls, long size 5,000.
local async = require "efr.util.async"
local shells = require "spec.support.shells"

local CALLS <const> = os.getenv("EFR_TEST_SIZE") == "long" and 5000 or 120

-- What each call does: its own number to the terminal and to a file, its own status.
local LAUNCHER <const> = [[#!/bin/sh
n=${3##*/n}
: >"$3/started"
echo $n >>log
echo $n
exit $((n % 100))
]]

local function line(i)
  return ("echo %d >>log; echo %d; (exit %d)"):format(i, i, i % 100)
end

-- A token that is cancelled after some milliseconds; what ends its timer.
local function cancelled_soon(ms)
  local token, timer = async.token(), shells.ports.uv.new_timer()
  timer:start(ms, 0, function() token:cancel("test") end)
  return token, timer
end

local function contained(world, i)
  local dir = ("%s/n%d"):format(world.root, i)
  assert(shells.ports.fs.mkdirs(dir, 448))
  local call = world:contained(world.home .. "/launcher", function()
    return shells.ports.fs.stat(dir .. "/started") and { exit_code = i % 100 }
  end)
  call.dir = dir
  call.has_started = function() return shells.ports.fs.stat(dir .. "/started") ~= nil end
  return call
end

-- How long the newest call that nobody interrupted took here; moments lie within that time.
local took_ms = 25

local function one(world, i, seed)
  local what = ("call %d of seed %d"):format(i, seed)
  local opts = { line = line(i), timeout_ms = 30000 }
  local timer
  if i % 3 == 0 then opts.token, timer = cancelled_soon(math.random(0, took_ms)) end
  if i % 2 == 0 then
    opts.call, opts.launch = contained(world, i), "contained"
  end
  local begun_us = shells.ports.sys.mono_us()
  local result = world:shell():run(opts)
  if timer then
    timer:close()
  else
    took_ms = (shells.ports.sys.mono_us() - begun_us) // 1000 + 1
  end
  assert.is_nil(result.left_running, what)
  if result.outcome == "finished" then
    assert.equal(i .. "\n", result.output, what)
    assert.equal(i % 100, result.exit_code, what)
  else
    assert.equal("interrupted", result.outcome, what .. ": " .. (result.setup_error or ""))
    assert.truthy(i % 3 == 0, what)
    for number in result.output:gmatch("%d+") do assert.equal(tostring(i), number, what) end
  end
  return result.outcome == "finished"
end

describe("hidden shell, many calls", function()
  it("keeps each result with its call when a third is interrupted", function()
    local seed = os.time()
    math.randomseed(seed)
    shells.world({}, function(world)
      shells.ports.fs.chmod(world:write("launcher", LAUNCHER), 493)
      local finished = {}
      for i = 1, CALLS do finished[i] = one(world, i, seed) end
      local last = world:shell():run { line = "echo fine" }
      assert.equal("fine\n", last.output)
      assert.is_nil(last.fresh, "the shell did not live on")
      local ran = {}
      for number in world:read("log"):gmatch("%d+") do
        local i = math.tointeger(number)
        assert.is_nil(ran[i], "ran twice: " .. number)
        ran[i] = true
      end
      local interrupted = 0
      for i = 1, CALLS do
        assert.truthy(ran[i] or not finished[i], i)
        interrupted = interrupted + (finished[i] and 0 or 1)
      end
      assert.is_true(interrupted > CALLS // 20, "only " .. interrupted .. " were interrupted")
    end)
  end)
end)
