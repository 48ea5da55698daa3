-- The methods of conversations and logins: parameters, and what they refuse before a manager is
-- asked.
local json = require "spec.support.json"
local notices = require "efr.daemon.notices"
local validate = require "efr.util.validate"
local world_of = require "spec.support.world"

local ID <const> = "0199a0b0-0000-7000-8000-000000000001"

local function method(name)
  return require("efr.daemon.rpc." .. name)
end

describe("daemon.rpc of conversations", function()
  it("has the scopes of the protocol, and is a command", function()
    for name, scope in pairs({ prompt_send = "operate", prompt_withdraw = "operate",
      turn_interrupt = "operate", approval_respond = "approve" }) do
      assert.equal(scope, method(name).scope)
      assert.is_true(method(name).command)
    end
    assert.equal("admin", method("admin_login_api_key").scope)
    assert.equal("admin", method("admin_logout").scope)
  end)

  it("checks the parameters of a prompt", function()
    local params = method("prompt_send").params
    for _, row in ipairs({
      { { text = "x" }, true },
      { { text = "x", context = { pwd = "/p", last_status = 2, shell_pid = 4 } }, true },
      { { text = "x", recent_commands = { { command = "ls", status = 0 } } }, true },
      { { text = "x\0y", last_command = "a\0" }, true },
      { { text = "x", context = { pwd = "/p\0x" } }, "context.pwd must hold no NUL byte" },
      { {}, "text" },
      { { text = 5 }, "text" },
      { { text = "x", context = { pwd = "relative" } }, "pwd" },
      { { text = "x", context = { last_status = "2", pwd = "/" } }, "last_status" },
      { { text = "x", conversation_id = "no uuid" }, "conversation_id" },
      { { text = "x", settings = { mode = 1 } }, "mode" },
      { { text = "x", recent_commands = { { status = 0 } } }, "command" },
    }) do
      local ok, message = validate.check(params, row[1])
      if row[2] == true then
        assert.is_truthy(ok, message)
      else
        assert.is_falsy(ok)
        assert.matches(row[2], message)
      end
    end
  end)

  it("counts who sent a prompt as a follower until he is gone", function()
    local followers, enders = notices.followers(), {}
    local app = { followers = followers, conversations = { prompt_send = function(_, params)
      if params.text == "" then return nil, "the prompt is empty", "invalid" end
      return { conversation_id = ID }
    end } }
    local session = { tty = "/dev/pts/3", at_close = function(_, fn)
      enders[#enders + 1] = fn
    end }
    local send = method("prompt_send").handler
    assert.is_nil((send(app, session, { text = "" })))
    assert.is_false(followers:has(ID, "/dev/pts/3"))
    for _ = 1, 2 do assert(send(app, session, { text = "x" })) end
    assert.is_true(followers:has(ID, "/dev/pts/3"))
    assert.equal(1, #enders)
    enders[1]()
    assert.is_false(followers:has(ID, "/dev/pts/3"))
    assert(send(app, {}, { text = "x" }))
  end)

  it("refuses what comes later, and a target without its field", function()
    local app = { conversations = setmetatable({}, { __index = function()
      return function() return { called = true } end
    end }) }
    local function refused(name, params)
      local result, _, code = method(name).handler(app, {}, params)
      assert.is_nil(result)
      assert.equal("invalid", code)
    end
    for _, field in ipairs({ "resend_steers", "withdraw_steers", "resend_as" }) do
      refused("turn_interrupt", { conversation_id = ID, [field] = { 1 } })
    end
    assert.is_true(method("turn_interrupt").handler(app, {}, { resend_steers = {} }).called)
    refused("prompt_withdraw", { target = { kind = "turn" } })
    refused("prompt_withdraw", { target = { kind = "newest_from_tty" } })
  end)
end)

describe("daemon.rpc of logins", function()
  local app, asked, answer

  before_each(function()
    asked, answer = nil, { { "m" } }
    app = {
      ports = { fs = world_of.fs({}), json = json, sys = { getuid = function() return 1000 end } },
      paths = { data = "/d" },
      config = { get = function() return "openai-compatible" end },
      events = {},
      providers = { get = function()
        return { fetch_models = function(_, key)
          asked = key
          return table.unpack(answer, 1, 2)
        end }
      end },
    }
    app.store = { append = function(_, batch)
      app.events[#app.events + 1] = batch.events[1].kind
      return { 1 }
    end }
  end)

  local function login(key, check)
    return method("admin_login_api_key").handler(app, {},
      { provider = "openai-compatible", key = key, check = check })
  end

  it("checks a key at the server, keeps it, and shows a hint only", function()
    local result = login("sk-test-0123456789abcd")
    assert.equal("sk-test-0123456789abcd", asked)
    assert.same({ provider = "openai-compatible", key_hint = "sk-test-...abcd", checked = true,
      active = true }, result)
    assert.same({ "login_completed" }, app.events)
    local logout = method("admin_logout").handler
    assert.is_true(logout(app, {}, { provider = "openai-compatible" }).logged_out)
    assert.is_false(logout(app, {}, { provider = "openai-compatible" }).logged_out)
    assert.same({ "login_completed", "logout_completed" }, app.events)
  end)

  it("keeps nothing when the server refuses the key or cannot be asked", function()
    answer = { nil, { class = "Unauthorized", message = "no" } }
    local result, message, code = login("sk-key")
    assert.is_nil(result)
    assert.equal("unauthorized", code)
    assert.is_nil(message:find("sk-key", 1, true))
    answer = { nil, { class = "Transport", message = "cannot connect" } }
    result, message = login("sk-key")
    assert.is_nil(result)
    assert.matches("cannot connect", message)
    assert.is_nil(next(app.ports.fs.tree))
    asked = nil
    assert.is_truthy(login("sk-key", false))
    assert.is_nil(asked)
  end)

  it("refuses what is no key", function()
    for _, key in ipairs({ "", "a b", "sk-admin-1" }) do
      local result, _, code = login(key)
      assert.is_nil(result)
      assert.equal("invalid", code)
    end
  end)
end)
