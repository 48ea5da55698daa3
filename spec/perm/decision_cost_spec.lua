-- The cost of reading a line of 200 bytes and deciding about it, in instructions of the Lua machine
-- and in bytes that it allocates: times belong to tests/bench/decision.lua. The limits are a tenth
-- above what it costs, so that a reading or a table too many per word shows.
local calls = require "spec.perm.calls"
local engine = require "efr.perm.engine"
local facts = require "efr.perm.facts"
local paths = require "efr.perm.paths"

local LINE <const> = ("cat docs/notes.md src/main.c | grep -n 'some text' | head -20; ls -la src; ")
  :rep(3):sub(1, 199) .. "'"
local KIB <const> = 1024

local machine = paths.prepare(calls.machine())

local function decide(mode)
  local requirements, known, lines = facts.collect({},
    { { kind = "line", text = LINE, cwd = calls.CWD } }, calls.HOME)
  known.git_code, known.found = { state = "clean" }, calls.FOUND
  return engine.decide {
    requirements = requirements, facts = known, lines = lines, tool = "shell", mode = mode,
    origin = "cli", scope = { kind = "project", root = calls.CWD }, machine = machine,
  }
end

local function instructions(mode)
  local count = 0
  debug.sethook(function() count = count + 1 end, "", 1)
  decide(mode)
  debug.sethook()
  return count
end

local function bytes(mode)
  collectgarbage()
  collectgarbage "stop"
  local before = collectgarbage "count"
  decide(mode)
  local used = collectgarbage "count" - before
  collectgarbage "restart"
  return used * KIB
end

describe("a decision for a line of 200 bytes", function()
  local function costs(mode, effect, most_instructions, most_kib)
    it("has its limits in " .. mode, function()
      assert.equal(effect, decide(mode).effect)
      local steps, used = instructions(mode), bytes(mode)
      -- A hook that never ran would count nothing.
      assert.is_true(steps > 1000, steps .. " instructions")
      assert.is_true(steps <= most_instructions, steps .. " instructions")
      assert.is_true(used <= most_kib * KIB, used // KIB .. " KiB")
    end)
  end

  costs("cautious", "allow", 14500, 54)
  costs("auto", "contain", 16000, 59)
end)
