local fs = require "efr.fs"
local loop = require "spec.host.loop"
local sys = require "efr.sys"
local watch = require "efr.watch"

describe("efr.watch", function()
  local dir

  before_each(function()
    dir = "/tmp/efr-watch-" .. sys.uuid7()
    assert(fs.mkdirs(dir, 448))
  end)
  after_each(function() assert(fs.rmtree(dir)) end)

  it("tells what happens in a directory, by its id", function()
    local seen = {}
    local self <close> = assert(watch.open(function(id, kind, name)
      seen[#seen + 1] = ("%d %s %s"):format(id, kind, tostring(name))
    end))
    local id = assert(self:add(dir))
    assert.equal(id, self:add(dir))
    assert(fs.symlink("x", dir .. "/a"))
    assert(fs.rename(dir .. "/a", dir .. "/b"))
    assert(fs.unlink(dir .. "/b"))
    assert.is_true(self:remove(id))
    loop.wait_until(function() return #seen == 5 end)
    for i, want in ipairs { "create a", "move a", "move b", "delete b", "gone nil" } do
      assert.equal(("%d %s"):format(id, want), seen[i])
    end
    local ok, err, code = self:remove(id)
    assert.same({ nil, "watch no more: Invalid argument", "EINVAL" }, { ok, err, code })
  end)

  it("can be closed in its own callback, and twice", function()
    local self, count = nil, 0
    self = assert(watch.open(function()
      count = count + 1
      self:close()
    end))
    assert(self:add(dir))
    assert(fs.symlink("x", dir .. "/a"))
    assert(fs.symlink("x", dir .. "/b"))
    loop.wait_until(function() return count > 0 end)
    assert.equal(1, count)
    self:close()
    assert.equal("efr.watch (closed)", tostring(self))
    assert.same({ nil, "closed", "EFR_CLOSED" }, { self:add(dir) })
  end)

  it("refuses what is no directory", function()
    local self <close> = assert(watch.open(function() end))
    assert.equal("ENOENT", select(3, self:add(dir .. "/missing")))
    assert.has_error(function() self:add("a\0b") end)
    assert.has_error(function() self:add("") end)
    assert.has_error(function() watch.open() end)
  end)
end)
