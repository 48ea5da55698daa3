-- When an answer of git's is kept, and when a kept one is used: over a table of files with the times
-- of their last change. With real git: git_code_spec.
local git_kept = require "efr.perm.git_kept"
local text = require "efr.util.text"

local SECOND <const> = 1000000000
local NOW <const> = 100 * SECOND

describe("perm.git_kept", function()
  local files, links, kept

  -- Follows links of the table, as the kernel would.
  local function real(path)
    for from, to in pairs(links) do
      if path == from or path:sub(1, #from + 1) == from .. "/" then
        local target = to:sub(1, 1) == "/" and to or from:match("^(.*/)") .. to
        return real(text.fold_path(target .. path:sub(#from + 1)))
      end
    end
    return path
  end

  before_each(function()
    files = { ["/"] = 1, ["/p"] = 2, ["/p/.git"] = 3, ["/p/.git/config"] = 4, ["/h"] = 5,
      ["/h/.gitconfig"] = 6 }
    links = {}
    kept = git_kept.new {
      stat = function(path)
        if path == "/odd" then return nil, "EACCES" end
        local changed = files[real(path)]
        if not changed then return nil, "ENOENT" end
        return { stamp = "stamp " .. changed, changed_ns = changed * SECOND }
      end,
      realpath = function(path) return files[real(path)] and real(path) or nil end,
      readlink = function(path) return links[path] end,
      now_ns = function() return NOW end,
    }
  end)

  local function put(list, key)
    return kept:put(key or "key", "answer", list, kept:now())
  end

  it("uses an answer while every file is the same", function()
    assert.is_nil(kept:get "key")
    assert.is_true(put { "/p/.git/config", "/h/.gitconfig", "/h/none" })
    assert.equal("answer", kept:get "key")
    files["/p"] = 200 -- another file of the project
    assert.equal("answer", kept:get "key")
    files["/p/.git/config"] = 7
    assert.is_nil(kept:get "key")
    files["/p/.git/config"] = 4
    assert.is_nil(kept:get "key")
  end)

  it("forgets it when a file is there that was not, or no longer", function()
    put { "/h/none" }
    files["/h/none"] = 8
    assert.is_nil(kept:get "key")
    put { "/p/.git/config" }
    files["/p/.git/config"] = nil
    assert.is_nil(kept:get "key")
  end)

  it("keeps nothing when something on the way changed shortly before or since", function()
    for path in pairs(files) do
      local before = files[path]
      for _, changed in ipairs { 98.5, 99.9, 100, 101 } do
        files[path] = changed
        local used = path:find("^/h") and "/h/.gitconfig" or "/p/.git/config"
        assert.is_false(put { used, path ~= "/" and path or nil }, path)
      end
      files[path] = before
      assert.is_true(put { "/p/.git/config", "/h/.gitconfig" })
    end
    files["/p"] = 99
    assert.is_false(put { "/p/none/deep" })
    assert.is_false(put { "/odd" })
  end)

  it("follows one link whose place and target are known", function()
    links["/h/link"] = "../p/.git/config"
    assert.is_true(put { "/h/link" })
    files["/p/.git/config"] = 9
    assert.is_nil(kept:get "key")
    files["/p/.git"] = 99
    assert.is_false(put { "/h/link" })
    files["/p/.git"], links["/h/link"] = 3, "/p/none"
    assert.is_false(put { "/h/link" })
    links["/h/link"], links["/h/again"] = "/p/.git/config", "/h/link"
    assert.is_false(put { "/h/again" })
    links["/h/dir"] = "/p/.git"
    assert.is_false(put { "/h/dir/config" })
    assert.is_false(put { "/h/dir/none" })
  end)

  it("keeps a bounded number", function()
    for i = 1, git_kept.ENTRIES_MAX + 3 do assert.is_true(put({ "/h" }, "key" .. i)) end
    assert.is_nil(kept:get "key1")
    assert.equal("answer", kept:get("key" .. git_kept.ENTRIES_MAX + 3))
    local many = {}
    for i = 1, 129 do many[i] = "/h/" .. i end
    assert.is_false(put(many))
  end)
end)
