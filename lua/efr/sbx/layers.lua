-- Owns: the clean-up of what calls wrote into caches: kept layers that are old or too many, layers
-- of calls that ended without one, and when a conversation was used last.
-- Must not know: how a layer is mounted, which cache it belongs to.
-- Runs in efrd on the loop thread; collect waits, and lets others run between small steps.
--
-- Policy: a conversation's kept layers go when it is idle for cache_days, and while all together
-- are larger than cache_max_gib the oldest go first. They are renamed under their lock, so that no
-- call can use them any more, and then deleted. A conversation with a call is left alone.

local M = {}

local FILE_MODE <const> = 384 -- 0600
local DAY_US <const> = 24 * 3600 * 1000000
local GIB <const> = 1 << 30
local BLOCK <const> = 512
local STEP <const> = 256 -- entries looked at before others run
local SPLIT_DEPTH <const> = 5 -- cache, name, upper, and two directories of the tool
local CALL_LAYER_US <const> = DAY_US -- no call runs so long

---Notes that a conversation has a call now.
---@param uv table
---@param now_us integer
---@param dir string  the conversation's directory
function M.used(uv, now_us, dir)
  local fd = uv.fs_open(dir .. "/last-call", "w", FILE_MODE)
  if not fd then return end -- then its layers count as older than they are
  uv.fs_write(fd, ("%d\n"):format(now_us // 1000000))
  uv.fs_close(fd)
end

local function age_of(fs, now_us, ...)
  for _, path in ipairs({ ... }) do
    local stat = fs.lstat(path)
    if stat then return now_us - stat.mtime_us end
  end
  return 0
end

-- Bytes on disk of a tree. Nobody else changes it, and no link is followed.
local function size_of(env, path)
  local total, pending, seen = 0, { path }, 0
  while #pending > 0 do
    local dir = table.remove(pending)
    for _, entry in ipairs(env.fs.readdir(dir) or {}) do
      local below = dir .. "/" .. entry.name
      local stat = env.uv.fs_lstat(below)
      total = total + (stat and stat.blocks or 0) * BLOCK
      if entry.type == "dir" then pending[#pending + 1] = below end
      seen = seen + 1
      if seen % STEP == 0 then env.pause() end
    end
  end
  return total
end

-- Deletes a tree in pieces, so that the loop is never held for the whole of it.
local function remove(env, path, depth)
  if depth < SPLIT_DEPTH then
    for _, entry in ipairs(env.fs.readdir(path) or {}) do
      if entry.type == "dir" then
        remove(env, path .. "/" .. entry.name, depth + 1)
        env.pause()
      end
    end
  end
  return env.fs.rmtree(path)
end

local function free_name(fs, dir)
  local n = 1
  while fs.lstat(("%s/cache.gone-%d"):format(dir, n)) do n = n + 1 end
  return ("%s/cache.gone-%d"):format(dir, n)
end

-- Takes the kept layers away from a conversation; false while a call has them.
local function retire(env, found)
  if env.is_live(found.id) then return false end
  local cache = found.dir .. "/cache"
  local lock = env.sys.flock(cache)
  if not lock then return false end
  local gone = free_name(env.fs, found.dir)
  local ok, err = env.fs.rename(cache, gone)
  lock:close()
  if not ok then
    env.log:warn("clean up %s: %s", cache, err)
    return false
  end
  ok, err = remove(env, gone, 0)
  if not ok then env.log:warn("clean up %s: %s", gone, err) end
  env.log:info("the kept caches of conversation %s are deleted", found.id)
  return true
end

-- What an earlier clean-up or a call that was killed left.
local function remove_leftovers(env, id, dir)
  for _, entry in ipairs(env.fs.readdir(dir) or {}) do
    if entry.name:match("^cache%.gone%-%d+$") then remove(env, dir .. "/" .. entry.name, 0) end
  end
  if env.is_live(id) then return end
  for _, entry in ipairs(env.fs.readdir(dir .. "/layers") or {}) do
    local path = dir .. "/layers/" .. entry.name
    if age_of(env.fs, env.now_us, path) > CALL_LAYER_US then remove(env, path, 2) end
  end
end

local function survey(env, top)
  local out = {}
  for _, entry in ipairs(env.fs.readdir(top) or {}) do
    local dir = top .. "/" .. entry.name
    if entry.type == "dir" then
      remove_leftovers(env, entry.name, dir)
      local cache = env.fs.lstat(dir .. "/cache")
      if cache and cache.type == "dir" then
        out[#out + 1] = {
          id = entry.name, dir = dir, size = size_of(env, dir .. "/cache"),
          idle_us = age_of(env.fs, env.now_us, dir .. "/last-call", dir .. "/cache"),
        }
      end
      env.pause()
    end
  end
  table.sort(out, function(a, b)
    if a.idle_us ~= b.idle_us then return a.idle_us > b.idle_us end
    return a.id < b.id
  end)
  return out
end

---@class efr.sbx.CollectEnv
---@field fs table
---@field uv table
---@field sys table
---@field log table
---@field now_us integer
---@field pause fun()  lets others run
---@field is_live fun(id: string): boolean  whether a conversation has a call

---Deletes what is too old or too much. Waits.
---@param env efr.sbx.CollectEnv
---@param top string  the directory of all conversations' sandboxes
---@param limits {days: integer, gib: integer}
function M.collect(env, top, limits)
  local all, total = survey(env, top), 0
  for _, found in ipairs(all) do total = total + found.size end
  for _, found in ipairs(all) do -- the one idle longest comes first
    local old = found.idle_us >= limits.days * DAY_US
    if (old or total > limits.gib * GIB) and retire(env, found) then
      total = total - found.size
    end
  end
end

return M
