-- What a command did to git settings, and the files of a turn that run code later, in words.
-- Owns: the quarantine part of ux.md 6.7 and the report of 6.8. Must not know: columns, the wire,
-- the rules themselves. Pure; runs in `efr`.

local changes = require "efr.cli.view.changes"

local M = {}

local BACK <const> = "; what stood there before is back"

local function field(item, name)
  local value = type(item) == "table" and item[name]
  return type(value) == "string" and value ~= "" and value or nil
end

local function named(change, home)
  local path = changes.path(field(change, "path") or "?", home)
  local why = field(change, "key") or (field(change, "rule") or "changed"):gsub("_", " ")
  return ("%s (%s)"):format(path, (why:gsub("\n", "␊")))
end

--- One change as a row of the question.
function M.row(change, home)
  return named(change, home) .. "; moved to quarantine" .. (change.restored and BACK or "")
end

local function line(change, home)
  local reason = field(change, "error")
  if field(change, "rule") == "not_put_back" then
    local path = changes.path(field(change, "path") or "?", home)
    return ("not put back: %s: %s; it stays in quarantine"):format(path, reason or "")
  elseif reason and change.quarantined then
    return ("moved to quarantine: %s; what stood there before is not back: %s"):format(
      named(change, home), reason)
  elseif reason then
    return ("could not move to quarantine: %s: %s"):format(named(change, home), reason)
  elseif change.quarantined then
    return "moved to quarantine: " .. named(change, home) .. (change.restored and BACK or "")
  elseif change.restored then
    return ("put back, because the command removed it: %s"):format(named(change, home))
  end
  return "the command changed " .. named(change, home)
end

--- The lines of an event sandbox_surface_changed.
--- @return string[] lines, boolean serious something is not as it should be
function M.lines(event, home)
  local out, serious = {}, false
  for _, change in ipairs(event.changes) do
    if type(change) == "table" then
      out[#out + 1] = line(change, home)
      serious = serious or field(change, "error") ~= nil
    end
  end
  if math.type(event.more) then
    out[#out + 1] = ("and %d more changes"):format(event.more)
  end
  return out, serious
end

--- Where something lies that stayed in quarantine; nil: nothing is known.
function M.place_line(quarantined, home)
  local first = type(quarantined) == "table" and quarantined[1]
  local dir = (field(first, "to") or ""):match("^(.+)/[^/]*$")
  if not dir then
    return nil
  end
  return ("it lies in %s; entries.json there says where it was"):format(changes.path(dir, home))
end

--- The lines of an event turn_surface_report.
--- @return string[]
function M.report_lines(event, home)
  local names = {}
  for _, file in ipairs(event.files) do
    local path, detail = field(file, "path"), field(file, "detail")
    if path then
      path = changes.path(path, home)
      names[#names + 1] = detail and ("%s (%s)"):format(path, (detail:gsub("\n", "␊"))) or path
    end
  end
  if math.type(event.more) then
    names[#names + 1] = ("%d more"):format(event.more)
  end
  return {
    "this turn changed files that run code later:",
    "  " .. table.concat(names, ", "),
    "look at them before you run the project",
  }
end

return M
