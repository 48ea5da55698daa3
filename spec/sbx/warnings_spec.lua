-- What efr sandbox check warns of, on a fake disk.
require "spec.helper"
local warnings = require "efr.sbx.warnings"

describe("sbx.warnings", function()
  local calls, settings, projects, stats, uid, launcher, report

  before_each(function()
    settings, projects, stats, uid, launcher = {}, {}, {}, 1000, {}
    report = {}
    calls = {
      home = "/home/u",
      launcher = { describe = function() return launcher end },
      app = {
        env = { PATH = "/usr/bin:/home/u/p/bin" },
        config = { get = function(_, key) return settings[key] end },
        projects = { list = function() return projects end },
        ports = {
          sys = { getuid = function() return uid end },
          fs = {
            realpath = function(path) return path end,
            stat = function(path) return stats[path] end,
          },
        },
      },
    }
  end)

  local function texts()
    local out = {}
    for i, warning in ipairs(warnings.collect(calls, report)) do out[i] = warning.text end
    return table.concat(out, "\n")
  end

  it("is silent where nothing is wrong", function()
    projects = { { root = "/home/u/q" } }
    stats["/home/u/.zshrc"] = { type = "file", nlink = 1 }
    settings["sandbox.env_keep"] = { "EDITOR" }
    assert.equal("", texts())
  end)

  for name, case in pairs({
    ["a directory on PATH in a project"] = { function() projects = { { root = "/home/u/p" } } end,
      "/home/u/p/bin on PATH lies in the project" },
    ["a project at home"] = { function() projects = { { root = "/home/u" } } end,
      "holds your home directory" },
    ["a project above home"] = { function() projects = { { root = "/home" } } end,
      "holds your home directory" },
    ["a startup file with a second name"] = { function()
      stats["/home/u/.zshrc"] = { type = "file", nlink = 2 }
    end, "/home/u/.zshrc has 2 names" },
    ["a secret with a second name"] = { function()
      stats["/home/u/.netrc"] = { type = "file", nlink = 3 }
    end, "/home/u/.netrc has 3 names" },
    ["a kept variable that looks like a secret"] = { function()
      settings["sandbox.env_keep"] = { "MY_TOKEN" }
    end, "sandbox.env_keep keeps MY_TOKEN" },
    ["a launcher in the data root"] = { function() launcher.warning = "the copy lies elsewhere" end,
      "the copy lies elsewhere" },
    ["an erratum of the kernel"] = { function() report.landlock_erratum = 3 end,
      "this kernel has erratum 3 of Landlock" },
    ["root"] = { function() uid = 0 end, "efr runs as root" },
  }) do
    it("warns of " .. name, function()
      case[1]()
      assert.is_truthy(texts():find(case[2], 1, true), texts())
    end)
  end
end)
