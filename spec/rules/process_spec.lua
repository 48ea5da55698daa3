-- A rules process that is taken over and does what it likes on its socket, played by scripts: it is
-- killed, the question fails, and nobody else waits. Real processes, the real loop.
require "spec.helper"
local process = require "efr.rules.process"
local support = require "spec.rules.support"

describe("a rules process that misbehaves", function()
  local world, failures

  before_each(function()
    world, failures = support.new(), {}
  end)

  after_each(function()
    world:close()
  end)

  -- Starts a script in place of efrd and asks it something.
  local function ask(script, ms)
    local path = world.root .. "/efrd"
    assert(world.ports.fs.write_atomic(path, "#!/bin/sh\n" .. script .. "\n", 448))
    local started = assert(process.start {
      ports = world.ports, efrd = path,
      on_fail = function(problem) failures[#failures + 1] = problem end,
    })
    local answer, problem = support.run(started.request, started, { op = "judge" }, ms or support.SLOW_MS)
    assert.is_true(started.ended or answer ~= nil)
    started:close()
    return answer, problem and problem.message
  end

  local CASES <const> = {
    ["answers no JSON"] = { "echo '{' >&3; exec sleep 100", "an answer is no JSON" },
    ["answers a number"] = { "echo 1 >&3; exec sleep 100", "an answer is no JSON" },
    ["answers what nobody asked"] = { "echo '{\"id\":7}' >&3; exec sleep 100", "nobody asked for" },
    ["answers before and after"] = {
      "echo '{\"id\":1}' >&3; echo '{\"id\":1}' >&3; exec sleep 100", nil },
    ["floods lines"] = { "while :; do echo xxxxxxxxxxxxxxxx; done >&3", "an answer is no JSON" },
    ["floods one line"] = { "exec cat /dev/zero >&3", "an answer is too long" },
    ["nests deeply"] = { "printf '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\n' >&3; exec sleep 100",
      "an answer is no JSON" },
    ["ends at once"] = { "exit 3", "the process ended with code 3" },
    ["is killed"] = { "kill -9 $$", "the process ended by signal 9" },
  }

  for name, case in pairs(CASES) do
    it(name, function()
      local answer, message = ask(case[1])
      if case[2] then
        assert.is_nil(answer)
        assert.is_truthy(message:find(case[2], 1, true), message)
        assert.equal(1, #failures)
      else
        assert.is_table(answer)
      end
    end)
  end

  it("says nothing", function()
    local answer, message = ask("exec sleep 100", 20)
    assert.is_nil(answer)
    assert.equal("no answer within 20 ms", message)
  end)

  it("closes its socket", function()
    local answer, message = ask("exec 3>&- 3<&-; exec sleep 100", 20)
    assert.is_nil(answer)
    assert.equal("no answer within 20 ms", message)
  end)

  it("names the place that it noted, as clean text", function()
    -- The page is descriptor 4.
    local _, message = ask("printf 'rules.d/a.lua:12\\0' >&4; exec sleep 100", 300)
    assert.equal("no answer within 300 ms", message)
    assert.same({ "rules.d/a.lua", 12 }, { failures[1].file, failures[1].line })
    ask("printf 'a\\033[31m\\377:x\\0' >&4; exec sleep 100", 300)
    assert.is_nil(failures[2].line)
    assert.is_truthy(utf8.len(failures[2].file or ""))
  end)

  it("does not start", function()
    local started, err = process.start { ports = world.ports, efrd = "/nonexistent/efrd" }
    assert.is_nil(started)
    assert.matches("^start the rules process: ", err)
  end)

  it("gives any bytes back that it was given", function()
    local bytes = require "efr.rules.bytes"
    local json = require "efr.json"
    math.randomseed(11)
    local function random(depth)
      local kind = math.random(depth > 0 and 5 or 3)
      if kind == 1 then return math.random(0, 1 << 40) end
      if kind == 2 then return math.random(2) == 1 end
      if kind == 3 then
        local out = {}
        for i = 1, math.random(0, 12) do out[i] = string.char(math.random(0, 255)) end
        return table.concat(out)
      end
      local out = {}
      for i = 1, math.random(1, 5) do
        local key = kind == 4 and i or kind == 5 and (math.random(2) == 1 and "k" .. i or i * 2)
        out[key] = random(depth - 1)
      end
      return out
    end
    for _ = 1, 2000 do
      local value = { v = random(4), w = 1 }
      local text = assert(json.encode(assert(bytes.pack(value, 1 << 20))))
      assert.same(value, bytes.unpack(assert(json.decode(text, { max_depth = 64 }))))
    end
    assert.is_nil(bytes.pack({ ("x"):rep(100) }, 50))
    local deep = {}
    for _ = 1, 300 do deep = { deep } end
    assert.is_nil(bytes.pack(deep, 1 << 20))
  end)
end)
