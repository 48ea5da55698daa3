local paths = require "efr.config.paths"

local function fs(stats)
  return { lstat = function(path) return stats[path] end }
end
local RUN = { type = "dir", uid = 1000, mode = 448 }

local function resolve(env, stats)
  env.HOME = env.HOME or "/home/u"
  return paths.resolve(env, 1000, fs(stats or {}))
end

describe("config.paths", function()
  it("defaults to the XDG directories below home", function()
    assert.same({
      config = { path = "/home/u/.config/efr", source = "default" },
      data = { path = "/home/u/.local/share/efr", source = "default" },
      state = { path = "/home/u/.local/state/efr", source = "default" },
      runtime = { path = "/home/u/.local/state/efr/run", source = "default" },
    }, resolve {})
  end)

  it("follows the environment in its order", function()
    local roots = resolve {
      EFR_CONFIG_DIR = "/c/", EFR_HOME = "/h", XDG_CONFIG_HOME = "/x", XDG_DATA_HOME = "/x",
    }
    assert.same({ path = "/c", source = "EFR_CONFIG_DIR" }, roots.config)
    assert.same({ path = "/h/data", source = "EFR_HOME" }, roots.data)
    assert.same({ path = "/h/runtime", source = "EFR_HOME" }, roots.runtime)
    roots = resolve { XDG_STATE_HOME = "/x", XDG_DATA_HOME = "relative",
      XDG_RUNTIME_DIR = "/run/me",
      EFR_HOME = "" }
    assert.same({ path = "/x/efr", source = "XDG_STATE_HOME" }, roots.state)
    assert.equal("default", roots.data.source)
    assert.same({ path = "/run/me/efr", source = "XDG_RUNTIME_DIR" }, roots.runtime)
  end)

  it("takes /run/user only when it is ours and private", function()
    local function runtime(stat) return resolve({}, { ["/run/user/1000"] = stat }).runtime end
    assert.same({ path = "/run/user/1000/efr", source = "/run/user/1000" }, runtime(RUN))
    assert.equal("default", runtime({ type = "dir", uid = 0, mode = 448 }).source)
    assert.equal("default", runtime({ type = "dir", uid = 1000, mode = 493 }).source)
    assert.equal("default", runtime({ type = "link", uid = 1000, mode = 511 }).source)
  end)

  it("refuses relative values of its own variables", function()
    local roots, err = resolve { EFR_DATA_DIR = "data" }
    assert.is_nil(roots)
    assert.equal("EFR_DATA_DIR must be an absolute path, not data", err)
    assert.is_nil((resolve { EFR_HOME = "x" }))
    assert.is_nil((paths.resolve({}, 1000, fs {})))
  end)

  it("expands paths of settings", function()
    assert.equal("/home/u/x", paths.expand("~/x/", "/home/u"))
    assert.equal("/home/u", paths.expand("~", "/home/u"))
    assert.equal("/", paths.expand("//", "/home/u"))
    for _, bad in ipairs { "x", "~other/x", "", "./x", "/a\0b" } do
      assert.is_nil((paths.expand(bad, "/home/u")))
    end
  end)
end)
