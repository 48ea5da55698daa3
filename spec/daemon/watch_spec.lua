-- Which changes of the config root count, with real directories and a real loop.

local fs = require "efr.fs"
local loop = require "spec.host.loop"
local sys = require "efr.sys"
local uv = require "luv"
local watch = require "efr.daemon.watch"

local QUIET_LOG <const> = { warn = function() end }

describe("daemon.watch", function()
  local dir, root, self, changes, armed

  before_each(function()
    dir = "/tmp/efr-settings-" .. sys.uuid7()
    root = dir .. "/config"
    assert(fs.mkdirs(root, 448))
    changes = 0
  end)
  after_each(function()
    if self then self:close() end
    self = nil
    assert(fs.rmtree(dir))
  end)

  -- A timer that counts how often it was set and runs when the spec says so: no spec waits.
  local function start()
    armed = {}
    local clock = 0
    local fake = {
      now = function() return clock end,
      new_timer = function()
        return {
          start = function(_, ms, _, fn) armed[#armed + 1] = { ms = ms, fn = fn } end,
          close = function() end,
        }
      end,
      advance = function(ms) clock = clock + ms end,
    }
    self = assert(watch.new {
      watch = require "efr.watch", fs = fs, uv = fake, log = QUIET_LOG,
      paths = { root .. "/config.toml", root .. "/projects.toml" },
      folders = { root .. "/rules.d" }, on_change = function() changes = changes + 1 end,
    })
    return fake
  end

  local function write(path, text)
    local fd = assert(uv.fs_open(path, "w", 384))
    assert(uv.fs_write(fd, text or "x"))
    assert(uv.fs_close(fd))
  end

  -- How many events of a change count. Events come in order: when the last write of the marker is
  -- there, all before it are.
  local function counted(change)
    write(root .. "/rules.d/marker")
    loop.wait_until(function() return #armed > 0 end)
    armed = {}
    change()
    write(root .. "/rules.d/marker")
    loop.wait_until(function() return #armed > 0 end)
    return #armed - 1
  end

  it("sees each way to save, and no other name", function()
    assert(fs.mkdirs(root .. "/rules.d", 448))
    write(root .. "/config.toml")
    write(root .. "/rules.d/marker")
    start()
    local file = root .. "/config.toml"
    assert.equal(1, counted(function() write(file) end))
    assert.equal(0, counted(function() write(root .. "/.config.toml.swp") end))
    assert.equal(1, counted(function() assert(fs.rename(root .. "/.config.toml.swp", file)) end))
    assert.equal(1, counted(function() assert(fs.unlink(file)) end))
    assert.equal(1, counted(function() assert(fs.symlink("other.toml", file)) end))
    assert.equal(2, counted(function() write(root .. "/projects.toml") end))
    assert.equal(2, counted(function() write(root .. "/rules.d/new.lua") end))
    armed[#armed].fn()
    -- Now the link's target counts as well.
    assert.equal(2, counted(function() write(root .. "/other.toml") end))
    assert.equal(1, changes)
  end)

  it("waits for 200 ms of quiet, but not for ever", function()
    local clock = start()
    local count = 0
    local function change()
      count = count + 1
      armed = {}
      assert(fs.symlink("nowhere", root .. "/config.toml"))
      loop.wait_until(function() return #armed > 0 end)
      assert(fs.unlink(root .. "/config.toml"))
      loop.wait_until(function() return #armed > 1 end)
      return armed[#armed].ms
    end
    assert.equal(200, change())
    clock.advance(1900)
    assert.equal(100, change())
    clock.advance(500)
    assert.equal(0, change())
    assert.equal(0, changes)
    armed[#armed].fn()
    assert.equal(1, changes)
    assert.equal(200, change())
  end)

  it("follows links to their targets, and awaits what is missing", function()
    assert(fs.mkdirs(dir .. "/dots/deep", 448))
    assert(fs.symlink("../dots/one", root .. "/config.toml"))
    assert(fs.symlink("deep/two", dir .. "/dots/one"))
    assert.same({
      [root] = { ["config.toml"] = true, ["rules.d"] = true },
      [root .. "/../dots"] = { one = true },
      [root .. "/../dots/deep"] = { two = true },
    }, watch.directories(fs, { root .. "/config.toml" }, { root .. "/rules.d" }))
    assert.same({ [dir] = { missing = true } },
      watch.directories(fs, { dir .. "/missing/config.toml" }, {}))
    assert(fs.mkdirs(root .. "/rules.d", 448))
    assert.same({ [root] = { ["rules.d"] = true }, [root .. "/rules.d"] = { ["/"] = true } },
      watch.directories(fs, {}, { root .. "/rules.d" }))
    -- A link that leads to itself ends.
    assert(fs.symlink("loop", root .. "/loop"))
    watch.directories(fs, { root .. "/loop" }, {})
  end)

  it("watches a directory that comes later", function()
    assert(fs.rmtree(root))
    start()
    assert(fs.mkdirs(root, 448))
    loop.wait_until(function() return #armed > 0 end)
    armed[#armed].fn()
    armed = {}
    write(root .. "/config.toml")
    loop.wait_until(function() return #armed > 0 end)
    assert(#armed > 0)
    -- The whole directory goes and comes again.
    armed[#armed].fn()
    armed = {}
    assert(fs.rmtree(root))
    loop.wait_until(function() return #armed > 0 end)
    armed[#armed].fn()
    armed = {}
    assert(fs.mkdirs(root, 448))
    loop.wait_until(function() return #armed > 0 end)
  end)
end)
