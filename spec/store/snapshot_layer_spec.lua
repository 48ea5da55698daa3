-- What an overlay's layer makes of a snapshot tree: names that come and go, whiteouts, opaque directories,
-- directories that become empty, what a tree left out, what stood above the overlay. Pure.
local layer = require "efr.store.snapshot_layer"

describe("a layer over a tree", function()
  local function file(mode) return { type = "file", mode = mode or 420, size = 1, uid = 0, gid = 0 } end
  local function dir(mode) return { type = "dir", mode = mode or 493, uid = 0, gid = 0 } end
  local GONE <const> = { type = "char", mode = 0, size = 0, uid = 0, gid = 0 }

  -- base: names; returns the names afterwards, those of the layer as "+name".
  local function after(base, entries, opts)
    opts = opts or {}
    local listing, out = {}, {}
    for _, name in ipairs(base) do
      listing[name] = { mode = "100644", oid = "1" }
      out[name] = true
    end
    local lines, told = layer.merge(listing, { entries = entries, opaque = opts.opaque or {} },
      { as_root = false, shut = opts.shut or {} })
    for _, line in ipairs(lines) do if not line.mode then out[line.name] = nil end end
    for _, line in ipairs(lines) do
      if line.mode then
        out[line.name] = nil
        out[line.change and "+" .. line.name or line.name] = true
      end
    end
    local list = {}
    for name in pairs(out) do list[#list + 1] = name end
    table.sort(list)
    return table.concat(list, " "), table.concat(told, " ")
  end

  for _, case in ipairs {
    { "changes, adds and keeps", { "a", "b", "d/x" },
      { a = file(), d = dir(), ["d/n"] = file() }, "+a +d/n b d/x" },
    { "removes a file", { "a", "b" }, { a = GONE }, "b" },
    { "removes a directory", { "a", "d/x", "d/e/y", "dd" }, { d = GONE }, "a dd" },
    { "leaves an empty directory", { "d/x" }, { d = dir(), ["d/x"] = GONE }, "d/\1d755" },
    { "fills an empty directory", { "d/\1d755" }, { d = dir(), ["d/x"] = file() }, "+d/x" },
    { "keeps a mode that is not usual", { "d/\1d700", "d/x" }, { d = dir(448), ["d/n"] = file() },
      "+d/n d/\1d700 d/x" },
    { "changes the mode of a directory", { "d/x" }, { d = dir(448) }, "d/\1d700 d/x" },
    { "changes the mode of a file", { "a" }, { a = file(384) }, "+a\1m600" },
    { "puts a file where a directory was", { "d/x", "d/\1d700" }, { d = file() }, "+d" },
    { "puts a directory where a file was", { "d" }, { d = dir(), ["d/x"] = file() }, "+d/x" },
  } do
    it(case[1], function() assert.equal(case[4], (after(case[2], case[3]))) end)
  end

  it("hides what lies below a directory that was made anew", function()
    assert.equal("+d/n", (after({ "d/x", "d/e/y" }, { d = dir(), ["d/n"] = file() },
      { opaque = { d = true } })))
    assert.equal("+d/n d/e/\1d755", (after({ "d/x", "d/e/y" },
      { d = dir(), ["d/n"] = file(), ["d/e"] = dir() }, { opaque = { d = true, ["d/e"] = true } })))
  end)

  it("touches nothing that the tree left out, and tells", function()
    local names, told = after({ "t\1uP", "n\1uN", "big\1uB.1.1", "a" },
      { t = dir(), ["t/o"] = file(), n = GONE, big = file(), a = file() })
    assert.equal("+a big\1uB.1.1 n\1uN t\1uP", names)
    assert.equal("big n t", told)
  end)

  it("touches nothing that stood above the overlay, also when its directory was moved away", function()
    local shut = { shut = { "d/.env", "e/floor" } }
    local names, told = after({ "d/.env", "d/x", "e/floor/f" },
      { d = dir(), ["d/.env"] = file(), ["d/x"] = GONE, e = dir(), ["e/floor"] = dir(),
        ["e/floor/g"] = file() }, shut)
    assert.equal("d/.env e/floor/f", names)
    assert.equal("d/.env e/floor", told)
    names, told = after({ "d/.env", "d/x" }, { d = file() }, shut)
    assert.equal("d/.env", names)
    assert.equal("d", told)
    names = after({ "d/.env", "d/x", "d/\1d700" }, { d = GONE, o = dir(), ["o/x"] = file() }, shut)
    assert.equal("+o/x d/\1d700 d/.env", names)
    names, told = after({ "a" }, { d = dir(), ["d/.env"] = file() }, shut)
    assert.equal("a d/\1d755", names)
    assert.equal("d/.env", told)
  end)
end)
