local helper = require "spec.helper"
local json = require "spec.support.json"
local scripted = require "efr.model.scripted"
local world_of = require "spec.support.world"

describe("model.scripted", function()
  local clock, fs, config, events, provider

  before_each(function()
    local _
    _, clock = helper.async()
    fs, config, events = world_of.fs({}), { ["scripted.file"] = "/s.lua" }, {}
    local n = 0
    provider = scripted.new({
      ports = {
        fs = fs, json = json,
        sys = { uuid7 = function() n = n + 1 return "id-" .. n end },
        load_chunk = function(text, name, env) return load(text, name, "t", env) end,
      },
      config = function() return { get = function(_, key) return config[key] end } end,
      home = "/home/u",
      demo = function() return { text = "demo" } end,
    })
  end)

  local function ask(source, messages, more)
    fs.tree["/s.lua"] = source
    provider.loaded = nil
    events = {}
    local request = { model = "scripted", turn = 1, call = 0,
      messages = messages or { { role = "user", content = {} } } }
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

  local function problem() return events[#events].message end

  it("plays text, calls and usage of a function", function()
    ask([[return function(request)
      return { text = request.model .. request.turn .. request.call .. #request.messages,
        calls = { { name = "f", input = { a = 1 } }, { name = "g" } },
        usage = { input_tokens = 7 } }
    end]])
    assert.equal("text_delta tool_call_start tool_call_delta tool_call_end tool_call_start "
      .. "tool_call_delta tool_call_end usage done", kinds())
    assert.equal("scripted101", events[1].text)
    assert.same({ a = 1 }, events[4].input)
    assert.same({}, events[7].input)
    assert.equal(7, events[8].input_tokens)
    assert.equal(0, events[8].output_tokens)
    assert.equal("tool_use", events[9].stop_reason)
  end)

  it("plays a list by the requests that the history shows, also after failures", function()
    local list = [[return { { text = "1" }, { text = "2", fail = "Overloaded" }, { text = "3" } }]]
    local user, assistant = { role = "user", content = {} }, { role = "assistant", content = {} }
    ask(list)
    assert.equal("1", events[1].text)
    ask(list, { user, assistant, user })
    assert.equal("2", events[1].text)
    assert.equal("Overloaded", events[2].class)
    ask(list, { user, assistant, user, user })
    assert.equal("3", events[1].text)
    ask(list, { user, user, user, user })
    assert.matches("/s.lua has no answer number 4", problem())
  end)

  it("cuts text into characters with pauses, and stops when cancelled", function()
    local handle = ask([[return { { text = "aé😀b", chunk = 2, delay_ms = 10 } }]])
    assert.equal("", kinds())
    clock.advance(10)
    assert.equal("aé", events[1].text)
    clock.advance(10)
    assert.equal("😀b", events[2].text)
    handle.cancel()
    clock.advance(100)
    assert.equal(2, #events)
  end)

  it("plays failures with their fields", function()
    ask([[return { { text = "x", fail = { class = "RateLimited", message = "m", status = 429,
      retry_after_ms = 5 } } }]])
    assert.equal("text_delta error", kinds())
    assert.same({ kind = "error", class = "RateLimited", message = "m", status = 429,
      retry_after_ms = 5 }, events[2])
  end)

  it("estimates usage that the script leaves out", function()
    ask([[return { { text = "hello" } }]])
    assert.is_true(events[2].input_tokens > 0 and events[2].output_tokens > 0)
  end)

  for name, row in pairs({
    ["a syntax error"] = { "return {", "/s.lua is no Lua: .*s.lua:1:" },
    ["a raising file"] = { "\nerror('boom')", "/s.lua failed: /s.lua:2: boom" },
    ["a raising function"] = { "return function()\n\nerror('boom') end", "/s.lua:3: boom" },
    ["a file without result"] = { "local x = 1", "must return a function or a list" },
    ["no answer"] = { "return function() end", "turn 1, call 0 wrongly: it gave nil" },
    ["wrong text"] = { "return { { text = 5 } }", "text must be a text" },
    ["text that is no UTF-8"] = { "return { { text = '\\xff' } }", "text must be a text in UTF" },
    ["wrong calls"] = { "return { { calls = { { input = {} } } } }", "calls%[1%].name" },
    ["an input that is no JSON"] = {
      "return { { calls = { { name = 'f', input = { a = '\\xff' } } } } }", "/s.lua gave calls%[1%]",
    },
    ["wrong stop"] = { "return { { stop = 'soon' } }", "stop is unknown" },
    ["wrong delay"] = { "return { { delay_ms = -1 } }", "delay_ms" },
    ["wrong chunk"] = { "return { { chunk = 0 } }", "chunk" },
    ["wrong usage"] = { "return { { usage = { input_tokens = 'x' } } }", "usage.input_tokens" },
    ["wrong class"] = { "return { { fail = 'Nonsense' } }", "error class" },
    ["io"] = { "return function() io.open('/') end", "io" },
    ["os"] = { "return function() os.exit() end", "os" },
    ["load"] = { "return function() load('x') end", "load" },
    ["require"] = { "return function() require('x') end", "require" },
    ["debug"] = { "return function() debug.getinfo(1) end", "debug" },
    ["the metatable of strings"] = { "return function() getmetatable('').__index.x = 1 end",
      "nil value" },
  }) do
    it("names file and place of " .. name, function()
      ask(row[1])
      assert.equal("error", kinds())
      assert.matches(row[2], problem())
      assert.matches("/s.lua", problem(), 1, true)
    end)
  end

  it("cannot change the daemon's tables or its own later answers through the request", function()
    local messages = { { role = "user", content = { { kind = "text", text = "x" } } } }
    local tools = { { name = "t", schema = {} } }
    ask([[string.rep = nil
      return function(r)
        r.messages[1].content[1].text = "changed"
        r.tools[1].name = r.messages[1].content[1].text
        return { text = "ok" }
      end]], messages, { tools = tools })
    assert.equal("ok", events[1].text)
    assert.equal("x", messages[1].content[1].text)
    assert.equal("t", tools[1].name)
    assert.is_function(string.rep)
  end)

  it("shows the messages of a request also to who walks through it", function()
    ask([[return function(r)
      local names = {}
      for name in pairs(r) do names[#names + 1] = name end
      table.sort(names)
      return { text = table.concat(names, " ") .. " " .. #r.messages .. tostring(r.nothing) }
    end]])
    assert.equal("call messages model turn 1nil", events[1].text)
  end)

  it("reads the file again when it changed, and ~ is the home directory", function()
    ask([[return { { text = "1" } }]])
    config["scripted.file"] = "~/s.lua"
    fs.tree["/home/u/s.lua"] = [[return { { text = "home" } }]]
    provider:start({ model = "scripted", sent = { '{"role":"user"}' } },
      function(event) events[#events + 1] = event end)
    assert.equal("home", events[#events - 2].text)
  end)

  it("plays the demo without a file and refuses an unknown model", function()
    config["scripted.file"] = nil
    ask("")
    assert.equal("demo", events[1].text)
    ask("", nil, { model = "gpt" })
    assert.equal("UnknownModel", events[1].class)
    assert.equal("apply_patch", provider:edit_tool("scripted-patch"))
    assert.equal("edit", provider:edit_tool("scripted"))
  end)
end)
