local roots = require "efr.daemon.roots"

-- A file system of stat results.
local function fake_fs(entries)
  local fs = { made = {} }
  function fs.stat(path)
    return entries[path]
  end
  function fs.mkdirs(path, mode)
    fs.made[#fs.made + 1] = path
    entries[path] = { type = "dir", uid = entries.me or 1000, mode = mode }
    return true
  end
  return fs
end

local function dir(uid, mode)
  return { type = "dir", uid = uid, mode = mode or 448 }
end

local PATHS <const> = {
  config = { path = "/home/u/.config/efr" },
  data = { path = "/home/u/.local/share/efr" },
  state = { path = "/home/u/.local/state/efr" },
  runtime = { path = "/run/user/1000/efr" },
}

describe("daemon.roots", function()
  it("makes what is missing, but not the config root", function()
    local fs = fake_fs { ["/home/u"] = dir(1000, 493), ["/run/user/1000"] = dir(1000),
      ["/"] = dir(0, 493) }
    assert.is_true(roots.prepare(fs, PATHS, 1000))
    assert.same({ PATHS.data.path, PATHS.state.path, PATHS.runtime.path }, fs.made)
  end)

  it("may make them below a directory of the system", function()
    local fs = fake_fs { ["/"] = dir(0, 493) }
    assert.is_true(roots.prepare(fs, PATHS, 1000))
  end)

  local cases = {
    { "a data root of another user", { [PATHS.data.path] = dir(1001) }, "belongs to uid 1001" },
    { "a missing root below another user's home", { ["/home/u"] = dir(1001, 493) },
      "belongs to uid 1001" },
    { "a state root that others can read",
      { ["/home/u"] = dir(1000), [PATHS.state.path] = dir(1000, 488) },
      "chmod 700 " .. PATHS.state.path },
    { "a config root that others can write", { [PATHS.config.path] = dir(1000, 509) },
      "chmod go-w " .. PATHS.config.path },
    { "a config root of another user", { [PATHS.config.path] = dir(0, 493) },
      "belongs to uid 0" },
    { "a runtime root that is a file",
      { ["/home/u"] = dir(1000), [PATHS.runtime.path] = { type = "file", uid = 1000, mode = 384 } },
      "is no directory" },
  }
  for _, case in ipairs(cases) do
    it("refuses " .. case[1] .. " with the fix", function()
      case[2]["/"] = dir(0, 493)
      local ok, err, code = roots.prepare(fake_fs(case[2]), PATHS, 1000)
      assert.is_nil(ok)
      assert.equal("EFR_ROOT", code)
      assert.truthy(err:find(case[3], 1, true), err)
    end)
  end

  it("lets root be a user like others", function()
    local entries = { ["/"] = dir(0, 493), me = 0 }
    assert.is_true(roots.prepare(fake_fs(entries), PATHS, 0))
    entries = { ["/"] = dir(0, 493), ["/home/u"] = dir(1000, 493), me = 0 }
    assert.is_nil((roots.prepare(fake_fs(entries), PATHS, 0)))
  end)
end)
