-- Owns: the facts about this machine that the permission engine decides by.
-- Must not know: what it makes of them. Files come through the fs port. Runs in efrd.
--
-- Policy: efr's own places are named by their paths and by what these resolve to, so that a link
-- to the configuration is sealed too.

local globs = require "efr.sbx.globs"
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

local function aliases_of(fs, home)
  local real = fs.realpath(home)
  if not real or real == home or real == "/" then return {} end
  -- Names that overlap cannot be told apart by their beginning.
  if (real .. "/"):sub(1, #home + 1) == home .. "/" then return {} end
  if (home .. "/"):sub(1, #real + 1) == real .. "/" then return {} end
  return { real }
end

-- What a call names of the files that projects hide for their names.
local function hidden_names(app, turn, requirements, out)
  local matches = globs.matcher(app.config:get("sandbox.mask_globs") or {})
  for _, item in ipairs(requirements or {}) do
    for _, root in ipairs(item.path and turn.project_roots or {}) do
      if globs.covers(item.path, root, matches) then out[#out + 1] = item.path end
    end
  end
end

local function masks_of(app)
  local out = {}
  for _, path in ipairs(app.config:get("sandbox.mask") or {}) do out[#out + 1] = path end
  for _, name in ipairs(DATA) do out[#out + 1] = app.paths.data .. "/" .. name end
  out[#out + 1] = app.paths.state
  out[#out + 1] = app.paths.runtime
  return out
end

-- A machine without sense (home is /) raises here and is denied by the engine, with its reason.
local function secrets_of(machine)
  local ok, list = pcall(paths.secrets, machine)
  return ok and list or {}
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

---@param app table
---@param turn {scratch?: string, project_roots?: string[]}
---@param requirements table[]?  of the call that is decided
---@return efr.Machine
function M.facts(app, turn, requirements)
  local fs, home = app.ports.fs, app.env.HOME
  local sealed = with_real(fs, app.paths.config, {})
  for _, name in ipairs({ "config.toml", "projects.toml" }) do
    with_real(fs, app.paths.config .. "/" .. name, sealed)
  end
  local machine = {
    home = home,
    aliases = aliases_of(fs, home),
    scratch = turn.scratch,
    config_roots = { app.paths.config },
    secrets_dir = app.paths.data .. "/secrets",
    secret_paths = app.config:get("permissions.secret_paths") or {},
    project_roots = turn.project_roots,
    write_sealed = sealed,
    masks = masks_of(app),
  }
  hidden_names(app, turn, requirements, machine.masks)
  machine.secret_paths = with_targets(fs, machine)
  return machine
end

return M
