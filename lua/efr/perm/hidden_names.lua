-- Owns: which files of a project are hidden for their names (`.env` and its like), from the names
-- alone.
-- Must not know: the disk, how a file is hidden (sbx.globs).
-- Runs in efrd and efr. Pure.
--
-- Policy: names are bytes. A name is hidden when a pattern fits and none that starts with `!`.
-- Three levels of a root count, and nothing below what builds and package tools fill.

local text = require "efr.util.text"

local M = {}

M.DEPTH = 3 ---@type integer
M.SKIP = {
  target = true, node_modules = true, [".venv"] = true, dist = true, build = true, [".git"] = true,
}

local function to_pattern(glob)
  local body = glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".")
  return "^" .. body .. "$"
end

local function any(patterns, name)
  for _, pattern in ipairs(patterns) do
    if name:find(pattern) then return true end
  end
  return false
end

---@param globs string[]  with * and ?; a leading ! keeps a name readable
---@return fun(name: string): boolean
function M.matcher(globs)
  local hidden, kept = {}, {}
  for _, glob in ipairs(globs) do
    local keep = glob:sub(1, 1) == "!"
    local list = keep and kept or hidden
    list[#list + 1] = to_pattern(keep and glob:sub(2) or glob)
  end
  return function(name) return any(hidden, name) and not any(kept, name) end
end

---Whether a search of root would hide the path, from the names alone.
---@param path string
---@param root string
---@param matches fun(name: string): boolean
---@return boolean
function M.covers(path, root, matches)
  if not text.starts_with(path, root .. "/") then return false end
  local depth = 0
  for name in path:sub(#root + 1):gmatch("[^/]+") do
    depth = depth + 1
    if depth > M.DEPTH then return false end
    if matches(name) then return true end
    if M.SKIP[name] then return false end
  end
  return false
end

return M
