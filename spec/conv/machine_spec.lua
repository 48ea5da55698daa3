local engine = require "efr.perm.engine"
local machine = require "efr.conv.machine"

local function facts(links, home, requirements)
  local app = {
    env = { HOME = home or "/home/u" },
    paths = { config = "/home/u/.config/efr", data = "/home/u/.local/share/efr",
      state = "/home/u/.local/state/efr", runtime = "/run/user/1000/efr" },
    ports = { fs = {
      realpath = function(path) return links[path] or path end,
      readdir = function(dir)
        local out = {}
        for path in pairs(links) do
          local name = path:match("^" .. dir:gsub("%p", "%%%0") .. "/([^/]+)$")
          if name then out[#out + 1] = { name = name, type = "link" } end
        end
        return out
      end,
    } },
    config = { get = function(_, key)
      return key == "sandbox.mask_globs" and { ".env", ".env.*", "!.env.sample" } or {}
    end },
  }
  return machine.facts(app, { project_roots = { "/home/u/p/app" } }, requirements)
end

local function effect(kind, path, links, home)
  local requirements = { { kind = kind, path = path } }
  return engine.decide({
    requirements = requirements, tool = "read_file", mode = "cautious",
    origin = "cli", machine = facts(links, home, requirements),
  }).effect
end

describe("conv.machine", function()
  it("closes a secret behind a link under its other name too", function()
    local links = { ["/home/u/.ssh"] = "/data/keys", ["/home/u/.local/share/efr/secrets"] = "/d/s" }
    assert.equal("deny", effect("read", "/home/u/.ssh/id", links))
    assert.equal("deny", effect("read", "/data/keys/id", links))
    assert.equal("deny", effect("read", "/d/s/x.json", links))
    assert.equal("allow", effect("read", "/data/keys/id", {}))
  end)

  it("seals the configuration behind a link", function()
    local links = { ["/home/u/.config/efr/config.toml"] = "/home/u/dots/efr.toml" }
    assert.equal("deny", effect("write", "/home/u/dots/efr.toml", links))
    assert.equal("ask", effect("write", "/home/u/dots/efr.toml", {}))
    links = { ["/home/u/.config/efr/rules.d/10.lua"] = "/home/u/p/app/10.lua" }
    assert.equal("deny", effect("write", "/home/u/p/app/10.lua", links))
    assert.equal("deny", effect("write", "/home/u/.config/efr/rules.d/20.lua", links))
  end)

  it("asks before a file tool reads what a project hides for its name", function()
    assert.equal("ask", effect("read", "/home/u/p/app/.env", {}))
    assert.equal("ask", effect("read", "/home/u/p/app/a/b/.env.local", {}))
    assert.equal("allow", effect("read", "/home/u/p/app/.env.sample", {}))
    assert.equal("allow", effect("read", "/home/u/p/app/src/env.c", {}))
  end)

  it("leaves a machine without sense to the engine, which denies", function()
    assert.equal("deny", effect("read", "/x", {}, "/"))
  end)
end)
