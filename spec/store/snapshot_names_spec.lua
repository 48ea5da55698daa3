-- Names in snapshot trees: what goes in comes out, whatever the bytes.
local names = require "efr.store.snapshot_names"

describe("store.snapshot_names", function()
  local PATHS <const> = {
    "a", "src/a.rs", "git~1", ".GIT/x", "x/.git/y", "a\1b", "\1", "\1m600", "\1d755", "x\1uB.1.2",
    "a\nb", "\255\254", "x/\1g.git", ".gitignore", "\1e", "dir\1/d/\1\1", "a\\b", "\1u", "a\1m",
  }

  local function back(path, entry, as_root)
    local mode, name = names.encode(path, entry, as_root)
    return name and names.decode(mode, name), name
  end

  for _, path in ipairs(PATHS) do
    it(("keeps the path %q"):format(path), function()
      for _, mode in ipairs { 420, 493, 384, 511, 0, 2541 } do
        local found = back(path, { type = "file", mode = mode, uid = 7, gid = 8 }, true)
        assert.same({ path = path, kind = "file", mode = mode & 511, uid = 7, gid = 8 }, found)
        found = back(path, { type = "file", mode = mode, uid = 7, gid = 8 }, false)
        assert.same({ path = path, kind = "file", mode = mode & 511 }, found)
        found = back(path, { type = "dir", mode = mode, uid = 0, gid = 0, empty = true }, true)
        assert.same({ path = path, kind = "dir", mode = mode & 511 }, found)
      end
      assert.same({ path = path, kind = "link", mode = 511 },
        (back(path, { type = "link", mode = 511, uid = 1, gid = 1 }, false)))
      assert.same({ path = path, kind = "left", code = "B" }, (back(path,
        { type = "file", mark = "big", size = 5, ctime_ns = 9 }, false)))
      assert.same({ path = path, kind = "left", code = "P" },
        (back(path, { type = "dir", mark = "passed" }, false)))
    end)
  end

  it("gives no two things the same name, and no name that git refuses", function()
    local seen = {}
    for _, path in ipairs(PATHS) do
      for _, entry in ipairs {
        { type = "file", mode = 420 }, { type = "file", mode = 384 },
        { type = "dir", mode = 448 }, { type = "file", mark = "big", size = 1, ctime_ns = 2 },
      } do
        local _, name = back(path, entry, false)
        assert.is_nil(seen[name], name)
        seen[name] = true
        for part in name:gmatch("[^/]+") do assert.not_equal(".git", part:lower()) end
      end
    end
  end)

  it("needs no name for an ordinary directory", function()
    assert.is_nil((names.encode("d", { type = "dir", mode = 493, empty = false }, false)))
  end)
end)
