-- Owns: moving what a call planted into a directory of efr's own, and back.
-- Must not know: why something is moved, who is asked. Runs in efrd, on the loop thread.
--
-- Policy: both sides of a move are directories that are held open, whose paths hold no link; an
-- entry is moved itself, a link is never followed, and nothing is ever replaced. `entries.json`
-- says what lies there and where it was; it is written before the first move, so that a crash
-- leaves nothing without a name. On another file system a file is copied and then removed, with its
-- mode. Something goes back only into the very directory that it came from. Where efr put back what
-- stood there before the call, that makes room again, while nobody changed it.

local exact = require "efr.util.exact"
local look = require "efr.sbx.guard.look"

local M = {}

M.MAX_COPY = 16 * 1024 * 1024 ---@type integer

local DIR_MODE <const> = 448 -- 0700
local FILE_MODE <const> = 384 -- 0600
local MAX_NAME <const> = 200
local OLD <const> = ".old" -- of a name in the quarantine directory

---@class efr.sbx.guard.Moved
---@field from string  where it was
---@field to string  name in the quarantine directory
---@field parent string  identity of the directory that it came from
---@field old string?  identity and stamp of what efr put back in its place

---@class efr.sbx.guard.Quarantine
---@field dir string  real path
---@field entries efr.sbx.guard.Moved[]

local function identity(dir)
  local stat, err, code = dir:stat(".")
  if not stat then return nil, err, code end
  return stat.dev .. ":" .. stat.ino
end

local function split(path)
  local above, name = path:match("^(.*)/([^/]+)$")
  return above == "" and "/" or above, name
end

-- Moves across file systems: the bytes or the link, then the old entry goes.
local function copy(from, name, to, new_name)
  local stat, err, code = from:stat(name)
  if not stat then return nil, err, code end
  local ok
  if stat.type == "link" then
    local target
    target, err, code = from:readlink(name)
    if not target then return nil, err, code end
    ok, err, code = to:symlink(target, new_name)
  elseif stat.type == "file" then
    local bytes
    bytes, err, code = from:read(name, M.MAX_COPY)
    if not bytes then return nil, err, code end
    ok, err, code = to:create(new_name, bytes, stat.mode)
  else
    return nil, ("%s lies on another file system and is no file"):format(name), "EXDEV"
  end
  if not ok then return nil, err, code end
  ok, err, code = from:remove(name)
  if ok then return true end
  to:remove(new_name)
  return nil, err, code
end

local function move(from, name, to, new_name)
  local ok, err, code = from:move(name, to, new_name)
  if ok or code ~= "EXDEV" then return ok, err, code end
  return copy(from, name, to, new_name)
end

local function write_list(ports, place)
  local list = ports.json.array({})
  for i, entry in ipairs(place.entries) do
    list[i] = { from = entry.from, to = entry.to, parent = entry.parent }
  end
  local text, err, code = ports.json.encode(exact.clean(list, ports.text),
    { sort = true, pretty = true })
  if not text then return nil, err, code end
  return ports.fs.write_atomic(place.dir .. "/entries.json", text .. "\n", FILE_MODE)
end

---Opens the quarantine directory of a call; it is made when it is missing.
---@param ports table  fs, json, text, dir
---@param path string
---@return efr.sbx.guard.Quarantine?
---@return string? err
---@return string? code
function M.open(ports, path)
  local ok, err, code = ports.fs.mkdirs(path, DIR_MODE)
  if not ok then return nil, err, code end
  local real
  real, err, code = ports.fs.realpath(path)
  if not real then return nil, err, code end
  return { dir = real, entries = {} }
end

local function name_for(place, name)
  return ("%d-%s"):format(#place.entries + 1, name:sub(1, MAX_NAME))
end

---Moves one entry into quarantine. The place then has one entry more.
---@param ports table
---@param place efr.sbx.guard.Quarantine
---@param path string
---@return true? ok
---@return string? err  it is where it was
---@return string? code
function M.take(ports, place, path)
  local above, name = split(path)
  local from <close>, err, code = ports.dir.open(above)
  if not from then return nil, err, code end
  local to <close>, why, what = ports.dir.open(place.dir)
  if not to then return nil, why, what end
  local parent
  parent, err, code = identity(from)
  if not parent then return nil, err, code end
  local entry = { from = path, to = name_for(place, name), parent = parent }
  place.entries[#place.entries + 1] = entry
  local ok
  ok, err, code = write_list(ports, place)
  if ok then ok, err, code = move(from, name, to, entry.to) end
  if ok then return true end
  place.entries[#place.entries] = nil
  write_list(ports, place)
  return nil, err, code
end

local function stamp_of(dir, name)
  local stat = dir:stat(name)
  return stat and (look.stamp(stat)) .. "/" .. select(2, look.stamp(stat))
end

-- What efr put there makes room, while it is still that; nothing else does.
local function make_room(place_dir, to, name, entry)
  if not entry.old or stamp_of(to, name) ~= entry.old then return true end
  local ok, err, code = move(to, name, place_dir, entry.to .. OLD)
  if ok then entry.aside = true end
  return ok, err, code
end

local function put_back(ports, place, entry)
  local above, name = split(entry.from)
  local to <close>, err, code = ports.dir.open(above)
  if not to then return nil, err, code end
  local from <close>, why, what = ports.dir.open(place.dir)
  if not from then return nil, why, what end
  if identity(to) ~= entry.parent then
    return nil, above .. " is another directory now", "EFR_CHANGED"
  end
  local ok
  ok, err, code = make_room(from, to, name, entry)
  if ok then ok, err, code = move(from, entry.to, to, name) end
  if entry.aside and ok then
    from:remove(entry.to .. OLD)
  elseif entry.aside and move(from, entry.to .. OLD, to, name) then
    entry.aside, entry.old = nil, stamp_of(to, name)
  end
  return ok, err, code
end

---Puts back what stood in a place before the call. Nothing is replaced.
---@param ports table
---@param place efr.sbx.guard.Quarantine?  whose newest entry came from there; nil: it was removed
---@param path string
---@param old efr.sbx.guard.Item  what it was, with its bytes
---@return true? ok
---@return string? err
---@return string? code
function M.put_old(ports, place, path, old)
  local above, name = split(path)
  local dir <close>, err, code = ports.dir.open(above)
  if not dir then return nil, err, code end
  local entry = place and place.entries[#place.entries]
  if entry and identity(dir) ~= entry.parent then
    return nil, above .. " is another directory now", "EFR_CHANGED"
  end
  local ok
  if old.type == "link" then
    ok, err, code = dir:symlink(old.bytes, name)
  else
    ok, err, code = dir:create(name, old.bytes, old.mode)
  end
  if not ok then return nil, err, code end
  if entry then entry.old = stamp_of(dir, name) end
  return true
end

---Puts everything back. What cannot go back stays in quarantine.
---@param ports table
---@param place efr.sbx.guard.Quarantine
---@return {path: string, reason: string}[] failed
function M.restore(ports, place)
  local failed, left = {}, {}
  for i = #place.entries, 1, -1 do
    local entry = place.entries[i]
    local ok, err = put_back(ports, place, entry)
    if not ok then
      table.insert(left, 1, entry)
      table.insert(failed, 1, { path = entry.from, reason = err })
    end
  end
  place.entries = left
  if #left > 0 then
    write_list(ports, place)
  else
    ports.fs.rmtree(place.dir)
  end
  return failed
end

return M
