-- Owns: adding up what calls changed: one entry per file, in the form FileChanges of the protocol.
-- Must not know: where the changes come from. Pure. Runs in efrd.

local M = {}

---Most files that are listed; the others are counted.
M.MAX_FILES = 50 ---@type integer

-- What two changes of one file in a row are together.
local KIND <const> = {
  added = { modified = "added", deleted = "gone" },
  deleted = { added = "modified" },
}

---Adds the changes of a call.
---@param sum table<string, table>  by path; changed
---@param changes? {files: table[]}
function M.add(sum, changes)
  for _, file in ipairs(changes and changes.files or {}) do
    local known = sum[file.path]
    if not known then
      known = { path = file.path, kind = file.kind, from = file.from, added = 0, removed = 0 }
      sum[file.path] = known
    else
      known.kind = (KIND[known.kind] or {})[file.kind] or (known.kind == "added" and "added")
        or file.kind
    end
    known.added = known.added + (file.added or 0)
    known.removed = known.removed + (file.removed or 0)
    known.binary = known.binary or file.binary or nil
    if known.kind == "gone" then sum[file.path] = nil end
  end
end

---The sum, or nil when nothing changed.
---@param sum table<string, table>
---@param array fun(list: table): table
---@return table|nil  {files, more?, added, removed}
function M.total(sum, array)
  local files, added, removed = {}, 0, 0
  for _, file in pairs(sum) do
    files[#files + 1] = file
    added, removed = added + file.added, removed + file.removed
  end
  if #files == 0 then return nil end
  table.sort(files, function(a, b) return a.path < b.path end)
  local more = #files - M.MAX_FILES
  for i = #files, M.MAX_FILES + 1, -1 do files[i] = nil end
  return {
    files = array(files),
    more = more > 0 and more or nil,
    added = added,
    removed = removed,
  }
end

return M
