-- The trusted copy of the launcher on a real disk: made at the start, checked before each use. Needs
-- efr-lua. Not covered: that calls run with it (calls_spec), roots that are noexec (e2e/sandbox.sh).
if not package.preload["efr.fs"] then return end
local fs, sys, uv = require "efr.fs", require "efr.sys", require "luv"
local launcher_of = require "efr.sbx.launcher"

describe("sbx.launcher", function()
  local base, app, settings, projects, changed_mode

  local function write(path, bytes, mode)
    fs.unlink(path)
    assert(fs.write_atomic(path, bytes, mode or 493))
  end

  before_each(function()
    base = ("%s/efr-launcher-spec.%d"):format(os.getenv("HOME"), sys.getpid())
    for _, name in ipairs({ "bin", "lib/efr", "runtime", "data" }) do
      assert(fs.mkdirs(base .. "/" .. name, 448))
    end
    write(base .. "/bin/efr-sbx", "#!/bin/sh\necho installed\n")
    settings, projects, changed_mode = {}, {}, nil
    app = {
      ports = {
        fs = fs,
        sys = setmetatable({ exe_path = function() return base .. "/bin/efrd" end },
          { __index = sys }),
        uv = setmetatable({
          fs_access = function(path, mode)
            if changed_mode and path:find(changed_mode, 1, true) then return false end
            return uv.fs_access(path, mode)
          end,
        }, { __index = uv }),
      },
      paths = { runtime = base .. "/runtime", data = base .. "/data" },
      config = { get = function(_, key) return settings[key] end },
      projects = { list = function() return projects end },
    }
  end)

  after_each(function() fs.rmtree(base) end)

  local function refused(launcher, words)
    local path, err, code = launcher:path()
    assert.is_nil(path)
    assert.is_truthy(err:find(words, 1, true), err)
    assert.equal("EFR_SANDBOX", code)
  end

  it("is a copy, mode 0500, in the runtime root", function()
    local launcher = launcher_of.new(app)
    local path = base .. "/runtime/bin/efr-sbx"
    assert.equal(path, launcher:path())
    assert.equal(320, fs.stat(path).mode)
    assert.equal("#!/bin/sh\necho installed\n", fs.read_file(path))
    assert.same({ source = fs.realpath(base .. "/bin/efr-sbx"), copy = path },
      launcher:describe())
    assert.same({ "efr-sbx" }, { fs.readdir(base .. "/runtime/bin")[1].name })
  end)

  it("replaces what an earlier start left, and stays that of the start", function()
    assert(fs.mkdirs(base .. "/runtime/bin", 448))
    write(base .. "/runtime/bin/efr-sbx", "old")
    local launcher = launcher_of.new(app)
    write(base .. "/bin/efr-sbx", "an upgrade")
    assert.equal("#!/bin/sh\necho installed\n", fs.read_file(assert(launcher:path())))
  end)

  it("uses again what an earlier start left when it is the same", function()
    local path = assert(launcher_of.new(app):path())
    local before = fs.stat(path)
    local launcher = launcher_of.new(app)
    assert.equal(path, launcher:path())
    assert.equal(before.ino, fs.stat(path).ino)
  end)

  for name, change in pairs({
    ["has another mode"] = function(path) assert(uv.fs_chmod(path, 448)) end,
    ["has a second name"] = function(path) assert(uv.fs_link(path, base .. "/second")) end,
    ["is a link to such a file"] = function(path)
      assert(fs.rename(path, base .. "/elsewhere"))
      assert(fs.symlink(base .. "/elsewhere", path))
    end,
    ["ends earlier"] = function(path) write(path, "#!/bin/sh\n", 320) end,
    ["goes on"] = function(path) write(path, "#!/bin/sh\necho installed\n\n", 320) end,
  }) do
    it("is made anew when that of an earlier start " .. name, function()
      local path = assert(launcher_of.new(app):path())
      change(path)
      local before = fs.stat(path)
      assert.equal(path, launcher_of.new(app):path())
      local after = fs.lstat(path)
      assert.equal("file", after.type)
      assert.equal(320, after.mode)
      assert.are_not.equal(before.ino, after.ino)
      assert.equal("#!/bin/sh\necho installed\n", fs.read_file(path))
    end)
  end

  for name, change in pairs({
    ["other bytes"] = function(path)
      assert(uv.fs_chmod(path, 448))
      local file = assert(io.open(path, "r+b"))
      file:seek("set", 15)
      file:write("INST")
      file:close()
      assert(uv.fs_chmod(path, 320))
    end,
    ["another file of the same size"] = function(path)
      write(path, "#!/bin/sh\necho INSTALLED\n", 320)
    end,
    ["a link"] = function(path)
      fs.unlink(path)
      assert(fs.symlink(base .. "/bin/efr-sbx", path))
    end,
    ["another mode"] = function(path) assert(uv.fs_chmod(path, 448)) end,
    ["one more byte"] = function(path) write(path, "#!/bin/sh\necho installed\n\n", 320) end,
  }) do
    it("sees " .. name, function()
      local launcher = launcher_of.new(app)
      change(assert(launcher:path()))
      refused(launcher, "was changed")
    end)
  end

  it("sees that it is missing", function()
    local launcher = launcher_of.new(app)
    assert(fs.unlink(launcher:path()))
    refused(launcher, "is missing")
  end)

  it("takes a copy whose change time alone moved", function()
    local launcher = launcher_of.new(app)
    local path = assert(launcher:path())
    write(path, "#!/bin/sh\necho installed\n", 320)
    assert.equal(path, launcher:path())
    assert(fs.unlink(base .. "/bin/efr-sbx")) -- and does not read it each time
    assert.equal(path, launcher:path())
  end)

  it("refuses one that lies in a project or a write root, also later", function()
    projects = { { root = fs.realpath(base) } }
    refused(launcher_of.new(app), "lies in the project")
    projects = {}
    local launcher = launcher_of.new(app)
    assert(launcher:path())
    projects = { { root = fs.realpath(base) .. "/bin" } }
    refused(launcher, "lies in the project")
    projects = { { root = fs.realpath(base) .. "/bi" } } -- no whole name
    assert(launcher:path())
    settings["sandbox.write_roots"] = { base .. "/bin" }
    refused(launcher, "lies in the write root")
  end)

  it("refuses one that others can write", function()
    assert(uv.fs_chmod(base .. "/bin/efr-sbx", 511))
    refused(launcher_of.new(app), "can be written by others")
  end)

  it("finds it below lib/efr, and says when there is none", function()
    assert(fs.unlink(base .. "/bin/efr-sbx"))
    local launcher = launcher_of.new(app)
    refused(launcher, "efr-sbx is not installed")
    write(base .. "/lib/efr/efr-sbx", "#!/bin/sh\n")
    assert(launcher:path()) -- each use tries again
  end)

  it("lies in the data root where the runtime root cannot execute", function()
    changed_mode = "/runtime/"
    local launcher = launcher_of.new(app)
    assert.equal(base .. "/data/bin/efr-sbx", launcher:path())
    assert.is_truthy(launcher:describe().warning:find("is noexec", 1, true))
    assert.is_nil(fs.stat(base .. "/runtime/bin/efr-sbx"))
    changed_mode = "/bin/efr-sbx"
    refused(launcher_of.new(app), "cannot be executed")
  end)

  it("is used in place by efr itself", function()
    local launcher = launcher_of.new(app, { in_place = true })
    assert.equal(fs.realpath(base .. "/bin/efr-sbx"), launcher:path())
    assert.is_nil(fs.stat(base .. "/runtime/bin"))
    projects = { { root = fs.realpath(base) } }
    refused(launcher, "lies in the project")
  end)
end)
