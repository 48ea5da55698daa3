-- Which backend builds calls, and which bubblewrap may: the options that it lists, and who can
-- change it. Not covered: what it builds (tests/sbx/bwrap.sh), a real one (tests/e2e/sandbox.sh).
local backend = require "efr.sbx.backend"

describe("sbx.backend.judge", function()
  local function help(without)
    local lines = { "usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]", "" }
    for _, option in ipairs(backend.OPTIONS) do
      if option ~= without then lines[#lines + 1] = ("    %-28s words"):format(option .. " X") end
    end
    return table.concat(lines, "\n") .. "\n"
  end

  it("takes an old version that lists everything", function()
    assert.equal("0.8.0", backend.judge("bubblewrap 0.8.0\n", help()))
  end)

  for _, option in ipairs(backend.OPTIONS) do
    it("wants " .. option, function()
      local number, err = backend.judge("bubblewrap 0.8.0\n", help(option))
      assert.is_nil(number)
      assert.equal(("bubblewrap: version 0.8.0 lacks %s (0.10.0 has all)"):format(option), err)
    end)
  end

  it("does not take --ro-bind-fd for --bind-fd, nor an option that is only spoken of", function()
    local text = help("--bind-fd") .. "    --other   like --bind-fd\n"
    local _, err = backend.judge("bubblewrap 0.9.0\n", text)
    assert.truthy(err:find("lacks --bind-fd (", 1, true))
  end)

  for name, version in pairs({ ["another program"] = "ls (GNU coreutils) 9.1\n", nothing = "" }) do
    it("refuses " .. name, function()
      local _, err = backend.judge(version, help())
      assert.equal("bubblewrap: it does not tell its version", err)
    end)
  end
end)

describe("sbx.backend.path", function()
  local settings, files, app

  before_each(function()
    settings = { ["sandbox.backend"] = "bwrap" }
    local function dir() return { type = "dir", uid = 0, mode = 493 } end
    files = {
      ["/"] = dir(), ["/usr"] = dir(), ["/usr/bin"] = dir(), ["/opt"] = dir(),
      ["/usr/bin/bwrap"] = { type = "file", uid = 0, mode = 493 },
      ["/opt/bwrap"] = { type = "file", uid = 0, mode = 493 },
    }
    app = {
      env = { PATH = "relative:/none:/usr/bin:/opt" },
      projects = { list = function() return {} end },
      config = { get = function(_, key) return settings[key] end },
      ports = { fs = {
        realpath = function(path)
          if files[path] then return path end
          return nil, "No such file or directory", "ENOENT"
        end,
        stat = function(path) return files[path] end,
      } },
    }
  end)

  it("is none for efr's own launcher", function()
    for _, name in ipairs({ "auto", "native" }) do
      settings["sandbox.backend"] = name
      local path, err = backend.path(app)
      assert.is_nil(path)
      assert.is_nil(err)
    end
  end)

  it("is the first on PATH, or the one of the settings", function()
    assert.equal("/usr/bin/bwrap", backend.path(app))
    settings["sandbox.bwrap"] = "/opt/bwrap"
    assert.equal("/opt/bwrap", backend.path(app))
  end)

  local function refused(words)
    local path, err, code = backend.path(app)
    assert.is_nil(path)
    assert.equal(words, err)
    assert.equal("EFR_SANDBOX", code)
  end

  it("never falls back to the own launcher", function()
    settings["sandbox.bwrap"] = "/opt/none"
    refused("bubblewrap: /opt/none: No such file or directory")
    settings["sandbox.bwrap"], app.env.PATH = nil, "/none"
    refused("bubblewrap: it is not installed")
  end)

  for _, case in ipairs({
    { "of a user", "/usr/bin/bwrap", { uid = 1000 }, "does not belong to root" },
    { "that its group can change", "/usr/bin/bwrap", { mode = 509 }, "can be changed by others" },
    { "that all can change", "/usr/bin/bwrap", { mode = 511 }, "can be changed by others" },
    { "with set-user-id", "/usr/bin/bwrap", { mode = 2541 },
      "has rights of its own (set-user-id); the unprivileged build is needed" },
    { "that is a directory", "/usr/bin/bwrap", { type = "dir" }, "is not a program" },
    { "in a directory of a user", "/usr/bin", { uid = 1000 }, "does not belong to root" },
    { "below a directory that all can change", "/usr", { mode = 1023 },
      "can be changed by others" },
  }) do
    it("refuses one " .. case[1], function()
      for key, value in pairs(case[3]) do files[case[2]][key] = value end
      refused("bubblewrap: /usr/bin/bwrap " .. case[4])
    end)
  end

  it("refuses one in a project", function()
    app.projects.list = function() return { { root = "/usr/bin" } } end
    refused("bubblewrap: /usr/bin/bwrap can be changed by others: it lies in the project /usr/bin")
  end)
end)
