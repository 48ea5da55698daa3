-- Specs of input waits with a real zsh, real programs and a real terminal: which answers are typed and
-- which are refused, with nothing written. Which programs wait how: terminal_programs_spec.lua; the rules
-- alone: waits_rules_spec.lua.
local async = require "efr.util.async"
local contained = require "spec.support.contained"
local shells = require "spec.support.shells"

local LIMIT_MS <const> = 20000

local function with(fn)
  return function() shells.world({}, fn) end
end

local Started = {}
Started.__index = Started

-- Runs a line in a task and notes its waits; opts.on_wait(wait, started) is called at each.
local function start(world, line, opts)
  opts = opts or {}
  local self = setmetatable({ waits = {}, shell = world:shell(), ended = async.future(),
    printed = async.future() }, Started)
  self.call = opts.call
    or { line_path = world:write("line", line), nonce = ("%032x"):format(math.random(1, 1 << 40)) }
  self.task = async.spawn(function()
    return self.shell:run {
      call = self.call, line = line, launch = opts.call and "contained" or "direct",
      timeout_ms = opts.timeout_ms or LIMIT_MS, manual_input = opts.manual_input,
      on_late_end = function() self.ended:set() end,
      on_output = function() self.printed:set() end,
      may_wait = opts.may_wait and opts.may_wait(self),
      on_wait = function(wait)
        self.waits[#self.waits + 1] = wait
        if opts.on_wait then opts.on_wait(wait, self) end
      end,
    }
  end)
  return self
end

function Started:finish()
  local ok, result = self.task:wait()
  assert(ok, result)
  return result
end

-- Waits until so many waits were reported, or for another condition of the run.
function Started:reach(count, done)
  done = done or function() return #self.waits >= count end
  local how = self.shell:_wait(shells.ports.sys.mono_us() // 1000 + LIMIT_MS, nil, done)
  assert.equal("done", how)
end

function Started:kinds()
  local out = {}
  for i, wait in ipairs(self.waits) do
    out[i] = wait.kind .. (wait.looks_secret and "!" or "") .. (wait.late and "+" or "")
  end
  return table.concat(out, " ")
end

function Started:refused(answer, code, text)
  local ok, message, got = self.shell:answer(self.call, answer)
  assert.is_nil(ok)
  assert.equal(code, got)
  assert.truthy(message:find(text, 1, true), message)
end

local GETPASS <const> = [[python3 -c 'import getpass; print("got", getpass.getpass("Key: "))']]
local ASK <const> = [[sh -c 'printf "Go on? "; read a; echo "it is $a"']]
local HIDDEN <const>, VISIBLE <const> = { text = "TYPED", hidden = true }, { text = "TYPED", hidden = false }

describe("an answer", function()
  it("goes to the command that waits for it, once", with(function(world)
    local run = start(world, GETPASS)
    run:reach(1)
    assert.same({ true }, { run.shell:answer(run.call, { text = "s3 cret", hidden = true }) })
    run:refused(HIDDEN, "conflict", "does not wait")
    assert.equal("Key: \ngot s3 cret\n", run:finish().output)
    assert.equal("hidden none", run:kinds())
    run:refused(HIDDEN, "not_found", "does not run")
  end))

  it("of the greatest length arrives whole", with(function(world)
    local run = start(world, GETPASS)
    run:reach(1)
    local text = ("k"):rep(1024)
    assert(run.shell:answer(run.call, { text = text, hidden = true }))
    assert.equal("Key: \ngot " .. text .. "\n", run:finish().output)
  end))

  it("does not wait behind another one that the command has not read", with(function(world)
    local run = start(world, "mkfifo end && sh -c 'echo go; cat end'", { manual_input = true })
    run.printed:get()
    local answer, message, code = { text = ("touch bad;"):rep(100), hidden = false, manual = true }, nil, nil
    for _ = 1, 200 do
      _, message, code = run.shell:answer(run.call, answer)
      if message then break end
      async.sleep(1) -- the terminal counts what it got a moment later
    end
    assert.equal("conflict", code)
    assert.truthy(message:find("has not read", 1, true), message)
    assert(os.execute("echo over >" .. world.home .. "/end"))
    run:finish()
    assert.equal("fine\n", world:shell():run({ line = "echo fine", timeout_ms = LIMIT_MS }).output)
    assert.is_nil(world:read("bad"))
  end))

  it("is refused where the command waits for another kind", with(function(world)
    local run = start(world, GETPASS)
    run:reach(1)
    run:refused(VISIBLE, "conflict", "another kind")
    assert(run.shell:answer(run.call, { text = "", hidden = true }))
    assert.equal("Key: \ngot \n", run:finish().output)
    run = start(world, ASK)
    run:reach(1)
    run:refused(HIDDEN, "conflict", "another kind")
    assert(run.shell:answer(run.call, { text = "so", hidden = false }))
    assert.equal("Go on? so\nit is so\n", run:finish().output)
  end))

  it("is refused where nothing waits, and for another call", with(function(world)
    local run = start(world, "echo go; sleep 0.7; " .. ASK)
    run.printed:get()
    run:refused(VISIBLE, "conflict", "does not wait")
    run:reach(1)
    local other = setmetatable({ call = { line_path = "x" }, shell = run.shell }, Started)
    other:refused(VISIBLE, "not_found", "does not run")
    assert(run.shell:answer(run.call, { text = "y", hidden = false }))
    assert.equal("go\nGo on? y\nit is y\n", run:finish().output)
  end))

  it("is refused once the terminal is not what was reported", with(function(world)
    local run = start(world, GETPASS)
    run:reach(1)
    -- A program that turns echo on between the report and the answer: the text would show.
    assert(os.execute(("stty echo <$(readlink /proc/%d/fd/0)"):format(run.shell:pid())))
    run:refused(HIDDEN, "conflict", "the terminal has changed")
    run.shell._pty:interrupt()
    assert.is_nil(run:finish().output:find("TYPED", 1, true))
  end))

  it("is refused once another process group has the terminal", with(function(world)
    local run = start(world, [[bash -c 'set -m; bash -c "printf \"Q: \"; read a; echo got:\$a"; read b; echo "b:$b"']])
    run:reach(1)
    local group = run.waits[1] and run.shell._run.wait.group
    run.shell._run.wait.group = group + 1
    run:refused(VISIBLE, "conflict", "another process has the terminal")
    run.shell._run.wait.group = group
    assert(run.shell:answer(run.call, { text = "1", hidden = false }))
    run.shell._pty:interrupt()
    assert.is_nil(run:finish().output:find("TYPED", 1, true))
  end))

  it("by hand needs the call's leave and a program at the terminal", with(function(world)
    local manual = { text = "by hand", hidden = true, manual = true }
    local run = start(world, "read_it() { read x; print -r -- [$x] }; sh -c 'read x; echo [$x]'")
    run:reach(0, function() return run.shell._run and run.shell._run.wait end)
    run:refused(manual, "conflict", "no input by hand")
    run.shell._run.manual_input = true
    assert(run.shell:answer(run.call, manual))
    assert.equal("by hand\n[by hand]\n", run:finish().output)
    -- The shell's own read is no job: what is typed there could become a command line.
    run = start(world, "read x; print -r -- [$x]", { manual_input = true, timeout_ms = 700 })
    assert.equal("timeout", run:finish().outcome)
    run:refused(manual, "conflict", "no program of the command")
    run.shell:interrupt_left()
  end))

  it("goes to a command that was left running, by its call", with(function(world)
    local run = start(world, GETPASS, { timeout_ms = 0, may_wait = function(self)
      return function()
        self:reach(1)
        return false
      end
    end })
    local result = run:finish()
    assert.equal("timeout", result.outcome)
    assert.equal("hidden", result.waits)
    run:reach(2)
    assert.equal("hidden hidden+", run:kinds())
    assert.equal(result.pty_id, run.waits[2].pty_id)
    assert(run.shell:answer(run.call, { text = "late", hidden = true }))
    run.ended:get()
    run:refused(HIDDEN, "not_found", "does not run")
  end))
end)

describe("a command that nobody can answer", function()
  it("ends, and only when it waits for hidden input", with(function(world)
    local run = start(world, ASK .. "; " .. GETPASS)
    run:reach(1)
    run.shell:refuse_input(run.call)
    assert(run.shell:answer(run.call, { text = "y", hidden = false }))
    run:reach(3)
    run.shell:refuse_input({})
    assert.is_nil(run.shell._run.refused)
    run.shell:refuse_input(run.call)
    local result = run:finish()
    assert.equal("wants_secret", result.outcome)
    assert.is_nil(result.left_running)
    assert.truthy(result.output:find("it is y", 1, true))
    assert.equal("visible none hidden", run:kinds():match("^visible none hidden"))
  end))

  it("ends by the end of input where it takes no interrupt", with(function(world)
    local run = start(world, [[python3 -c '
import getpass, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
try: getpass.getpass("A: ")
except EOFError: print("end of input")']])
    run:reach(1)
    run.shell:refuse_input(run.call)
    local result = run:finish()
    assert.equal("wants_secret", result.outcome)
    assert.truthy(result.output:find("end of input", 1, true))
  end))
end)

describe("in the sandbox", function()
  local function inside(line, check)
    local sandbox = contained.new()
    local ok, err = pcall(shells.world, {}, function(world)
      check(start(world, line, { call = assert(sandbox:prepare { line = line }) }))
    end)
    sandbox:close()
    assert(ok, err)
  end

  it("no hidden answer and nothing by hand is typed, also where the check before it failed", function()
    inside(ASK, function(run)
      run:reach(1)
      run.shell._run.manual_input = true
      run:refused({ text = "TYPED", hidden = true, manual = true }, "conflict", "no input by hand")
      -- As if a hidden wait had been let through.
      run.shell._run.wait.kind = "hidden"
      run:refused(HIDDEN, "conflict", "no secret into the sandbox")
      run.shell._run.wait.kind, run.shell._run.wait.looks_secret = "visible", true
      run:refused(VISIBLE, "conflict", "no secret into the sandbox")
      run.shell._run.wait.looks_secret = false
      assert(run.shell:answer(run.call, { text = "plain", hidden = false }))
      assert.equal("Go on? plain\nit is plain\n", run:finish().output)
    end)
  end)

  it("a command that takes no interrupt ends all the same", function()
    inside([[python3 -c '
import getpass, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    try: getpass.getpass("Password: ")
    except EOFError: pass']], function(run)
      local result = run:finish()
      assert.equal("wants_secret", result.outcome)
      assert.is_nil(result.left_running)
      assert.equal("fine\n", run.shell:run({ line = "echo fine", timeout_ms = LIMIT_MS }).output)
    end)
  end)
end)

describe("what a command leaves unread", function()
  it("is no command line for the shell", with(function(world)
    local run = start(world, "mkfifo end && sh -c 'echo go; cat end'")
    run.printed:get()
    run.shell._pty:write("touch leaked\r")
    assert(os.execute("echo over >" .. world.home .. "/end"))
    run:finish()
    -- The shell would read it at its prompt.
    async.with_timeout(500, function() async.future():get() end)
    assert.equal("fine\n", world:shell():run({ line = "echo fine", timeout_ms = LIMIT_MS }).output)
    assert.is_nil(world:read("leaked"))
  end))
end)

describe("what a person types between two calls", function()
  it("goes nowhere, and never before the next line", with(function(world)
    local run = start(world, "echo one")
    run:finish()
    local shell = world:shell()
    assert.is_nil(shell:type_keys("touch keys\r"))
    run:refused({ text = "touch answer", hidden = false, manual = true }, "not_found", "does not run")
    -- As if it had come to the terminal all the same.
    shell._pty:write("touch rest; ")
    local result = shell:run { line = "echo fine", timeout_ms = LIMIT_MS }
    assert.equal("fine\n", result.output)
    for _, name in ipairs { "keys", "answer", "rest" } do assert.is_nil(world:read(name), name) end
  end))
end)
