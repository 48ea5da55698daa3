-- What of git stays read-only in a call, in every layout: each name of the tables in each place where
-- git has it, what settings name, links, and the limits. Pure.
local git_pins = require "efr.sbx.git_pins"
local world = dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/sbx/world.lua")

local APP <const> = "/home/u/p/app"
local GIT <const> = APP .. "/.git"

-- files: path -> "dir", {link=}, or the text of a file; parents are made.
local function pins(files, roots, changes)
  local all, texts = {}, {}
  for path, what in pairs(files) do
    local is_text = type(what) == "string" and what ~= "dir"
    texts[path] = is_text and what or nil
    all[path] = is_text and "file" or what
    local parent = path:match("^(.+)/")
    while parent do
      all[parent] = all[parent] or "dir"
      parent = parent:match("^(.+)/")
    end
  end
  local spec = world.spec(changes, all)
  local look = spec.look
  spec.read = function(path)
    local seen = look(path)
    return seen and seen.real == path and texts[path] or nil
  end
  local mounts, err = git_pins.collect(spec, roots or { { path = APP, name = "project" } })
  if not mounts then return nil, err end
  local out = {}
  for _, mount in ipairs(mounts) do out[mount.kind .. " " .. mount.path] = true end
  return out
end

local function has(found, ...)
  for _, wanted in ipairs({ ... }) do
    local names = {}
    for name in pairs(found) do names[#names + 1] = name end
    assert.is_true(found[wanted], wanted .. " is missing in\n" .. table.concat(names, "\n"))
  end
end

local function refused(files, text, roots)
  local found, err = pins(files, roots)
  assert.is_nil(found, "not refused: " .. text)
  assert.is_truthy(err:find(text, 1, true), err)
end

-- Every place of a git directory, and names in it.
local PLACES <const> = { [""] = GIT, ["a work tree"] = GIT .. "/worktrees/w" }
do
  local at = GIT
  for depth = 1, git_pins.MODULES_DEEP do
    -- modules/a/a/...: names with slashes; each second level is a git directory of its own.
    at = at .. (depth == 1 and "/modules/a" or "/a")
    PLACES[("a submodule %d levels below modules"):format(depth)] = at
  end
  PLACES["a submodule of a submodule"] = GIT .. "/modules/a/modules/b"
end

describe("sbx.git_pins", function()
  for place, dir in pairs(PLACES) do
    for _, name in ipairs(git_pins.SETTINGS) do
      it(("keeps %s of %s"):format(name, place == "" and ".git" or place), function()
        has(pins({ [GIT .. "/config"] = "", [dir .. "/" .. name] = "x", [dir .. "/HEAD"] = "x" }),
          "pin " .. GIT, ("floor %s/%s"):format(dir, name))
        refused({ [dir .. "/" .. name] = { link = "/opt/c" }, ["/opt/c"] = "x",
          [dir .. "/HEAD"] = "x" }, "is a link")
      end)
    end
    it("keeps the hooks of " .. (place == "" and ".git" or place), function()
      has(pins({ [dir .. "/HEAD"] = "x", [dir .. "/hooks"] = "dir" }), "floor " .. dir .. "/hooks")
      has(pins({ [dir .. "/HEAD"] = "x", [dir .. "/hooks"] = { link = APP .. "/h" },
        [APP .. "/h"] = "dir" }), "floor " .. APP .. "/h")
    end)
  end

  it("keeps a .git file, and nothing where there is no .git", function()
    assert.same({ ["floor " .. GIT] = true }, pins({ [GIT] = "gitdir: /x\n" }))
    assert.same({}, pins({ [APP] = "dir" }))
  end)

  it("refuses links in place of what it would keep", function()
    refused({ [GIT] = { link = "/opt/g" }, ["/opt/g"] = "dir" }, ".git is a link")
    for _, name in ipairs({ "modules", "modules/a", "modules/a/b", "worktrees", "worktrees/w" }) do
      refused({ [GIT .. "/HEAD"] = "x", [GIT .. "/" .. name] = { link = "/opt/g" },
        ["/opt/g/HEAD"] = "x" }, name .. " is a link")
    end
  end)

  it("takes plain links of a submodule's git directory", function()
    has(pins({ [GIT .. "/modules/a/HEAD"] = { link = "refs/heads/main" },
      [GIT .. "/modules/a/refs/heads/main"] = "x", [GIT .. "/modules/a/config"] = "x" }),
      "floor " .. GIT .. "/modules/a/config")
  end)

  it("looks neither deeper nor into what git fills", function()
    local deep = GIT .. "/modules" .. ("/a"):rep(git_pins.MODULES_DEEP + 1)
    local found = pins({ [deep .. "/config"] = "x", [GIT .. "/modules/m/HEAD"] = "x",
      [GIT .. "/modules/m/objects/config"] = "x", [GIT .. "/modules/m/refs/config"] = "x" })
    for _, path in ipairs({ deep, GIT .. "/modules/m/objects", GIT .. "/modules/m/refs" }) do
      assert.is_nil(found["floor " .. path .. "/config"])
    end
  end)

  it("keeps what settings include, also conditionally, at each step", function()
    has(pins({
      [GIT .. "/config"] = '[include]\npath = ../one\n[includeIf "gitdir:x"]\npath = ' .. APP .. "/two\n",
      [APP .. "/one"] = "[include]\n\tpath = sub/three\n\tpath = one\n", [APP .. "/two"] = "",
      [APP .. "/sub/three"] = "", [GIT .. "/worktrees/w/config.worktree"] = "[include]\npath=i\n",
      [GIT .. "/worktrees/w/i"] = "", [GIT .. "/modules/m/config"] = "[include]\npath=j\n",
      [GIT .. "/modules/m/j"] = "",
    }), "floor " .. APP .. "/one", "floor " .. APP .. "/two", "floor " .. APP .. "/sub/three",
      "floor " .. GIT .. "/worktrees/w/i", "floor " .. GIT .. "/modules/m/j")
    -- From the user's own settings, and from a file outside of every root.
    has(pins({ ["/home/u/.gitconfig"] = "[include]\npath = ~/mine\n",
      ["/home/u/mine"] = "[include]\npath = p/app/in\n", [APP .. "/in"] = "" }), "floor " .. APP .. "/in")
  end)

  it("keeps the hooks directory that settings name", function()
    local function hooks(config, dirs)
      local files = { [GIT .. "/config"] = config }
      for _, dir in ipairs(dirs) do files[dir] = "dir" end
      return pins(files)
    end
    has(hooks("[core]\nhooksPath = .husky\n", { APP .. "/.husky" }), "floor " .. APP .. "/.husky")
    has(hooks('[Core]\n\tHOOKSPATH = "a b/\\"c" ; x\n', { APP .. '/a b/"c' }),
      'floor ' .. APP .. '/a b/"c')
    has(hooks("[core] hookspath = ~/p/app/h\n", { APP .. "/h" }), "floor " .. APP .. "/h")
    has(hooks("[core]\nhooksPath = " .. APP .. "/x/../h\n", { APP .. "/h" }), "floor " .. APP .. "/h")
    assert.is_nil(hooks("[core]\nhooksPath = /opt/h\n", { "/opt/h" })["floor /opt/h"])
    assert.is_nil(hooks("[core]\n# hooksPath = h\n", { APP .. "/h" })["floor " .. APP .. "/h"])
    has(pins({ ["/home/u/.config/git/config"] = "[core]\nhooksPath = h\n", [APP .. "/h"] = "dir",
      [GIT .. "/HEAD"] = "x" }), "floor " .. APP .. "/h")
  end)

  it("counts a relative hooks directory from the work tree that git would", function()
    has(pins({ [GIT .. "/config"] = "[core]\nhooksPath = h\nworktree = ../tree\n",
      [APP .. "/tree/h"] = "dir" }), "floor " .. APP .. "/tree/h")
    has(pins({ [GIT .. "/config"] = "[core]\nhooksPath = h\n",
      [GIT .. "/worktrees/w/gitdir"] = APP .. "/linked/.git\n", [APP .. "/linked/h"] = "dir" }),
      "floor " .. APP .. "/linked/h")
    has(pins({ [GIT .. "/modules/m/config"] = "[core]\nhooksPath = h\nworktree = ../../../lib/m\n",
      [APP .. "/lib/m/h"] = "dir" }), "floor " .. APP .. "/lib/m/h")
    has(pins({ [GIT .. "/modules/a/m/config"] = "[core]\nhooksPath = h\n",
      [APP .. "/.gitmodules"] = '[submodule "a/m"]\npath = lib/m\n', [APP .. "/lib/m/h"] = "dir" }),
      "floor " .. APP .. "/lib/m/h")
  end)

  it("refuses what a call could move away", function()
    refused({ [GIT .. "/config"] = "[core]\nhooksPath = now\n", [APP .. "/now"] = { link = "v1" },
      [APP .. "/v1"] = "dir" }, "could change the link")
    refused({ [GIT .. "/config"] = "[include]\npath = ../now\n", [APP .. "/now"] = { link = "v1" },
      [APP .. "/v1"] = "" }, "could change the link")
  end)

  it("handles a recorded git directory as the root it is", function()
    local roots = { { path = "/home/u/linked", name = "project" },
      { path = GIT, name = "git", work_tree = "/home/u/linked" } }
    local found = pins({ ["/home/u/linked/.git"] = "gitdir: " .. GIT .. "/worktrees/w\n",
      [GIT .. "/config"] = "[core]\nhooksPath = h\n", [GIT .. "/hooks"] = "dir",
      ["/home/u/linked/h"] = "dir", [GIT .. "/worktrees/w/config.worktree"] = "",
      [GIT .. "/modules/m/config"] = "" }, roots)
    has(found, "floor /home/u/linked/.git", "floor " .. GIT .. "/config", "floor " .. GIT .. "/hooks",
      "floor /home/u/linked/h", "floor " .. GIT .. "/worktrees/w/config.worktree",
      "floor " .. GIT .. "/modules/m/config")
  end)

  it("is bounded", function()
    local old = git_pins.ENTRIES_MAX
    git_pins.ENTRIES_MAX = 3
    local files = {}
    for i = 1, 5 do files[("%s/modules/m%d/config"):format(GIT, i)] = "x" end
    local found, err = pins(files)
    git_pins.ENTRIES_MAX = old
    assert.is_nil(found)
    assert.matches("too many entries", err)
    files = { [GIT .. "/config"] = "[include]\npath = ../i0\n" }
    for i = 0, 300 do
      files[("%s/i%d"):format(APP, i)] = ("[include]\npath = i%d\n"):format(i + 1)
    end
    found, err = pins(files)
    assert.is_nil(found)
    assert.matches("too many git settings", err)
  end)
end)
