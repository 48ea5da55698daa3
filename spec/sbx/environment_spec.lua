-- The environment of a contained call: a row for each pattern of the tables, tried in a real call,
-- so that a new entry is tested by existing. Needs efr's own Lua state (C modules).
if not package.preload["efr.fs"] then return end
local contained = require "spec.support.contained"
local environment = require "efr.sbx.environment"

local quoted = contained.quoted

-- A name that fits a pattern.
local function example(pattern)
  return (pattern:gsub("%*", "Zz"))
end

-- name -> value of what `env -0` printed
local function variables(output)
  local out = {}
  for entry in output:gmatch("([^\0]*)\0") do
    local name, value = entry:match("^([^=]*)=(.*)$")
    if name then out[name] = value end
  end
  return out
end

local function assignments(given)
  local out = {}
  for name, value in pairs(given) do out[#out + 1] = quoted(name .. "=" .. value) end
  return table.concat(out, " ")
end

describe("the environment of a contained call", function()
  local world

  setup(function() world = contained.new() end)
  teardown(function() world:close() end)

  local function inside(given, settings, opts)
    world.settings = settings or {}
    local options = { env = assignments(given), argv = { "env", "-0" } }
    for key, value in pairs(opts or {}) do options[key] = value end
    local _, output = world:run(nil, options)
    return variables(output)
  end

  it("loses every name of the tables, and keeps what only looks alike", function()
    local given, kept = {}, {
      PLAIN = "1", MONKEY = "1", KEYS = "1", TMUXINATOR = "1", DISPLAYS = "1", EFRX = "1",
      PATHS = "/x", URL = "https://user@host/", XPROXY = "1", SESSION = "1", lang = "x",
      GIT_CONFIG = "x", NODE_ENV = "test",
    }
    for _, pattern in ipairs(environment.UNSET) do given[example(pattern)] = "gone" end
    for _, pattern in ipairs(environment.SECRET) do
      given[example(pattern)] = "gone"
      given[example(pattern):lower()] = "gone"
    end
    given.DATABASE = "x postgres://user:word@host/db"
    given["N\255"] = "gone"
    local all = {}
    for name, value in pairs(given) do all[name] = value end
    for name, value in pairs(kept) do all[name] = value end
    local seen = inside(all)
    local fixed = { XDG_RUNTIME_DIR = true }
    for _, pair in ipairs(environment.SET) do fixed[pair[1]] = true end
    for name in pairs(given) do
      if not fixed[name] then assert.is_nil(seen[name], name .. " is there") end
      assert.are_not.equal("gone", seen[name], name)
    end
    for name, value in pairs(kept) do assert.are.equal(value, seen[name], name) end
  end)

  it("gets every pair of the tables, whatever was there", function()
    local given = {}
    for _, pair in ipairs(environment.SET) do given[pair[1]] = "mine" end
    for _, pair in ipairs(environment.OFFLINE) do given[pair[1]] = "mine" end
    local seen = inside(given)
    for _, list in ipairs({ environment.SET, environment.OFFLINE }) do
      for _, pair in ipairs(list) do assert.are.equal(pair[2], seen[pair[1]], pair[1]) end
    end
    assert.are.equal(world.base .. "/runtime/xrt", seen.XDG_RUNTIME_DIR)
  end)

  it("says nothing of a network that is there, or when the setting is off", function()
    local name = environment.OFFLINE[1][1]
    assert.is_nil(inside({}, { ["sandbox.offline_hints"] = false })[name])
    assert.is_nil(inside({}, nil, { grants = { { kind = "host_network" } } })[name])
    assert.is_string(inside({})[name])
  end)

  it("obeys env_deny and env_keep, which keeps only what looks secret", function()
    local given = { MINE_1 = "1", NPM_TOKEN = "1", A_AUTH = "1", URL = "http://u:p@h", TMUX = "1",
      OTHER_TOKEN = "1" }
    local seen = inside(given, { ["sandbox.env_deny"] = { "MINE_*" },
      ["sandbox.env_keep"] = { "NPM_*", "A_AUTH", "URL", "TMUX" } })
    assert.is_nil(seen.MINE_1)
    assert.is_nil(seen.OTHER_TOKEN)
    assert.is_nil(seen.TMUX)
    assert.are.equal("1", seen.NPM_TOKEN)
    assert.are.equal("1", seen.A_AUTH)
    assert.are.equal("http://u:p@h", seen.URL)
  end)

  it("gets what the caller asks for by its name", function()
    local seen = inside({ MY_TOKEN = "1", TMUX = "t", GOPROXY = "mine" }, nil, {
      env_pass = { "MY_TOKEN", "TMUX", "GOPROXY", "ABSENT" }, env_set = { { "NEW", "a=b" } },
    })
    assert.are.same({ "1", "t", "mine", "a=b" }, { seen.MY_TOKEN, seen.TMUX, seen.GOPROXY, seen.NEW })
    assert.is_nil(seen.ABSENT)
  end)

  it("has an editor that fails at once, for a line of the model", function()
    local result, output = world:run("env -0 | tr '\\0' '\\n' | grep -c /efr-sbx/editor; $EDITOR x")
    assert.are.equal(1, result.exit_code)
    assert.are.equal(tostring(#environment.EDITORS), output:match("^%d+"))
    assert.is_truthy(output:find("no editor here", 1, true), output)
  end)
end)
