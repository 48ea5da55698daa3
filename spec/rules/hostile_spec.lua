-- The rules process with files that loop, eat memory, crash or lie: each counts as ask of the user's
-- own with file and line, nothing on the loop waits for it, and nothing loosens. Real efrd.
require("spec.helper")
local async = require "efr.util.async"
local client = require "efr.rules.client"
local loop = require "spec.host.loop"
local support = require "spec.rules.support"

-- In CI only the order of events counts; the long size also measures.
local long = os.getenv("EFR_TEST_SIZE") == "long"

-- Bodies of `when`, three lines down in rules.lua; each fails by itself.
local LOOPS <const> = {
  ["while true"] = "while true do end",
  ["a goto"] = "::again:: goto again",
  ["a numeric for"] = "for i = 1, math.huge do end",
  ["repeat with pcall"] = "repeat pcall(error) until false",
  ["pcall around an endless loop"] = "pcall(function() while true do end end) return false",
  ["xpcall whose handler loops"] = "xpcall(error, function() while true do end end)",
  ["a coroutine"] = "coroutine.wrap(function() while true do end end)()",
  ["coroutines that make coroutines"] =
    "local function f() while true do coroutine.wrap(function() end)() end end f()",
  ["a generator that never ends"] = "for _ in coroutine.wrap(function() while true do "
    .. "coroutine.yield(1) end end) do end",
  ["__index"] = "return setmetatable({}, {__index = function() while true do end end}).x",
  ["__eq"] = "local m = {__eq = function() while true do end end} "
    .. "return setmetatable({}, m) == setmetatable({}, m)",
  ["__concat"] = "return 'a' .. setmetatable({}, {__concat = function() while true do end end})",
  ["__tostring of an error"] =
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
  ["__close"] = "local x <close> = setmetatable({}, {__close = function() while true do end end})",
  ["__pairs"] = "for _ in pairs(setmetatable({}, {__pairs = function() return function() "
    .. "return 1 end end})) do end",
  ["__gc"] = "for i = 1, 1e6 do setmetatable({}, {__gc = function() while true do end end}) end",
  ["a sort comparator"] = "local t = {} for i = 1, 1000 do t[i] = i end "
    .. "table.sort(t, function() while true do end end)",
  ["gsub with a function"] = "return ('a'):gsub('a', function() while true do end end)",
  ["pattern back-tracking"] = "return ('a'):rep(60):find(('a?'):rep(60) .. ('.-'):rep(60) .. 'b')",
  ["LPeg over a long text"] = "local p = lpeg.P('a')^0 * lpeg.P('b') "
    .. "local s = ('a'):rep(1e6) for i = 1, 1e9 do lpeg.match(p, s, i % 1000) end",
  ["LPeg back-tracking"] = "local p = lpeg.P{(lpeg.V(1) * lpeg.V(1) + 'a') * 'b' + 'a' * lpeg.V(1)"
    .. " * lpeg.V(1) + 'a'} return lpeg.match(p, ('a'):rep(300))",
  ["LPeg match-time capture"] =
    "return lpeg.match(lpeg.Cmt('', function() while true do end end), 'x')",
  ["string.rep over and over"] = "while true do local s = ('x'):rep(1e6) end",
  ["table.concat over and over"] = "local t = {} for i = 1, 1e5 do t[i] = 'x' end "
    .. "while true do table.concat(t) end",
  ["utf8 over and over"] = "local s = ('\\u{20AC}'):rep(1e5) while true do utf8.len(s) end",
}

local ERRORS <const> = {
  ["an error"] = { "error('no')", "no" },
  ["an error that is no text"] = { "error({})", "an error that is a table" },
  ["an error that is nil"] = { "error(nil)", "an error that is a nil" },
  ["a memory bomb of one string"] = { "return #('x'):rep(1 << 30)", "not enough memory" },
  ["a memory bomb of tables"] = { "local t = {} while true do t = {t, ('x'):rep(1e5), {}} end",
    "not enough memory|no answer" },
  ["a size beyond any memory"] = { "return ('x'):rep(1 << 62)", "resulting string too large" },
  ["endless recursion"] = { "local function f() return 1 + f() end return f()", "stack overflow|not enough memory" },
  ["recursion in C"] = { "local s = setmetatable({}, {}) getmetatable(s).__index = function(t, k) "
    .. "return t[k .. 'x'] end return s.x", "C stack overflow|not enough memory|no answer" },
  ["a wrong result"] = { "return 12", "when must return true, false or a text" },
  ["a result that is a table"] = { "return {}", "when must return true, false or a text" },
  ["an undefined global"] = { "return os.time()", "'os' is not defined" },
  ["io"] = { "return io.open('/etc/passwd')", "'io' is not defined" },
  ["load"] = { "return load('return 1')", "'load' is not defined" },
  ["require"] = { "return require('efr.json')", "'require' is not defined" },
  ["debug"] = { "return debug.getregistry()", "'debug' is not defined" },
  ["bytecode"] = { "return string.dump(function() end)", "a nil value" },
  ["a write to what it sees"] = { "cmd.args[1] = 'x'", "this table is read only" },
  ["a write to its context"] = { "ctx.mode = 'full'", "this table is read only" },
  ["a new rule"] = { "efr.rule { effect = 'allow', when = function() return true end }",
    "belongs to the top of a file" },
}

-- Ends of the process: which text comes is not ours to say.
local CRASHES <const> = {
  ["a deep LPeg pattern"] = "local p = lpeg.P('a') for i = 1, 300000 do p = lpeg.P('a') * p end "
    .. "return lpeg.match(p, 'a')",
  ["a deep LPeg choice"] = "local p = lpeg.P('a') for i = 1, 300000 do p = lpeg.C(p) + 'b' end "
    .. "return lpeg.match(p, 'a')",
}

local function rule(body)
  return ("efr.rule { effect = 'allow',\nwhen = function(cmd, ctx)\n%s\nend }\n"):format(body)
end

local function matches_one(text, choices)
  for choice in choices:gmatch("[^|]+") do
    if text:find(choice, 1, true) then return true end
  end
  return false
end

describe("hostile rules", function()
  local world

  before_each(function()
    world = support.new()
  end)

  after_each(function()
    world:close()
  end)

  -- Loads, asks, and checks what must hold for every failure. A slow machine gets time for an
  -- answer where one is expected.
  local function fails(body, slow)
    local ok, problem = world:load(rule(body))
    if not slow then client.JUDGE_MS = 50 end
    assert.is_true(ok, problem and problem.message)
    local from = world.ports.sys.mono_us()
    local answer = world:judge("git push")
    local took_ms = (world.ports.sys.mono_us() - from) / 1000
    assert.is_table(answer.failed)
    assert.same({ {}, {}, {}, {} }, { answer.rules, answer.exits, answer.effects, answer.hints })
    if long and not slow then assert.is_true(took_ms < 150, "took " .. took_ms) end
    return answer.failed
  end

  for name, body in pairs(LOOPS) do
    it("loop: " .. name, function()
      local problem = fails(body)
      assert.equal("rules.lua", problem.file)
      assert.is_true(problem.line >= 1 and problem.line <= 4, tostring(problem.line))
      assert.matches("^rules%.lua:%d: ", problem.text)
    end)
  end

  for name, case in pairs(ERRORS) do
    it("error: " .. name, function()
      local problem = fails(case[1], true)
      assert.is_true(matches_one(problem.text, case[2]), problem.text)
      assert.matches("^rules%.lua:[1-4]: ", problem.text)
    end)
  end

  for name, body in pairs(CRASHES) do
    it("crash: " .. name, function()
      local problem = fails(body)
      assert.matches("^rules%.lua:[1-4]: ", problem.text)
    end)
  end

  it("answers the next question after a failure, from a new process", function()
    world:load("local n = 0\nefr.rule { effect = 'ask', program = 'git' }\n"
      .. "efr.rule { effect = 'ask', when = function(cmd) if cmd.name == 'bad' then "
      .. "while true do end end end }")
    local first = world.client.process
    client.JUDGE_MS = 50
    assert.equal("rules.lua:3: no answer within 50 ms", world:judge("bad").failed.text)
    world:settle()
    client.JUDGE_MS = support.SLOW_MS
    assert.not_equal(first, world.client.process)
    local answer = world:judge("git push")
    assert.is_nil(answer.failed)
    assert.equal("ask", answer.rules[1].effect)
  end)

  it("turns the rules off after three failures in a minute, for the user to see", function()
    world:load(rule("error('no')"))
    for _ = 1, 3 do
      assert.matches("^rules%.lua:3: no$", world:judge("x").failed.text)
      world:settle()
    end
    assert.equal("off", world.client.state)
    assert.is_nil(world.client.process)
    local text = world:judge("x").failed.text
    assert.equal("rules.lua:3: the rules are off after three failures: no", text)
    assert.equal(1, #world.notices)
    assert.matches("off after 3 failures: rules%.lua:3: no", world.notices[1])
    assert.equal("off", world.client:status().state)
    world:load("efr.rule { effect = 'deny', program = 'x' }")
    assert.equal("deny", world:judge("x").rules[1].effect)
  end)

  it("forgets failures after a minute", function()
    world:load(rule("error('no')"))
    local now = world.ports.sys.mono_us
    local shift = 0
    world.ports.sys = setmetatable({ mono_us = function() return now() + shift end },
      { __index = world.ports.sys })
    world.client.ports = world.ports
    for _ = 1, 4 do
      world:judge("x")
      world:settle()
      shift = shift + 61000000
    end
    assert.equal("on", world.client.state)
  end)

  it("keeps everybody else going while the rules hang", function()
    world:load(rule("while true do end"))
    client.JUDGE_MS = 50
    local order, ticks = {}, 0
    local judged = async.spawn(function()
      local answer = world.client:judge { line = "a", parse = {}, cwd = "/",
        commands = { { words = { "a" } } } }
      order[#order + 1] = answer.failed and "judged"
    end)
    local ticker = async.spawn(function()
      while not judged.done do
        async.sleep(1)
        ticks = ticks + 1
      end
    end)
    loop.wait_until(function() return ticker.done end)
    assert.same({ "judged" }, order)
    assert.is_true(ticks >= 3, "the loop turned " .. ticks .. " times")
  end)

  it("never holds up the loop", function()
    if not long then return end
    world:load(rule("while true do end"))
    client.JUDGE_MS = 50
    local sys, last, worst = world.ports.sys, nil, 0
    local done = false
    local ticker = async.spawn(function()
      while not done do
        local now = sys.mono_us()
        worst, last = math.max(worst, now - (last or now)), now
        async.sleep(1)
      end
    end)
    for _ = 1, 2 do
      world:judge("x")
      world:settle()
    end
    done = true
    loop.wait_until(function() return ticker.done end)
    assert.is_true(worst < 50000, "the loop stood for " .. worst .. " us")
  end)

  it("gives all that wait the failure, and counts it once", function()
    world:load(rule("while true do end"))
    client.JUDGE_MS = 50
    local tasks = {}
    for i = 1, 5 do
      tasks[i] = async.spawn(function()
        return world.client:judge { line = "a", parse = {}, cwd = "/",
          commands = { { words = { "a" } } } }
      end)
    end
    loop.wait_until(function()
      for _, task in ipairs(tasks) do
        if not task.done then return false end
      end
      return true
    end)
    for _, task in ipairs(tasks) do assert.is_table(task.values[1].failed) end
    assert.equal(1, #world.client.failures)
  end)

  it("bounds what an answer can be", function()
    world:load([[
      efr.rule { id = "long", effect = "ask", when = function() return ("x"):rep(1e6) end }
      efr.rule { id = "bytes", effect = "ask", when = function() return "\xff\0\27[31m" end }
      efr.program { name = "flood", reads = function()
        local t = {} for i = 1, 5000 do t[i] = "/" .. i end return t end }
      efr.program { name = "relative", reads = "a" }
      efr.program { name = "wrong", reads = function() return { {} } end }
    ]])
    local answer = world:judge("x")
    assert.is_nil(answer.failed and answer.failed.text)
    local rules = answer.rules
    assert.is_true(#rules[1].text < 500)
    assert.is_truthy(utf8.len(rules[2].text))
    assert.is_nil(rules[2].text:find("%c"))
    assert.matches("more than 1000 answers", world:judge("flood").failed.text)
    world:settle()
    assert.equal("/home/u/p/a", world:judge("relative").effects[1].path)
    assert.matches("^rules%.lua:6: reads and writes must give paths$",
      world:judge("wrong").failed.text)
  end)

  it("takes no answer that does not fit the question", function()
    world:load("efr.rule { effect = 'allow', program = 'x' }")
    local process = world.client.process
    for _, forged in ipairs {
      { rules = { { entry = 2, at = 1 } }, exits = {}, effects = {}, hints = {} },
      { rules = { { entry = 1, at = 2 } }, exits = {}, effects = {}, hints = {} },
      { rules = { { entry = 1, at = "1" } }, exits = {}, effects = {}, hints = {} },
      { rules = {}, exits = { { entry = 1, at = 1 } }, effects = {}, hints = {} },
      { rules = {}, exits = {}, effects = { { entry = 1, kind = "read", path = "/", at = 1 } },
        hints = {} },
      { rules = {}, exits = {}, effects = {} },
      { rules = 1, exits = {}, effects = {}, hints = {} },
      { rules = { 1 }, exits = {}, effects = {}, hints = {} },
    } do
      world.client.process = { request = function() return forged end,
        fail = function(self, message) self.problem = { message = message } end }
      assert.matches("not of the agreed form", world:judge("x").failed.text)
    end
    world.client.process = process
    assert.equal("allow", world:judge("x").rules[1].effect)
  end)
end)

describe("hostile files", function()
  local world

  before_each(function()
    world = support.new()
  end)

  after_each(function()
    world:close()
  end)

  local CASES <const> = {
    ["no Lua"] = { "efr.rule {\n  effect = = 'ask' }", "rules.lua:2: ", "unexpected symbol" },
    ["an error"] = { "\nerror('stop')", "rules.lua:2: ", "stop" },
    ["bytecode"] = { "\27Lua", "rules.lua", "attempt to load a binary chunk" },
    ["a wrong field"] = { "efr.rule { effect = 'ask', wen = print }", "rules.lua:1: ",
      "efr.rule: has no field 'wen'" },
    ["wrong fields"] = { "efr.rule { effect = 1, z9 = 1, z1 = 1, wen = 1, z2 = 1, z3 = 1, z4 = 1, z5 = 1,"
      .. " z6 = 1, z7 = 1, z8 = 1 }", "rules.lua:1: ", "efr.rule: has no field 'wen'" },
    ["a wrong effect"] = { "\n\nefr.rule { effect = 'contain', program = 'x' }", "rules.lua:3: ",
      'effect must be "allow", "ask" or "deny"' },
    ["too many rules"] = { "for i = 1, 501 do efr.rule { effect = 'ask', program = 'x' } end",
      "rules.lua:1: ", "more than 500 entries" },
    ["a memory bomb"] = { "\nlocal s = ('x'):rep(1 << 28)", "rules.lua:", "not enough memory" },
    ["a loop"] = { "\n\nwhile true do end", "rules.lua:3: ", "no answer within" },
    ["a loop in a C function"] = {
      "\nlocal x = ('a'):rep(60):find(('a?'):rep(60) .. ('.-'):rep(60) .. 'b')", "rules.lua:1: ",
      "no answer within" },
  }

  for name, case in pairs(CASES) do
    it("refuses " .. name .. " at the first start: everything asks", function()
      if case[3] == "no answer within" then client.LOAD_MS = 300 end
      local ok, problem = world:load(case[1])
      client.LOAD_MS = 2000
      assert.is_nil(ok)
      local text = client.text_of(problem)
      assert.equal(case[2], text:sub(1, #case[2]))
      assert.is_truthy(text:find(case[3], 1, true), text)
      assert.equal("broken", world.client.state)
      assert.equal(text, world:judge("ls").failed.text)
      assert.equal(1, #world.notices)
    end)
  end

  it("keeps the version in force when a new one is broken", function()
    world:load("efr.rule { effect = 'deny', program = 'x' }")
    local process = world.client.process
    local ok, problem = world:load("efr.rule {")
    assert.is_nil(ok)
    assert.equal("rules.lua", problem.file)
    assert.equal(process, world.client.process)
    assert.equal("deny", world:judge("x").rules[1].effect)
    assert.equal("rules.lua", world.client:status().problem.file)
    world:load("efr.rule {")
    assert.equal(1, #world.notices)
    world:load("efr.rule { effect = 'ask', program = 'x' }")
    assert.is_nil(world.client:status().problem)
    assert.equal("ask", world:judge("x").rules[1].effect)
  end)

  it("takes the last good version after a restart", function()
    world:load("efr.rule { effect = 'deny', program = 'x' }")
    local sum = world.client:status().sha256
    assert.matches("^%x+$", sum)
    world.client:close()
    world.client = world:open()
    world:load("efr.rule {")
    assert.equal("on", world.client.state)
    assert.equal(sum, world.client:status().sha256)
    assert.equal("deny", world:judge("x").rules[1].effect)
  end)

  it("trusts no damaged copy", function()
    world:load("efr.rule { effect = 'deny', program = 'x' }")
    world.client:close()
    local text = world.ports.fs.read_file(world.good)
    world.ports.fs.write_atomic(world.good, (text:gsub("deny", "allow")))
    world.client = world:open()
    world:load("efr.rule {")
    assert.equal("broken", world.client.state)
    assert.is_table(world:judge("x").failed)
  end)

  it("has nothing to say without files, and forgets the kept version", function()
    assert.is_true(support.run(world.client.reload, world.client))
    assert.is_nil(world:judge("x"))
    world:load("efr.rule { effect = 'deny', program = 'x' }")
    assert.is_table(world.ports.fs.stat(world.good))
    world.ports.fs.unlink(world.dir .. "/rules.lua")
    support.run(world.client.reload, world.client)
    assert.is_nil(world.ports.fs.stat(world.good))
    assert.is_nil(world.client.process)
    assert.is_nil(world:judge("x"))
  end)

  it("runs rules.lua, then rules.d in byte order, with shared globals", function()
    world:write("rules.d/20-b.lua", "efr.rule { id = 'b', effect = 'deny', when = helper }")
    world:write("rules.d/10-a.lua", "efr.rule { id = 'a', effect = 'allow', when = helper }")
    world:write("rules.d/note.txt", "no Lua")
    world:load("function helper(cmd) return cmd.name == 'x' end\n"
      .. "efr.rule { id = 'first', effect = 'ask', when = helper }")
    local ids = {}
    for i, match in ipairs(world:judge("x").rules) do ids[i] = match.id .. " " .. match.file end
    assert.same({ "first rules.lua", "a rules.d/10-a.lua", "b rules.d/20-b.lua" }, ids)
  end)

  it("refuses files that are none", function()
    world.ports.fs.mkdir(world.dir .. "/rules.lua")
    local _, problem = support.run(world.client.reload, world.client)
    assert.same({ "rules.lua", "is no file" }, { problem.file, problem.message })
    world.ports.fs.rmdir(world.dir .. "/rules.lua")
    world:write("rules.d/a b.lua", "")
    _, problem = world:load("")
    assert.equal("rules.d", problem.file)
  end)
end)
