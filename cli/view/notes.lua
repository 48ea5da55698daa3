-- Words of notes about a turn.
-- Owns: the text. Must not know: rows, events. Pure; runs in `efr`.

local M = {}

--- Why a turn runs in another mode than was asked for.
--- @param settings table? EffectiveSettings
--- @return string? text nil when it runs as asked
function M.fallback(settings)
  local fallback = settings and settings.fallback
  if type(fallback) ~= "table" then
    return nil
  end
  local reason = fallback.reason or ""
  local fix = reason:find("^the sandbox is not available") and "; what mends it: efr sandbox check"
  return ("%s is not available here; this turn runs as %s: %s%s"):format(
    fallback.asked or "the mode", settings.mode or "another mode", reason, fix or "")
end

return M
