-- Which cgroup efrd divides for the limits of calls, and what it leaves as it was. On a false disk: the
-- kernel's part is tests/kernels/memory.sh. Not covered: the question to systemd itself.
local cgroup = require "efr.sbx.cgroup"

local MOUNTS <const> = "30 20 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"

describe("sbx.cgroup", function()
  local rows = {
    { "the whole hierarchy", "0::/user.slice/efrd.service\n", MOUNTS,
      "/sys/fs/cgroup/user.slice/efrd.service" },
    { "the root", "0::/\n", MOUNTS, "/sys/fs/cgroup" },
    { "beside version 1", "3:pids:/x\n0::/a\n", "29 20 0:26 / /sys/fs/cgroup/pids rw - cgroup c pids\n"
      .. "30 20 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
      "/sys/fs/cgroup/unified/a" },
    { "a part of it, in a container", "0::/box/one\n",
      "30 20 0:27 /box /sys/fs/cgroup rw shared:1 - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/one" },
    { "a place with a blank", "0::/a\n", "30 20 0:27 / /my\\040groups rw - cgroup2 c rw\n",
      "/my groups/a" },
    { "only version 1", "3:pids:/x\n", MOUNTS, nil, "no cgroups of version 2" },
    { "not mounted", "0::/a\n", "29 20 0:26 / / rw - ext4 /dev/vda rw\n", nil, "are mounted" },
    { "a name that only begins so", "0::/boxes\n",
      "30 20 0:27 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil, "are mounted" },
    { "above the namespace's root", "0::/../a\n", MOUNTS, nil, "not in sight" },
  }
  for _, row in ipairs(rows) do
    it("finds " .. row[1], function()
      local dir, reason = cgroup.locate(row[2], row[3])
      assert.equal(row[4], dir)
      if row[5] then assert.truthy(reason:find(row[5], 1, true)) end
    end)
  end

  -- A disk of names and texts; `written` in order.
  local function world(changes)
    local w = {
      files = {
        ["/proc/self/cgroup"] = "0::/u/efrd.service\n", ["/proc/self/mountinfo"] = MOUNTS,
        ["/sys/fs/cgroup/u/efrd.service/cgroup.controllers"] = "cpu memory pids\n",
      },
      dirs = { ["/sys/fs/cgroup/u/efrd.service"] = { uid = 7, mtime_us = 0 } },
      written = {}, refused = {},
    }
    for path, value in pairs(changes or {}) do w.files[path] = value or nil end
    local fs = {
      read_file = function(path) return w.files[path] end,
      stat = function(path) return w.dirs[path] end,
      mkdir = function(path) w.dirs[path] = { uid = 7, mtime_us = w.now } end,
      rmdir = function(path) w.dirs[path] = nil end,
      readdir = function(dir)
        local out = {}
        for path in pairs(w.dirs) do
          local name = path:match("^" .. dir:gsub("%p", "%%%0") .. "/([^/]+)$")
          if name then out[#out + 1] = { name = name, type = "dir" } end
        end
        return out
      end,
    }
    local uv = {
      fs_access = function() return not w.sealed end,
      fs_open = function(path) return path end,
      fs_close = function() end,
      fs_write = function(path, text)
        if w.refused[path] then return nil, w.refused[path], w.refused[path] end
        w.written[#w.written + 1] = path:match("efrd.service/(.*)$") .. "=" .. text
        return #text
      end,
    }
    w.now = 1000000000
    w.ports = { fs = fs, uv = uv, sys = {
      getpid = function() return 42 end, getuid = function() return 7 end,
      now_us = function() return w.now end,
    } }
    return w
  end

  local BASE <const> = "/sys/fs/cgroup/u/efrd.service"

  it("moves efrd away and lets calls have limits", function()
    local w = world()
    local made = cgroup.new(w.ports)
    assert.is_nil(made.reason)
    assert.same({ "efr-daemon/cgroup.procs=42", "cgroup.subtree_control=+memory +pids",
      "efr-calls/cgroup.subtree_control=+memory +pids" }, w.written)
    assert.same({ dir = BASE .. "/efr-calls", name = "call-c1-k1" }, made:of_call("c1-k1"))
  end)

  it("takes the one above when efrd was started in the moved part of another", function()
    local w = world({ ["/proc/self/cgroup"] = "0::/u/efrd.service/efr-daemon\n" })
    assert.equal(BASE .. "/efr-calls", cgroup.new(w.ports).dir)
  end)

  it("changes nothing when it only looks", function()
    local w = world()
    assert.is_nil(cgroup.new(w.ports, { look = true }).reason)
    assert.same({}, w.written)
    assert.is_nil(w.dirs[BASE .. "/efr-daemon"])
  end)

  it("undoes what it began when other processes are there", function()
    local w = world()
    w.refused[BASE .. "/cgroup.subtree_control"] = "EBUSY"
    local made = cgroup.new(w.ports)
    assert.equal("other processes are in efrd's cgroup", made.reason)
    assert.is_nil(made:of_call("c1-k1"))
    assert.equal("cgroup.procs=42", w.written[#w.written])
    assert.is_nil(w.dirs[BASE .. "/efr-daemon"] or w.dirs[BASE .. "/efr-calls"])
  end)

  for name, change in pairs({
    ["has no memory controller"] = function(w)
      w.files[BASE .. "/cgroup.controllers"] = "cpu pids memory_recursiveprot\n"
    end,
    ["is not this user's"] = function(w) w.dirs[BASE].uid = 0 end,
    ["not this user's"] = function(w) w.sealed = true end,
    ["not delegated"] = function(w) w.dirs["/run/systemd/system"] = { uid = 0 } end,
  }) do
    it("leaves a cgroup alone that " .. name, function()
      local w = world()
      change(w)
      local asked
      local made = cgroup.new(w.ports, { ask = function(_, unit)
        asked = unit
        return false
      end })
      assert.truthy(made.reason:find(name, 1, true), made.reason)
      assert.same({}, w.written)
      if name == "not delegated" then assert.equal("efrd.service", asked) end
    end)
  end

  it("takes a unit's cgroup that systemd calls delegated, and none outside of a unit", function()
    local w = world()
    w.dirs["/run/systemd/system"] = { uid = 0 }
    assert.equal(BASE .. "/efr-calls", cgroup.new(w.ports, { ask = function() return true end }).dir)
    w = world({ ["/proc/self/cgroup"] = "0::/u/session-2.scope\n",
      ["/sys/fs/cgroup/u/session-2.scope/cgroup.controllers"] = "memory pids" })
    w.dirs["/run/systemd/system"] = { uid = 0 }
    w.dirs["/sys/fs/cgroup/u/session-2.scope"] = { uid = 7 }
    local made = cgroup.new(w.ports, { ask = function() error("asked of no unit") end })
    assert.equal("efrd runs in no unit of its own", made.reason)
  end)

  it("removes what killed launchers left, but nothing that may be new", function()
    local w = world()
    w.dirs[BASE .. "/efr-calls/call-old"] = { uid = 7, mtime_us = w.now - 61000000 }
    w.dirs[BASE .. "/efr-calls/call-new"] = { uid = 7, mtime_us = w.now - 1000000 }
    local made = cgroup.new(w.ports)
    assert.is_nil(w.dirs[BASE .. "/efr-calls/call-old"])
    assert.truthy(w.dirs[BASE .. "/efr-calls/call-new"])
    made:remove({ dir = BASE .. "/efr-calls", name = "call-new" })
    assert.is_nil(w.dirs[BASE .. "/efr-calls/call-new"])
  end)
end)
