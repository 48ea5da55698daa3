-- Read masks: a row for each group, made from the tables, so that a new entry is tested by
-- existing.
local masks = require "efr.sbx.masks"
local world = dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/sbx/world.lua")

local function collect(changes, files)
  local out = {}
  for _, mask in ipairs(assert(masks.collect(world.spec(changes, files)))) do
    out[mask.path] = mask.type
  end
  return out
end

describe("sbx.masks", function()
  for _, group in ipairs({ "STORES", "TOOL_CREDENTIALS", "PROFILES", "HISTORIES" }) do
    for _, name in ipairs(masks[group]) do
      it("hides ~/" .. name, function()
        local path = "/home/u/" .. name
        assert.are.equal("file", collect(nil, { [path] = "file" })[path])
        assert.is_nil(collect()[path])
      end)
    end
  end
  for _, name in ipairs(masks.VARIABLES) do
    it("hides the file of " .. name, function()
      local env = { [name] = "/home/u/x" }
      assert.are.equal("file", collect({ env = env }, { ["/home/u/x"] = "file" })["/home/u/x"])
    end)
  end
  for _, pattern in ipairs(masks.SOCKET_DIRS) do
    it("hides " .. pattern, function()
      local path = pattern:gsub("%*", "-one")
      assert.are.equal("dir", collect(nil, { [path] = "dir" })[path])
    end)
  end
  for _, pattern in ipairs(masks.ROOT) do
    it("hides " .. pattern .. " from root alone", function()
      local path = pattern:gsub("%*", "rsa")
      assert.are.equal("file", collect({ uid = 0 }, { [path] = "file" })[path])
      assert.is_nil(collect({ uid = 1000 }, { [path] = "file" })[path])
    end)
  end

  it("hides engine secrets, also of every home as root", function()
    local files = { ["/home/v/.ssh"] = "dir", ["/home/u/.netrc"] = "file" }
    local seen = collect({ uid = 0, homes = { "/home/v", "/" } }, files)
    assert.are.equal("dir", seen["/home/v/.ssh"])
    assert.are.equal("file", seen["/home/u/.netrc"])
    assert.are.equal("file", seen["/etc/shadow"])
    assert.is_nil(collect({ uid = 1000, homes = { "/home/v" } }, files)["/home/v/.ssh"])
  end)

  it("lies on the target of a link, and drops what another mask hides already", function()
    local seen = collect({ masks = { "/home/u/l", "/home/u/.ssh/deep" } }, {
      ["/home/u/l"] = { link = "/opt/real" }, ["/opt/real"] = "file",
      ["/home/u/.ssh/deep"] = "file",
    })
    assert.are.equal("file", seen["/opt/real"])
    assert.is_nil(seen["/home/u/l"])
    assert.is_nil(seen["/home/u/.ssh/deep"])
  end)

  it("never hides a device, which every call has of its own", function()
    local seen = collect({ env = { HISTFILE = "/dev/null" } }, { ["/dev/null"] = "char" })
    assert.is_nil(seen["/dev/null"])
  end)

  it("hides user masks and secret paths of the settings", function()
    local files = { ["/a"] = "dir", ["/b"] = "file" }
    local seen = collect({ masks = { "/a" }, secret_paths = { "/b" } }, files)
    assert.are.equal("dir", seen["/a"])
    assert.are.equal("file", seen["/b"])
  end)
end)
