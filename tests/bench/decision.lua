-- Time of a decision: reading a line, what it declares, and what the engine makes of it, for lines
-- of 20, 200, 2,000 and 64,000 bytes in each mode. Plain Lua, no files, from the root of the tree:
-- `lua5.4 tests/bench/decision.lua`. The target for 200 bytes is 0.2 ms on an idle machine.
package.path = "lua/?.lua;./?.lua;" .. package.path
local calls = require "spec.perm.calls"
local engine = require "efr.perm.engine"
local facts = require "efr.perm.facts"
local paths = require "efr.perm.paths"

local PIECE <const> = "cat docs/notes.md src/main.c | grep -n 'some text' | head -20; ls -la src; "
local SIZES <const> = { 20, 200, 2000, 64000 }
local ROUNDS <const> = 7

local function line_of(size)
  local line = PIECE:rep(size // #PIECE + 1):sub(1, size)
  -- No quote stays open at the end.
  local _, quotes = line:gsub("'", "")
  if quotes % 2 == 1 then line = line:sub(1, -2) .. "'" end
  return line
end

-- The best of some rounds, in microseconds a call.
local function best(count, fn)
  local found = math.huge
  for _ = 1, ROUNDS do
    local start = os.clock()
    for _ = 1, count do fn() end
    found = math.min(found, (os.clock() - start) / count * 1e6)
  end
  return found
end

local machine = paths.prepare(calls.machine())

local function input_of(line, mode)
  local items = { { kind = "line", text = line, cwd = calls.CWD } }
  local requirements, known, lines = facts.collect({}, items, calls.HOME)
  known.git_code, known.found = { state = "clean" }, calls.FOUND
  return {
    requirements = requirements, facts = known, lines = lines, tool = "shell", mode = mode,
    origin = "cli", scope = { kind = "project", root = calls.CWD }, machine = machine,
  }
end

print(("%8s %10s %10s %10s %10s"):format("bytes", "read", "cautious", "auto", "full"))
for _, size in ipairs(SIZES) do
  local line = line_of(size)
  local count = math.max(1, 200000 // size // 20)
  local items = { { kind = "line", text = line, cwd = calls.CWD } }
  local row = { ("%8d"):format(size),
    ("%10.0f"):format(best(count, function() facts.collect({}, items, calls.HOME) end)) }
  for _, mode in ipairs { "cautious", "auto", "full" } do
    local input = input_of(line, mode)
    row[#row + 1] = ("%10.0f"):format(best(count, function() engine.decide(input) end))
  end
  print(table.concat(row, " ") .. "   us")
end
