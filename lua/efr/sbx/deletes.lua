-- Owns: what calls deleted from caches: reads the launcher's list, checks each path, and deletes in
-- the real cache what was allowed.
-- Must not know: who is asked, or how a list is shown.
-- Runs in efrd on the loop thread; apply waits, and lets others run between small steps.
--
-- Policy: the names were chosen inside the sandbox. A path counts when the overlay of its cache is
-- what lies deepest at it, and no mask, floor, pin or root lies at or below it; one that does not
-- refuses the whole list. Nothing is followed: every step goes from an open directory to a name in
-- it. Names that are no UTF-8 are counted and not deleted.

local paths = require "efr.perm.paths"

local M = {}

local MAX_COUNT <const> = 1000000
local STEP <const> = 256 -- entries looked at before others run
local MAX_LIST <const> = 100000 -- entries of one directory that are looked at
local MAX_DEPTH <const> = 64

local HANDLERS = {}

function HANDLERS.cache(out, value)
  if value:sub(1, 1) ~= "/" then return false end
  out[#out + 1] = { cache = value, names = {}, other = 0 }
  return true
end

function HANDLERS.gone(out, value)
  local last = out[#out]
  if not last or value == "" then return false end
  last.names[#last.names + 1] = value
  return true
end

function HANDLERS.other(out, value)
  local last, count = out[#out], value:match("^%d+$") and math.tointeger(tonumber(value))
  if not last or not count or count > MAX_COUNT then return false end
  last.other = last.other + count
  return true
end

---@class efr.sbx.Deletes
---@field cache string
---@field names string[]  paths in the cache
---@field other integer  how many more are not listed

---Reads the launcher's list. Strict: any defect is an error.
---@param bytes string
---@return efr.sbx.Deletes[]? list
---@return string? err
function M.parse(bytes)
  local fields, out = {}, {}
  if bytes:sub(-1) ~= "\0" then return nil, "the list is cut off" end
  for field in bytes:gmatch("([^\0]*)\0") do fields[#fields + 1] = field end
  if fields[1] ~= "efr-deletes" or fields[2] ~= "1" or fields[#fields] ~= "end"
    or #fields % 2 == 0 then
    return nil, "not a list of deletes"
  end
  for i = 3, #fields - 1, 2 do
    local handler = HANDLERS[fields[i]]
    if not handler or not handler(out, fields[i + 1]) then return nil, "a bad field in the list" end
  end
  return out
end

local function is_normal(name)
  for part in (name .. "/"):gmatch("([^/]*)/") do
    if part == "" or part == "." or part == ".." then return false end
  end
  return true
end

-- Why a path must not be deleted, or nil.
local function refusal(path, cache, mounts)
  local over
  for _, mount in ipairs(mounts) do -- the deepest one at or above the path is the last
    if paths.below(mount.path, path) then return mount.kind .. " below it" end
    if paths.within(path, mount.path) then over = mount end
  end
  if not over or over.kind ~= "overlay" or over.path ~= cache then return "not in the cache" end
  return nil
end

---Checks a list against the mounts of a plan, and leaves out names that are no UTF-8.
---@param found efr.sbx.Deletes
---@param mounts {kind: string, path: string}[]  sorted, as plan.build returns them
---@param is_utf8 fun(text: string): boolean
---@return efr.sbx.Deletes? list
---@return string? err  the path that refuses it, and why
function M.check(found, mounts, is_utf8)
  local out = { cache = found.cache, names = {}, other = found.other }
  for _, name in ipairs(found.names) do
    if not is_normal(name) then return nil, "a name that is not normal" end
    local path = found.cache .. "/" .. name
    local why = refusal(path, found.cache, mounts)
    if why then return nil, ("%s: %s"):format(path, why) end
    if is_utf8(name) then
      out.names[#out.names + 1] = name
    else
      out.other = out.other + 1
    end
  end
  return out
end

local function split(name)
  local parent, base = name:match("^(.*)/([^/]+)$")
  return parent or ".", base or name
end

-- Bytes of what name is in dir, with all below. `seen` counts entries.
local function size_of(env, dir, name, depth, seen)
  local stat = dir:stat(name)
  if not stat then return 0 end
  if stat.type ~= "dir" or depth > MAX_DEPTH then return stat.size end
  local total, below <close> = 0, dir:open(name)
  for entry in pairs(below and below:list(".", MAX_LIST) or {}) do
    seen.count = seen.count + 1
    if seen.count % STEP == 0 then env.pause() end
    total = total + size_of(env, below, entry, depth + 1, seen)
  end
  return total
end

---@class efr.sbx.DeletesEnv
---@field open fun(path: string): efr.Dir?
---@field pause fun()  lets others run

-- Calls fn(parent directory, name in it, name) for every path that is still there.
local function each(env, list, fn)
  local top <close> = env.open(list.cache)
  for _, name in ipairs(top and list.names or {}) do
    local parent, base = split(name)
    local dir <close> = top:open(parent)
    if dir and dir:stat(base) then fn(dir, base, name) end
  end
end

---What of a list is there in the real cache, and how large it is. Waits.
---@param env efr.sbx.DeletesEnv
---@param list efr.sbx.Deletes
---@return efr.sbx.Deletes list
---@return integer bytes
function M.measure(env, list)
  local out, seen, bytes = { cache = list.cache, names = {}, other = list.other }, { count = 0 }, 0
  each(env, list, function(dir, base, name)
    out.names[#out.names + 1] = name
    bytes = bytes + size_of(env, dir, base, 0, seen)
  end)
  return out, bytes
end

---Deletes a checked list in the real cache. Waits.
---@param env efr.sbx.DeletesEnv
---@param list efr.sbx.Deletes
---@return integer count  paths that are gone
---@return integer bytes
---@return string? err  the first failure
function M.apply(env, list)
  local count, bytes, first, seen = 0, 0, nil, { count = 0 }
  each(env, list, function(dir, base)
    local size = size_of(env, dir, base, 0, seen)
    local ok, err = dir:remove_tree(base)
    env.pause()
    if ok then
      count, bytes = count + 1, bytes + size
    else
      first = first or err
    end
  end)
  return count, bytes, first
end

return M
