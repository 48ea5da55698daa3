-- input.respond: its parameters, who may call it, and that nothing of it is kept.
local method = require "efr.daemon.rpc.input_respond"
local validate = require "efr.util.validate"

local ID <const> = "0199a0b0-0000-7000-8000-000000000001"

local function params(changes)
  local out = { conversation_id = ID, call_id = ID, text = "x", hidden = false }
  for name, value in pairs(changes) do out[name] = value end
  return out
end

describe("input.respond", function()
  it("needs the scope terminal, and is no command with a receipt", function()
    assert.equal("terminal", method.scope)
    assert.is_nil(method.command)
  end)

  it("takes one line without control characters", function()
    for _, text in ipairs { "", "yes", "äöü 宽", ("x"):rep(1024), " " } do
      assert.is_true(validate.check(method.params, params { text = text }), text)
    end
    for _, text in ipairs { "a\nb", "a\r", "\3", "\27[A", "a\127", "\0", "\t", ("x"):rep(1025) } do
      local ok, message = validate.check(method.params, params { text = text })
      assert.is_nil(ok, ("%q"):format(text))
      assert.is_nil(message:find(text, 1, true), "the text stands in the error")
    end
    assert.is_nil((validate.check(method.params, params { hidden = "yes" })))
  end)

  it("is closed to a phone and to the model's side", function()
    local app = { conversations = { respond = function() return {} end } }
    assert.same({}, method.handler(app, { origin = "cli", peer = { model_side = false } }, params {}))
    for _, session in ipairs { { origin = "phone" }, { origin = "cli", peer = { model_side = true } } } do
      local result, _, code = method.handler(app, session, params {})
      assert.is_nil(result)
      assert.equal("forbidden", code)
    end
  end)
end)
