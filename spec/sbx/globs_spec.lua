-- Names of files that projects hide: patterns, the search and its limits, what a link may hide.
local globs = require "efr.sbx.globs"

local DEFAULT <const> = { ".env", ".env.*", "!.env.example", "!.env.sample" }

-- tree: directory -> { name = "file" | "dir" | "link" }; reads counts the directories read.
local function disk(tree, stamps)
  local self = { reads = 0 }
  function self.list(dir, max)
    self.reads = self.reads + 1
    local out = {}
    for name, kind in pairs(tree[dir]) do
      if #out < max then out[#out + 1] = { name = name, type = kind } end
    end
    return out
  end
  function self.stamp(dir)
    if not tree[dir] then return nil end
    return stamps and stamps[dir] or "old", not (stamps and stamps[dir] == "fresh")
  end
  return self
end

local function scan(tree, old, from)
  local on = from or disk(tree)
  local found, kept = globs.scan("/p", globs.matcher(DEFAULT), on, old)
  table.sort(found)
  return found, kept, on
end

describe("sbx.globs", function()
  it("matches whole names, byte for byte, and ! keeps one", function()
    local matches = globs.matcher({ ".env", "*.k?y", "a+b", "!x.key" })
    for _, name in ipairs({ ".env", "a.key", "\xff\n.kay", "a+b" }) do
      assert.is_true(matches(name), name)
    end
    for _, name in ipairs({ ".envx", "x.env", "xenv", "a.key2", "x.key", "aab", "" }) do
      assert.is_false(matches(name), name)
    end
  end)

  it("finds three levels deep and leaves out what builds fill", function()
    assert.are.same({ "/p/.env", "/p/a/.env.local", "/p/a/b/.env" }, (scan({
      ["/p"] = { [".env"] = "file", [".env.example"] = "file", a = "dir", node_modules = "dir" },
      ["/p/a"] = { [".env.local"] = "link", b = "dir" },
      ["/p/a/b"] = { [".env"] = "file", c = "dir" },
      ["/p/a/b/c"] = { [".env"] = "file" },
      ["/p/node_modules"] = { [".env"] = "file" },
    })))
  end)

  it("does not enter links", function()
    local found = scan({ ["/p"] = { a = "link" }, ["/p/a"] = { [".env"] = "file" } })
    assert.are.same({}, found)
  end)

  it("stops after 20 000 entries, the nearest first", function()
    local many = { [".env"] = "file" }
    for i = 1, 19999 do many["f" .. i] = "file" end
    local found = scan({
      ["/p"] = { a = "dir" }, ["/p/a"] = many,
    })
    assert.are.same({ "/p/a/.env" }, found)
    many.b = "dir"
    local _, _, on = scan({ ["/p"] = { a = "dir" }, ["/p/a"] = many, ["/p/a/b"] = {} })
    assert.are.equal(2, on.reads)
  end)

  it("reads a directory again only when it changed or is too fresh to tell", function()
    local tree = { ["/p"] = { a = "dir", b = "dir" }, ["/p/a"] = {}, ["/p/b"] = {} }
    local stamps = { ["/p/b"] = "fresh" }
    local on = disk(tree, stamps)
    local _, kept = scan(tree, nil, on)
    assert.are.equal(3, on.reads)
    tree["/p/a"][".env"], tree["/p/b"][".env"] = "file", "file"
    assert.are.same({ "/p/b/.env" }, (scan(tree, kept, on)))
    stamps["/p/a"] = "new"
    assert.are.same({ "/p/a/.env", "/p/b/.env" }, (scan(tree, kept, on)))
  end)

  it("tells from a path alone what a search would hide", function()
    local matches = globs.matcher(DEFAULT)
    for path, hidden in pairs({
      ["/p/.env"] = true, ["/p/a/b/.env"] = true, ["/p/a/.env/x"] = true, ["/p/a/b/c/.env"] = false,
      ["/p/dist/.env"] = false, ["/p/.env.sample"] = false, ["/q/.env"] = false, ["/p"] = false,
    }) do
      assert.are.equal(hidden, globs.covers(path, "/p", matches), path)
    end
  end)

  it("hides a link's target only when that is a file and not the system's", function()
    local things = {
      ["/p/.env"] = { real = "/p/.env", link = false, type = "file" },
      ["/p/1/.env"] = { real = "/srv/app.env", link = true, type = "file" },
      ["/p/2/.env"] = { real = "/home/u", link = true, type = "dir" },
      ["/p/3/.env"] = { real = "/usr/bin/zsh", link = true, type = "file" },
      ["/p/4/.env"] = { real = "/p/4/.env", link = false, type = "dir" },
      ["/p/5/.env"] = { real = "/p/5/.env", link = false, type = "dir" },
      ["/p/5/.env/pyvenv.cfg"] = { real = "/p/5/.env/pyvenv.cfg", link = false, type = "file" },
    }
    local found = { "/p/.env", "/p/1/.env", "/p/2/.env", "/p/3/.env", "/p/4/.env", "/p/5/.env",
      "/p/gone/.env" }
    assert.are.same({ "/p/.env", "/srv/app.env", "/p/4/.env" },
      globs.targets(found, function(path) return things[path] end))
  end)
end)
