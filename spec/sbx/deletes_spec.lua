-- What calls deleted from caches: reading the list, checking each path, deleting in the real cache.
-- The last part needs efr's own Lua state (C modules).
local deletes = require "efr.sbx.deletes"

local function list(...)
  return table.concat({ "efr-deletes", "1", ... }, "\0") .. "\0"
end

describe("sbx.deletes", function()
  it("reads the launcher's list", function()
    assert.are.same({
      { cache = "/h/.cache", names = { "a/b", "c\n\xFF" }, other = 3 },
      { cache = "/h/.npm", names = {}, other = 1 },
    }, deletes.parse(list("cache", "/h/.cache", "gone", "a/b", "gone", "c\n\xFF", "other", "3",
      "cache", "/h/.npm", "other", "1", "end")))
  end)

  for name, bytes in pairs({
    ["no end"] = list("cache", "/a", "gone", "b"), ["a cut"] = list("cache", "/a", "end"):sub(1, -2),
    ["a name before its cache"] = list("gone", "b", "end"),
    ["an empty name"] = list("cache", "/a", "gone", "", "end"),
    ["a relative cache"] = list("cache", "a", "end"),
    ["a bad number"] = list("cache", "/a", "other", "-1", "end"),
    ["a number that is too large"] = list("cache", "/a", "other", "99999999", "end"),
    ["an unknown field"] = list("cache", "/a", "colour", "x", "end"),
    ["another magic"] = "efr-records\0" .. "1\0end\0", ["nothing"] = "",
  }) do
    it("refuses " .. name, function()
      local out, err = deletes.parse(bytes)
      assert.is_nil(out)
      assert.is_string(err)
    end)
  end

  local MOUNTS <const> = {
    { kind = "overlay", path = "/h/.cache" }, { kind = "mask", path = "/h/.cache/secret" },
    { kind = "floor", path = "/h/.cache/tool/bin" }, { kind = "root", path = "/h/.cache/p/app" },
    { kind = "mask", path = "/h/.ssh" },
  }
  local function check(names, mounts)
    return deletes.check({ cache = "/h/.cache", names = names, other = 0 }, mounts or MOUNTS,
      function(text) return not text:find("\xFF", 1, true) end)
  end

  it("lets paths of the cache pass, and only counts names that are no UTF-8", function()
    assert.are.same({ cache = "/h/.cache", names = { "a/b", "tool/lib" }, other = 1 },
      check({ "a/b", "x\xFF", "tool/lib" }))
  end)

  for name, bad in pairs({
    ["a mask"] = "secret", ["inside a mask"] = "secret/key", ["a floor"] = "tool/bin/x",
    ["what holds a floor"] = "tool", ["a write root"] = "p/app/x", ["what holds a root"] = "p",
    ["a way out"] = "../.ssh/id", ["a dot"] = "a/./b", ["an empty part"] = "a//b",
    ["the end of a path"] = "a/", ["an absolute path"] = "/etc/passwd",
  }) do
    it("refuses the whole list for " .. name, function()
      local out, err = check({ "good", bad })
      assert.is_nil(out)
      assert.is_string(err)
    end)
  end

  it("refuses a list of what is no overlay any more", function()
    assert.is_nil(check({ "a" }, { { kind = "root", path = "/h/.cache" } }))
    assert.is_nil(check({ "a" }, {}))
  end)

  if not package.preload["efr.fs"] then return end

  it("deletes by descriptors, and follows nothing", function()
    local fs, dir = require "efr.fs", require "efr.dir"
    local base = os.tmpname()
    os.remove(base)
    assert(fs.mkdirs(base .. "/cache/big/sub", 448))
    assert(fs.mkdirs(base .. "/outside", 448))
    assert(fs.write_atomic(base .. "/cache/big/sub/f", ("x"):rep(5000)))
    assert(fs.write_atomic(base .. "/cache/one", ("x"):rep(100)))
    assert(fs.write_atomic(base .. "/cache/stays", "x"))
    assert(fs.write_atomic(base .. "/outside/f", "x"))
    assert(fs.symlink(base .. "/outside", base .. "/cache/link"))
    assert(fs.symlink(base .. "/outside", base .. "/cache/gone-link"))
    assert(fs.symlink(base .. "/outside/f", base .. "/cache/big/link"))
    local pauses = 0
    local env = { open = dir.open, pause = function() pauses = pauses + 1 end }
    local wanted = { cache = base .. "/cache", other = 0,
      names = { "big", "one", "missing", "missing/x", "link/f", "gone-link" } }
    local there, bytes = deletes.measure(env, wanted)
    assert.are.same({ "big", "one", "gone-link" }, there.names)
    assert.is_true(bytes >= 5100 and bytes < 6000, bytes)
    local count, freed, err = deletes.apply(env, wanted)
    assert.is_nil(err)
    assert.are.equal(3, count)
    assert.are.equal(bytes, freed)
    assert.is_nil(fs.lstat(base .. "/cache/big"))
    assert.is_nil(fs.lstat(base .. "/cache/gone-link"))
    assert.are.equal("x", fs.read_file(base .. "/outside/f"))
    assert.are.equal("x", fs.read_file(base .. "/cache/stays"))
    assert.is_truthy(fs.lstat(base .. "/cache/link"))
    -- A cache that became a link is not opened.
    assert(fs.symlink(base .. "/cache", base .. "/other"))
    assert.are.equal(0, (deletes.apply(env, { cache = base .. "/other", names = { "stays" } })))
    assert.are.equal("x", fs.read_file(base .. "/cache/stays"))
    assert(fs.rmtree(base))
  end)
end)
