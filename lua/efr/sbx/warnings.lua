-- Owns: what weakens the sandbox here although it runs.
-- Must not know: the probe, how a warning is shown.
-- Runs in efrd and efr on the loop thread; looks at single files alone.

local environment = require "efr.sbx.environment"
local floors = require "efr.perm.floors"
local paths = require "efr.perm.paths"

local M = {}

local function path_in_project(app, add)
  for dir in (app.env.PATH or ""):gmatch("[^:]+") do
    local real = app.ports.fs.realpath(dir)
    for _, project in ipairs(app.projects:list()) do
      if real and paths.within(real, project.root) then
        add(("%s on PATH lies in the project %s: what a call writes there, you run"):format(dir,
          project.root), "take it out of PATH")
      end
    end
  end
end

local function project_at_home(app, home, add)
  for _, project in ipairs(app.projects:list()) do
    if paths.within(home, project.root) then
      add(("the project %s is or holds your home directory: auto runs as cautious there"):format(
        project.root), "register narrower projects: efr project remove " .. project.root)
    end
  end
end

-- A second name of such a file in a write root would be writable.
local function hard_links(app, home, add)
  local fs = app.ports.fs
  local names = {}
  for _, name in ipairs(floors.STARTUP) do names[#names + 1] = home .. "/" .. name end
  for _, path in ipairs(paths.prepare({ home = home }).secrets) do names[#names + 1] = path end
  for _, path in ipairs(names) do
    local stat = fs.stat(path)
    if stat and stat.type == "file" and stat.nlink > 1 then
      add(("%s has %d names: one in a write root could be read or changed there"):format(path,
        stat.nlink), "find them with: find ~ -xdev -samefile " .. path)
    end
  end
end

local function kept_secrets(app, add)
  for _, name in ipairs(app.config:get("sandbox.env_keep") or {}) do
    if environment.matches(environment.SECRET, name, true) then
      add(("sandbox.env_keep keeps %s, whose name looks like a secret"):format(name),
        "every command of the model can read it")
    end
  end
end

---What to warn of.
---@param calls table
---@param report efr.sbx.Report?  of a probe
---@return {text: string, fix: string?}[]
function M.collect(calls, report)
  local app, out = calls.app, {}
  local home = app.ports.fs.realpath(calls.home) or calls.home
  local function add(text, fix) out[#out + 1] = { text = text, fix = fix } end
  path_in_project(app, add)
  project_at_home(app, home, add)
  hard_links(app, home, add)
  kept_secrets(app, add)
  local launcher = calls.launcher:describe().warning
  if launcher then add(launcher, "another EFR_RUNTIME_DIR") end
  if report and report.backend == "bwrap" then
    add("sandbox.backend is \"bwrap\": a launch takes longer, and programs that are not dumpable "
      .. "cannot connect to the call's own sockets", "efr config unset sandbox.backend")
  end
  if report and report.landlock_erratum then
    add(("this kernel has erratum %d of Landlock: the read-only mounts alone keep writes out of a "
      .. "directory that is moved meanwhile"):format(report.landlock_erratum), "a newer kernel")
  end
  if app.ports.sys.getuid() == 0 then
    add("efr runs as root: a command has no capability, and more places are hidden")
  end
  return out
end

return M
