-- Owns: the facts about this machine that the permission engine decides by.
-- Must not know: what it makes of them. Files come through the fs port. Runs in efrd and efr.
--
-- Policy: efr's own places are named by their paths and by what these resolve to, so that a link
-- to the configuration is sealed too.

local hidden = require "efr.perm.data.masks"
local list = require "efr.util.list"
local hidden_names = require "efr.perm.hidden_names"
local paths = require "efr.perm.paths"

local M = {}

-- Files of the data root that a file tool asks about; $SCRATCH lies beside them.
local DATA <const> = {
  "efr.sqlite", "efr.sqlite-wal", "efr.sqlite-shm", "backups", "recordings", "snapshots",
}

-- A path, and its real path when that is another.
local function with_real(fs, path, out)
  out[#out + 1] = path
  local real = fs.realpath(path)
  if real and real ~= path then out[#out + 1] = real end
  return out
end

-- What the files of a directory are behind links.
local function with_links(fs, dir, out)
  for _, entry in ipairs(fs.readdir and fs.readdir(dir) or {}) do
    if entry.type == "link" then with_real(fs, dir .. "/" .. entry.name, out) end
  end
end

local function aliases_of(fs, home)
  local real = fs.realpath(home)
  if not real or real == home or real == "/" then return {} end
  -- Names that overlap cannot be told apart by their beginning.
  if (real .. "/"):sub(1, #home + 1) == home .. "/" then return {} end
  if (home .. "/"):sub(1, #real + 1) == real .. "/" then return {} end
  return { real }
end

-- Paths of a setting, each also under the name that a link gives it.
local function with_reals(app, key)
  local out = {}
  for _, path in ipairs(app.config:get(key) or {}) do with_real(app.fs, path, out) end
  return out
end

-- What the sandbox hides, each also under the name that a link gives it.
local function masks_of(app)
  local fs, out = app.fs, with_reals(app, "sandbox.mask")
  for _, names in ipairs({ hidden.stores, hidden.tool_credentials, hidden.profiles,
    hidden.histories }) do
    for _, name in ipairs(names) do with_real(fs, app.home .. "/" .. name, out) end
  end
  list.extend(out, hidden.container)
  for _, name in ipairs(DATA) do out[#out + 1] = app.paths.data .. "/" .. name end
  out[#out + 1] = app.paths.state
  out[#out + 1] = app.paths.runtime
  return out
end

-- What sandbox.protect adds to the floors.
local function floors_of(app)
  return list.map(with_reals(app, "sandbox.protect"), function(path)
    return { path = path, group = "protect" }
  end)
end

-- A machine without sense (home is /) raises here and is denied by the engine, with its reason.
local function secrets_of(machine)
  local ok, found = pcall(paths.secrets, machine)
  return ok and found or {}
end

-- The user's secret paths, and what every secret place resolves to: a file behind a link must not
-- be open under its other name.
local function with_targets(fs, machine)
  local out = {}
  for _, path in ipairs(machine.secret_paths) do out[#out + 1] = path end
  for _, path in ipairs(secrets_of(machine)) do
    local real = fs.realpath(path)
    if real and real ~= path and real ~= "/" then out[#out + 1] = real end
  end
  return out
end

-- One machine for one set of facts -------------------------------------------------------------

local function print_of(value, out)
  if type(value) ~= "table" then
    out[#out + 1] = tostring(value)
    return
  end
  out[#out + 1] = "{"
  for _, key in ipairs(list.keys(value)) do
    out[#out + 1] = tostring(key)
    print_of(value[key], out)
  end
  out[#out + 1] = "}"
end

local last_print, last

-- The machine of the call before when nothing has changed, so that its paths are prepared once.
local function settled(machine)
  local out = {}
  print_of(machine, out)
  local text = table.concat(out, "\0")
  if text ~= last_print then
    paths.settle(machine)
    last_print, last = text, machine
  end
  return last
end

-- What the names do not tell: a command moved it, or took the link away.
local function add_moved(machine, moved)
  local matches = hidden_names.matcher(machine.mask_globs or {})
  for _, path in ipairs(moved or {}) do
    local covered = false
    for _, root in ipairs(machine.project_roots or {}) do
      covered = covered or hidden_names.covers(path, root, matches)
    end
    if not covered then machine.masks[#machine.masks + 1] = path end
  end
end

---@class efr.perm.MachineSource
---@field fs table  port: realpath
---@field home string
---@field config table  get(key)
---@field moved string[]?  hidden for their names, where they lie now
---@field paths { config: string, data: string, state: string, runtime: string }

---The facts of a machine. Nobody may change them: the next call may get the same table.
---@param app efr.perm.MachineSource
---@param turn {scratch?: string, project_roots?: string[]}
---@return efr.Machine
function M.facts(app, turn)
  local fs, home = app.fs, app.home
  local sealed = with_real(fs, app.paths.config, {})
  for _, name in ipairs({ "config.toml", "projects.toml", "rules.lua", "rules.d" }) do
    with_real(fs, app.paths.config .. "/" .. name, sealed)
  end
  with_links(fs, app.paths.config, sealed)
  with_links(fs, app.paths.config .. "/rules.d", sealed)
  local machine = {
    home = home,
    aliases = aliases_of(fs, home),
    scratch = turn.scratch,
    config_roots = { app.paths.config },
    secrets_dir = app.paths.data .. "/secrets",
    secret_paths = app.config:get("permissions.secret_paths") or {},
    project_roots = turn.project_roots,
    write_sealed = sealed,
    own = { app.paths.data, app.paths.state, app.paths.runtime },
    masks = masks_of(app),
    mask_globs = app.config:get("sandbox.mask_globs"),
    write_roots = app.config:get("sandbox.write_roots"),
    write_projects = app.config:get("sandbox.write_projects"),
    caches = app.config:get("sandbox.caches"),
    synced = with_reals(app, "sandbox.synced_dirs"),
    floors = floors_of(app),
    rebuildable = app.config:get("sandbox.rebuildable"),
  }
  add_moved(machine, app.moved)
  machine.secret_paths = with_targets(fs, machine)
  return settled(machine)
end

return M
