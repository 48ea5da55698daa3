-- What a turn changed outside of its projects, at its end.
-- Owns: ux.md 6.8, changed files outside the roots. Must not know: the wire, columns. Pure; runs in
-- `efr`.

local changes = require "efr.cli.view.changes"

local M = {}

-- The last word on each path, in the order of the paths.
local function newest(list)
  local by_path, out = {}, {}
  for _, event in ipairs(list) do
    if not by_path[event.path] then
      out[#out + 1] = event.path
    end
    by_path[event.path] = event
  end
  table.sort(out)
  for i, path in ipairs(out) do
    out[i] = by_path[path]
  end
  return out
end

--- The lines: one for each floor file and each without a copy, and one count of the rest.
--- @param list table[] events home_file_changed of the turn
--- @param home string?
--- @return string[]
function M.lines(list, home)
  local out, count = {}, 0
  for _, event in ipairs(newest(list)) do
    local path = changes.path(event.path, home)
    if event.covered ~= true then
      local why = type(event.note) == "string" and (" (%s)"):format(event.note) or ""
      out[#out + 1] = ("changed %s; efr undo cannot revert it%s"):format(path, why)
    elseif event.floor then
      out[#out + 1] = ("changed %s; efr undo reverts it"):format(path)
    else
      count = count + 1
    end
  end
  if count > 0 then
    out[#out + 1] = ("changed %d file%s in ~; efr undo reverts this turn"):format(count,
      count == 1 and "" or "s")
  end
  return out
end

return M
