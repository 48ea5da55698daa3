-- Which caches get an overlay, whose layer takes the writes, what is pinned inside.
local caches = require "efr.sbx.caches"
local plan = require "efr.sbx.plan"
local world = dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/sbx/world.lua")

local LAYERS <const> = "/home/u/.local/state/efr/sandbox/c1"
local DISK <const> = {
  ["/home/u/.cache"] = "dir", ["/home/u/.cargo"] = "dir", ["/home/u/.npm"] = "dir",
  ["/home/u/.cargo/bin"] = "dir", ["/home/u/.cargo/config.toml"] = "file",
  ["/home/u/.rustup"] = "dir", ["/home/u/.rustup/settings.toml"] = "file",
}

local function fields_of(row)
  local spec = {
    caches = { "/home/u/.cache", "/home/u/.cargo", "/home/u/.npm", "/home/u/go/pkg/mod" },
    cache_mode = "tmp", layers = LAYERS, layers_name = "k1",
  }
  local files = {}
  for path, kind in pairs(DISK) do files[path] = kind end
  for path, kind in pairs(row.files or {}) do files[path] = kind or nil end
  for key, value in pairs(row.spec or {}) do spec[key] = value end
  return assert(plan.build(world.spec(spec, files)))
end

-- "kind path layer" of overlays, "kind path" of floors and roots, in order.
local function seen(row)
  local fields, out, at = fields_of(row), {}, {}
  for i, field in ipairs(fields) do
    if field == "overlay" and fields[i + 2] then
      out[#out + 1] = ("overlay %s %s"):format(fields[i + 1], fields[i + 2])
    elseif field == "floor" or field == "root" or field == "mask" then
      out[#out + 1] = field .. " " .. fields[i + 1]
    end
    at[out[#out] or ""] = #out
  end
  return at, table.concat(out, "\n")
end

describe("sbx.caches", function()
  local rows = {
    { "existing caches, each with a layer of the call",
      has = { "overlay /home/u/.cache tmp", "overlay /home/u/.cargo tmp",
        "overlay /home/u/.npm tmp" },
      lacks = { "overlay /home/u/go/pkg/mod tmp" } },
    { "no overlay in mode readonly", spec = { cache_mode = "readonly" },
      lacks = { "overlay /home/u/.cache tmp", "floor /home/u/.cargo/bin" } },
    { "kept layers, named by their path", spec = { cache_mode = "overlay" },
      has = { "overlay /home/u/.cache home%u%.cache", "overlay /home/u/.npm home%u%.npm" } },
    { "a percent sign in a name", files = { ["/home/u/a%b"] = "dir" },
      spec = { cache_mode = "overlay", caches = { "/home/u/a%b" } },
      has = { "overlay /home/u/a%b home%u%a%25b" } },
    { "keep_downloads keeps the caches of downloads only", spec = { keep_downloads = true },
      has = { "overlay /home/u/.cargo home%u%.cargo", "overlay /home/u/.npm home%u%.npm",
        "overlay /home/u/.cache tmp" } },
    { "keep_downloads keeps nothing in mode readonly",
      spec = { keep_downloads = true, cache_mode = "readonly" },
      lacks = { "overlay /home/u/.cargo home%u%.cargo" } },
    { "a file is no cache", files = { ["/home/u/.cache"] = "file" },
      lacks = { "overlay /home/u/.cache tmp" } },
    { "a cache behind a link is the real directory",
      files = { ["/home/u/.cache"] = { link = "/data/c" }, ["/data/c"] = "dir" },
      has = { "overlay /data/c tmp" }, lacks = { "overlay /home/u/.cache tmp" } },
    { "a cache in a write root needs none", spec = { write_roots = { "/home/u/.cache" } },
      has = { "root /home/u/.cache" }, lacks = { "overlay /home/u/.cache tmp" } },
    { "nor one that is a write root's inside", spec = { write_roots = { "/home/u/go" } },
      files = { ["/home/u/go"] = "dir", ["/home/u/go/pkg/mod"] = "dir" },
      lacks = { "overlay /home/u/go/pkg/mod tmp" } },
    { "a write root in a cache lies on top of it",
      spec = { write_roots = { "/home/u/.cache/p" } }, files = { ["/home/u/.cache/p"] = "dir" },
      order = { "overlay /home/u/.cache tmp", "root /home/u/.cache/p" } },
    { "a hidden cache is skipped", spec = { masks = { "/home/u/.cache" } },
      has = { "mask /home/u/.cache" }, lacks = { "overlay /home/u/.cache tmp" } },
    { "a mask in a cache lies on top of it", spec = { masks = { "/home/u/.cache/x" } },
      files = { ["/home/u/.cache/x"] = "dir" },
      order = { "overlay /home/u/.cache tmp", "mask /home/u/.cache/x" } },
    { "a cache inside another one has no overlay, in any order",
      spec = { caches = { "/home/u/.cache/go", "/home/u/.cache", "/home/u/.cache/zig" } },
      files = { ["/home/u/.cache/go"] = "dir", ["/home/u/.cache/zig"] = "dir" },
      has = { "overlay /home/u/.cache tmp" },
      lacks = { "overlay /home/u/.cache/go tmp", "overlay /home/u/.cache/zig tmp" } },
    { "nor one that leads into another one, but its pins hold",
      files = { ["/home/u/.cargo"] = { link = ".cache/cargo" }, ["/home/u/.cache/cargo"] = "dir",
        ["/home/u/.cache/cargo/bin"] = "dir" },
      has = { "overlay /home/u/.cache tmp", "floor /home/u/.cache/cargo/bin" },
      lacks = { "overlay /home/u/.cache/cargo tmp" } },
    { "pins of cargo and rustup", spec = { caches = { "/home/u/.cargo", "/home/u/.rustup" } },
      has = { "floor /home/u/.cargo/bin", "floor /home/u/.cargo/config.toml",
        "floor /home/u/.rustup/settings.toml" },
      lacks = { "floor /home/u/.cargo/config", "floor /home/u/.cargo/env" } },
    { "pins in a write root as well", spec = { caches = {}, write_roots = { "/home/u/.cargo" } },
      has = { "floor /home/u/.cargo/bin" } },
    { "no pins where nothing can be written", spec = { caches = {} },
      lacks = { "floor /home/u/.cargo/bin" } },
    { "pins of a moved CARGO_HOME",
      spec = { caches = { "/data/cargo" }, env = { PATH = "/bin", CARGO_HOME = "/data/cargo" } },
      files = { ["/data/cargo"] = "dir", ["/data/cargo/bin"] = "dir" },
      has = { "overlay /data/cargo tmp", "floor /data/cargo/bin" } },
    { "a directory on PATH is never an overlay",
      spec = { caches = { "/home/u/.local/bin" }, env = { PATH = "/home/u/.local/bin:/bin" } },
      files = { ["/home/u/.local/bin"] = "dir" },
      lacks = { "overlay /home/u/.local/bin tmp" } },
    { "and is read-only inside one",
      spec = { env = { PATH = "/home/u/.cache/t/bin:/bin" } },
      files = { ["/home/u/.cache/t"] = "dir", ["/home/u/.cache/t/bin"] = "dir" },
      has = { "floor /home/u/.cache/t/bin" } },
    { "floors inside a cache", spec = { caches = { "/home/u/.config" } },
      files = { ["/home/u/.config/fish"] = "dir" },
      has = { "overlay /home/u/.config tmp", "floor /home/u/.config/efr",
        "floor /home/u/.config/fish" } },
    { "the home directory is no cache, also behind a link",
      spec = { caches = { "/home/u", "/home", "/", "/l" } }, files = { ["/l"] = { link = "/home" } },
      lacks = { "overlay /home/u tmp", "overlay /home tmp", "overlay / tmp" } },
    { "nor what every call has for itself", spec = { caches = { "/tmp/c", "/dev/shm" } },
      files = { ["/tmp/c"] = "dir", ["/dev/shm"] = "dir" },
      lacks = { "overlay /tmp/c tmp", "overlay /dev/shm tmp" } },
    { "a path that is too long for a name stays read-only",
      spec = { caches = { "/home/u/" .. ("x"):rep(250) }, cache_mode = "overlay" },
      files = { ["/home/u/" .. ("x"):rep(250)] = "dir" },
      lacks = { "overlay /home/u/" .. ("x"):rep(250) .. " home%u%" .. ("x"):rep(250) } },
  }
  for _, row in ipairs(rows) do
    it(row[1], function()
      local at, text = seen(row)
      for _, wanted in ipairs(row.has or {}) do
        assert(at[wanted], wanted .. " is missing in\n" .. text)
      end
      for _, unwanted in ipairs(row.lacks or {}) do
        assert(not at[unwanted], unwanted .. " is there")
      end
      for i, wanted in ipairs(row.order or {}) do
        assert(at[wanted], wanted .. " is missing in\n" .. text)
        assert(i == 1 or at[wanted] > at[row.order[i - 1]], wanted .. " lies below")
      end
    end)
  end

  it("refuses a write root inside a pin", function()
    local fields, err = plan.build(world.spec({
      caches = { "/home/u/.cargo" }, cache_mode = "tmp", layers = LAYERS, layers_name = "k1",
      write_roots = { "/home/u/.cargo/bin/x" },
    }, { ["/home/u/.cargo"] = "dir", ["/home/u/.cargo/bin"] = "dir",
      ["/home/u/.cargo/bin/x"] = "dir" }))
    assert.is_nil(fields)
    assert.is_truthy(err:find("is protected", 1, true), err)
  end)

  it("moves variables of caches below ~/.cache, where that is one", function()
    local function moves(row)
      local fields, out = fields_of(row), {}
      for i, field in ipairs(fields) do
        if field == "move" then out[fields[i + 1]] = fields[i + 2] end
      end
      return out
    end
    assert.are.same({
      CCACHE_DIR = "/home/u/.cache/ccache", SCCACHE_DIR = "/home/u/.cache/sccache",
      ZIG_GLOBAL_CACHE_DIR = "/home/u/.cache/zig",
    }, moves({}))
    assert.are.same({}, moves({ spec = { caches = { "/home/u/.npm" } } }))
    assert.are.same({}, moves({ spec = { cache_mode = "readonly" } }))
  end)

  local function defaults(row)
    local fields, out = fields_of(row), {}
    for i, field in ipairs(fields) do
      if field == "default" then out[fields[i + 1]] = fields[i + 2] end
    end
    return out
  end

  it("finds another place for caches that are missing", function()
    local all = { "/home/u/.cache", "/home/u/.cargo", "/home/u/.npm", "/home/u/go/pkg/mod",
      "/home/u/.gradle/caches", "/home/u/.bun/install/cache", "/home/u/.m2/repository" }
    local fresh = { ["/home/u/.cache"] = false, ["/home/u/.cargo"] = false,
      ["/home/u/.npm"] = false, ["/home/u/.cargo/bin"] = false,
      ["/home/u/.cargo/config.toml"] = false }
    local function at(top)
      return { XDG_CACHE_HOME = top .. "/.cache", npm_config_cache = top .. "/.npm",
        CARGO_HOME = top .. "/.cargo", GOMODCACHE = top .. "/go/pkg/mod",
        GRADLE_USER_HOME = top .. "/.gradle/caches",
        BUN_INSTALL_CACHE_DIR = top .. "/.bun/install/cache",
        MAVEN_OPTS = "-Dmaven.repo.local=" .. top .. "/.m2/repository" }
    end
    assert.same(at("/run/user/1000/efr-cache"), defaults({ files = fresh, spec = { caches = all } }))
    assert.same(at("/tmp/efr-cache"),
      defaults({ files = fresh, spec = { caches = all, cache_mode = "overlay" } }))
    assert.same("/tmp/efr-cache/.npm",
      defaults({ files = fresh, spec = { caches = all, keep_downloads = true } }).npm_config_cache)
    assert.same({}, defaults({ files = fresh, spec = { caches = all, cache_mode = "readonly" } }))
    assert.same({}, defaults({ files = fresh, spec = { caches = {} } }))
  end)

  it("leaves a tool alone where its cache is there, can be made, or is not alone missing", function()
    assert.same({ GOMODCACHE = "/run/user/1000/efr-cache/go/pkg/mod" }, defaults({}))
    assert.same({}, defaults({ files = { ["/home/u/go"] = "dir" },
      spec = { write_roots = { "/home/u/go" } } }))
    assert.same({}, defaults({ files = { ["/home/u/go"] = { link = ".cache" } } }))
    assert.same({}, defaults({ spec = { caches = { "/home/u/.gradle/caches" } },
      files = { ["/home/u/.gradle"] = "dir" } }))
  end)

  it("moves variables into the place of a missing ~/.cache", function()
    local fields, out = fields_of({ files = { ["/home/u/.cache"] = false } }), {}
    for i, field in ipairs(fields) do
      if field == "move" then out[fields[i + 1]] = fields[i + 2] end
    end
    assert.same("/run/user/1000/efr-cache/.cache/ccache", out.CCACHE_DIR)
  end)

  it("gives each path a name of its own", function()
    local names = {}
    for _, path in ipairs({ "/a/b", "/a%b", "/a%25b", "/a%/b", "/a/%b", "/a%2/5b" }) do
      local name = caches.name(path)
      assert.is_nil(name:find("/", 1, true))
      assert.is_nil(names[name], name)
      names[name] = true
    end
  end)

  it("makes the directories of kept layers alone", function()
    local made = {}
    local fs = { mkdirs_real = function(path, mode)
      made[#made + 1] = ("%s %o"):format(path, mode)
      return true
    end }
    assert(caches.prepare(fs, "/l", {
      { kind = "overlay", path = "/a", layer = "tmp" }, { kind = "floor", path = "/b" },
      { kind = "overlay", path = "/c", layer = "c" },
    }))
    assert.are.same({ "/l/cache/c/upper 700", "/l/cache/c/work 700" }, made)
    local ok, err = caches.prepare({ mkdirs_real = function() return nil, "full", "ENOSPC" end },
      "/l", { { kind = "overlay", path = "/c", layer = "c" } })
    assert.is_nil(ok)
    assert.are.equal("full", err)
  end)
end)
