-- Whether the places of a call answer. A dead mount is played by the port: a socket on which nothing
-- comes; a real one is tests/e2e/dead_project.sh. Needs efr's own Lua state (C modules).
if not package.preload["efr.reach"] then return end

local async = require "efr.util.async"
local reach = require "efr.sbx.reach"

describe("sbx.reach", function()
  local uv, native = require "luv", require "efr.reach"
  local limit = reach.LIMIT_MS
  local asked, write_ends, now, dead, mounts

  local function wait(fn)
    local out
    local task = async.spawn(function() out = table.pack(fn()) end)
    while not out and not task.err do uv.run("once") end
    assert(out, task.err)
    return table.unpack(out, 1, out.n)
  end

  -- A place "...dead" answers never while dead is true.
  local function new()
    asked, write_ends, now, dead = {}, {}, 1, true
    mounts = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:9 / /far rw - nfs4 host:/x rw\n"
    local fs = { read_file = function() return mounts end }
    local sys = { mono_us = function() return now end }
    return reach.new({ uv = uv, fs = fs, sys = sys, reach = { ask = function(paths, seconds)
      asked[#asked + 1] = paths:gsub("%z", " ")
      local before = dead and paths:match("^(.-)[^%z]*dead%z")
      if not before then return native.ask(paths, seconds) end
      local fds = uv.socketpair("stream", nil, { nonblock = true }, { nonblock = true })
      local pipe = uv.new_pipe(false)
      pipe:open(fds[2])
      write_ends[#write_ends + 1] = pipe
      local count = select(2, before:gsub("%z", ""))
      if count > 0 then pipe:write(("\0"):rep(count)) end
      return fds[1]
    end } })
  end

  before_each(function() reach.LIMIT_MS = 50 end)
  after_each(function()
    reach.LIMIT_MS = limit
    for _, pipe in ipairs(write_ends) do if not pipe:is_closing() then pipe:close() end end
    uv.run("nowait")
  end)

  it("says yes to what is there and what is not, and believes it for a while", function()
    reach.LIMIT_MS = limit
    local r = new()
    local function ask() return wait(function() return r:answers({ "/", "/nothing/there", "/", "/tmp" }) end) end
    assert.is_true(ask())
    assert.is_true(ask())
    assert.same({ "/ /nothing/there /tmp " }, asked)
    now = now + reach.BELIEVED_US
    assert.is_true(ask())
    assert.equal(2, #asked)
    assert.is_true(wait(function() return r:answers({}) end))
    assert.equal(2, #asked)
  end)

  it("asks only where a mount could have a server", function()
    local r = new()
    mounts = mounts:match("[^\n]*\n")
    assert.is_true(wait(function() return r:answers({ "/", "dead" }) end))
    assert.same({}, asked)
    mounts = nil
    assert.is_nil((wait(function() return r:answers({ "dead" }) end)))
    assert.equal(1, #asked)
  end)

  it("takes an answer that lay there while the loop was busy", function()
    local r = new()
    local ask = r.ports.reach.ask
    r.ports.reach.ask = function(...)
      local fd = ask(...)
      local over = uv.hrtime() + 2 * reach.LIMIT_MS * 1000000
      while uv.hrtime() < over do end
      return fd
    end
    assert.is_true(wait(function() return r:answers({ "/", "/tmp" }) end))
  end)

  it("names the place that does not answer, and does not wait for it twice", function()
    local r = new()
    local ok, err, code = wait(function() return r:answers({ "/", "/tmp", "dead", "/usr" }) end)
    assert.same({ nil, reach.words("dead"), "EFR_SANDBOX" }, { ok, err, code })
    assert.is_nil((wait(function() return r:answers({ "dead" }) end)))
    assert.same({ "/ /tmp dead /usr ", "/usr " }, asked)
    assert.is_true(wait(function() return r:answers({ "/" }) end))
  end)

  it("trusts a place again that came back", function()
    local r = new()
    assert.is_nil((wait(function() return r:answers({ "dead" }) end)))
    now, dead, reach.LIMIT_MS = now + reach.DEAD_US, false, limit
    assert.is_true((wait(function() return r:answers({ "dead" }) end)))
    assert.is_nil(next(r.dead))
  end)

  it("asks what comes after a dead place, and does not count the others", function()
    local r = new()
    local ok, err = wait(function() return r:answers({ "/", "/usr" }, { "dead", "/tmp", "2dead" }) end)
    assert.same({ true }, { ok, err })
    assert.equal("/tmp 2dead ", asked[2])
    assert.truthy(r.dead.dead and r.dead["2dead"])
    ok, err = wait(function() return r:answers({ "2dead" }) end)
    assert.same({ nil, reach.words("2dead") }, { ok, err })
  end)

  it("lets nobody look into a dead place", function()
    local r, looked = new(), {}
    local fs = r:guarded({
      realpath = function(path) looked[#looked + 1] = path return path end,
      mkdir = function(path) return "made " .. path end,
    })
    assert.equal("dead/p", fs.realpath("dead/p"))
    wait(function() return r:answers({ "dead" }) end)
    assert.same({ nil, reach.words("dead"), "ETIMEDOUT" }, { fs.realpath("dead/p") })
    assert.equal("deader", fs.realpath("deader"))
    assert.equal("made x", fs.mkdir("x"))
    assert.same({ "dead/p", "deader" }, looked)
  end)

  for _, bad in ipairs({ "", "/a" }) do
    it("takes no list that does not end: '" .. bad .. "'", function()
      assert.has_error(function() native.ask(bad, 1) end)
    end)
  end
end)
