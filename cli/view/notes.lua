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

--- That efrd cannot write down how a turn ended.
--- @param why string?
--- @return string
function M.unsaved(why)
  return ("efrd cannot record the end of this turn, and tries again: %s"):format(why or "")
end

local LINE_CHARACTERS <const> = 60

local function one_row(line)
  line = line:gsub("%s*\n.*", " ...", 1)
  local at = utf8.offset(line, LINE_CHARACTERS + 1)
  return at and line:sub(1, at - 1) .. "..." or line
end

--- A command that goes on after its call.
--- @param line string
--- @return string
function M.left(line)
  return ("still running in the hidden shell: %s; efr shell shows it"):format(one_row(line))
end

--- Its end.
--- @param line string
--- @param exit_code integer?
--- @return string
function M.left_ended(line, exit_code)
  local how = exit_code and (" (exit %d)"):format(exit_code) or ""
  return ("ended in the hidden shell%s: %s"):format(how, one_row(line))
end

local function files(count)
  return ("%d file%s"):format(count, count == 1 and "" or "s")
end

--- What an undo or a redo of this turn did.
function M.undone(event)
  local restored, trashed = tonumber(event.restored) or 0, tonumber(event.trashed) or 0
  local skipped = type(event.skipped) == "table" and #event.skipped or 0
  local text = ("%s: %s restored, %s moved to the trash"):format(
    event.redo == true and "redone" or "undone", files(restored), files(trashed))
  if skipped > 0 then
    text = text .. (", %s skipped"):format(files(skipped))
  end
  if type(event.stopped) == "string" then
    text = text .. "; undo stopped: " .. event.stopped
  end
  return text
end

return M
