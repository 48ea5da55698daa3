local helper = require "spec.helper"
local fake_http = require "spec.support.http"
local json = require "spec.support.json"
local openai = require "efr.model.openai_compatible"
local world_of = require "spec.support.world"

local BASE = "http://127.0.0.1:11434/v1"

describe("model.openai_compatible", function()
  local provider, http, clock, events, fs, config

  before_each(function()
    local _
    _, clock = helper.async()
    http = fake_http.new()
    fs = world_of.fs({})
    config = { ["openai_compatible.base_url"] = BASE .. "/" }
    local n = 0
    provider = openai.new({
      ports = {
        http = http, json = json, fs = fs, text = { clean = function(s) return s end },
        sys = { now_us = function() return clock.now * 1000 end,
          random = function() return "\0\0" end, getuid = function() return 1000 end, getpid = function() return 77 end,
          uuid7 = function() n = n + 1 return "minted-" .. n end },
      },
      config = function()
        return {
          get = function(_, key) return config[key] end,
          restart_needed = function() return config.waiting or {} end,
        }
      end,
      secrets_dir = "/d/secrets", version = "9.9",
    })
    events = {}
  end)

  local function start(more)
    local request = { model = "m", system = "sys", messages = {
      { role = "user", content = { { kind = "text", text = "a" }, { kind = "text", text = "b" } } },
    } }
    for key, value in pairs(more or {}) do request[key] = value end
    return provider:start(world_of.rendered(provider, request), function(event)
      events[#events + 1] = event
    end)
  end

  local function kinds()
    local out = {}
    for i, event in ipairs(events) do out[i] = event.kind end
    return table.concat(out, " ")
  end

  local function answer(chunks)
    http.last.head(200, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    http.last.data(fake_http.stream(chunks))
    http.last.done()
  end

  local function last() return events[#events] end

  it("says what a missing server needs", function()
    config["openai_compatible.base_url"] = nil
    start()
    assert.matches("put base_url under %[openai_compatible%]", last().message)
    config.waiting = { "openai_compatible.base_url" }
    start()
    assert.equal("the new openai_compatible.base_url applies after a restart of efrd: kill 77, and"
      .. " send it again", last().message)
  end)

  it("sends the body in its fixed order, with the key only when there is one", function()
    start({ effort = "low", max_output_tokens = 9, tools = { { name = "t", description = "d",
      schema = { type = "object" } } } })
    local request = http.requests[1]
    assert.equal("POST", request.method)
    assert.equal(BASE .. "/chat/completions", request.url)
    assert.equal('{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":['
      .. '{"role":"system","content":"sys"},{"role":"user","content":"a\\n\\nb"}],'
      .. '"tools":[{"type":"function","function":{"name":"t","description":"d",'
      .. '"parameters":{"type":"object"}}}],"tool_choice":"auto","max_tokens":9,'
      .. '"reasoning_effort":"low"}', request.body)
    local head = table.concat(request.headers, "\n")
    assert.matches("User%-Agent: efr/9.9", head)
    assert.not_matches("Authorization", head)
    assert.equal(10000, request.connect_timeout_ms)
    assert.equal(300000, request.idle_timeout_ms)
    fs.tree["/d/secrets"] = true
    fs.tree["/d/secrets/openai-compatible.json"] = '{"version":1,"kind":"api_key","key":"sk-x"}'
    start()
    assert.matches("Authorization: Bearer sk%-x", table.concat(http.requests[2].headers, "\n"))
  end)

  it("reads text, usage and the end", function()
    start()
    answer({
      '{"choices":[{"delta":{"role":"assistant","content":""}}]}',
      '{"choices":[{"delta":{"reasoning_content":"hm"}}]}',
      '{"choices":[{"delta":{"reasoning":"mm"}}]}',
      '{"choices":[{"delta":{"content":"He"}}]}',
      '{"choices":[{"delta":{"content":"llo \\u00e9"},"finish_reason":"stop"}]}',
      '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,'
        .. '"prompt_tokens_details":{"cached_tokens":4},'
        .. '"completion_tokens_details":{"reasoning_tokens":2}}}',
    })
    assert.equal("reasoning_delta reasoning_delta text_delta text_delta usage done", kinds())
    assert.same({ kind = "usage", input_tokens = 7, output_tokens = 3, cached_input_tokens = 4,
      reasoning_tokens = 2 }, events[5])
    assert.equal("end_turn", last().stop_reason)
    assert.equal('{"role":"assistant","content":"Hello é"}', last().provider_raw)
  end)

  it("reads the same however the bytes are cut", function()
    local stream = fake_http.stream({
      '{"choices":[{"delta":{"content":"é😀"}}]}',
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f",'
        .. '"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}',
    })
    for cut = 1, #stream - 1 do
      events = {}
      start()
      http.last.head(200)
      http.last.data(stream:sub(1, cut))
      http.last.data(stream:sub(cut + 1))
      http.last.done()
      assert.equal("text_delta tool_call_start tool_call_delta tool_call_end done", kinds())
      assert.equal("é😀", events[1].text)
    end
  end)

  it("joins tool calls by index, mints missing ids, reads parallel calls", function()
    start()
    answer({
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function",'
        .. '"function":{"name":"read","arguments":""}}]}}]}',
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"p\\":"}}]}}]}',
      '{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"look",'
        .. '"arguments":"{}"}}]}}]}',
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}',
      '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    })
    local ends = {}
    for _, event in ipairs(events) do
      if event.kind == "tool_call_end" then ends[#ends + 1] = event end
    end
    assert.equal(2, #ends)
    assert.same({ "a", "read", { p = 1 } }, { ends[1].call_id, ends[1].name, ends[1].input })
    assert.same({ "minted-1", "look", {} }, { ends[2].call_id, ends[2].name, ends[2].input })
    assert.equal("tool_use", last().stop_reason)
    assert.matches('"tool_calls":%[{"id":"a","type":"function","function":{"name":"read",'
      .. '"arguments":"{\\"p\\":1}"}}', last().provider_raw)
  end)

  it("reads the quirks of servers", function()
    for _, row in ipairs({
      -- whole calls without an index, each with its own id
      { { '{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}'
        .. ',{"id":"y","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"stop"}]}' },
        { "x f", "y g" } },
      -- every call under index 0, with ids
      { { '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f",'
        .. '"arguments":"{}"}}]}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"y","function":{"name":"g",'
        .. '"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}' }, { "x f", "y g" } },
      -- the id repeated in each piece
      { { '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f",'
        .. '"arguments":"{"}}]}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"arguments":"}"}}]},'
        .. '"finish_reason":"tool_calls"}]}' }, { "x f" } },
      -- arguments as an object, no id, null fields
      { { '{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":null,"function":'
        .. '{"name":"f","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}]}' },
        { "minted-1 f" } },
      -- no arguments at all
      { { '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f"}}]},'
        .. '"finish_reason":"tool_calls"}]}' }, { "x f" } },
    }) do
      events = {}
      start()
      answer(row[1])
      local got = {}
      for _, event in ipairs(events) do
        if event.kind == "tool_call_end" then
          assert.is_table(event.input)
          got[#got + 1] = event.call_id .. " " .. event.name
        end
      end
      assert.same(row[2], got)
      assert.equal("tool_use", last().stop_reason)
    end
  end)

  it("gives two calls of one answer different ids", function()
    start()
    answer({ '{"choices":[{"delta":{"tool_calls":['
      .. '{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}},'
      .. '{"index":1,"id":"x","function":{"name":"g","arguments":"{}"}}]},'
      .. '"finish_reason":"tool_calls"}]}' })
    local seen = {}
    for _, event in ipairs(events) do
      if event.kind == "tool_call_end" then
        assert.is_nil(seen[event.call_id])
        seen[event.call_id] = true
      end
    end
  end)

  it("turns arguments that are no object into a failed call, not a failed turn", function()
    for _, arguments in ipairs({ "[1]", "{\\\"a\\\":", "nonsense", "\\\"x\\\"" }) do
      events = {}
      start()
      answer({ '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f",'
        .. '"arguments":"' .. arguments .. '"}}]},"finish_reason":"tool_calls"}]}' })
      local ended = events[#events - 1]
      assert.is_nil(ended.input)
      assert.matches("no JSON object", ended.error)
      assert.equal("done", last().kind)
      assert.matches('"arguments":"{}"', last().provider_raw)
    end
  end)

  it("replays the kept bytes and renders results as messages of role tool", function()
    start({ system = "", messages = {
      { role = "user", content = { { kind = "text", text = "q" } } },
      { role = "assistant", content = {}, provider_raw = '{"role":"assistant","x":1.0}' },
      { role = "user", content = {
        { kind = "tool_result", call_id = "a", output = "fine" },
        { kind = "tool_result", call_id = "b", output = "bad", is_error = true } } },
      { role = "assistant", content = { { kind = "text", text = "t" },
        { kind = "tool_call", call_id = "c", name = "f", input = { a = 1 } } } },
    } })
    assert.is_truthy(http.requests[1].body:find('"messages":[{"role":"user","content":"q"},'
      .. '{"role":"assistant","x":1.0},'
      .. '{"role":"tool","tool_call_id":"a","content":"fine"},'
      .. '{"role":"tool","tool_call_id":"b","content":"Error: bad"},'
      .. '{"role":"assistant","content":"t","tool_calls":[{"id":"c","type":"function",'
      .. '"function":{"name":"f","arguments":"{\\"a\\":1}"}}]}]', 1, true))
  end)

  local function fails(respond, class, pattern)
    events = {}
    start()
    respond(http.last)
    assert.equal("error", last().kind)
    assert.equal(class, last().class)
    if pattern then assert.matches(pattern, last().message) end
  end

  it("names what went wrong", function()
    fails(function(out)
      out.head(401)
      out.data('{"error":{"message":"Invalid key","code":"invalid_api_key"}}')
      out.done()
    end, "Unauthorized", "401: Invalid key")
    fails(function(out)
      out.head(404)
      out.data('{"error":"model \'m\' not found"}')
      out.done()
    end, "UnknownModel", "not found")
    assert.equal("m", last().model)
    fails(function(out)
      out.head(400)
      out.data('{"error":{"message":"too long","code":"context_length_exceeded"}}')
      out.done()
    end, "ContextOverflow")
    fails(function(out)
      out.head(500)
      out.data("<html>nginx</html>")
      out.done()
    end, "Api", "^the model server answered 500$")
    fails(function(out)
      out.head(200)
      out.data("data: garbage\n\n")
    end, "Decode")
    fails(function(out)
      out.head(200)
      out.data('data: {"error":{"message":"overloaded","code":503}}\n\n')
    end, "Overloaded", "overloaded")
    fails(function(out)
      out.head(200)
      out.data('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
      out.done()
    end, "Incomplete")
    assert.equal("text_delta error", kinds())
    fails(function(out)
      out.head(200)
      out.data('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
      out.done("reset by peer", "EFR_IO")
    end, "Transport", "reset by peer")
    fails(function(out) out.done("certificate", "EFR_TLS") end, "Transport", "certificate")
    config["openai_compatible.base_url"] = nil
    events = {}
    start()
    assert.equal("NotConfigured", last().class)
    assert.matches("base_url", last().message)
  end)

  it("fails when no request can be made", function()
    http.request = function() return nil, "libcurl is not installed", "EFR_UNAVAILABLE" end
    start()
    assert.equal("Transport", last().class)
    assert.matches("libcurl is not installed", last().message)
  end)

  it("tries a refused connection again and then names the base URL", function()
    http.script = function(_, _, out) out.done("connection refused", "EFR_CONNECT") end
    start()
    clock.advance(10000)
    assert.equal(4, #http.requests)
    assert.equal("Transport", last().class)
    assert.matches("cannot connect to the model server at " .. BASE:gsub("%p", "%%%0"),
      last().message)
    assert.equal(1, #events)
  end)

  it("waits as the server says, and gives up over 60 s", function()
    http.script = function(_, n, out)
      if n == 1 then
        out.head(503, "HTTP/1.1 503 x\r\nRetry-After: 7\r\n\r\n")
        out.done()
      end
    end
    start()
    clock.advance(6999)
    assert.equal(1, #http.requests)
    clock.advance(1)
    assert.equal(2, #http.requests)
    answer({ '{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}' })
    assert.equal("text_delta done", kinds())

    events = {}
    http.script = function(_, _, out)
      out.head(429, "retry-after: 61\r\n")
      out.done()
    end
    start()
    assert.equal("RateLimited", last().class)
    assert.equal(61000, last().retry_after_ms)
  end)

  it("never sends a request again of which an answer began", function()
    start()
    http.last.head(200)
    http.last.data('data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
    http.last.done("gone", "EFR_CONNECT")
    clock.advance(60000)
    assert.equal(1, #http.requests)
    assert.equal("Transport", last().class)
  end)

  it("gives no event after cancel, also while it waits to try again", function()
    local handle = start()
    handle.cancel()
    assert.equal(1, http.cancelled)
    http.script = function(_, _, out)
      out.head(503)
      out.done()
    end
    handle = start()
    handle.cancel()
    clock.advance(60000)
    assert.equal(2, #http.requests)
    assert.equal(0, #events)
  end)

  it("takes [DONE] as the end and lets the connection close in its own time", function()
    start()
    http.last.head(200)
    http.last.data(fake_http.stream({ '{"choices":[{"delta":{"content":"x"}}]}' }))
    assert.equal("text_delta done", kinds())
    assert.equal(0, http.cancelled)
    clock.advance(1000)
    assert.equal(1, http.cancelled)
  end)

  it("remembers the default model until its time is over or the server does not know it", function()
    local id
    local function ask()
      id = nil
      require("efr.util.async").spawn(function() id = provider:default_model() end)
      if not id then
        http.last.head(200)
        http.last.data('{"data":[{"id":"m' .. #http.requests .. '"}]}')
        http.last.done()
      end
      return id
    end
    assert.equal("m1", ask())
    assert.equal("m1", ask())
    clock.advance(301000)
    assert.equal("m2", ask())
    start()
    http.last.head(404)
    http.last.data('{"error":"model not found"}')
    http.last.done()
    assert.equal("m4", ask())
  end)

  it("lists models: of the settings, else of the server", function()
    local ids, err
    local function ask()
      require("efr.util.async").spawn(function() ids, err = provider:models() end)
    end
    ask()
    assert.equal(BASE .. "/models", http.requests[1].url)
    http.last.head(200)
    http.last.data('{"data":[{"id":"one"},{"id":"two"}]}')
    http.last.done()
    assert.same({ "one", "two" }, ids)
    config["openai_compatible.models"] = { { id = "c", context_window = 5000 }, "d" }
    ask()
    assert.same({ "c", "d" }, ids)
    assert.equal(5000, provider:window("c"))
    assert.equal(128000, provider:window("d"))
    config["openai_compatible.models"] = nil
    ids = nil
    ask()
    http.last.head(401)
    http.last.done()
    assert.is_nil(ids)
    assert.equal("Unauthorized", err.class)
  end)
end)
