-- Owns: the references of a project's own repository: reading them, what moved between two
-- readings, keeping the objects that only one side reaches, and moving them back by
-- compare-and-swap.
-- Must not know: turns, undos. Runs in efrd; everything waits, in a task.
--
-- Policy: only the repository whose `.git` is a directory of the root itself; one with alternates
-- or another common directory has no undo of its references. Its settings, hooks and index are
-- never written; hooks do not run. Whether anything moved is read from the files; git is asked
-- where they are not plain, and for every place that an undo goes by. A reference moves only from
-- the place that the caller expects, and only when both places can be brought back.

local ref_files = require "efr.store.snapshot_ref_files"

local M = {}

local READ_MS <const> = 10000
local REFS_BYTES <const> = 8 * 1024 * 1024
local PACK_BYTES <const> = 64 * 1024 * 1024
local OID <const> = ("%x"):rep(40)

---@class efr.SnapshotRefs
---@field git table  efr.sbx.git
---@field fs table
---@field dirs table  efr.dir
---@field root string  of the project
---@field dir string  real path of its snapshot store
local Refs = {}
Refs.__index = Refs

---@param deps {git: table, fs: table, dirs: table, root: string, dir: string}
---@return efr.SnapshotRefs
function M.new(deps)
  return setmetatable({ git = deps.git, fs = deps.fs, dirs = deps.dirs, root = deps.root,
    dir = deps.dir, own = deps.root .. "/.git" }, Refs)
end

---Whether the references of this root can be brought back.
---@return boolean
function Refs:usable()
  local fs, own = self.fs, self.own
  local info = fs.lstat(own)
  return info ~= nil and info.type == "dir" and not fs.lstat(own .. "/commondir")
    and not fs.lstat(own .. "/objects/info/alternates")
    and not fs.lstat(own .. "/objects/info/http-alternates")
end

local function run(self, args, opts)
  opts = opts or {}
  local found, err = self.git:run {
    root = self.root, store = opts.store, args = args, stdin = opts.stdin,
    env = { GIT_DIR = self.own }, timeout_ms = READ_MS, max_bytes = opts.max_bytes or REFS_BYTES,
  }
  if not found then return nil, err end
  if found.code ~= 0 then return nil, found.err:match("[^\n]+") or "git failed", found.code end
  return found.out
end

---Every reference and HEAD, by name. HEAD is a place, or "ref: NAME".
---@return table<string, string>? refs
---@return string? err
function Refs:read()
  local out, err = run(self, { "for-each-ref", "--format=%(objectname) %(refname)" })
  if not out then return nil, err end
  local refs = {}
  for oid, name in out:gmatch("(%x+) ([^\n]+)\n") do refs[name] = oid end
  local head = self.fs.read_real(self.own .. "/HEAD", 4096)
  head = head and head:match("^([^\n]+)\n?$")
  if not head then return nil, "HEAD cannot be read" end
  refs.HEAD = head
  return refs
end

---The same without git where the files are plain; then a place whose object is missing counts too.
---@return table<string, string>? refs
---@return string? err
function Refs:look()
  local refs, err = ref_files.read(self.dirs, self.own)
  if refs or err then return refs, err end
  return self:read()
end

local function is_same(one, other)
  for name, place in pairs(one) do
    if other[name] ~= place then return false end
  end
  for name in pairs(other) do
    if one[name] == nil then return false end
  end
  return true
end

-- Places of `before` that moved and whose objects are missing: git never counted those.
local function without_missing(self, before, after)
  local list, out = {}, {}
  for name, place in pairs(before) do
    out[name] = place
    if after[name] ~= place and place:find("^" .. OID .. "$") then list[#list + 1] = place end
  end
  if #list == 0 then return out end
  local text, err = run(self, { "cat-file", "--batch-check" },
    { stdin = table.concat(list, "\n") .. "\n" })
  if not text then return nil, err end
  local missing = {}
  for oid in text:gmatch("(%x+) missing\n") do missing[oid] = true end
  for name, place in pairs(out) do
    if missing[place] then out[name] = nil end
  end
  return out
end

---What moved since a look, and every reference now.
---@param before table<string, string>
---@return {name: string, before: string?, after: string?}[]? moved
---@return table<string, string>|string now  or err
function Refs:since(before)
  local now, err = self:look()
  if not now then return nil, err end
  if is_same(before, now) then return {}, now end
  now, err = self:read()
  if not now then return nil, err end
  before, err = without_missing(self, before, now)
  if not before then return nil, err end
  return M.moved(before, now), now
end

---What moved between two readings, by name.
---@param before table<string, string>
---@param after table<string, string>
---@return {name: string, before: string?, after: string?}[]
function M.moved(before, after)
  local out = {}
  local function add(name)
    out[#out + 1] = { name = name, before = before[name], after = after[name] }
  end
  for name, place in pairs(before) do
    if after[name] ~= place then add(name) end
  end
  for name in pairs(after) do
    if before[name] == nil then add(name) end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

local function places(list, side)
  local out = {}
  for _, item in ipairs(list) do
    local place = item[side]
    if place and place:find("^" .. OID .. "$") then out[#out + 1] = place end
  end
  return out
end

---Keeps, under a name, what is reached from one side of moved references and from no present one.
---@param name string
---@param moved table[]
---@param side "before"|"after"
---@param present table<string, string>  all references now
---@return true?
---@return string? err
function Refs:keep(name, moved, side, present)
  local wanted = places(moved, side)
  if #wanted == 0 then return true end
  local lines = { table.concat(wanted, "\n") }
  for _, place in pairs(present) do
    if place:find("^" .. OID .. "$") then lines[#lines + 1] = "^" .. place end
  end
  local ok, err = self.fs.mkdirs_real(self.dir .. "/mirror", 448)
  if not ok then return nil, err end
  local out
  out, err = run(self, { "pack-objects", "--revs", "--stdout", "-q" },
    { stdin = table.concat(lines, "\n") .. "\n", max_bytes = PACK_BYTES })
  if not out then return nil, err end
  return self.fs.write_real(("%s/mirror/%s.pack"):format(self.dir, name), out, { mode = 384 })
end

-- Brings kept objects back where the repository lost them.
local function bring_back(self, name)
  local pack = self.fs.read_real(("%s/mirror/%s.pack"):format(self.dir, name), PACK_BYTES)
  if not pack then return nil, "its commits are gone" end
  return run(self, { "unpack-objects", "-q" }, { store = self.own, stdin = pack })
end

local function has(self, place)
  return run(self, { "cat-file", "-e", place .. "^{object}" }) ~= nil
end

---Sees to it that the repository has an object, from what was kept under a name.
---@param place string?
---@param kept string
---@return true?
---@return string? err
function Refs:ensure(place, kept)
  if not place or not place:find("^" .. OID .. "$") or has(self, place) then return true end
  local ok, err = bring_back(self, kept)
  if not ok then return nil, err end
  if not has(self, place) then return nil, "its commits are gone" end
  return true
end

local function set_head(self, from, to)
  local now = self.fs.read_real(self.own .. "/HEAD", 4096)
  if not now or now:match("^([^\n]+)") ~= from then return nil, "changed since" end
  local target = to:match("^ref: (refs/.+)$")
  if target then
    return run(self, { "symbolic-ref", "-m", "efr undo", "HEAD", target }, { store = self.own })
  end
  return run(self, { "update-ref", "--no-deref", "-m", "efr undo", "HEAD", to },
    { store = self.own })
end

---Moves one reference, if it is where it is expected.
---@param name string
---@param from string?  nil: it must not exist
---@param to string?  nil: remove it
---@return true?
---@return string? err  why it stays
function Refs:move(name, from, to)
  local ok, err
  if name == "HEAD" then
    if not from or not to then return nil, "there is no HEAD" end
    ok, err = set_head(self, from, to)
  elseif to then
    ok, err = run(self, { "update-ref", "--create-reflog", "-m", "efr undo", name, to,
      from or ("0"):rep(40) }, { store = self.own })
  else
    ok, err = run(self, { "update-ref", "-m", "efr undo", "-d", name, from },
      { store = self.own })
  end
  if not ok then return nil, err end
  return true
end

return M
