-- Owns: which files of a project are hidden for their names (`.env` and its like), and the search
-- for them.
-- Must not know: the disk (asked through functions) or how a file is hidden.
-- Runs in efrd. Pure but for those functions.
--
-- Policy: names are bytes. A name is hidden when a pattern fits and none that starts with `!`.
-- Three levels of a root are searched, 20 000 entries at most, nearest first, and never what
-- builds and package tools fill. Links are not followed by the search; a link with a hidden name
-- hides its target, when that is a file and none of the system's. A directory with a hidden name
-- is hidden whole, unless it is an environment of Python.

local hidden_names = require "efr.perm.hidden_names"
local paths = require "efr.perm.paths"

local M = {}

M.DEPTH = hidden_names.DEPTH
M.MAX_ENTRIES = 20000
M.SKIP = hidden_names.SKIP
M.matcher = hidden_names.matcher
M.covers = hidden_names.covers

-- Hiding a file of these for a link in a project would only break programs.
local SYSTEM <const> = { "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64" }

---@class efr.sbx.Disk
---@field list fun(dir: string, max: integer): {name: string, type: string}[]?
---@field stamp fun(dir: string): string?, boolean?  nil: no directory (a link is none); the same
---  stamp means the same names, if the second value says that it is old enough to tell

-- What one directory holds, from the last search when its stamp is the same.
local function read_dir(dir, matches, disk, old)
  local stamp, settled = disk.stamp(dir)
  if not stamp then return nil end
  local known = old[dir]
  if known and known.stamp == stamp then return known end
  local entries = disk.list(dir, M.MAX_ENTRIES) or {}
  local out = { stamp = settled and stamp or nil, count = #entries, hits = {}, dirs = {} }
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    if matches(entry.name) then
      out.hits[#out.hits + 1] = path
    elseif entry.type == "dir" and not M.SKIP[entry.name] then
      out.dirs[#out.dirs + 1] = path
    end
  end
  return out
end

---Searches a root for names to hide.
---@param root string  real path
---@param matches fun(name: string): boolean
---@param disk efr.sbx.Disk
---@param old table?  what the last search of this root returned as kept
---@return string[] found
---@return table kept  for the next search
function M.scan(root, matches, disk, old)
  local found, kept, level, count = {}, {}, { root }, 0
  for _ = 1, M.DEPTH do
    local below = {}
    for _, dir in ipairs(level) do
      local entry = read_dir(dir, matches, disk, old or {})
      if entry then
        kept[dir] = entry
        table.move(entry.hits, 1, #entry.hits, #found + 1, found)
        table.move(entry.dirs, 1, #entry.dirs, #below + 1, below)
        count = count + entry.count
        if count >= M.MAX_ENTRIES then return found, kept end
      end
    end
    level = below
  end
  return found, kept
end

local function of_the_system(path)
  for _, dir in ipairs(SYSTEM) do
    if paths.within(path, dir) then return true end
  end
  return false
end

---What is hidden for the found names: real paths.
---@param found string[]
---@param look fun(path: string): efr.sbx.Look?
---@return string[]
function M.targets(found, look)
  local out = {}
  for _, path in ipairs(found) do
    local seen = look(path)
    local fine = seen ~= nil
    if fine and seen.link then
      fine = seen.type == "file" and not of_the_system(seen.real)
    elseif fine and seen.type == "dir" then
      fine = look(path .. "/pyvenv.cfg") == nil
    end
    if fine then out[#out + 1] = seen.real end
  end
  return out
end

return M
