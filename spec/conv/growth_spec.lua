-- History only grows, measured on the bytes that leave: each request body of the OpenAI-compatible
-- provider starts with the messages of the one before, over turns, failures, interrupts, restarts,
-- idle times after which the history is read again.
require "spec.helper"
local fake_http = require "spec.support.http"
local json = require "spec.support.json"
local openai = require "efr.model.openai_compatible"
local world_of = require "spec.support.world"

-- Answers with odd but valid bytes: spacing and order of arguments, numbers, escapes, null.
local ANSWERS <const> = {
  { '{"choices":[{"delta":{"content":"look \\u00e9 \\"q\\" \\\\ / "}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"look",'
      .. '"arguments":"{ \\"z\\": 1.50, \\"a\\": [1e2,\\n 9007199254740993], '
      .. '\\"n\\": null }"}}]}}]}',
    '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}' },
  { '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"look",'
      .. '"arguments":"[1]"}},{"index":1,"function":{"name":"nothing","arguments":"{}"}}]},'
      .. '"finish_reason":"tool_calls"}]}' },
  { '{"choices":[{"delta":{"content":"done\\n"},"finish_reason":"stop"}]}' },
}

describe("conv: the bytes of requests", function()
  it("start with the bytes of the request before", function()
    local w = world_of.new()
    local http = fake_http.new()
    local config = { get = function(_, key)
      return key == "openai_compatible.base_url" and "http://h/v1" or nil
    end }
    local function new_provider()
      w.app.ports.http = http
      local provider = openai.new({
        ports = w.app.ports, secrets_dir = "/none", version = "0",
        config = function() return config end,
      })
      w.app.providers = { active = function() return provider, openai.ID end }
    end
    local bodies = {}
    http.script = function(request, n, out)
      bodies[n] = request.body
      out.head(n % 7 == 0 and 500 or 200)
      if n % 7 == 0 then return out.done() end
      local chunks = ANSWERS[(n - 1) % 3 + 1]
      if n % 5 == 0 then
        out.data('data: {"choices":[{"delta":{"content":"cut"}}]}\n\n')
        return out.done()
      end
      out.data(fake_http.stream(chunks))
      out.done()
    end
    new_provider()
    w.app.config.values["model.name"] = "m"
    local id = w:send("one \u{1f600}", { new_conversation = true }).conversation_id
    for n = 2, 12 do
      if n % 4 == 0 then -- a restart
        new_provider()
        w.app.conversations = require("efr.conv.manager").new(w.app)
      elseif n % 4 == 2 then -- a conversation that was idle
        local history = w.app.conversations.open[id].history
        assert.truthy(history.texts)
        w.clock.advance(61000)
        assert.is_nil(history.texts)
      end
      w:send("prompt " .. n, { conversation_id = id, context = { pwd = "/home/u/" .. n % 3 } })
    end
    assert.is_true(#bodies > 15)
    local before
    for _, body in ipairs(bodies) do
      local messages = assert(body:match('^(.*)%],"tools":%['))
      if before then assert.equal(before, messages:sub(1, #before)) end
      assert.is_true(not before or #messages > #before)
      assert.is_table(json.decode(body))
      before = messages
    end
  end)
end)
