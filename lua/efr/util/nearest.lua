-- Owns: the known name that a mistyped one is nearest to.
-- Must not know: what the names name.
-- Pure.

local M = {}

local MAX_LENGTH <const> = 64

-- Letters that were left out, added, changed, or swapped with their neighbour.
local function distance(a, b)
  local before, last = nil, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if before and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

---The nearest of some names, the first in byte order of those that are equally near. A name that
---ends in `.NAME` is near too. nil when none is: more than a third of the letters differ.
---@param name string
---@param names string[]
---@return string?
function M.find(name, names)
  if name == "" or #name > MAX_LENGTH then return nil end
  local best, least
  for _, known in ipairs(names) do
    local far = known:sub(-#name - 1) == "." .. name and 0 or distance(name, known)
    if not least or far < least or far == least and known < best then best, least = known, far end
  end
  return least and least * 3 <= #name and best or nil
end

return M
