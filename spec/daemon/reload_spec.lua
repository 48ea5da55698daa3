local modules = require "efr.modules"
local registry = require "efr.daemon.registry"
local reload = require "efr.daemon.reload"
local settings_schema = require "efr.config.schema"

local quiet = {}
for _, level in ipairs { "error", "warn", "info", "debug" } do
  quiet[level] = function() end
end

-- Files in memory.
local function fake_fs(files)
  return {
    files = files,
    read_file = function(path)
      if files[path] then
        return files[path]
      end
      return nil, "no such file", "ENOENT"
    end,
    write_atomic = function(path, text)
      files[path] = text
      return true
    end,
    mkdirs = function()
      return true
    end,
    realpath = function(path)
      if files[path] or path:find("^/home/u") then
        return path
      end
      return nil, "no such file or directory", "ENOENT"
    end,
    stat = function(path)
      return path:find("^/home/u") and { type = files[path] and "file" or "dir" } or nil
    end,
    lstat = function(path)
      if path == "/home/u/p/.git" then
        return { type = "dir" }
      elseif files[path] then
        return { type = "file" }
      end
      return nil, "no such file", "ENOENT"
    end,
  }
end

describe("daemon.reload", function()
  local fs, settings

  local function new(text)
    fs = fake_fs { ["/c/config.toml"] = text }
    local err
    settings, err = reload.new {
      fs = fs, log = quiet, schema = settings_schema.load(modules.list), path = "/c/config.toml",
      home = "/home/u", env = {}, flags = {},
    }
    return settings, err
  end

  it("works without a file and applies a change", function()
    assert(new(nil))
    assert.equal("cautious", settings:get "permissions.mode")
    local heard = 0
    settings:on_change(function()
      heard = heard + 1
    end)
    fs.files["/c/config.toml"] = '[permissions]\nmode = "auto"\n'
    assert.is_true(settings:reload())
    assert.same({ "auto", "file", 1 },
      { settings:get "permissions.mode", settings:source "permissions.mode", heard })
  end)

  it("keeps the old settings after an error and forgets the error when it is gone", function()
    assert(new '[permissions]\nmode = "auto"\n')
    fs.files["/c/config.toml"] = "[permissions]\nmode = 7\n"
    local ok, err = settings:reload()
    assert.is_nil(ok)
    assert.truthy(err:find("permissions.mode", 1, true))
    assert.equal(err, settings.reload_error)
    assert.equal("auto", settings:get "permissions.mode")
    fs.files["/c/config.toml"] = ""
    assert.is_true(settings:reload())
    assert.is_nil(settings.reload_error)
    assert.equal("cautious", settings:get "permissions.mode")
  end)

  it("holds a key that needs a restart at its running value", function()
    assert(new '[model]\nprovider = "scripted"\n')
    fs.files["/c/config.toml"] = '[model]\nname = "m"\n'
    assert.is_true(settings:reload())
    assert.same({ "model.provider" }, settings:restart_needed())
    assert.same({ "scripted", "m" }, { settings:get "model.provider", settings:get "model.name" })
    for _, entry in ipairs(settings:all()) do
      assert.are_equal(settings:get(entry.name), entry.value)
    end
    fs.files["/c/config.toml"] = '[model]\nprovider = "scripted"\n'
    assert.is_true(settings:reload())
    assert.same({}, settings:restart_needed())
  end)

  it("holds what loosens while full mode runs, and nothing that is stricter", function()
    assert(new '[permissions]\nsecret_paths = ["/k"]\n[sandbox]\nmask = ["/m"]\n')
    local runs = true
    settings:watch_full(function()
      return runs
    end)
    fs.files["/c/config.toml"] = '[permissions]\nmode = "auto"\n[sandbox]\nmask = ["/m", "/n"]\n'
    assert.is_true(settings:reload())
    assert.same({ "permissions.mode", "permissions.secret_paths" }, settings:waiting())
    assert.equal("cautious", settings:get "permissions.mode")
    assert.equal("default", settings:source "permissions.mode")
    assert.same({ "/k" }, settings:get "permissions.secret_paths")
    assert.same({ "/m", "/n" }, settings:get "sandbox.mask")
    -- Compared with what is in force, not with what waits.
    fs.files["/c/config.toml"] = '[permissions]\nmode = "manual"\nsecret_paths = ["/k", "/l"]\n'
    assert.is_true(settings:reload())
    assert.same({ "sandbox.mask" }, settings:waiting())
    assert.equal("manual", settings:get "permissions.mode")
    -- Of one list, what is stricter applies.
    fs.files["/c/config.toml"] = '[permissions]\nsecret_paths = ["/n"]\n[sandbox]\nmask = ["/o"]\n'
    assert.is_true(settings:reload())
    assert.same({ "/k", "/l", "/n" }, settings:get "permissions.secret_paths")
    assert.same({ "/m", "/n", "/o" }, settings:get "sandbox.mask")
    fs.files["/c/config.toml"] = ""
    runs = false
    assert.is_true(settings:reload())
    assert.same({}, settings:waiting())
    assert.same({}, settings:get "sandbox.mask")
  end)

  it("does not start with an error", function()
    local none, err = new "nonsense = 1\n"
    assert.is_nil(none)
    assert.truthy(err:find("nonsense", 1, true))
  end)
end)

describe("daemon.registry", function()
  local FILE <const> = "/home/u/.config/efr/projects.toml"
  local fs, projects

  before_each(function()
    fs = fake_fs {}
    local n = 0
    projects = registry.new {
      fs = fs, log = quiet, path = FILE, home = "/home/u",
      uuid7 = function()
        n = n + 1
        return ("0199aaaa-0000-7000-8000-%012d"):format(n)
      end,
    }
  end)

  it("adds, finds and removes", function()
    local project = assert(projects:add { path = "/home/u/p/sub/deep", git_root = true })
    assert.equal("/home/u/p", project.root)
    assert.equal(project.id, projects:containing("/home/u/p/x").id)
    assert.equal("/home/u/p", projects:by_id(project.id).root)
    local _, _, code = projects:add { path = "/home/u/p" }
    assert.equal("conflict", code)
    fs.files[FILE] = "# mine\n" .. fs.files[FILE]
    assert(projects:add { path = "/home/u/q", name = "Q" })
    assert.equal(2, #projects:list())
    assert(projects:remove "/home/u/p")
    assert.truthy(fs.files[FILE]:find("# mine", 1, true))
    assert.same({ "Q" }, { projects:list()[1].name })
    _, _, code = projects:remove "/home/u/p"
    assert.equal("not_found", code)
  end)

  it("refuses what can be no project", function()
    for _, path in ipairs { "relative", "/nowhere/at/all", "/home/u" } do
      local project, _, code = projects:add { path = path, git_root = true }
      assert.is_nil(project)
      assert.equal("invalid", code, path)
    end
    assert.is_nil(fs.files[FILE])
    assert.equal("/home/u", assert(projects:add { path = "/home/u" }).root)
  end)

  it("keeps the old list when the file is broken, and does not write over it", function()
    assert(projects:add { path = "/home/u/p" })
    fs.files[FILE] = "not toml ["
    assert.is_nil((projects:reload()))
    assert.truthy(projects.error)
    assert.equal(1, #projects:list())
    local _, _, code = projects:add { path = "/home/u/q" }
    assert.equal("invalid", code)
    assert.equal("not toml [", fs.files[FILE])
  end)

  it("loses no change of somebody else", function()
    assert(projects:add { path = "/home/u/p" })
    local read, reads = fs.read_file, 0
    fs.read_file = function(path)
      reads = reads + 1
      if reads == 2 then
        fs.files[FILE] = fs.files[FILE] .. "# by another hand\n"
      end
      return read(path)
    end
    local _, _, code = projects:add { path = "/home/u/q" }
    assert.equal("conflict", code)
    assert.truthy(fs.files[FILE]:find("by another hand", 1, true))
  end)
end)
