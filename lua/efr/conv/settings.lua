-- Owns: which mode, model and effort a turn has: what the prompt asked for, else the settings.
-- Must not know: the store, the loop. Pure. Runs in efrd.
--
-- Policy: checked when a prompt arrives (a wrong one is never recorded) and again when its turn
-- starts. What caps a mode stands in perm.modes.

local list = require "efr.util.list"
local modes = require "efr.perm.modes"

local M = {}

local function wrong(setting, value, message, choices)
  return nil, message, "invalid", { setting = setting, value = value, choices = choices }
end

---The settings of a turn before anything about the machine is known.
---@param config table
---@param wanted? {mode?: string, model?: string, effort?: string}
---@param origin string
---@param full fun(): table  the facts of modes.full_refusal, asked only for the mode full
---@return table|nil settings  {mode, model?, effort?, overridden}
---@return string? message
---@return string? code  "invalid"
---@return table? data  {setting, value, choices?}
function M.resolve(config, wanted, origin, full)
  wanted = wanted or {}
  local mode = wanted.mode or config:get("permissions.mode")
  if not list.contains(modes.NAMES, mode) then
    return wrong("mode", mode, ("there is no mode %s; the modes are %s"):format(tostring(mode),
      table.concat(modes.NAMES, ", ")), list.copy(modes.NAMES))
  end
  mode = modes.known(mode, origin)
  local refusal = mode == "full" and modes.full_refusal(full())
  if refusal then
    return wrong("mode", mode, "the mode full cannot be used: " .. refusal, list.copy(modes.NAMES))
  end
  if wanted.model == "" then return wrong("model", "", "the model has no name") end
  local effort = wanted.effort
  if effort and not effort:find("^[a-z0-9_-]+$") or effort and #effort > 32 then
    return wrong("effort", effort, "an effort is a word of 1 to 32 of a-z, 0-9, _ and -")
  end
  return {
    mode = mode,
    model = wanted.model or config:get("model.name"),
    effort = effort or config:get("model.effort"),
    overridden = {
      mode = wanted.mode ~= nil,
      model = wanted.model ~= nil,
      effort = wanted.effort ~= nil,
    },
  }
end

---The mode that the turn really has. Changes `settings`.
---@param settings table
---@param facts table  as perm.modes.of_turn takes them
function M.settle_mode(settings, facts)
  settings.mode, settings.fallback = modes.of_turn(settings.mode, facts)
end

---The form that clients see: false members left out.
---@param settings table
---@return table
function M.effective(settings)
  local overridden = {}
  for name, value in pairs(settings.overridden) do overridden[name] = value or nil end
  return {
    mode = settings.mode,
    model = settings.model,
    effort = settings.effort,
    overridden = overridden,
    fallback = settings.fallback,
  }
end

return M
