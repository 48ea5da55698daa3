-- efr.proc under our own state: the binding. What a child inherits is tests/unit/test_proc.c.
require("spec.helper")
local fs = require("efr.fs")
local proc = require("efr.proc")
local sys = require("efr.sys")
local uv = require("luv")

describe("proc", function()
  local function sh(line, more)
    local options = { path = "/bin/sh", argv = { "sh", "-c", line } }
    options.env = { "PATH=/usr/bin:/bin" }
    for key, value in pairs(more or {}) do
      options[key] = value
    end
    return options
  end

  -- Runs a line to its end; gives its output, its code and its signal.
  local function run(line, more)
    local fds = assert(uv.pipe())
    local got
    local options = sh(line, more)
    options.fds = { [1] = fds.write }
    options.on_exit = function(code, signal)
      got = { code, signal }
    end
    assert(proc.spawn(options))
    sys.close_fd(fds.write)
    uv.run()
    local output = uv.fs_read(fds.read, 65536)
    sys.close_fd(fds.read)
    return output, got[1], got[2]
  end

  it("reports exit codes and signals once", function()
    assert.are.same({ "x\n", 5, 0 }, { run("echo x; exit 5") })
    assert.are.same({ "", 0, 9 }, { run("kill -9 $$") })
  end)

  it("passes environment, directory, umask, session and group", function()
    local line = "echo $A; pwd; umask; set -- $(ps -o pid=,pgid=,sid= -p $$); "
      .. "[ $1 = $2 ] && echo group; [ $1 = $3 ] && echo session; true"
    local options = { env = { "PATH=/usr/bin:/bin", "A=b c" }, cwd = "/tmp", umask = 7 }
    assert.are.equal("b c\n/tmp\n0007\n", (run(line, options)))
    options.pgrp = true
    assert.are.equal("b c\n/tmp\n0007\ngroup\n", (run(line, options)))
    options.setsid = true
    assert.are.equal("b c\n/tmp\n0007\ngroup\nsession\n", (run(line, options)))
  end)

  it("signals a child and refuses to after its end", function()
    local got
    local child = assert(proc.spawn(sh("read x", {
      fds = { [0] = uv.pipe().read },
      on_exit = function(...)
        got = { ... }
      end,
    })))
    assert.is_true(sys.kill(child.pid, 0))
    assert.matches("running", tostring(child))
    assert.is_true(child:kill(sys.SIGTERM))
    uv.run()
    assert.are.same({ 0, sys.SIGTERM }, got)
    assert.are.equal("ESRCH", select(3, child:kill(sys.SIGTERM)))
    child:close()
    child:close()
    assert.are.equal("EFR_CLOSED", select(3, child:kill(sys.SIGTERM)))
    assert.matches("closed", tostring(child))
  end)

  it("calls back although nobody keeps the object, and not after close", function()
    local count = 0
    local function add()
      count = count + 1
    end
    for _ = 1, 3 do
      assert(proc.spawn(sh("exit 0", { on_exit = add })))
    end
    assert(proc.spawn(sh("exit 0", { on_exit = add }))):close()
    collectgarbage()
    collectgarbage()
    uv.run()
    assert.are.equal(3, count)
  end)

  it("says which step failed", function()
    local child, text, code = proc.spawn(sh("", { path = "/none" }))
    assert.is_nil(child)
    assert.are.equal("ENOENT", code)
    assert.matches("execute /none", text)
    assert.matches("directory of", select(2, proc.spawn(sh("", { cwd = "/none" }))))
    assert.are.equal("EBADF", select(3, proc.spawn(sh("", { fds = { [0] = 999 } }))))
  end)

  it("checks its options", function()
    for _, options in ipairs({
      { path = "sh" },
      { argv = "x" },
      { argv = { 1 } },
      { argv = { "a\0" } },
      { env = { x = 1, "a\0b" } },
      { fds = { x = 1 } },
      { fds = { [1] = "full" } },
      { fds = { [100] = 1 } },
      { setsid = 1 },
      { umask = 4096 },
      { on_exit = true },
      { cwd = "a\0" },
    }) do
      assert.is_false(pcall(proc.spawn, sh("exit 0", options)))
    end
    assert.is_false(pcall(proc.spawn))
  end)

  it("starts daemons that are nobody's child", function()
    local path = os.tmpname()
    os.remove(path)
    local line = "set -- $(ps -o ppid=,pgid=,sid=,tty= -p $$); echo $1 $2 $4; umask; "
    local options = sh(line .. "exec sleep 60")
    options.output_path = path
    local pid = assert(proc.start_daemon(options))
    local text
    repeat
      text = fs.read_file(path)
    until text and text:find("\n.*\n")
    assert.are_not.equal(tostring(sys.getpid()), text:match("^%d+"))
    assert.are.equal(pid .. " ?\n0077\n", text:match("^%d+ (.*)$"))
    assert.are.equal(tonumber("600", 8), fs.stat(path).mode)
    assert(sys.kill(pid, sys.SIGKILL))
    os.remove(path)
    local none = { path = "/none", argv = {}, env = {} }
    assert.are.equal("ENOENT", select(3, proc.start_daemon(none)))
  end)
end)
