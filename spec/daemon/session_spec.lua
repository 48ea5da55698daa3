local async = require "efr.util.async"
local daemon = require "spec.support.daemon"
local store = require "spec.support.store"

local COMMAND <const> = "0199aaaa-0000-7000-8000-00000000000c"

describe("daemon connection", function()
  local dir, app, client, waiting, ran

  -- Methods that only the spec knows.
  local function methods()
    return {
      { method = "test.echo", scope = "read", params = { text = { type = "string" } },
        handler = function(_, _, params)
          return { text = params.text, b64 = params.text_b64 }
        end },
      { method = "test.big", scope = "read", handler = function()
        return { text = ("x"):rep(100000) }
      end },
      { method = "test.raise", scope = "read", handler = function()
        error("bug")
      end },
      { method = "test.fail", scope = "read", handler = function()
        return nil, "the disk is full", "EFR_FULL"
      end },
      { method = "test.wait", scope = "read", handler = function(_, _, _, request)
        return async.await(function(resume)
          waiting = resume
          request.token:on_cancel(function()
            resume { cancelled = true }
          end)
        end)
      end },
      { method = "test.count", scope = "operate", command = true,
        params = { refuse = { type = "string", optional = true } },
        handler = function(_, _, params)
          ran = ran + 1
          if params.refuse then
            return nil, "no", params.refuse
          end
          assert(app.store:append { receipt = { command_id = params.command_id,
            method = "test.count", result = { n = ran } } })
          return { n = ran }
        end },
      { method = "test.other", scope = "operate", command = true, handler = function()
        return {}
      end },
      { method = "test.flood", scope = "read", stream = true,
        params = { count = { type = "integer" }, size = { type = "integer" } },
        handler = function(_, _, params, request)
          for i = 1, params.count do
            if not request:send { n = i, pad = ("x"):rep(params.size) } then
              ran = -i
              return {}
            end
          end
          ran = params.count
          return {}
        end },
    }
  end

  local function start(opts)
    opts = opts or {}
    opts.methods = methods()
    app = store.run(function()
      return daemon.app(dir, opts)
    end)
    client = daemon.client(app)
  end

  before_each(function()
    store.setup_async()
    dir = store.new_dir()
    ran = 0
    start()
  end)

  after_each(function()
    client:close()
    daemon.wait(function()
      return next(app.server.sessions) == nil
    end)
    app.db:close()
    store.remove_dir(dir)
  end)

  local function code_of(err)
    return err and err.data and err.data.code
  end

  it("wants hello first and once", function()
    local _, err = client:call("test.echo", { text = "x" })
    assert.equal("unauthorized", code_of(err))
    local result = assert(client:hello())
    assert.equal(1, result.protocol)
    assert.equal(daemon.DAEMON_ID, result.daemon_id)
    assert.is_true(result.capabilities.admin)
    assert.equal(43, #result.challenge)
    assert.equal(dir .. "/scratch", result.paths.scratch_root)
    _, err = client:hello()
    assert.equal("conflict", code_of(err))
    assert.same({ text = "x" }, client:call("test.echo", { text = "x" }))
  end)

  it("refuses another version with both numbers and closes", function()
    local _, err = client:hello { protocol = 2, origin = "of the future" }
    assert.equal("protocol_mismatch", code_of(err))
    assert.equal(-32001, err.code)
    assert.same({ 1, 2 }, { err.data.daemon, err.data.client })
    client:wait_end()
  end)

  it("checks hello's fields", function()
    local _, err = client:hello { origin = "somewhere" }
    assert.equal("invalid", code_of(err))
    assert.truthy(client:hello())
  end)

  it("names an unknown method and wrong params", function()
    client:hello()
    local _, err = client:call("no.such", {})
    assert.same({ -32601, "invalid" }, { err.code, code_of(err) })
    _, err = client:call("test.echo", { text = 7 })
    assert.same({ -32602, "invalid" }, { err.code, code_of(err) })
    assert.truthy(err.message:find("text", 1, true))
  end)

  it("lives on when a handler raises", function()
    client:hello()
    local _, err = client:call("test.raise")
    assert.equal("internal", code_of(err))
    assert.truthy(app.failures[1]:find("bug", 1, true))
    _, err = client:call("test.fail")
    assert.same({ "internal", "the disk is full" }, { code_of(err), err.message })
    assert.truthy(client:call("test.echo", { text = "still here" }))
  end)

  it("cuts the wire at every byte", function()
    client:hello()
    local line = '{"jsonrpc":"2.0","id":900,"method":"test.echo","params":{"text":"\u{e9}"}}\n'
    for i = 1, #line - 1 do
      client:raw(line:sub(1, i))
      require("luv").run("nowait")
      client:raw(line:sub(i + 1))
      assert.equal("\u{e9}", client:response(900).result.text)
    end
  end)

  it("answers garbage without an id once and closes", function()
    client:hello()
    for _, bytes in ipairs { "garbage\n", "[]\n", '{"jsonrpc":"2.0","id":"x"}\n', "\0\n",
      '{"a":' .. ("["):rep(5000) .. "\n", '"\xff"\n', "{}\n" } do
      client:raw('{"jsonrpc":"2.0","id":77,"method":"test.echo","params":{"text":"a"}}\n' .. bytes
        .. '{"jsonrpc":"2.0","id":78,"method":"test.echo","params":{"text":"late"}}\n')
      client:wait_end()
      local last = client.messages[#client.messages]
      assert.is_nil(last.result)
      assert.equal("invalid", last.error.data.code)
      assert.equal(77, client.messages[#client.messages - 1].id)
      client:close()
      client = daemon.client(app)
      assert.truthy(client:hello())
    end
  end)

  it("closes when a line passes 16 MiB, after the lines before it", function()
    client:hello()
    client:raw('{"jsonrpc":"2.0","id":5,"method":"test.echo","params":{"text":"first"}}\n')
    local chunk = ("x"):rep(1024 * 1024)
    for _ = 1, 16 do
      client:raw(chunk)
    end
    client:raw("x")
    client:wait_end()
    assert.equal("first", client.messages[1].result.text)
    assert.equal(-32700, client.messages[2].error.code)
  end)

  it("takes a message of nearly 16 MiB", function()
    client:hello()
    local text = ("y"):rep(16 * 1024 * 1024 - 200)
    assert.equal(#text, #client:call("test.echo", { text = text }).text)
  end)

  it("keeps the connection for a bad message with an id", function()
    client:hello()
    client:raw('{"jsonrpc":"2.0","id":50,"method":"test.echo","params":[]}\n')
    assert.equal("invalid", code_of(client:response(50).error))
    client:raw('{"id":51,"method":"test.echo","params":{}}\n')
    assert.equal(-32600, client:response(51).error.code)
    client:raw('{"jsonrpc":"2.0","method":"unknown/notification","params":{}}\n')
    assert.truthy(client:call("test.echo", { text = "x" }))
  end)

  it("refuses an id that is in flight and cancels one that is", function()
    client:hello()
    local id = client:send("test.wait")
    client:raw(('{"jsonrpc":"2.0","id":%d,"method":"test.echo","params":{"text":"a"}}\n')
      :format(id))
    local err = client:response(id).error
    assert.equal("invalid", code_of(err))
    assert.equal(("request id %d is already in flight"):format(id), err.message)
    client:raw('{"jsonrpc":"2.0","method":"$/cancel","params":{"id":4711}}\n')
    client:raw(('{"jsonrpc":"2.0","method":"$/cancel","params":{"id":%d}}\n'):format(id))
    err = client:response(id).error
    assert.equal("cancelled", code_of(err))
    assert.truthy(waiting)
    assert.truthy(client:call("test.echo", { text = "x" }))
    assert.equal(0, #client.messages) -- one answer only
    assert.equal(0, client.session.request_count)
  end)

  it("answers many requests at once", function()
    client:hello()
    local ids = {}
    for i = 1, 100 do
      ids[i] = client:send("test.echo", { text = tostring(i) })
    end
    for i = 1, 100 do
      assert.equal(tostring(i), client:response(ids[i]).result.text)
    end
  end)

  it("holds a stream back when the client does not read, and loses nothing", function()
    client:hello()
    client:pause()
    client:send("test.flood", { count = 2000, size = 4096 })
    local uv = require "luv"
    for _ = 1, 200 do
      uv.run("nowait")
    end
    assert.equal(0, ran) -- it waits
    assert.is_true(#client.session.outbound + client.session.writing <= 64)
    client:resume()
    for i = 1, 2000 do
      assert.equal(i, client:item().n)
    end
    assert.equal(2000, ran)
  end)

  it("ends a stream whose client died in the middle", function()
    client:hello()
    client:pause()
    client:send("test.flood", { count = 100000, size = 4096 })
    local uv = require "luv"
    for _ = 1, 50 do
      uv.run("nowait")
    end
    client:close()
    daemon.wait(function()
      return ran < 0
    end)
    assert.is_nil(next(app.server.sessions))
  end)

  it("cancels what runs when the client goes away inside a line", function()
    client:hello()
    client:send("test.wait")
    daemon.wait(function()
      return waiting
    end)
    client:raw('{"jsonrpc":')
    client:close()
    daemon.wait(function()
      return next(app.server.sessions) == nil
    end)
  end)

  it("runs a command once and answers a repeat from the receipt", function()
    client:hello()
    assert.same({ n = 1 }, client:call("test.count", { command_id = COMMAND }))
    assert.same({ n = 1 }, client:call("test.count", { command_id = COMMAND }))
    assert.equal(1, ran)
    local _, err = client:call("test.other", { command_id = COMMAND })
    assert.equal("conflict", code_of(err))
    _, err = client:call("test.count", {})
    assert.equal("invalid", code_of(err))
    _, err = client:call("test.count", { command_id = "no uuid" })
    assert.equal("invalid", code_of(err))
  end)

  it("runs a command once when two connections send it at the same time", function()
    client:hello()
    local second = daemon.client(app)
    second:hello()
    local ids, others = {}, {}
    for i = 1, 5 do
      ids[i] = client:send("test.count", { command_id = COMMAND })
      others[i] = second:send("test.count", { command_id = COMMAND })
    end
    for i = 1, 5 do
      assert.equal(1, client:response(ids[i]).result.n)
      assert.equal(1, second:response(others[i]).result.n)
    end
    second:close()
    assert.equal(1, ran)
  end)

  it("keeps invalid, not_found and conflict, and lets busy be tried again", function()
    client:hello()
    for i, name in ipairs { "not_found", "conflict", "busy" } do
      local id = COMMAND:sub(1, -2) .. i
      local _, err = client:call("test.count", { command_id = id, refuse = name })
      assert.equal(name, code_of(err))
      local before = ran
      local result, again = client:call("test.count", { command_id = id })
      if name == "busy" then
        assert.equal(before + 1, result.n)
      else
        assert.equal(name, code_of(again))
        assert.equal(before, ran)
      end
    end
    local id = COMMAND:sub(1, -2) .. "9"
    client:call("test.count", { command_id = id, refuse = 7 })
    local _, err = client:call("test.count", { command_id = id })
    assert.equal("invalid", code_of(err))
  end)

  it("puts exact bytes back in place", function()
    client:hello()
    local result = client:call("test.echo", { text = "a\u{FFFD}", text_b64 = "Yf8=" })
    assert.equal("a\u{FFFD}", result.text)
    assert.equal("Yf8=", result.text_b64)
  end)

  it("takes null as absent", function()
    client:hello()
    client:raw('{"jsonrpc":"2.0","id":60,"method":"conversations.list","params":{"limit":null}}\n')
    assert.same({}, client:response(60).result.conversations)
  end)

  it("holds no more than a bounded number and size of requests", function()
    client:hello()
    for _ = 1, 256 do
      client:send("test.wait")
    end
    local _, err = client:call("test.echo", { text = "x" })
    assert.equal("busy", code_of(err))
    local second = daemon.client(app)
    second:hello()
    for _ = 1, 4 do
      second:send("test.wait", { pad = ("x"):rep(15 * 1024 * 1024) })
    end
    _, err = second:call("test.echo", { text = ("x"):rep(15 * 1024 * 1024) })
    assert.equal("busy", code_of(err))
    assert.truthy(second:call("test.echo", { text = "x" }))
    second:close()
  end)

  it("serves a bounded number of connections", function()
    local more = {}
    for i = 1, 255 do
      more[i] = daemon.client(app)
    end
    assert.is_nil(daemon.client(app).session)
    for _, one in ipairs(more) do
      one:close()
    end
    daemon.wait(function()
      return app.server.count == 1
    end)
    assert.truthy(client:hello())
  end)

  it("writes what is queued before a stop", function()
    client:hello()
    client:pause()
    for i = 1, 40 do
      client:send("test.big", { n = i })
    end
    daemon.wait(function()
      local session = client.session
      return session.writing + #session.outbound > 30 and session.request_count == 0
    end)
    local stopped
    async.spawn(function()
      app.server:close()
      stopped = true
    end)
    require("luv").run("nowait")
    assert.is_nil(stopped)
    client:resume()
    client:wait_end()
    assert.equal(40, #client.messages)
    daemon.wait(function()
      return stopped
    end)
  end)

  it("gives a model-side peer only read", function()
    client:close()
    app.db:close()
    start { shells = { [require("luv").os_getppid()] = true } }
    local result = client:hello()
    assert.is_nil(result.capabilities.admin)
    local _, err = client:call("test.count", { command_id = COMMAND })
    assert.equal("forbidden", code_of(err))
    assert.truthy(client:call("conversations.list"))
  end)

  it("does not serve another user", function()
    client:close()
    app.db:close()
    start { uid = 12345678 }
    client:wait_end()
    assert.is_nil(client.session)
  end)
end)

describe("daemon.peers", function()
  local peers = require "efr.daemon.peers"

  local function table_of(processes)
    return function(pid)
      local p = processes[pid]
      return p and ("%d (a) b (%s) S %d %d %d 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 500 0")
        :format(pid, "x y", p[1], pid, p[2])
    end
  end

  it("walks to the top", function()
    local stat = table_of { [1] = { 0, 1 }, [10] = { 1, 10 }, [20] = { 10, 10 }, [30] = { 20, 30 },
      [40] = { 30, 30 }, [50] = { 99, 50 } }
    assert.is_false(peers.is_model_side(40, {}, stat))
    assert.is_true(peers.is_model_side(40, { [20] = true }, stat))
    assert.is_true(peers.is_model_side(30, { [30] = true }, stat))
    assert.is_false(peers.is_model_side(10, { [20] = true }, stat))
    assert.is_true(peers.is_model_side(41, {}, stat)) -- gone
    assert.is_true(peers.is_model_side(0, {}, stat)) -- of another PID namespace
    assert.is_true(peers.is_model_side(50, {}, stat)) -- its parent cannot be read
  end)

  it("counts a shared session", function()
    local stat = table_of { [1] = { 0, 1 }, [30] = { 1, 20 } }
    assert.is_true(peers.is_model_side(30, { [20] = true }, stat))
  end)

  it("ends on a loop", function()
    local stat = table_of { [30] = { 31, 1 }, [31] = { 30, 1 } }
    assert.is_true(peers.is_model_side(30, { [77] = true }, stat))
  end)
end)
