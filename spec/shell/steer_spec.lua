-- Specs of a hidden shell as a person sees and steers it: what runs, stopping what was left running,
-- keys, size, watchers, idleness. A real zsh on a real terminal. Not covered: the protocol
-- (tests/e2e/shell_command.sh), the sandbox.
local async = require "efr.util.async"
local shells = require "spec.support.shells"

local function with(opts, fn)
  return function() shells.world(opts, fn) end
end

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 30000
  return world:shell():run(opts)
end

-- A program that reads keys one by one and says each.
local KEYS <const> = [[python3 -c '
import os, sys, termios, tty
tty.setraw(0)
os.write(1, b"ready\r\n")
while True:
    key = os.read(0, 1)
    os.write(1, b"<%d>" % key[0])
    if key == b"q": break
termios.tcsetattr(0, termios.TCSANOW, termios.tcgetattr(0))
']]

-- A run that is left running once it has printed `text`, or so many bytes.
local function left(world, line, text, opts)
  opts = opts or {}
  local seen = async.future()
  opts.on_output = function(tail, bytes)
    local there = text == bytes or type(text) == "string" and tail:find(text, 1, true)
    if there and not seen.done then seen:set() end
  end
  if text ~= "" then opts.may_wait = function() return not seen.done end end
  opts.token = async.token()
  opts.timeout_ms = 300
  local result = run(world, line, opts)
  assert.equal("timeout", result.outcome, result.setup_error)
  return result, seen
end

describe("a person at the hidden shell", function()
  it("sees what runs, and that it has ended", with({}, function(world)
    assert.same({ state = "idle", cwd = world.home, input = "none" }, world:shell():status())
    local late = async.future()
    local result = left(world, "mkfifo f; read x <f; (exit 7)", "", {
      call_id = "c", on_late_end = function(r) late:set(r) end,
    })
    local status = world:shell():status()
    assert.equal("running", status.state)
    assert.equal("mkfifo f; read x <f; (exit 7)", status.line)
    assert.is_true(status.left)
    assert.equal("c", status.call_id)
    assert.equal(result.pty_id, status.pty_id)
    assert.is_true(math.abs(shells.ports.sys.now_us() - status.since_us) < 60000000)
    assert(io.open(world.home .. "/f", "w")):close()
    assert.equal(7, late:get().exit_code)
    assert.equal("idle", world:shell():status().state)
    run(world, "exit")
    assert.equal("exited", world:shell():status().state)
    assert.is_true(run(world, "true").fresh)
    assert.is_nil(run(world, "true").fresh)
  end))

  it("stops what was left running, and nothing that a call waits for", with({}, function(world)
    local shell = world:shell()
    assert.is_nil(shell:interrupt_left())
    local late = async.future()
    local _, up = left(world, "echo up; sleep 1000", "up", {
      on_late_end = function(r) late:set(r) end,
    })
    up:get()
    assert.is_true(shell:interrupt_left())
    assert.equal(130, late:get().exit_code)
    local go, result = async.future(), nil
    local task = async.spawn(function()
      result = run(world, "mkfifo f; echo go; read x <f", { on_output = function()
        if not go.done then go:set() end
      end })
    end)
    go:get()
    local ok, why = shell:interrupt_left()
    assert.is_nil(ok)
    assert.truthy(why:find("interrupt the turn", 1, true))
    assert(io.open(world.home .. "/f", "w")):close()
    task:wait()
    assert.equal("finished", result.outcome)
  end))

  it("stops a contained command that ignores the interrupt", with({}, function(world)
    local path = world:write("launcher", "#!/bin/sh\ntrap '' INT\nwhile :; do sleep 1000; done\n")
    assert(shells.ports.fs.chmod(path, 493))
    local late = async.future()
    left(world, nil, "", {
      call = world:contained(path, nil), launch = "contained",
      on_late_end = function(r) late:set(r) end,
    })
    assert.is_true(world:shell():status().contained)
    assert.is_nil(world:shell():type_keys("x"))
    assert.is_true(world:shell():interrupt_left())
    late:get()
    assert.equal("fine\n", run(world, "echo fine").output)
  end))

  it("stops a program that ignores the interrupt, and the rest of its line", with({}, function(world)
    run(world, "x=kept")
    local late = async.future()
    local _, up = left(world, "python3 -c '" .. [[
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
def end(*_):
    print("asked", flush=True)
    os._exit(3)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
while True: signal.pause()']] .. "; touch bad", "up", {
      on_late_end = function(r) late:set(r) end,
    })
    up:get()
    assert.is_true(world:shell():interrupt_left())
    assert.truthy(late:get().output:find("up\n.*asked\n"))
    assert.equal("kept\n", run(world, "echo $x").output)
    assert.is_nil(world:read("bad"))
  end))

  it("stops a program that ignores every signal it can, by its turn too", with({}, function(world)
    run(world, "x=kept")
    local token = async.token()
    local result = run(world, "(trap '' INT TERM HUP; sleep 1000 | { echo up; sleep 1000 }); touch bad", {
      token = token, on_output = function(tail) if tail:find("up") then token:cancel("test") end end,
    })
    assert.equal("interrupted", result.outcome)
    assert.is_nil(result.left_running)
    assert.equal("kept\n", run(world, "echo $x").output)
    assert.is_nil(world:read("bad"))
  end))

  it("types for a program, and never at the shell", with({}, function(world)
    local shell = world:shell()
    run(world, "true")
    assert.is_nil(shell:type_keys("touch bad\n"))
    local late = async.future()
    local _, ready = left(world, KEYS, "ready", { on_late_end = function(r) late:set(r) end })
    ready:get()
    assert.equal(4, shell:type_keys("\3\27[A"))
    assert.equal(1, shell:type_keys("q"))
    local result = late:get()
    assert.equal("ready\n<3><27><91><65><113>", result.output)
    assert.is_nil(shell:type_keys("touch bad\n"))
    -- The shell's own builtin reads, not a job.
    left(world, "read -t 20 x; echo $x", "")
    assert.is_nil(shell:type_keys("touch bad\n"))
    shell:interrupt_left()
    assert.is_nil(world:read("bad"))
  end))

  it("leaves no key for the shell when a program reads none", with({}, function(world)
    local shell = world:shell()
    for _, mode in ipairs { "stty raw -echo;", "" } do
      world:write("deaf", "rm -f f; mkfifo f; " .. mode .. " echo ready; read x <f")
      local late = async.future()
      local _, ready = left(world, "sh deaf", "ready", { on_late_end = function(r) late:set(r) end })
      ready:get()
      local typed = 0
      for _ = 1, 200 do
        local count = assert(shell:type_keys(("touch ~/bad\n"):rep(1000)))
        assert.is_true(count <= 1025)
        typed = typed + count
        async.sleep(1)
      end
      assert.is_true(typed >= 1024)
      assert.is_true(typed < 65536, typed) -- the terminal counts what it got a moment later
      assert(io.open(world.home .. "/f", "w")):close()
      late:get()
      assert.equal("fine\n", run(world, "echo fine").output)
      assert.is_nil(world:read("bad"), mode)
    end
  end))

  it("waits beyond the timeout as long as it is told to", with({}, function(world)
    local asked = 0
    run(world, "mkfifo f")
    local result = run(world, "read x <f; echo $x", {
      timeout_ms = 100,
      may_wait = function()
        asked = asked + 1
        if asked == 1 then
          local fifo = assert(io.open(world.home .. "/f", "w"))
          fifo:write("word\n")
          fifo:close()
        end
        return true
      end,
    })
    assert.equal("finished", result.outcome)
    assert.equal("word\n", result.output)
    assert.equal(1, asked)
  end))

  it("tells a full-screen program by its screen", with({}, function(world)
    local paint = "printf '\\e[?1049h\\e[2J\\e[3;5Hfirst\\e[4;5Hlast'; mkfifo f; read x <f"
    local result = left(world, paint, #"\27[?1049h\27[2J\27[3;5Hfirst\27[4;5Hlast")
    assert.is_true(result.full_screen)
    assert.equal("\n\n    first\n    last", result.output)
    world:shell():interrupt_left()
  end))
end)

describe("the terminal of a hidden shell", function()
  it("has the usual screen for each command, whatever the one before left", with({}, function(world)
    run(world, "printf 'one\\e[?1049h\\e[?25l\\e[?1h\\e[3;5r\\e[4;5Htwo'")
    run(world, "printf 'three\\n'; printf four")
    local snapshot = world:shell():terminal():screen():snapshot()
    assert.is_false(snapshot.alternate_screen)
    assert.is_false(snapshot.cursor.hidden)
    assert.is_nil(snapshot.application_keys)
    local text = {}
    for i, row in ipairs(snapshot.rows) do
      text[i] = ""
      for _, cell in ipairs(row.cells) do text[i] = text[i] .. cell.text end
    end
    local shown = table.concat(text, "\n")
    for _, word in ipairs { "three", "four" } do
      assert.truthy(shown:find(word, 1, true), word .. " is not in\n" .. shown)
    end
  end))

  it("has a size that a watcher sets, and its own again", with({}, function(world)
    run(world, "true")
    local shell = world:shell()
    local told = {}
    local stop = shell:terminal():watch(function(kind, value)
      if kind == "resized" then told[#told + 1] = value end
    end)
    assert.same({ cols = 90, rows = 30 }, shell:terminal():resize(90, 30))
    assert.equal("30 90\n", run(world, "stty size").output)
    assert.same({ cols = 500, rows = 300 }, shell:terminal():resize(70000, 70000))
    shell:terminal():usual_size()
    assert.equal("40 120\n", run(world, "stty size").output)
    assert.same({ { cols = 90, rows = 30 }, { cols = 500, rows = 300 }, { cols = 120, rows = 40 } },
      told)
    stop()
  end))

  it("shows watchers each byte, at the offsets of the recording", with({}, function(world)
    run(world, "true")
    local terminal = world:shell():terminal()
    local before, parts, closed = terminal:seq(), {}, false
    terminal:watch(function(kind, value)
      if kind == "output" then parts[#parts + 1] = value end
      closed = closed or kind == "closed"
    end)
    run(world, "printf 'a\\0b\\e[1m'; printf c")
    local bytes = table.concat(parts)
    assert.truthy(bytes:find("a\0b\27[1mc", 1, true))
    assert.equal(before + #bytes, terminal:seq())
    assert.equal(bytes, terminal:recording():since(before))
    assert.equal(bytes:sub(-5), terminal:recording():since(terminal:seq() - 5))
    assert.equal("", terminal:recording():since(terminal:seq()))
    run(world, "exit")
    assert.is_true(closed)
  end))

  it("ends when it was idle for too long, unless somebody watches", with({}, function(world)
    local shell = world:shell()
    assert.is_nil(shell:idle_ms())
    run(world, "x=1")
    assert.is_true(shell:idle_ms() < 60000)
    local stop = shell:terminal():watch(function() end)
    assert.is_nil(shell:idle_ms())
    stop()
    local minutes, now = 0, shell._now_ms
    world.pool._app.config = { get = function() return minutes end }
    function shell:_now_ms() return now(self) + 3600000 end
    world.pool:close_idle()
    minutes = 61
    world.pool:close_idle()
    assert.equal("idle", shell:status().state)
    minutes = 60
    world.pool:close_idle()
    shell._now_ms = nil
    shell:_wait(shell:_now_ms() + 20000, nil, function() return shell:status().state == "exited" end)
    assert.equal("exited", shell:status().state)
    minutes = nil
    local result = run(world, "echo x$x")
    assert.equal("x\n", result.output)
    assert.is_true(result.fresh)
    -- The same when the pool forgot it meanwhile.
    world.pool:close_conversation("c1")
    assert.equal("exited", world:shell("c1", true):status().state)
    assert.is_true(run(world, "true").fresh)
    assert.is_nil(run(world, "true").fresh)
  end))
end)
