-- The provider against the loopback server of tests/fake over real connections. Only under the test
-- interpreter, which has efr.http and luv.
local helper = require "spec.helper"

local has_http, http = pcall(require, "efr.http")
if not has_http then return end

local async = require "efr.util.async"
local json = require "efr.json"
local openai = require "efr.model.openai_compatible"
local text = require "efr.text"
local uv = require "luv"
local world_of = require "spec.support.world"

describe("model.openai_compatible over real connections", function()
  local dir, server, port, provider, events, state

  local function run_until(done)
    local stop = uv.new_timer()
    stop:start(20000, 0, function() error("no end within 20 s") end)
    while not done() do uv.run("once") end
    stop:close()
  end

  local function new_provider(base, ca_file)
    local n = 0
    provider = openai.new({
      ports = {
        http = http, json = json, text = text, fs = world_of.fs({}),
        sys = { now_us = function() return os.time() * 1000000 end,
          random = function() return "\0\0" end, getuid = function() return 0 end,
          uuid7 = function() n = n + 1 return "minted-" .. n end },
      },
      config = function()
        return { get = function(_, key)
          return key == "openai_compatible.base_url" and base or nil
        end }
      end,
      secrets_dir = "/none", version = "0", ca_file = ca_file,
    })
  end

  local function serve(plan, tls)
    local file = assert(io.open(dir .. "/plan.json", "w"))
    file:write(json.encode(json.array(plan)))
    file:close()
    os.remove(dir .. "/log")
    server = io.popen(("exec python3 tests/fake/openai_server.py %s/plan.json %s/log %s "
      .. "<%s/in"):format(dir, dir, tls or "", dir), "r")
    state.input = assert(io.open(dir .. "/in", "w")) -- its end ends the server
    port = assert(server:read("l")):match("^port (%d+)$")
    new_provider(("%s://127.0.0.1:%s/v1"):format(tls and "https" or "http", port),
      tls and dir .. "/cert.pem")
  end

  local function ask(on_event)
    events = {}
    local over = false
    local handle = provider:start({ model = "m", sent = {
      provider:render({ role = "user", content = { { kind = "text", text = "hällo" } } }),
    } }, function(event)
      events[#events + 1] = event
      over = event.kind == "done" or event.kind == "error"
      if on_event then on_event(event) end
    end)
    return handle, function() return over end
  end

  local function answered()
    local _, over = ask()
    run_until(over)
    local out = {}
    for _, event in ipairs(events) do
      if event.kind == "text_delta" then out[#out + 1] = event.text end
    end
    return table.concat(out), events[#events]
  end

  local function requests()
    local out = {}
    for line in io.lines(dir .. "/log") do out[#out + 1] = json.decode(line) end
    return out
  end

  before_each(function()
    async.setup({
      timer = function(ms, fn)
        local timer = uv.new_timer()
        timer:start(ms, 0, function()
          timer:close()
          fn()
        end)
        return function() if not timer:is_closing() then timer:close() end end
      end,
      on_error = function(trace) error(trace, 0) end,
    })
    state = {}
    dir = os.tmpname()
    os.remove(dir)
    assert(os.execute(("mkdir %s && mkfifo %s/in"):format(dir, dir)))
  end)

  after_each(function()
    if state.input then state.input:close() end
    if server then server:close() end
    server = nil
    os.execute("rm -rf " .. dir)
    helper.async()
  end)

  it("streams text and calls, cut into single bytes", function()
    serve({ { text = "grüße 😀 und mehr", reasoning = "hm", chunk = 1, calls = {
      { name = "f", arguments = '{"a": [1, 2]}' }, { name = "g", id = "given" } } } })
    local got, last = answered()
    assert.equal("grüße 😀 und mehr", got)
    assert.equal("tool_use", last.stop_reason)
    local ends = {}
    for _, event in ipairs(events) do
      if event.kind == "tool_call_end" then ends[#ends + 1] = event end
    end
    assert.same({ 1, 2 }, { ends[1].input.a[1], ends[1].input.a[2] })
    assert.equal("given", ends[2].call_id)
    local request = requests()[1]
    assert.equal("/v1/chat/completions", request.path)
    assert.is_truthy(request.body:find("hällo", 1, true))
    assert.equal("efr/0", request.headers["User-Agent"])
  end)

  it("tries again after 503 with the server's wait, and reads the answer", function()
    serve({ { status = 503, headers = { ["Retry-After"] = "0" }, body = "loading" },
      { text = "ready", usage = false } })
    local got, last = answered()
    assert.equal("ready", got)
    assert.equal("done", last.kind)
    assert.equal(2, #requests())
  end)

  for name, row in pairs({
    ["401"] = { { status = 401, body = '{"error":{"message":"bad key"}}' }, "Unauthorized", 1 },
    ["404"] = { { status = 404, body = '{"error":{"message":"model m not found"}}' },
      "UnknownModel", 1 },
    ["a connection reset in the answer"] = { { text = ("x"):rep(50), fault = "reset" },
      "Transport", 1 },
    ["a connection reset before an answer"] = { { fault = "reset_early" }, "Transport", 1 },
    ["a garbled chunk"] = { { text = "x", fault = "garbage" }, "Decode", 1 },
    ["a stream cut short"] = { { text = ("x"):rep(50), fault = "cut" }, "Incomplete", 1 },
  }) do
    it("ends with one error after " .. name, function()
      serve({ row[1] })
      local _, last = answered()
      assert.equal("error", last.kind)
      assert.equal(row[2], last.class)
      assert.equal(row[3], #requests())
    end)
  end

  it("ends at [DONE] although the server keeps the connection open", function()
    serve({ { text = "done", fault = "keep_open" } })
    assert.equal("done", (answered()))
  end)

  it("stops a stalled stream at once", function()
    serve({ { text = ("x"):rep(50), fault = "stall" } })
    local seen = 0
    local handle = ask(function() seen = seen + 1 end)
    run_until(function() return seen > 0 end)
    handle.cancel()
    local before = seen
    local waited = false
    async.spawn(function()
      async.sleep(100)
      waited = true
    end)
    run_until(function() return waited end)
    assert.equal(before, seen)
  end)

  it("lists the models", function()
    serve({ {} })
    local ids
    async.spawn(function() ids = provider:models() end)
    run_until(function() return ids end)
    assert.same({ "fake-large", "fake-small" }, ids)
  end)

  it("speaks TLS with a certificate that it was given, and refuses an unknown one", function()
    assert(os.execute(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
      .. "-keyout %s/key.pem -out %s/cert.pem -days 1 -subj /CN=127.0.0.1 "
      .. "-addext subjectAltName=IP:127.0.0.1 2>/dev/null"):format(dir, dir)))
    serve({ { text = "over TLS" } }, ("--tls %s/cert.pem %s/key.pem"):format(dir, dir))
    assert.equal("over TLS", (answered()))
    new_provider(("https://127.0.0.1:%s/v1"):format(port))
    local _, last = answered()
    assert.equal("Transport", last.class)
    assert.equal(1, #requests())
  end)

  it("names the base URL of a server that is not there", function()
    new_provider("http://127.0.0.1:1/v1")
    local _, last = answered()
    assert.equal("Transport", last.class)
    assert.matches("http://127.0.0.1:1/v1", last.message, 1, true)
  end)
end)
