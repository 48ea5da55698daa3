local load_config = require "efr.config.load"
local modules = require "efr.modules"
local schema = require "efr.config.schema"

local SCHEMA = schema.load(modules.list)

local function read(text, more)
  local opts = { schema = SCHEMA, text = text, path = "/c/config.toml", home = "/home/u" }
  for k, v in pairs(more or {}) do opts[k] = v end
  return load_config.load(opts)
end

local function err(text, more)
  local config, why, code = read(text, more)
  assert.is_nil(config)
  assert.equal("EFR_CONFIG", code)
  return why
end

describe("config.load", function()
  it("has defaults", function()
    local config = assert(read(nil))
    assert.equal("cautious", config:get("permissions.mode"))
    assert.equal("default", config:source("permissions.mode"))
    assert.same({}, config:get("sandbox.write_roots"))
    assert.equal("/home/u/Dropbox", config:get("sandbox.synced_dirs")[1])
    assert.is_nil(config:get("model.name"))
    assert.has_error(function() config:get("permissions.moed") end)
  end)

  it("takes file, environment and flags in this order", function()
    local text = 'log = "warn"\n[permissions]\nmode = "auto"\n'
    local config = assert(read(text))
    assert.same({ "warn", "file" }, { config:get("log"), config:source("log") })
    assert.same({ "auto", "file" }, { config:get("permissions.mode"),
      config:source("permissions.mode") })
    config = assert(read(text, { env = { EFR_LOG = "debug", EFR_MODE = "full" } }))
    assert.same({ "debug", "environment" }, { config:get("log"), config:source("log") })
    config = assert(read(text, { env = { EFR_LOG = "debug" }, flags = { log = "store=trace" } }))
    assert.same({ "store=trace", "flag" }, { config:get("log"), config:source("log") })
  end)

  it("refuses every unknown key and names it with its line", function()
    assert.equal("/c/config.toml line 2 column 1: unknown key permissions.moed",
      err '[permissions]\nmoed = "auto"\n')
    assert.equal("/c/config.toml line 1 column 2: unknown section [permission]",
      err "[permission]\n")
    assert.equal("/c/config.toml line 3 column 1: unknown key colour", err "# c\n\ncolour = 1\n")
    assert.equal("/c/config.toml line 1 column 1: permissions must be a table",
      err "permissions = 1\n")
    assert.equal("/c/config.toml line 1 column 8: unknown key model.deep",
      err "[model.deep]\nx = 1\n")
  end)

  it("checks kinds, choices and ranges", function()
    local rows = {
      { "[permissions]\nmode = 'yolo'",
        "permissions.mode must be one of manual, cautious, auto, full" },
      { "[permissions]\nmode = 'full'",
        "permissions.mode is full, which needs permissions.allow_full = true" },
      { "[conversation]\nmax_queued = 0", "conversation.max_queued must be between 1 and 1024" },
      { "[conversation]\nmax_queued = 1.0", "conversation.max_queued must be an integer" },
      { "[sandbox]\nenabled = 'yes'", "sandbox.enabled must be true or false" },
      { "[sandbox]\nmask = '/x'", "sandbox.mask must be a list" },
      { "[sandbox]\nmask = ['/x', 'y']",
        "sandbox.mask item 1 must be absolute or start with ~/, not y" },
      { "[shell]\nprogram = 'zsh'", "shell.program must be absolute or start with ~/, not zsh" },
      { "[sandbox]\nwrite_roots = ['~']",
        "sandbox.write_roots item 0 must not be / or hold the home directory" },
      { "[sandbox]\nwrite_roots = ['/home']",
        "sandbox.write_roots item 0 must not be / or hold the home directory" },
      { "[sandbox]\ncaches = ['~/c', '/']",
        "sandbox.caches item 1 must not be / or hold the home directory" },
      { "[sandbox]\nsynced_dirs = ['Dropbox']",
        "sandbox.synced_dirs item 0 must be absolute or start with ~/, not Dropbox" },
      { "[sandbox]\nprotect = ['p']",
        "sandbox.protect item 0 must be absolute or start with ~/, not p" },
      { "[sandbox]\nrebuildable = ['a/b']",
        "sandbox.rebuildable item 0 must be a name without a slash" },
      { "[sandbox]\nrebuildable = ['out', '..']",
        "sandbox.rebuildable item 1 must be a name without a slash" },
      { "[sandbox]\nwrite_projects = 'none'",
        "sandbox.write_projects must be one of turn, named, all" },
      { "[sandbox]\nenv_keep = ['A B']", "sandbox.env_keep item 0 must be the name of an " ..
        "environment variable, where * stands for any characters" },
      { "[model]\neffort = 'High!'", "model.effort must be 1 to 32 of a-z, 0-9, _ and -" },
      { "[openai_compatible]\nbase_url = 'ftp://x'",
        "openai_compatible.base_url must be an http or https URL" },
      { "[openai_compatible]\nbase_url = 'http://u:p@x'",
        "openai_compatible.base_url must not hold a user name or password" },
      { "[openai_compatible]\nmodels = [{context_window = 1}]",
        "openai_compatible.models item 0 has a key 'context_window' that must be between 1000 " ..
        "and 100000000" },
      { "[openai_compatible]\nmodels = [{}]", "openai_compatible.models item 0 has no key 'id'" },
      { "[openai_compatible]\nmodels = [1]",
        "openai_compatible.models item 0 must be a model id or a table with id" },
    }
    for _, row in ipairs(rows) do
      local why = err(row[1])
      assert.equal("/c/config.toml line 2: " .. row[2], (why:gsub(" column %d+", "")))
    end
    assert.is_truthy(err("log = 'loud'"):find("line 1 column 1: log 'loud' is no level", 1, true))
    assert.is_truthy(err("", { env = { EFR_LOG = "x=y" } }):find("EFR_LOG: log", 1, true))
    assert.is_truthy(err("a = "):find("/c/config.toml line 1 column 5: a value is expected", 1,
      true))
  end)

  it("gives the place of what is wrong", function()
    local function place(text)
      local _, _, _, at = read(text)
      return at.line, at.column, at.key
    end
    assert.same({ 2, 15, "sandbox.mask" }, { place "[sandbox]\nmask = ['/x', 'y']" })
    assert.same({ 2, 1, "sandbox.mask" }, { place "[sandbox]\nmask = 1" })
    assert.same({ 3, 4, "openai_compatible.models" },
      { place "[openai_compatible]\nmodels = [\n  {ctx = 1}]" })
    assert.same({ 1, 5 }, { place "a = " })
  end)

  it("gives values in the form in which they are used", function()
    local config = assert(read([[
[sandbox]
mask = ["~/x/", "/y"]
enabled = false
[openai_compatible]
base_url = "http://localhost:11434/v1/"
models = ["m", {id = "n", context_window = 4096}]
[model]
effort = "high"
]]))
    assert.same({ "/home/u/x", "/y" }, config:get("sandbox.mask"))
    assert.is_false(config:get("sandbox.enabled"))
    assert.equal("http://localhost:11434/v1", config:get("openai_compatible.base_url"))
    assert.same({ "m", { id = "n", context_window = 4096 } },
      config:get("openai_compatible.models"))
  end)

  it("takes the mode full with its gate", function()
    local config = assert(read("[permissions]\nmode = 'full'\nallow_full = true\n"))
    assert.equal("full", config:get("permissions.mode"))
  end)

  it("lists what needs a restart", function()
    local old = assert(read(nil))
    local new = assert(read("log = 'warn'\n[model]\nprovider = 'scripted'\nname = 'x'\n"))
    assert.same({ "model.provider" }, load_config.restart_needed(old, new))
    assert.same({}, load_config.restart_needed(old, assert(read(nil))))
  end)

  it("reads sections inside sections", function()
    local config = assert(read("[render.colors]\nlink = 4\n[render.colors.diff]\nadd = '#00ff00'\n"))
    assert.equal(4, config:get("render.colors.link"))
    assert.equal("#00ff00", config:get("render.colors.diff.add"))
    assert.equal("file", config:source("render.colors.diff.add"))
    local refused = {
      { "[render.colors]\nlnk = 4\n", "line 2 column 1: unknown key render.colors.lnk" },
      { "[render.colors.diff]\nadd = 16\n", "render.colors.diff.add must be #rrggbb" },
      { "[render]\ncolors = 3\n", "line 2 column 1: unknown key render.colors" },
      { "[render.tints]\na = 3\n", "unknown key render.tints" },
    }
    for _, row in ipairs(refused) do
      local got, why = read(row[1])
      assert.is_nil(got)
      assert.is_truthy(why:find(row[2], 1, true), why)
    end
  end)

  it("shows every setting with its source", function()
    local all = assert(read("[shell]\nlogin = false\n")):all()
    assert.equal("log", all[1].name)
    local seen = {}
    for _, row in ipairs(all) do seen[row.name] = row.source end
    assert.equal("file", seen["shell.login"])
    assert.equal("default", seen["render.motion"])
  end)
end)

local function doc_default(key)
  if key.default == nil then return "unset" end
  if type(key.default) == "table" then
    local items = {}
    for i, item in ipairs(key.default) do items[i] = ("%q"):format(item) end
    return "`[" .. table.concat(items, ", ") .. "]`"
  end
  return "`" .. tostring(key.default) .. "`"
end

-- The row of docs/config.md for one key.
local function doc_row(key)
  local range = key.choices and "`" .. table.concat(key.choices, "` `") .. "`"
    or key.min and ("%d-%d"):format(key.min, key.max) or key.shape or ""
  local doc = key.doc .. (key.restart and " Applies after a restart of efrd." or "")
  return ("| `%s` | %s | %s | %s | %s |"):format(key.name, key.type, doc_default(key), range, doc)
end

describe("config.sections", function()
  it("have a sentence, a kind and a default of their own kind for each key", function()
    for _, name in ipairs(SCHEMA.order) do
      local key = SCHEMA.keys[name]
      assert.is_truthy(key.doc and key.doc:find("%.$"), name)
      if key.default ~= nil and key.type ~= "list" and key.type ~= "rules" and key.type ~= "allow" then
        assert.is_not_nil(schema.check(key, key.default, "/home/u"), name)
      end
    end
  end)

  -- A setting that nothing reads would be ignored in silence.
  it("are each read somewhere", function()
    local root = os.getenv("EFR_SOURCE") or "."
    local text = {}
    for _, name in ipairs(modules.list("efr.")) do
      local path = name:gsub("%.", "/")
      path = path:find("^efr/cli/") and path:sub(5) or "lua/" .. path
      local file = not path:find("/config/sections/") and io.open(root .. "/" .. path .. ".lua")
      if file then
        text[#text + 1] = file:read("a")
        file:close()
      end
    end
    text = table.concat(text, "\n")
    for _, name in ipairs(SCHEMA.order) do
      assert(text:find('"' .. name .. '"', 1, true), "nothing reads " .. name)
    end
  end)

  it("stand in docs/config.md as they are here", function()
    local file = assert(io.open("docs/config.md"))
    local text = file:read("a")
    file:close()
    for _, section in ipairs(SCHEMA.sections) do
      for _, key in ipairs(section.keys) do
        local row = doc_row(key)
        assert(text:find(row, 1, true), "docs/config.md has no row\n" .. row)
      end
    end
  end)
end)
