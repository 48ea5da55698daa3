-- Owns: the search of a root for git directories, for the files that run code later, and for names
-- that tools act on.
-- Must not know: what is in any of them. Runs in efrd, on the loop thread; waits now and then, so
-- that a large tree does not hold up the loop.
--
-- Policy: four levels, 20 000 entries at most, nearest first, and never what builds and package
-- tools fill. Links are not followed, and other mounts are not entered: a call cannot write there.
-- A directory that did not change since the last search is not read again. A directory that looks
-- like a git directory counts as one whatever its name, because git takes it for one when it
-- stands there.

local floors = require "efr.perm.floors"
local hidden_names = require "efr.perm.hidden_names"
local look = require "efr.sbx.guard.look"

local M = {}

M.DEPTH = 4 ---@type integer
M.MAX_ENTRIES = 20000 ---@type integer
M.SKIP = hidden_names.SKIP

local BREATH <const> = 256 -- directories between two waits

local PROTECTED <const> = {}
for _, name in ipairs(floors.AGENTS) do PROTECTED[name] = true end

---@class efr.sbx.guard.Dir  what one directory holds
---@field stamp string?  nil: too new to tell
---@field count integer
---@field git string?  type of its entry `.git`
---@field bare boolean?  it looks like a git directory
---@field split boolean?  it looks like one whose objects and settings `commondir` names
---@field files string[]  that run code later, below the root
---@field dirs string[]  below the root
---@field protected string[]?  names that tools act on

---@class efr.sbx.guard.ScanOptions
---@field is_surface fun(rel: string): boolean
---@field old table<string, efr.sbx.guard.Dir>?  what the last search of this root kept
---@field now_ns integer
---@field pause fun()

local function sort_entry(out, rel, name, kind, is_surface)
  local path = rel == "." and name or rel .. "/" .. name
  if PROTECTED[name] then
    out.protected = out.protected or {}
    out.protected[#out.protected + 1] = name
  end
  if kind == "dir" then
    if not M.SKIP[name] then out.dirs[#out.dirs + 1] = path end
  elseif is_surface(path) then
    out.files[#out.files + 1] = path
  end
end

local function read_dir(top, rel, opts, room)
  local old = opts.old and opts.old[rel]
  if old and old.stamp then
    local stat = top:stat(rel)
    if not stat then return nil end
    local _, stamp = look.stamp(stat)
    if stamp == old.stamp then return old end
  end
  local names, stat = top:list(rel, room)
  if not names then return nil end
  local _, stamp = look.stamp(stat)
  local settled = opts.now_ns - stat.ctime_ns > look.SETTLED_NS
  local out = { stamp = settled and stamp or nil, count = 0, files = {}, dirs = {} }
  for name, kind in pairs(names) do
    out.count = out.count + 1
    sort_entry(out, rel, name, kind, opts.is_surface)
  end
  out.git = names[".git"]
  out.bare = names.HEAD ~= nil and names.objects ~= nil and names.refs ~= nil
  out.split = names.HEAD ~= nil and names.commondir ~= nil
  table.sort(out.dirs)
  return out
end

---Searches a root.
---@param top efr.Dir  the root, held open
---@param opts efr.sbx.guard.ScanOptions
---@return table<string, efr.sbx.guard.Dir> kept  by path below the root, "." for the root
---@return boolean whole  false: the limit was met
function M.run(top, opts)
  local kept, level, count, breath = {}, { "." }, 0, 0
  for _ = 1, M.DEPTH do
    local below = {}
    for _, rel in ipairs(level) do
      if count > M.MAX_ENTRIES then return kept, false end
      breath = breath + 1
      if breath % BREATH == 0 then opts.pause() end
      local entry = read_dir(top, rel, opts, M.MAX_ENTRIES + 1 - count)
      if entry then
        kept[rel], count = entry, count + entry.count
        table.move(entry.dirs, 1, #entry.dirs, #below + 1, below)
      end
    end
    level = below
  end
  return kept, count <= M.MAX_ENTRIES
end

return M
