-- Owns: what was hidden for its name in a project, and where it lies now. A command can rename the
-- directories above a hidden file, remove a link that leads to one, or make a project larger than
-- the search for names goes; what was hidden before stays hidden.
-- Must not know: which names are hidden, how a search goes (sbx.globs), the plan.
-- Runs in efrd on the loop thread.
--
-- While a call runs, each directory of a hidden file that it could move is held by a descriptor,
-- whose link below /proc/self/fd says where it lies. What is known is kept in the state root, so
-- that it outlives efrd. Other settings of what is hidden begin anew.

local paths = require "efr.perm.paths"

local M = {}

local O_PATH <const> = 0x200000 -- the same on every architecture that efr is built for
local O_CLOEXEC <const> = 0x80000
local MAX_HELD <const> = 512 -- of one call
local FILE_MODE <const> = 384 -- 0600
local MAX_BYTES <const> = 4 * 1024 * 1024
local MAGIC <const> = "efr-hidden 1"

local Hidden = {}
Hidden.__index = Hidden

local function sorted_keys(map)
  local out = {}
  for key in pairs(map) do out[#out + 1] = key end
  table.sort(out)
  return out
end

-- Fields end with NUL: the magic, the key, then "r" root or "p" path of the root before it.
local function encode(self)
  local out = { MAGIC, (self.key:gsub("\0", "\n")) }
  for _, root in ipairs(sorted_keys(self.known)) do
    out[#out + 1] = "r" .. root
    for _, path in ipairs(sorted_keys(self.known[root])) do out[#out + 1] = "p" .. path end
  end
  return table.concat(out, "\0") .. "\0"
end

local function decode(bytes, key)
  local fields, known, root = {}, {}, nil
  for field in bytes:gmatch("([^\0]*)\0") do fields[#fields + 1] = field end
  if fields[1] ~= MAGIC or fields[2] ~= key:gsub("\0", "\n") then return {} end
  for i = 3, #fields do
    local kind, path = fields[i]:sub(1, 1), fields[i]:sub(2)
    if kind == "r" then
      root = {}
      known[path] = root
    elseif root then
      root[path] = true
    end
  end
  return known
end

-- Where what is held lies now.
local function follow(self)
  for hold in pairs(self.holds) do
    for _, held in ipairs(hold) do
      local now = self.fs.readlink("/proc/self/fd/" .. held.fd)
      local known = self.known[held.root]
      if now and now ~= held.dir and known then
        for _, name in ipairs(held.names) do
          known[held.dir .. "/" .. name], known[now .. "/" .. name] = nil, true
        end
        held.dir = now
      end
    end
  end
end

---Says which patterns hold; with others than before nothing is known.
---@param key string
function Hidden:patterns(key)
  if self.key == key then return end
  local first = self.key == nil
  self.key = key
  local bytes = first and self.fs.read_file(self.file, MAX_BYTES)
  self.known = bytes and decode(bytes, key) or {}
  self.saved = bytes
end

---Adds what a search found below a root to what is known, and returns all of it that is there.
---@param root string
---@param found string[]  real paths
---@param exists fun(path: string): boolean
---@return string[]
function Hidden:add(root, found, exists)
  follow(self)
  local known = self.known[root] or {}
  self.known[root] = known
  for _, path in ipairs(found) do known[path] = true end
  for _, path in ipairs(sorted_keys(known)) do
    if not exists(path) then known[path] = nil end
  end
  return sorted_keys(known)
end

---Adds what a plan hides below the roots for other reasons, so that it is followed, too.
---@param roots table<string, boolean>
---@param mounts {kind: string, path: string}[]
function Hidden:add_masks(roots, mounts)
  for _, mount in ipairs(mounts) do
    for root in pairs(mount.kind == "mask" and roots or {}) do
      if paths.below(mount.path, root) then self.known[root][mount.path] = true end
    end
  end
end

local function save(self)
  if not self.key then return true end
  local bytes = encode(self)
  if bytes == self.saved then return true end
  local ok, err, code = self.fs.write_atomic(self.file, bytes, FILE_MODE)
  if ok then self.saved = bytes end
  return ok, err, code
end

-- Holds the directories of what lies below a root, but not the root: it is a mount point.
local function hold_below(self, root, hold)
  local by_dir = {}
  for _, path in ipairs(sorted_keys(self.known[root] or {})) do
    local dir, name = path:match("^(.*)/([^/]*)$")
    local held = by_dir[dir]
    if not held and dir ~= root then
      local fd, err, code = self.uv.fs_open(dir, O_PATH | O_CLOEXEC, 0)
      if fd then
        held = { fd = fd, root = root, dir = dir, names = {} }
        by_dir[dir], hold[#hold + 1] = held, held
      elseif code ~= "ENOENT" then
        return nil, err, code
      end
    end
    if #hold > MAX_HELD then
      return nil, root .. ": more directories with hidden files than efr can follow", "EFR_SANDBOX"
    end
    if held then held.names[#held.names + 1] = name end
  end
  return true
end

---Holds what a call could move until release. On failure the call must not run.
---@param roots table<string, boolean>  that the call's description searched
---@return table? hold
---@return string? err
---@return string? code
function Hidden:hold(roots)
  local hold = {}
  self.holds[hold] = true
  for root in pairs(roots) do
    local ok, err, code = hold_below(self, root, hold)
    if not ok then
      self:release(hold)
      return nil, err, code
    end
  end
  local ok, err, code = save(self)
  if ok then return hold end
  self:release(hold)
  return nil, err, code
end

---Notes where everything lies after the call.
---@param hold table
---@return true?
---@return string? err
function Hidden:release(hold)
  follow(self)
  self.holds[hold] = nil
  for _, held in ipairs(hold) do self.uv.fs_close(held.fd) end
  return save(self)
end

---All that is known to be hidden, by real path.
---@return string[]
function Hidden:paths()
  follow(self)
  local out = {}
  for _, known in pairs(self.known) do
    for path in pairs(known) do out[#out + 1] = path end
  end
  table.sort(out)
  return out
end

---@param ports {fs: table, uv: table}
---@param file string  where it is kept
---@return table hidden
function M.new(ports, file)
  return setmetatable({ fs = ports.fs, uv = ports.uv, file = file, known = {}, holds = {} }, Hidden)
end

return M
