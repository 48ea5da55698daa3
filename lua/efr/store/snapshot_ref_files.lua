-- Owns: reading the references of a repository from its files, where they are plain.
-- Must not know: git, what the references are for. Runs in efrd; quick.
--
-- Policy: others write these files. They are read through no link, by their strict form alone;
-- whatever is odd, much or new (a link, another hash, another format of references, a name that git
-- would refuse) is not judged here: the caller asks git.

local M = {}

local OID <const> = "^" .. ("%x"):rep(40) .. "$"
local MAX_NAMES <const> = 2000
local MAX_DEPTH <const> = 32
local FILE_BYTES <const> = 4096
local PACKED_BYTES <const> = 8 * 1024 * 1024
local MAX_STEPS <const> = 5 -- from one symbolic reference to the next

-- Whether git takes the name as it is.
local function is_plain(name)
  return not name:find("[%c \127~^:?*%[\\]") and not name:find("..", 1, true)
    and not name:find("@{", 1, true) and not name:find("/.", 1, true)
    and not name:find("//", 1, true) and not name:find("[./]$")
end

local function read_packed(dir, out)
  local bytes, _, code = dir:read("packed-refs", PACKED_BYTES)
  if not bytes then return code == "ENOENT" end
  if bytes ~= "" and bytes:sub(-1) ~= "\n" then return false end
  for line in bytes:gmatch("([^\n]*)\n") do
    local first = line:sub(1, 1)
    if first ~= "#" and first ~= "^" then
      local oid, name = line:match("^(%x+) (refs/.+)$")
      if not oid or not oid:find(OID) or not is_plain(name) then return false end
      out[name] = oid
    end
  end
  return true
end

-- One file below refs/. False: it is odd.
local function read_loose(dir, name, out)
  local bytes, _, code = dir:read(name, FILE_BYTES)
  if not bytes then return code == "ENOENT" end -- it went at this moment
  local oid, target = bytes:match("^(%x+)\n$"), bytes:match("^ref: (refs/[^\n]+)\n$")
  if oid and not oid:find(OID) or not oid and not target then return false end
  out[name] = oid or { target = target }
  return true
end

local function read_dir(dir, path, out, state)
  if state.depth > MAX_DEPTH then return false end
  local names = dir:list(path, MAX_NAMES + 1)
  if not names then return false end
  for name, kind in pairs(names) do
    local full = path .. "/" .. name
    state.count = state.count + 1
    if state.count > MAX_NAMES or not is_plain(full) then return false end
    if kind == "dir" then
      state.depth = state.depth + 1
      if not read_dir(dir, full, out, state) then return false end
      state.depth = state.depth - 1
    elseif kind ~= "file" then
      state.special = kind ~= "link" and full or nil
      return false
    elseif full:sub(-5) ~= ".lock" and not read_loose(dir, full, out) then
      return false
    end
  end
  return true
end

-- Symbolic references stand for the place that they lead to; those that lead nowhere are none.
local function resolve(refs)
  local out = {}
  for name, place in pairs(refs) do
    local steps = 0
    while type(place) == "table" and steps < MAX_STEPS do
      place, steps = refs[place.target], steps + 1
    end
    if type(place) == "string" then out[name] = place end
  end
  return out
end

---Every reference and HEAD, by name, as efr.SnapshotRefs.read gives them.
---@param dirs table  efr.dir
---@param path string  real path of the repository
---@return table<string, string>? refs
---@return string? err  nothing may read them; nil: git must be asked
function M.read(dirs, path)
  local dir <close> = dirs.open(path)
  if not dir or dir:stat("reftable") then return nil end
  local head = dir:read("HEAD", FILE_BYTES)
  head = head and (head:match("^(ref: refs/[^\n]+)\n$") or head:match("^(%x+)\n$"))
  if not head or head:sub(1, 5) ~= "ref: " and not head:find(OID) then return nil end
  -- In this order a reference that is packed at this moment is seen in one of the two places.
  local loose, packed, state = {}, {}, { depth = 0, count = 0 }
  if not read_dir(dir, "refs", loose, state) then
    -- git would wait for a fifo.
    return nil, state.special and state.special .. " is no file"
  end
  if not read_packed(dir, packed) then return nil end
  for name, place in pairs(loose) do packed[name] = place end
  local refs = resolve(packed)
  refs.HEAD = head
  return refs
end

return M
