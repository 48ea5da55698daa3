local engine = require "efr.perm.engine"
local facts_of = require "efr.perm.facts"
local load_config = require "efr.config.load"
local machine = require "efr.conv.machine"

local modules = require "efr.modules"
local schema = require "efr.config.schema"

local SCHEMA = schema.load(modules.list)

local function facts(links, home, requirements, moved)
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
    sandbox = moved and { hidden = { paths = function() return moved end } },
    config = { get = function(_, key)
      return key == "sandbox.mask_globs" and { ".env", ".env.*", "!.env.sample" } or {}
    end },
  }
  return machine.facts(app, { project_roots = { "/home/u/p/app" } }, requirements)
end

local function effect(kind, path, links, home, moved)
  local requirements = { { kind = kind, path = path } }
  return engine.decide({
    requirements = requirements, tool = "read_file", mode = "cautious",
    origin = "cli", machine = facts(links, home, requirements, moved),
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

  it("asks before a file tool reads what a command moved away from where its name hides it", function()
    local path = "/home/u/p/app/a/b/c/d/.env"
    assert.equal("allow", effect("read", path, {}))
    assert.equal("ask", effect("read", path, {}, nil, { path }))
  end)

  it("gives one machine while nothing changes, and another one when a link does", function()
    local links = { ["/home/u/.ssh"] = "/data/keys" }
    local first = facts(links)
    assert.equal(first, facts({ ["/home/u/.ssh"] = "/data/keys" }))
    links["/home/u/.ssh"] = "/other"
    assert.not_equal(first, facts(links))
    assert.equal("deny", effect("read", "/other/id", links))
    assert.equal("allow", effect("read", "/data/keys/id", links))
  end)

  it("leaves a machine without sense to the engine, which denies", function()
    assert.equal("deny", effect("read", "/x", {}, "/"))
  end)
end)

-- What auto makes of a line in the project /home/u/p/app, with these lines of [sandbox].
local DIRS = { ["/"] = true, ["/home/u"] = true, ["/home/u/p/app"] = true,
  ["/home/u/p/app/.git"] = true, ["/home/u/p/app/out"] = true, ["/home/u/p/app/target"] = true,
  ["/home/u/p/other"] = true, ["/home/u/tools"] = true, ["/home/u/share"] = true,
  ["/home/u/.cargo"] = true, ["/disk/share"] = true }

local function exits(line, settings)
  local fs = {
    realpath = function(path)
      if path == "/home/u/share" then return "/disk/share" end
      return DIRS[path] and path or nil
    end,
    readdir = function() return {} end,
    lstat = function() return nil, "not there", "ENOENT" end,
    stat = function(path)
      if DIRS[path] then return { type = "dir" } end
      return nil, "not there", "ENOENT"
    end,
  }
  local app = {
    env = { HOME = "/home/u" }, ports = { fs = fs },
    paths = { config = "/home/u/.config/efr", data = "/home/u/.local/share/efr",
      state = "/home/u/.local/state/efr", runtime = "/run/user/1000/efr" },
    config = assert(load_config.load { schema = SCHEMA, home = "/home/u",
      text = "[sandbox]\n" .. (settings or "") }),
  }
  local here = machine.facts(app, { project_roots = { "/home/u/p/app", "/home/u/p/other" } })
  local requirements, known, lines = facts_of.collect(facts_of.ports(fs, "/bin", here),
    { { kind = "line", text = line, cwd = "/home/u/p/app" } }, "/home/u")
  local decision = engine.decide {
    requirements = requirements, facts = known, lines = lines, tool = "shell", mode = "auto",
    origin = "cli", machine = here, scope = { kind = "project", root = "/home/u/p/app" },
  }
  local out = {}
  for i, exit in ipairs(decision.exits) do out[i] = exit.kind .. ":" .. exit.approver end
  return table.concat(out, " ")
end

describe("conv.machine with [sandbox]", function()
  -- line, without the setting, the setting, with it
  local ROWS = {
    { "touch ~/.cargo/x", "", 'caches = []', "write:reviewer" },
    { "touch ~/tools/x", "write:reviewer", 'caches = ["~/tools"]', "" },
    { "touch ~/Dropbox/x", "synced_write:user", 'synced_dirs = []', "write:reviewer" },
    { "touch ~/tools/x", "write:reviewer", 'synced_dirs = ["~/tools"]', "synced_write:user" },
    { "touch /disk/share/x", "write:user", 'synced_dirs = ["~/share"]', "synced_write:user" },
    { "touch out/x", "", 'protect = ["~/p/app/out"]', "persistence:user" },
    { "touch out/x", "", 'protect = ["~/p/app/out/x"]', "persistence:user" },
    { "touch ~/p/other/x", "", 'write_projects = "turn"', "write:reviewer" },
    { "touch ~/p/other/x", "", 'write_projects = "all"', "" },
    { "touch x", "", 'write_projects = "turn"', "" },
    { "rm -r target", "", 'rebuildable = []', "destructive:reviewer" },
    { "rm -r out", "destructive:reviewer", 'rebuildable = ["out"]', "" },
  }
  for _, row in ipairs(ROWS) do
    it(("takes %s for %s"):format(row[3], row[1]), function()
      assert.equal(row[2], exits(row[1]))
      assert.equal(row[4], exits(row[1], row[3]))
    end)
  end

  it("never takes what holds the home directory for a cache or write root", function()
    assert.equal("write:reviewer", exits("touch ~/tools/x", 'caches = ["~/x/.."]'))
    assert.equal("write:reviewer", exits("touch ~/tools/x", 'write_roots = ["/home/./u"]'))
  end)
end)
