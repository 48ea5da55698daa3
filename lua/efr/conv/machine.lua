-- Owns: what the permission engine is told of this machine, from the parts of efrd.
-- Must not know: what it makes of it. Runs in efrd.

local machine = require "efr.perm.machine"

local M = {}

---@param app table
---@param turn {scratch?: string, project_roots?: string[]}
---@return efr.Machine
function M.facts(app, turn)
  return machine.facts({
    fs = app.ports.fs, home = app.env.HOME, config = app.config, paths = app.paths,
    moved = app.sandbox and app.sandbox.hidden and app.sandbox.hidden:paths(),
  }, turn)
end

---The facts that full mode is refused by.
---@param app table
---@return table
function M.full(app)
  return {
    allow_full = app.config:get("permissions.allow_full"), uid = app.ports.sys.getuid(),
    undo = app.config:get("undo.enabled") and app.config:get("snapshot.enabled"),
    zsh = app.shells:has_zsh(),
  }
end

return M
