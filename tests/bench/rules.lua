-- Time of the user's Lua rules: a question to the locked process and its answer, for 1 and 20 rules
-- and lines of 1 to 100 commands, and a start with load and lock. Needs built programs:
-- `EFR_BIN=build/bin build/test/efr-lua tests/bench/rules.lua` from the root of the tree.
require "spec.helper"
local shell = require "efr.perm.shell"
local support = require "spec.rules.support"

local ROUNDS <const> = 200
local STARTS <const> = 20

local world = support.new()
local now = world.ports.sys.mono_us

-- Median and p95 in microseconds.
local function measure(count, fn)
  local times = {}
  for i = 1, count do
    local from = now()
    fn()
    times[i] = now() - from
  end
  table.sort(times)
  return times[(count + 1) // 2], times[math.ceil(count * 0.95)]
end

local RULE <const> = "efr.rule { effect = 'deny', program = 'git', when = function(cmd) "
  .. "return cmd:has('push') and cmd:might_have('--force-%d') end }\n"

for _, rules in ipairs { 1, 20 } do
  local text = {}
  for i = 1, rules do text[i] = RULE:format(i) end
  assert(world:load(table.concat(text)))
  for _, commands in ipairs { 1, 10, 100 } do
    local line = ("git push origin main; "):rep(commands)
    local question = { line = line, parse = assert(shell.parse(line)), cwd = "/", home = "/home/u" }
    local median, p95 = table.unpack(support.run(function()
      return { measure(ROUNDS, function()
        local answer = world.client:judge(question)
        assert(not answer.failed, answer.failed and answer.failed.text)
      end) }
    end))
    local words = "rules %2d  commands %3d  median %6d us  p95 %6d us"
    print(words:format(rules, commands, median, p95))
  end
end

local median, p95 = table.unpack(support.run(function()
  return { measure(STARTS, function()
    world.client.state = "new" -- else the same files are not read again
    assert(world.client:reload())
  end) }
end))
print(("start with 20 rules         median %6d us  p95 %6d us"):format(median, p95))
world:close()
