local json = require "spec.support.json"
local secrets = require "efr.model.secrets"
local world_of = require "spec.support.world"

describe("model.secrets", function()
  local ports, fs

  before_each(function()
    fs = world_of.fs({ ["/d"] = true })
    ports = { fs = fs, json = json, sys = { getuid = function() return 1000 end } }
  end)

  it("writes a private file and reads it back", function()
    assert(secrets.write(ports, "/d/secrets", "openai-compatible", { kind = "api_key", key = "k" }))
    local path = "/d/secrets/openai-compatible.json"
    assert.equal(384, fs.modes[path])
    assert.equal("\n", fs.tree[path]:sub(-1))
    assert.same({ version = 1, kind = "api_key", key = "k" },
      secrets.read(ports, "/d/secrets", "openai-compatible"))
    assert.is_true(secrets.remove(ports, "/d/secrets", "openai-compatible"))
    assert.is_false(secrets.remove(ports, "/d/secrets", "openai-compatible"))
    local _, _, code = secrets.read(ports, "/d/secrets", "openai-compatible")
    assert.equal("ENOENT", code)
  end)

  it("refuses what others can reach, links, foreign versions and broken files", function()
    local path = "/d/secrets/p.json"
    local function refused(pattern)
      local value, message = secrets.read(ports, "/d/secrets", "p")
      assert.is_nil(value)
      assert.matches(pattern, message)
      assert.is_nil(message:find("SECRET", 1, true))
    end
    fs.tree["/d/secrets"] = true
    fs.tree[path] = '{"version":1,"kind":"api_key","key":"SECRET"}'
    fs.modes = { [path] = 420 } -- 0644
    refused("other users")
    assert.is_nil((secrets.write(ports, "/d/secrets", "p", { kind = "api_key", key = "n" })))
    fs.modes = { ["/d/secrets"] = 493 } -- 0755
    refused("open to others")
    fs.modes = {}
    local lstat = fs.lstat
    fs.lstat = function(p)
      local info = lstat(p)
      if p == path then info.type = "link" end
      return info
    end
    refused("no regular file")
    fs.lstat = lstat
    fs.tree[path] = '{"version":2,"key":"SECRET"}'
    refused("version 2")
    fs.tree[path] = "SECRET"
    refused("no JSON object")
    fs.tree[path] = '{"version":1,"kind":"api_key"}'
    refused("holds no key")
  end)

  it("checks ids and keys", function()
    for id, good in pairs({ ["openai-compatible"] = true, ["a.b_c"] = true, [""] = false,
      ["../x"] = false, ["A"] = false, [".x"] = false, [("a"):rep(65)] = false }) do
      assert.equal(good, secrets.is_provider_id(id), id)
    end
    assert.is_true(secrets.check_key("sk-abc"))
    for _, key in ipairs({ "", "a b", "a\n", "é", "sk-admin-x", ("x"):rep(5000) }) do
      assert.is_nil((secrets.check_key(key)))
    end
  end)
end)
