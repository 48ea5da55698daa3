-- efr.sys, efr.text, efr.modules and efr.assets under our own state: the bindings.
require("spec.helper")
local assets = require("efr.assets")
local modules = require("efr.modules")
local sys = require("efr.sys")
local text = require("efr.text")
local uv = require("luv")

describe("sys", function()
  it("knows the process and its user", function()
    assert.are.equal(uv.os_getpid(), sys.getpid())
    assert.are.equal(uv.os_getppid(), sys.getppid())
    assert.are.equal(uv.getuid(), sys.getuid())
    assert.are.equal(uv.os_gethostname(), sys.hostname())
    assert.are.equal(uv.exepath(), sys.exe_path())
    assert.are.equal(uv.os_get_passwd().homedir, sys.user_info().home)
    assert.matches("^%d+%.%d+%.%d+$", sys.VERSION)
  end)

  it("reads the environment as bytes", function()
    uv.os_setenv("EFR_SPEC", "a=b\xff")
    assert.are.equal("a=b\xff", sys.getenv("EFR_SPEC"))
    assert.are.equal("a=b\xff", sys.environ().EFR_SPEC)
    uv.os_unsetenv("EFR_SPEC")
    assert.is_nil(sys.getenv("EFR_SPEC"))
    assert.is_nil(sys.environ().EFR_SPEC)
  end)

  it("gives time and chance", function()
    assert.is_true(math.abs(sys.now_us() / 1e6 - os.time()) < 5)
    local before = sys.mono_us()
    assert.is_true(sys.mono_us() >= before)
    assert.are.equal("integer", math.type(before))
    assert.are.equal(4096, #sys.random(4096))
    assert.are.equal("", sys.random(0))
    assert.are_not.equal(sys.random(16), sys.random(16))
    assert.is_false(pcall(sys.random, 65537))
    local ids = {}
    for i = 1, 50 do
      ids[i] = sys.uuid7()
      assert.matches("^%x+%-%x+%-7%x%x%x%-[89ab]%x%x%x%-%x+$", ids[i])
      assert.is_true(i == 1 or ids[i - 1]:sub(1, 13) <= ids[i]:sub(1, 13))
    end
  end)

  it("holds locks until close or collection", function()
    local path = os.tmpname()
    local lock = assert(sys.flock(path))
    assert.are.equal("efr.sys.lock (held)", tostring(lock))
    assert.are.equal("EWOULDBLOCK", select(3, sys.flock(path)))
    assert.are.equal("EWOULDBLOCK", select(3, sys.lock_wait(path, 5)))
    lock:close()
    lock:close()
    assert.are.equal("efr.sys.lock (closed)", tostring(lock))
    do
      local _scoped <close> = assert(sys.flock(path))
      assert.is_nil(sys.flock(path))
    end
    assert(sys.flock(path))
    collectgarbage()
    collectgarbage()
    assert(sys.flock(path)):close()
    os.remove(path)
    assert(uv.fs_mkdir(path, 448))
    local of_dir = assert(sys.flock(path))
    assert.are.equal("EWOULDBLOCK", select(3, sys.flock(path)))
    of_dir:close()
    os.remove(path)
  end)

  it("never signals what was not named", function()
    for _, pid in ipairs({ 0, -1, -5, 1.5, "all" }) do
      assert.is_false(pcall(sys.kill, pid, 0))
    end
    for _, group in ipairs({ 0, 1, -1 }) do
      assert.is_false(pcall(sys.killpg, group, 0))
    end
    assert.is_true(sys.kill(sys.getpid(), 0))
    assert.are.equal("ESRCH", select(3, sys.kill(1 << 29, 0)))
    assert.are.equal("ESRCH", select(3, sys.killpg(1 << 29, 0)))
  end)

  it("sees descriptors", function()
    local fds = assert(uv.pipe())
    assert.is_false(sys.isatty(fds.read))
    assert.are.equal("ENOTTY", select(3, sys.ttyname(fds.read)))
    assert.are.equal("ENOTSOCK", select(3, sys.peer_cred(fds.read)))
    assert.is_true(sys.write_fd(fds.write, "hello"))
    assert.are.equal("hello", uv.fs_read(fds.read, 100))
    assert.is_true(sys.close_fd(fds.read))
    assert.are.equal("EPIPE", select(3, sys.write_fd(fds.write, "x")))
    assert.is_true(sys.close_fd(fds.write))
    assert.are.equal("EBADF", select(3, sys.close_fd(fds.write)))
    local pair = assert(uv.socketpair())
    assert.are.same(
      { pid = sys.getpid(), uid = sys.getuid(), gid = uv.getgid() },
      sys.peer_cred(pair[1])
    )
    sys.close_fd(pair[1])
    sys.close_fd(pair[2])
  end)

  it("gives the stack of a coroutine that failed", function()
    local function deep()
      error("inner")
    end
    local co = coroutine.create(function()
      deep()
    end)
    local _, message = coroutine.resume(co)
    local trace = sys.traceback(co, message)
    assert.matches("inner", trace)
    assert.matches("deep", trace)
  end)

  it("checks levels of the log", function()
    assert.is_false(pcall(sys.log_write, "loud", "x"))
    assert.is_false(pcall(sys.log_limit, "loud"))
  end)
end)

describe("text", function()
  it("binds all functions", function()
    assert.is_true(text.is_utf8("é"))
    assert.is_false(text.is_utf8("\xff"))
    assert.are.equal("a\u{fffd}\0", text.clean("a\xff\0"))
    assert.are.equal("\u{2400}", text.printable("\0"))
    assert.are.equal(4, text.width("日本"))
    assert.are.equal("", text.clean(""))
  end)

  it("walks over clusters", function()
    local value = "ae\u{301}\u{1f468}\u{200d}\u{1f469}\xff日"
    local parts, at = {}, 1
    while true do
      local next_at = text.next_grapheme(value, at)
      if not next_at then
        break
      end
      parts[#parts + 1] = value:sub(at, next_at - 1)
      at = next_at
    end
    assert.are.same({ "a", "e\u{301}", "\u{1f468}\u{200d}\u{1f469}", "\xff", "日" }, parts)
    assert.is_false(pcall(text.next_grapheme, value, 0))
    assert.is_nil(text.next_grapheme("", 1))
    assert.is_nil(text.next_grapheme("a", math.maxinteger))
  end)
end)

describe("modules and assets", function()
  it("name what is in the program", function()
    assert.are.same({ "efr.util.async" }, modules.list("efr.util.asy"))
    local list = modules.list("efr.util.")
    assert.is_true(#list > 1)
    for i = 2, #list do assert.is_true(list[i - 1] < list[i]) end
    assert.are.same({}, modules.list("efr.meta."))
    assert.is_nil(assets.get("zsh/none"))
    for _, path in ipairs(assets.list()) do
      local file = assert(io.open((os.getenv("EFR_SOURCE") or ".") .. "/" .. path, "rb"))
      assert.are.equal(file:read("a"), assets.get(path))
      file:close()
    end
  end)
end)
