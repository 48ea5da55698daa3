-- The client's connection against a fake daemon on a real socket.

local async = require "efr.util.async"
local conn = require "efr.cli.conn"
local fake = require "spec.cli.fake_daemon"
local rpc = require "efr.cli.rpc"
local start = require "efr.cli.start"

local function port_of(name, changes)
  local base = require("efr." .. name)
  return setmetatable(changes, { __index = base })
end

describe("cli.conn", function()
  local dir, server

  before_each(function()
    dir = fake.dir()
  end)

  after_each(function()
    if server then
      server:close()
      server = nil
    end
    fake.clean(dir)
  end)

  local function serve(methods)
    server = fake.new(dir, methods)
  end

  it("says hello, calls, and reads answers in any pieces", function()
    serve({
      ["a.b"] = function(peer, params, id)
        local line = ('{"jsonrpc":"2.0","id":%d,"result":{"x":"%s"}}\n'):format(id, params.x)
        for i = 1, #line do
          peer:raw(line:sub(i, i))
        end
      end,
      ["c.d"] = function(peer, _, id)
        peer:raw(('\n{"jsonrpc":"2.0","method":"stream","params":{"id":%d,"item":1}}\r\n'
          .. '{"jsonrpc":"2.0","id":%d,"result":{}}\n'):format(id, id))
      end,
    })
    fake.run(function()
      local link = assert(conn.open(fake.env(dir), { origin = "shell", tty = "/dev/pts/9" }))
      assert.equal("ü", assert(link:call("a.b", { x = "ü" })).x)
      local items = {}
      local result = async.await(function(resume)
        link:stream("c.d", {}, function(item)
          items[#items + 1] = item
        end, resume)
      end)
      assert.same({ {}, { 1 } }, { result, items })
      link:close()
    end)
    local hello = server:requests("hello")[1].params
    assert.same({ 1, "shell", "/dev/pts/9" }, { hello.protocol, hello.origin, hello.tty })
  end)

  it("gives the error's name, text and data", function()
    serve({
      ["a.b"] = function(peer, _, id)
        peer:fail(id, "invalid", "no such mode", { setting = "mode", choices = { "auto" } })
      end,
    })
    fake.run(function()
      local link = assert(conn.open(fake.env(dir)))
      local result, message, code, data = link:call("a.b", {})
      assert.same({ "no such mode", "invalid", "mode" }, { message, code, data.setting })
      assert.is_nil(result)
    end)
  end)

  it("names both versions of a mismatch", function()
    serve({
      hello = function(peer, _, id)
        peer:fail(id, "protocol_mismatch", "no", { daemon = 2, client = 1 })
        peer:close()
      end,
    })
    fake.run(function()
      local link, message, code = conn.open(fake.env(dir))
      assert.is_nil(link)
      assert.equal("protocol_mismatch", code)
      assert.matches("protocol 2, this efr speaks protocol 1", message)
    end)
  end)

  it("gives up on a server that does not answer hello", function()
    serve({ hello = function() end })
    fake.run(function()
      local link, message, code = conn.open(fake.env(dir), { hello_ms = 30 })
      assert.is_nil(link)
      assert.equal("EFR_TIMEOUT", code)
      assert.matches("does not answer", message)
    end)
  end)

  it("drops a server that sends a line without end", function()
    serve({
      ["a.b"] = function(peer)
        local piece = ("x"):rep(1024 * 1024)
        for _ = 1, 17 do
          peer:raw(piece)
        end
      end,
    })
    fake.run(function()
      local link = assert(conn.open(fake.env(dir)))
      local _, message, code = link:call("a.b", {})
      assert.equal(rpc.LOST, code)
      assert.matches("longer than 16 MiB", message)
    end)
  end)

  it("tells a server that dies inside a message from one that closes", function()
    serve({
      ["a.b"] = function(peer)
        peer:raw('{"jsonrpc"')
        peer.pipe:shutdown(function()
          peer:close()
        end)
      end,
      ["c.d"] = function(peer)
        peer:close()
      end,
      ["e.f"] = function(peer)
        peer:raw("nonsense\n")
      end,
    })
    fake.run(function()
      for method, words in pairs({
        ["a.b"] = "inside a message", ["c.d"] = "closed the connection$", ["e.f"] = "no JSON",
      }) do
        local link = assert(conn.open(fake.env(dir)))
        local _, message, code = link:call(method, {})
        assert.equal(rpc.LOST, code)
        assert.matches(words, message)
      end
    end)
  end)

  it("sends a command again with the same id when its answer was lost", function()
    local tries = 0
    serve({
      ["prompt.send"] = function(peer, _, id)
        tries = tries + 1
        if tries == 1 then
          return peer:close()
        end
        peer:result(id, { turn_id = "t" })
      end,
    })
    fake.run(function()
      local link = assert(conn.open(fake.env(dir)))
      local sent = assert(link:call("prompt.send", { command_id = "c-1", text = "x" }))
      assert.equal("t", sent.turn_id)
    end)
    local sent = server:requests("prompt.send")
    assert.same({ "c-1", "c-1" }, { sent[1].params.command_id, sent[2].params.command_id })
  end)

  it("does not speak to another user's server", function()
    serve({})
    local sys = port_of("sys", {
      peer_cred = function()
        return { pid = 1, uid = 4242, gid = 1 }
      end,
    })
    fake.run(function()
      local link, message, code = conn.open(fake.env(dir, { sys = sys }))
      assert.is_nil(link)
      assert.equal("EFR_PEER", code)
      assert.matches("user 4242", message)
    end)
    assert.same({}, server.seen)
  end)

  it("refuses a root of another user", function()
    serve({})
    local uid = require("efr.sys").getuid()
    local sys = port_of("sys", {
      getuid = function()
        return uid + 1
      end,
    })
    fake.run(function()
      local _, message, code = conn.open(fake.env(dir, { sys = sys }))
      assert.equal("EFR_FOREIGN_ROOT", code)
      assert.matches("belongs to user", message)
    end)
  end)

  it("refuses a socket path that does not fit", function()
    fake.run(function()
      local env = fake.env(dir)
      env.environ.EFR_RUNTIME_DIR = "/" .. ("x"):rep(120)
      local _, _, code = conn.open(env)
      assert.equal("EFR_SOCKET_PATH", code)
    end)
  end)

  it("never starts efrd below a hidden shell, nor when it was not asked to", function()
    fake.run(function()
      for _, name in ipairs({ "EFR_HIDDEN_SHELL", "EFR_SANDBOX" }) do
        local env = fake.env(dir)
        env.environ[name] = "1"
        local _, _, code = conn.open(env)
        assert.equal("EFR_NO_START", code)
      end
      local _, _, code = conn.open(fake.env(dir), { start = false })
      assert.equal("EFR_NOT_RUNNING", code)
    end)
  end)

  local function starting(start_daemon)
    local sys = port_of("sys", {
      exe_path = function()
        return dir .. "/efr"
      end,
    })
    assert(require("efr.fs").write_atomic(dir .. "/efrd", "", 448))
    return fake.env(dir, { sys = sys, proc = { start_daemon = start_daemon } })
  end

  it("starts efrd beside itself and waits for its socket", function()
    local given
    local env = starting(function(opts)
      given = opts
      async.spawn(function()
        async.sleep(40)
        serve({})
      end)
      return require("efr.sys").getpid() -- a process of ours that lives
    end)
    env.environ.SSH_AUTH_SOCK, env.environ.LC_ALL = "/tmp/x", "C"
    fake.run(function()
      local link = assert(conn.open(env))
      link:close()
    end)
    assert.equal(dir .. "/efrd", given.path)
    assert.equal("/", given.cwd)
    assert.equal(dir .. "/state/logs/efrd.log", given.output_path)
    local all = table.concat(given.env, "\n")
    assert.matches("LC_ALL=C", all)
    assert.is_nil(all:find("SSH_AUTH_SOCK", 1, true))
  end)

  it("says why efrd could not be started, with the log's last lines", function()
    local env = starting(function(opts)
      local log = assert(io.open(opts.output_path, "w"))
      log:write("one\ntwo\nthe reason\n")
      log:close()
      return 999999999 -- no such process
    end)
    fake.run(function()
      local link, message, code, data = conn.open(env)
      assert.is_nil(link)
      assert.equal("EFR_NO_DAEMON", code)
      assert.matches("ended at once", message)
      assert.matches("the reason$", data.log_lines)
    end)
  end)
end)

describe("cli.start", function()
  it("keeps only the small environment", function()
    local env = start.environment({
      HOME = "/h", USER = "u", TERM = "xterm", PATH = "/evil", LC_TIME = "C", XDG_DATA_HOME = "/d",
      EFR_HOME = "/e", EFR_DATA_DIR = "/e/d", EFR_PROMPT = "secret", EFR_MODE = "auto",
      DIRENV_DIR = "x", EFR_RUNTIME_DIR = "/r",
    }, 1000)
    assert.same({
      "EFR_DATA_DIR=/e/d", "EFR_HOME=/e", "EFR_RUNTIME_DIR=/r", "HOME=/h", "LC_TIME=C",
      "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games", "USER=u",
      "XDG_DATA_HOME=/d",
    }, env)
  end)
end)
