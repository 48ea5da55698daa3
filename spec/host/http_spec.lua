-- efr.http under our own state, against real servers on loopback: plain ones of this process, a
-- TLS one in Python with a certificate made here. Timeouts, sizes and cancelling in every place
-- are tested in tests/unit/test_http.c.
local http = require "efr.http"
local loop = require "spec.host.loop"
local uv = require "luv"

local CONNECT_MS <const> = 10000

-- A server on loopback: serve(client, request_text) is called with each whole head.
local function new_server(serve)
  local server = { socket = uv.new_tcp(), clients = {} }
  server.socket:bind("127.0.0.1", 0)
  server.socket:listen(16, function()
    local client = uv.new_tcp()
    server.socket:accept(client)
    server.clients[#server.clients + 1] = client
    local text = ""
    client:read_start(function(_, bytes)
      text = text .. (bytes or "")
      if not bytes then
        server.hung_up = true
      elseif text:find("\r\n\r\n", 1, true) then
        serve(client, text)
        text = ""
      end
    end)
  end)
  server.url = ("http://127.0.0.1:%d"):format(server.socket:getsockname().port)
  function server.close()
    for _, client in ipairs(server.clients) do
      client:close()
    end
    server.socket:close()
  end
  return server
end

-- Starts a request and collects what it gives. `extra` = further callbacks.
local function start(options, extra)
  local got = { data = {} }
  extra = extra or {}
  options.connect_timeout_ms = options.connect_timeout_ms or CONNECT_MS
  got.handle = assert(http.request(options, {
    on_head = extra.on_head or function(status, lines)
      got.status, got.lines = status, lines
    end,
    on_data = function(bytes)
      got.data[#got.data + 1] = bytes
      if extra.on_data then
        extra.on_data(got)
      end
    end,
    on_done = function(err, code)
      got.done = (got.done or 0) + 1
      got.err, got.code = err, code
    end,
  }))
  return got
end

local function finish(got)
  loop.wait_until(function()
    return got.done
  end)
  assert.equal(1, got.done)
  return got
end

describe("efr.http", function()
  local server

  after_each(function()
    if server then
      server.close()
      server = nil
    end
    uv.run("nowait")
  end)

  it("gives status, headers, body and end", function()
    local seen
    server = new_server(function(client, text)
      seen = text
      client:write("HTTP/1.1 503 Busy\r\nRetry-After: 12\r\nContent-Length: 4\r\n\r\nlate")
    end)
    local got = finish(start {
      method = "POST", url = server.url .. "/v1/x", body = "{}",
      headers = { "Content-Type: application/json", "Authorization: Bearer abc" },
    })
    assert.is_nil(got.err)
    assert.equal(503, got.status)
    assert.equal("Retry-After: 12\r\nContent-Length: 4\r\n", got.lines)
    assert.equal("late", table.concat(got.data))
    assert.matches("^POST /v1/x HTTP/1.1\r\n", seen)
    assert.matches("\r\nAuthorization: Bearer abc\r\n", seen, 1, true)
    assert.matches("\r\nUser%-Agent: efr/%d", seen)
  end)

  it("streams: each chunk comes while the answer is still open", function()
    local peer
    server = new_server(function(client)
      peer = client
      client:write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    end)
    local got = start { url = server.url }
    for i, letter in ipairs { "a", "b", "c" } do
      loop.wait_until(function()
        return #got.data == i
      end)
      assert.equal(letter, got.data[i])
      assert.is_nil(got.done)
      peer:write(i < 3 and ("1\r\n%s\r\n"):format(("bc"):sub(i, i)) or "0\r\n\r\n")
    end
    assert.is_nil(finish(got).err)
  end)

  it("cancels in the middle of a stream and hangs up", function()
    server = new_server(function(client)
      client:write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    end)
    local got = finish(start({ url = server.url }, {
      on_data = function(self)
        self.handle:cancel()
        assert.is_nil(self.done)
      end,
    }))
    assert.equal("EFR_CANCELLED", got.code)
    assert.equal(1, #got.data)
    loop.wait_until(function()
      return server.hung_up
    end)
    assert.is_true(got.handle:cancel()) -- nothing to do any more
    assert.matches("ended", tostring(got.handle))
  end)

  it("tells silence, refusal and size apart", function()
    server = new_server(function(client, text)
      if text:find("GET /big", 1, true) then
        client:write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" .. ("x"):rep(100))
      end
    end)
    local got = finish(start { url = server.url .. "/quiet", idle_timeout_ms = 20 })
    assert.equal("EFR_TIMEOUT", got.code)
    got = finish(start { url = server.url .. "/big", max_bytes = 99 })
    assert.equal("EFR_TOO_BIG", got.code)
    assert.matches("127.0.0.1", got.err, 1, true)

    local taken = uv.new_tcp() -- bound, not listening
    taken:bind("127.0.0.1", 0)
    local port = taken:getsockname().port
    got = finish(start { url = ("http://127.0.0.1:%d/"):format(port) })
    taken:close()
    assert.equal("EFR_CONNECT", got.code)
    assert.equal(("connect to 127.0.0.1:%d: Connection refused"):format(port), got.err)
  end)

  it("lives on after errors in callbacks", function()
    server = new_server(function(client)
      client:write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
    end)
    local got = start({ url = server.url }, {
      on_head = function()
        error("planted by the spec")
      end,
      on_data = function()
        error("planted by the spec")
      end,
    })
    assert.is_nil(finish(got).err)
  end)

  it("keeps a request alive that nobody holds", function()
    server = new_server(function(client)
      collectgarbage()
      client:write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
    end)
    local got = start { url = server.url }
    local weak = setmetatable({ got.handle }, { __mode = "v" })
    got.handle = nil
    collectgarbage()
    assert.is_nil(finish(got).err)
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
  end)

  it("refuses what is no request", function()
    local callbacks = { on_done = function() end }
    for _, url in ipairs { "ftp://127.0.0.1/", "file:///etc/passwd", "", "http://" } do
      local handle, err, code = http.request({ url = url }, callbacks)
      assert.is_nil(handle)
      assert.is_string(err)
      assert.equal("EFR_INVALID", code)
    end
    local _, err, code = http.request({
      url = "http://127.0.0.1/", headers = { "A: b", "Key: secret\r\nX: y" },
    }, callbacks)
    assert.equal("EFR_INVALID", code)
    assert.equal("header 2 holds a line break", err)
    for _, options in ipairs {
      {}, { url = 1 }, { url = "http://a\0b/" }, { url = "http://a/", headers = "X: y" },
      { url = "http://a/", headers = { 1 } }, { url = "http://a/", headers = { "X: \0" } },
      { url = "http://a/", body = 1 }, { url = "http://a/", max_bytes = -1 },
    } do
      assert.has_error(function()
        http.request(options, callbacks)
      end)
    end
    assert.has_error(function()
      http.request({ url = "http://a/" }, {})
    end)
    assert.has_error(function()
      http.request({ url = "http://a/" }, { on_done = print, on_data = 1 })
    end)
  end)
end)

describe("efr.http over TLS", function()
  local dir, process, stdin, port

  local function run(...)
    local exit
    local child = assert(uv.spawn("openssl", { args = { ... } }, function(code)
      exit = code
    end))
    loop.wait_until(function()
      return exit
    end)
    child:close()
    assert.equal(0, exit)
  end

  local function start_server()
    local stdout, text = uv.new_pipe(), ""
    stdin = uv.new_pipe()
    process = assert(uv.spawn("python3", {
      args = { "spec/host/tls_server.py", dir .. "/cert.pem", dir .. "/key.pem" },
      stdio = { stdin, stdout, 2 },
    }, function()
      process:close()
      process = nil
    end))
    stdout:read_start(function(_, bytes)
      text = text .. (bytes or "")
    end)
    loop.wait_until(function()
      return text:find("\n", 1, true) or not process
    end)
    stdout:close()
    port = assert(tonumber(text), "no port from the server")
  end

  setup(function()
    dir = assert(uv.fs_mkdtemp("/tmp/efr-spec-http-XXXXXX"))
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-days", "2", "-subj", "/CN=efr test", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", dir .. "/key.pem", "-out", dir .. "/cert.pem")
    start_server()
  end)

  teardown(function()
    if stdin then
      stdin:close()
      loop.wait_until(function()
        return not process
      end)
    end
    uv.fs_unlink(dir .. "/key.pem")
    uv.fs_unlink(dir .. "/cert.pem")
    assert(uv.fs_rmdir(dir))
  end)

  local function get(host, ca_file)
    return finish(start { url = ("https://%s:%d/"):format(host, port), ca_file = ca_file })
  end

  it("talks to a server whose certificate it is told to trust", function()
    local got = get("localhost", dir .. "/cert.pem")
    assert.is_nil(got.err)
    assert.equal(200, got.status)
    assert.equal("secret enough", table.concat(got.data))
  end)

  it("refuses an unknown certificate and a wrong name", function()
    local got = get("localhost")
    assert.equal("EFR_TLS", got.code)
    assert.matches("TLS with localhost:%d+: ", got.err)
    got = get("127.0.0.1", dir .. "/cert.pem")
    assert.equal("EFR_TLS", got.code)
    got = get("localhost", dir .. "/missing.pem")
    assert.equal("EFR_TLS", got.code)
  end)

  it("refuses a server that speaks no TLS, and one that says nothing", function()
    local plain = new_server(function() end)
    plain.url = plain.url:gsub("^http", "https")
    local got = finish(start { url = plain.url, connect_timeout_ms = 50 })
    assert.equal("EFR_CONNECT", got.code) -- no handshake, so nothing was sent
    plain.close()

    local listener, client = uv.new_tcp(), uv.new_tcp()
    listener:bind("127.0.0.1", 0)
    listener:listen(1, function()
      listener:accept(client)
      client:write("SSH-2.0-none\r\n")
    end)
    local url = ("https://127.0.0.1:%d/"):format(listener:getsockname().port)
    got = finish(start { url = url })
    assert.equal("EFR_TLS", got.code)
    client:close()
    listener:close()
    uv.run("nowait")
  end)
end)
