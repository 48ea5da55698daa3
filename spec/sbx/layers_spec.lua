-- The clean-up of kept layers, on a real disk: what goes, in which order, and what stays. Needs
-- efr's own Lua state (C modules).
local layers = require "efr.sbx.layers"

if not package.preload["efr.fs"] then return end

describe("sbx.layers", function()
  local fs, uv, sys = require "efr.fs", require "luv", require "efr.sys"
  local DAY <const> = 24 * 3600
  local top, said, pauses, live

  local function run(limits)
    layers.collect({
      fs = fs, uv = uv, sys = sys, now_us = sys.now_us(),
      log = { info = function(_, ...) said[#said + 1] = string.format(...) end,
        warn = function(_, ...) error(string.format(...)) end },
      pause = function() pauses = pauses + 1 end,
      is_live = function(id) return live[id] end,
    }, top, { days = limits.days or 14, gib = limits.gib or 20 })
  end

  -- A conversation with a kept layer that was used so many days ago.
  local function conversation(id, days, kib)
    local dir = top .. "/" .. id
    assert(fs.mkdirs(dir .. "/cache/home%u%.npm/upper/a/b/c/d", 448))
    assert(fs.mkdirs(dir .. "/cache/home%u%.npm/work/work", 448))
    assert(fs.mkdir(dir .. "/tmp", 448))
    assert(fs.write_atomic(dir .. "/cache/home%u%.npm/upper/a/b/c/d/f", ("x"):rep((kib or 1) * 1024)))
    assert(fs.chmod(dir .. "/cache/home%u%.npm/work/work", 0))
    layers.used(uv, sys.now_us(), dir)
    local at = sys.now_us() // 1000000 - days * DAY
    assert(uv.fs_utime(dir .. "/last-call", at, at))
    return dir
  end

  local function has(id) return fs.lstat(top .. "/" .. id .. "/cache") ~= nil end
  local function names(id)
    local out = {}
    for i, entry in ipairs(assert(fs.readdir(top .. "/" .. id))) do out[i] = entry.name end
    table.sort(out)
    return table.concat(out, " ")
  end

  before_each(function()
    top = os.tmpname()
    os.remove(top)
    assert(fs.mkdir(top, 448))
    said, pauses, live = {}, 0, {}
  end)
  after_each(function() assert(fs.rmtree(top)) end)

  it("deletes the layers of conversations that are idle, and nothing else of them", function()
    conversation("old", 15)
    conversation("new", 13)
    run({})
    assert.are.equal("last-call tmp", names("old"))
    assert.is_true(has("new"))
    assert.are.same({ "the kept caches of conversation old are deleted" }, said)
    run({ days = 12 })
    assert.is_false(has("new"))
  end)

  it("deletes the oldest while all together are too large", function()
    -- Each file f counts as 1 GiB, the least limit.
    for i, id in ipairs({ "b", "a", "c" }) do conversation(id, 4 - i, 4) end
    local real = uv.fs_lstat
    local fake = setmetatable({ fs_lstat = function(path)
      local stat = real(path)
      return { blocks = path:match("/f$") and (1 << 30) // 512 or 0, type = stat.type }
    end }, { __index = uv })
    local keep = uv
    uv = fake
    run({ gib = 2 })
    uv = keep
    assert.are.same({ false, true, true }, { has("b"), has("a"), has("c") })
  end)

  it("leaves a conversation that has a call", function()
    conversation("old", 15)
    live.old = true
    run({})
    assert.is_true(has("old"))
  end)

  it("leaves layers whose lock is held", function()
    local dir = conversation("old", 15)
    local lock = assert(sys.flock(dir .. "/cache"))
    run({})
    assert.is_true(has("old"))
    lock:close()
    run({})
    assert.is_false(has("old"))
  end)

  it("goes on with what an earlier clean-up left, also beside a call", function()
    local dir = conversation("one", 1)
    assert(fs.mkdirs(dir .. "/cache.gone-1/x/upper", 448))
    assert(fs.mkdirs(dir .. "/cache.gone-x", 448))
    live.one = true
    run({})
    assert.are.equal("cache cache.gone-x last-call tmp", names("one"))
  end)

  it("finds a free name beside one that is still there", function()
    local dir, renamed = conversation("old", 15), nil
    local real = fs
    fs = setmetatable({
      rmtree = function(path)
        if path:match("cache%.gone%-1$") then return true end -- this one cannot be deleted yet
        return real.rmtree(path)
      end,
      rename = function(a, b)
        renamed = b
        return real.rename(a, b)
      end,
    }, { __index = real })
    assert(real.mkdirs(dir .. "/cache.gone-1", 448))
    run({})
    fs = real
    assert.are.equal(dir .. "/cache.gone-2", renamed)
    assert.are.equal("cache.gone-1 last-call tmp", names("old"))
  end)

  it("deletes layers of calls that ended long ago, with no link followed", function()
    local dir = conversation("one", 1)
    assert(fs.mkdirs(dir .. "/layers/dead/0/upper", 448))
    assert(fs.mkdirs(dir .. "/layers/young/0/upper", 448))
    assert(fs.mkdirs(top .. "/outside/in", 448))
    assert(fs.symlink(top .. "/outside", dir .. "/layers/dead/0/upper/link"))
    local at = sys.now_us() // 1000000 - 2 * DAY
    assert(uv.fs_utime(dir .. "/layers/dead", at, at))
    run({})
    assert.is_nil(fs.lstat(dir .. "/layers/dead"))
    assert.is_truthy(fs.lstat(dir .. "/layers/young"))
    assert.is_truthy(fs.lstat(top .. "/outside/in"))
  end)

  it("lets others run", function()
    local dir = conversation("one", 1)
    for i = 1, 600 do assert(fs.mkdir(("%s/cache/%d"):format(dir, i), 448)) end
    run({})
    local before = pauses
    assert.is_true(before >= 2)
    run({ days = 1 })
    assert.is_true(pauses - before > 600)
  end)
end)
