-- Owns: the paths that a line declares while it is walked: possible directories, and what the line
-- made before that may be a link now.
-- Must not know: programs, rules, the disk.
-- Runs in efrd, on the loop thread. Pure; every list and length has a limit.
--
-- Words are those of efr.perm.lenient_words.

local strings = require "efr.util.text"

local M = {}

local Places = {}
Places.__index = Places

local BASES_MAX <const> = 16
local PATHS_MAX <const> = 4096
local BYTES_MAX <const> = 1024 * 1024
local PATH_MAX <const> = 1024

---@param ctx { cwd: string, home: string }
---@return table places
function M.new(ctx)
  return setmetatable({
    paths = {}, _seen = {}, _bytes = 0, _bases = { ctx.cwd }, _home = ctx.home, _links = {},
    _made = {}, _extra = {},
  }, Places)
end

local clean <const> = strings.fold_path

local byte, find = string.byte, string.find

local SLASH <const> = 47

-- Adding ----------------------------------------------------------------------------------------

-- Adds a path that is not there yet.
local function put(self, access, path, tree, contents, unknown, why)
  local read = access == "read"
  local key = read and 1 or 2
  if tree then key = key + 4 end
  if contents then key = key + 8 end
  if unknown then key = key + 16 end
  local seen = self._seen[key]
  if not seen then
    seen = {}
    self._seen[key] = seen
  end
  if seen[path] then return end
  seen[path] = true
  local paths = self.paths
  paths[#paths + 1] = {
    kind = access, path = path, tree = read and tree or nil, below = not read and tree or nil,
    contents = contents or nil, unknown = unknown, why = why,
  }
  self._bytes = self._bytes + #path
end

---A place that is not known: anywhere.
---@param access string
---@param why string
function Places:anywhere(access, why)
  local read = access == "read"
  put(self, access, "/", read, read, true, why)
end

-- Whether a path is at or below what the line made before.
local function is_linked(self, path)
  if self._any_link then return true end
  if not self._has_links then return false end
  if #path > PATH_MAX then return true end
  local cleaned = clean(path)
  local at = 1
  while at do
    at = cleaned:find("/", at + 1, true)
    if self._links[at and cleaned:sub(1, at - 1) or cleaned] then return true end
  end
  return false
end

local function add(self, path, access, tree, why, contents)
  if #self.paths >= PATHS_MAX or self._bytes > BYTES_MAX then return self:anywhere(access, why) end
  put(self, access, path, tree, tree and contents, nil, why)
  if (self._has_links or self._any_link) and is_linked(self, path) then
    self:anywhere(access, why)
  end
end

-- Resolving -------------------------------------------------------------------------------------

---The possible directories of the current command; nil: anywhere.
---@return string[]?
function Places:bases_now()
  if self._lost or self._displaced then return nil end
  if #self._extra == 0 then return self._bases end
  local out = table.move(self._bases, 1, #self._bases, 1, {})
  return table.move(self._extra, 1, #self._extra, #out + 1, out)
end

-- Every absolute path that a text may mean; nil: anywhere.
local function resolve(self, text, word)
  if word.user then return nil end
  if word.home then return { self._home .. text:sub(2) } end
  if text:sub(1, 1) == "/" then return { text } end
  local bases = self:bases_now()
  if not bases then return nil end
  local out = {}
  for i, base in ipairs(bases) do
    out[i] = text == "" and base or (base == "/" and "/" or base .. "/") .. text
  end
  return out
end

-- The directory that a pattern of file names cannot leave.
local function fixed_dir(word)
  return word.fixed:match("^(.*/)[^/]*$") or ""
end

-- Whether a pattern can match a name that starts with a dot.
local function matches_dots(word)
  local from = word.fixed:match("()[^/]*$")
  return word.dots or word.shape:find("^%.", from) ~= nil
    or word.shape:find("/.", from, true) ~= nil
end

local function places_of(self, word, access, tree, why)
  local points = word.places
  if #points == 0 then return self:base(access, tree, why) end
  if #points > BASES_MAX then return self:anywhere(access, why) end
  for _, point in ipairs(points) do
    if not point.places then self:add(point, access, tree, why) end
  end
end

-- The one path that a plain word means; nil: there may be more, or it is not so plain.
local function only_path(self, word)
  local text = word.shape
  -- A word of the AST is plain.
  if not word.kind
    and (word.glob or word.home or word.user or find(text, "\0", 1, true)) then
    return nil
  end
  if byte(text) == SLASH then return text end
  local bases = self._bases
  if bases[2] or self._extra[1] or self._lost or self._displaced then return nil end
  local base = bases[1]
  return (base == "/" and "/" or base .. "/") .. text
end

---Declares a word as a path.
---@param word table
---@param access string  "read" or "write"
---@param tree boolean?  with everything below
---@param why string
---@param contents boolean?  the tree's dot files may be printed
function Places:add(word, access, tree, why, contents)
  if not word.kind then
    if word.places then return places_of(self, word, access, access == "read", why) end
    if word.process then return end
    if word.open then return self:anywhere(access, why) end
    if word.shape == "" then return end
  end
  local only = only_path(self, word)
  if only then return add(self, only, access, tree, why, contents) end
  local text = word.shape
  if word.glob then
    text = fixed_dir(word)
    tree = true
    contents = contents or (not self._names_only and matches_dots(word))
    -- `..` behind the pattern may lead anywhere.
    if word.shape:find("..", #word.fixed + 1, true) then return self:anywhere(access, why) end
  end
  -- A part of a word can hold what is not known although the word was taken apart.
  local found = not text:find("\0", 1, true) and resolve(self, text, word)
  if not found then return self:anywhere(access, why) end
  for _, path in ipairs(found) do add(self, path, access, tree, why, contents) end
end

function Places:read(word, why)
  self:add(word, "read", false, why)
end

function Places:tree(word, why, contents)
  self:add(word, "read", true, why, contents)
end

function Places:write(word, why)
  self:add(word, "write", false, why)
end

---Declares the directory in which a command runs.
---@param access string
---@param tree boolean?
---@param why string
---@param contents boolean?  as for add
function Places:base(access, tree, why, contents)
  local bases = self:bases_now()
  if not bases then return self:anywhere(access, why) end
  local inside = tree or access == "write"
  for _, base in ipairs(bases) do add(self, base, access, inside, why, contents) end
end

---What a word names may be a link behind the current command.
---@param word table
function Places:link(word)
  if word.open or word.places then return self:link_anywhere() end
  local found = resolve(self, word.glob and fixed_dir(word) or word.shape, word)
  if not found then return self:link_anywhere() end
  for _, path in ipairs(found) do
    if #path > PATH_MAX then return self:link_anywhere() end
    self._made[#self._made + 1] = clean(path)
  end
end

function Places:link_anywhere()
  self._made_anywhere = true
end

-- Directories -----------------------------------------------------------------------------------

---A command begins.
---@param command table
function Places:enter(command)
  self._displaced = command.displaced
end

---The current command prints names of files, not what they hold.
function Places:names_only()
  self._names_only = true
end

---The command ends.
function Places:leave()
  self._displaced, self._names_only = nil, nil
  if self._extra[1] then self._extra = {} end
  if self._made[1] then
    for _, path in ipairs(self._made) do self._links[path] = true end
    self._made, self._has_links = {}, true
  end
  self._any_link = self._any_link or self._made_anywhere
end

---The directory is not known from here on.
function Places:lose()
  self._lost = true
end

local function add_base(self, path)
  if #path > PATH_MAX or #self._bases >= BASES_MAX then return self:lose() end
  for _, base in ipairs(self._bases) do
    if base == path then return end
  end
  self._bases[#self._bases + 1] = path
end

---The directory may be this one from here on, too.
---@param word table
function Places:move(word)
  if word.open or word.glob then return self:lose() end
  local found = resolve(self, word.shape, word)
  if not found then return self:lose() end
  for _, path in ipairs(table.move(found, 1, #found, 1, {})) do
    if is_linked(self, path) then return self:lose() end
    add_base(self, path)
  end
end

function Places:move_home()
  add_base(self, self._home)
end

---The current command may also start in this directory.
---@param word table
function Places:also(word)
  local found = not word.open and not word.glob and resolve(self, word.shape, word)
  if not found or #found > BASES_MAX then
    self._displaced = true
    return
  end
  for _, path in ipairs(found) do self._extra[#self._extra + 1] = path end
end

return M
