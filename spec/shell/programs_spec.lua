-- Specs of what the model reads of programs that draw, with a real zsh and real programs: progress
-- displays, full-screen programs, queries, hostile output. After each the shell works. Not covered:
-- programs that wait for a person.
local async = require "efr.util.async"
local output = require "efr.shell.output"
local shells = require "spec.support.shells"

local function with(fn)
  return function() shells.world({}, fn) end
end

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 20000
  local result = world:shell():run(opts)
  assert.equal("finished", result.outcome, result.setup_error or result.output)
  return result.output, result
end

local function works(world)
  assert.equal("fine\n", run(world, "echo fine"))
end

local function python(world, name, text)
  return "python3 " .. world:write(name, text)
end

describe("hidden shell, programs that draw", function()
  it("leave the last frame of a display of several rows", with(function(world)
    local line = python(world, "bars.py", [[
import sys
print("pulling")
for i in range(0, 101, 5):
    if i: sys.stdout.write("\033[3A")
    for name in ("one", "two", "three"):
        sys.stdout.write("\033[2K%s: [%-20s] %d%%\n" % (name, "#" * (i // 5), i))
    sys.stdout.flush()
print("done")
]])
    local full = "[" .. ("#"):rep(20) .. "] 100%\n"
    assert.equal(("pulling\none: %stwo: %sthree: %sdone\n"):format(full, full, full), run(world, line))
    works(world)
  end))

  it("show the same frames to who follows", with(function(world)
    local tails = {}
    local line = python(world, "slow.py", [[
import sys, time
print("first\nsecond")
for i in range(20):
    sys.stdout.write("\033[1A\033[2Kstep %d\n" % i); sys.stdout.flush(); time.sleep(0.05)
]])
    local text = run(world, line, {
      on_output = function(tail) tails[#tails + 1] = tail end,
    })
    assert.equal("first\nstep 19\n", text)
    assert.is_true(#tails >= 1)
    for _, tail in ipairs(tails) do assert.truthy(tail:find("^first\nste?p? ?%d*")) end
  end))

  it("keep bars of carriage returns and scroll regions as lines", with(function(world)
    assert.equal("100%\ndone\n", run(world, [[printf '10%%\r50%%\r100%%\ndone\n']]))
    local apt = [[printf 'Unpacking a\n\0337\033[0;39r\0338\033[1A\0337\033[40;0fProgress: [ 50%%]\0338'
      printf '\nSetting up a\n\0337\033[0;40r\0338']]
    local text = run(world, apt)
    assert.truthy(text:find("Unpacking a\n", 1, true))
    assert.truthy(text:find("Setting up a\n", 1, true))
    works(world)
  end))

  it("that fill the screen leave one note", with(function(world)
    local line = python(world, "full.py", [[
import sys
sys.stdout.write("before\n\033[?1049h\033[2J\033[5;5H[ OK ]\033[?25l\033[?1049l\033[?25hafter\n")
]])
    assert.equal("before\n" .. output.NOTE .. "after\n", run(world, line))
    works(world)
  end))

  it("top", with(function(world)
    assert.truthy(run(world, "top -b -n 1 | head -3"):find("^top %- "))
    local text = run(world, "top -n 2 -d 0.1")
    local _, frames = text:gsub("top %- ", "")
    assert.equal(1, frames, text)
    works(world)
  end))

  it("less and vi, told to quit", with(function(world)
    run(world, "seq 500 > numbers; LESSHISTFILE=- less +q numbers 2>/dev/null; true")
    run(world, "command -v vi >/dev/null && vi -c ':q!' numbers </dev/null 2>/dev/null; true",
      { timeout_ms = 20000 })
    works(world)
  end))

  it("that ask the terminal get its answer, and nobody else does", with(function(world)
    local ask = python(world, "ask.py", [[
import os, sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\033[6n")
got = b""
while not got.endswith(b"R"):
    got += os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, old)
print("answer", got[1:].decode())
]])
    assert.truthy(run(world, ask):find("answer %[%d+;%d+R\n"))
    assert.equal("x\n", (run(world, [[printf '\033[6n\033[c'; sleep 0.2; echo x]])))
    works(world)
    assert.equal("", (run(world, [[printf '\033[6n%.0s' {1..2000}]])))
    works(world)
  end))

  it("that change the terminal and die", with(function(world)
    local line = python(world, "die.py", [[
import os, sys, tty
tty.setraw(0)
sys.stdout.write("\033[?1049h\033[?25l\033[3;7r\033[?1000h\033(0half\033]2;tit"); sys.stdout.flush()
os.kill(os.getpid(), 9)
]])
    local result = world:shell():run { line = line, timeout_ms = 20000 }
    assert.equal(137, result.exit_code)
    works(world)
    assert.equal("a\nb\n", run(world, [[printf 'x\nb\n\033[2Aa\n\n']]))
  end))
end)

describe("hidden shell, hostile output", function()
  local function screen_of(world)
    return assert(world:shell()._terminal:screen(), "no screen")
  end

  it("random control sequences", with(function(world)
    local line = python(world, "random.py", [[
import os, random, sys
random.seed(7)
parts = [b"\033", b"[", b"]", b"P", b"\\", b"\a", b"\r", b"\n", b"\b", b"?", b";", b"1049h", b"6n", b"c",
         b"38;5;1m", b"999999999", b"A", b"b", b"r", b"H", b"J", b"L", b"M", b"\xe2\x82", b"\xff", b"text", b"\x9b",
         b"133;D;0", b"133;A", b"7;file:///x", b"\x18", b"#8", b"(0", b"$q"]
out = bytearray()
while len(out) < 400000: out += random.choice(parts)
sys.stdout.buffer.write(out); sys.stdout.flush()
]])
    local text = run(world, line, { timeout_ms = 28000 })
    assert.truthy(utf8.len(text))
    assert.is_nil(text:find("[\0-\8\11-\31\127]"))
    works(world)
    assert.truthy(screen_of(world):snapshot())
  end))

  it("a flood and a title of a megabyte, in bounded memory", with(function(world)
    works(world)
    local pid = screen_of(world):pid()
    collectgarbage()
    local before = collectgarbage("count")
    run(world, "printf '\\033]2;'; head -c 1000000 /dev/zero | tr '\\0' t; printf '\\a'")
    do
      local text, result = run(world, "yes 'some text' | head -c 20000000; echo; echo end")
      assert.is_true(result.truncated)
      assert.truthy(text:find("end\n$"))
    end
    collectgarbage()
    assert.is_true(collectgarbage("count") - before < 8192)
    assert.equal(pid, screen_of(world):pid())
    local status = shells.ports.fs.read_file(("/proc/%d/status"):format(pid), 65536)
    assert.is_true(tonumber(status:match("VmHWM:%s*(%d+)")) < 8192, status)
    works(world)
  end))

  it("a worker that dies costs neither the call nor the shell", with(function(world)
    works(world)
    local pid = screen_of(world):pid()
    async.spawn(function()
      async.sleep(100)
      shells.ports.sys.kill(pid, shells.ports.sys.SIGKILL)
    end)
    assert.equal("a\nb\n", run(world, [[printf 'a\n'; sleep 0.3; printf '\033[Ab\n']]))
    assert.equal("b\n", run(world, [[printf 'a\n\033[Ab\n']]))
    assert.is_true(screen_of(world):pid() ~= pid)
    works(world)
  end))

  it("is recorded, all of it", with(function(world)
    run(world, "printf 'recorded-%s\\n' $((40 + 2))")
    local dir = world.root .. "/data/recordings/"
    local id = shells.ports.fs.readdir(dir)[1].name
    assert.truthy(id:find("^%x+%-%x+%-7"))
    local bytes = shells.ports.fs.read_file(dir .. id .. "/0.rec")
    assert.truthy(bytes:find("recorded-42\r\n", 1, true))
    assert.equal(id, world.events[1].fields.pty_id)
  end))
end)
