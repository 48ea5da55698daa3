-- Owns: which file the shell would run for the name of a program, and whether something that needs
-- no question could put another one in its place.
-- Must not know: lines, rules, effects; the disk, which is asked through the fs port.
-- Runs in efrd and efr. Waits for nothing.
--
-- Policy: the shell takes the first file of its PATH. A name is trusted only if each directory up
-- to that file, and each link on the way, lies where nobody writes without a question: not in a
-- project, in $SCRATCH, in a write root of the sandbox or in a directory that everybody may write.
-- A relative entry of PATH is a place that is not known. A name that no directory holds runs
-- nothing, and is trusted only when the whole PATH is. Without the shell's own PATH nothing is
-- trusted.

local text = require "efr.util.text"

local M = {}

local LINKS_MAX <const> = 16
local ENTRIES_MAX <const> = 128
local EXECUTE <const>, WORLD_WRITE <const> = 73, 2
local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }

-- Directories in which every process of the machine makes files.
local SHARED <const> = { "/tmp", "/var/tmp", "/dev/shm" }

---@class efr.perm.ProgramSearch
---@field file string?  the file that runs, links followed
---@field doubt string?  why the name is not trusted, in words
---@field open boolean?  it lies where files can change without a question

local function is_within(path, root)
  return path == root or text.starts_with(path, root == "/" and "/" or root .. "/")
end

-- The home directory and what is above it are no project and no write root, whoever registers them.
local function roots_of(machine)
  local out, home = {}, text.fold_path(machine.home or "/")
  local function add(path)
    local root = type(path) == "string" and text.fold_path(path)
    if root and not is_within(home, root) then out[#out + 1] = root end
  end
  for _, name in ipairs({ "project_roots", "write_roots" }) do
    for _, path in ipairs(machine[name] or {}) do add(path) end
  end
  local scratch = machine.scratch
  for _, path in ipairs(type(scratch) == "table" and scratch or { scratch }) do add(path) end
  return table.move(SHARED, 1, #SHARED, #out + 1, out)
end

-- The place of a path when something may write there without a question.
local function open_root(self, path)
  path = text.fold_path(path)
  for _, root in ipairs(self.roots) do
    if is_within(path, root) then return root end
  end
  return nil
end

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

local function why_open(path, root)
  return ("%s lies in %s, where files can change without a question"):format(path, root)
end

-- Follows a name through its links; the doubt, when one of them lies in an open place.
local function doubt_of(self, path)
  for _ = 1, LINKS_MAX do
    local root = open_root(self, path)
    if root then return why_open(path, root) end
    local parent = self.fs.realpath(parent_of(path))
    local real = parent and (parent == "/" and "/" or parent .. "/") .. path:match("[^/]*$")
    root = real and open_root(self, real)
    if root then return why_open(path, root) end
    local target = self.fs.readlink and self.fs.readlink(path)
    if not target then return nil end
    path = text.fold_path(target:sub(1, 1) == "/" and target or parent_of(path) .. "/" .. target)
  end
  return path .. " is behind too many links"
end

-- Why a directory of PATH is not trusted; false: it is.
local function directory_doubt(self, dir)
  if dir:sub(1, 1) ~= "/" then
    return ("PATH holds %s, which depends on the directory"):format(
      dir == "" and "an empty entry" or dir)
  end
  local doubt = doubt_of(self, dir)
  local real = not doubt and self.fs.realpath(dir)
  if not real then return doubt or false end
  local root = open_root(self, real)
  if root then return why_open(dir, root) end
  local info = self.fs.stat(real)
  if info and info.mode & WORLD_WRITE ~= 0 then return "everybody may write in " .. dir end
  return false
end

-- The file of a name in one directory: its real path and whether the shell surely stops there.
local function look(self, dir, name)
  local path = (dir == "/" and "" or dir) .. "/" .. name
  local info, _, code = self.fs.stat(path)
  if not info then
    if NOT_THERE[code] then return nil end
    return nil, ("efr cannot look at %s"):format(path)
  end
  if info.type ~= "file" or info.mode & EXECUTE == 0 then return nil end
  local file = self.fs.realpath(path) or path
  local root = open_root(self, file)
  local doubt = root and why_open(file, root) or doubt_of(self, path)
    or info.mode & WORLD_WRITE ~= 0 and "everybody may write " .. file or nil
  return file, doubt, info.mode & EXECUTE == EXECUTE, root ~= nil
end

local function search(self, name)
  local found, doubt, open
  for i, entry in ipairs(self.entries) do
    if self.doubts[i] == nil then self.doubts[i] = directory_doubt(self, entry) end
    doubt = doubt or self.doubts[i] or nil
    if entry:sub(1, 1) == "/" then
      local file, why, sure, is_open = look(self, entry, name)
      if not found then open = is_open end
      found, doubt = found or file, doubt or why
      if file and sure then break end
    end
  end
  return { file = found, doubt = doubt, open = found and open or nil }
end

-- A program that is named by its path, never trusted as a name.
local function by_path(self, path)
  local file = path:sub(1, 1) == "/" and self.fs.realpath(path) or nil
  local root = file and (open_root(self, path) or open_root(self, file))
  return { file = file, doubt = root and why_open(path, root) or "it is no name of PATH",
    open = root ~= nil or nil }
end

local function entries_of(path_variable)
  local out = {}
  for entry in (path_variable .. ":"):gmatch("([^:]*):") do out[#out + 1] = entry end
  return out
end

---A search with one PATH. What it finds is remembered, so it serves one call.
---@param fs table  port: stat, realpath, readlink
---@param path_variable string?  PATH of the shell that runs the line; nil: not known
---@param machine efr.Machine
---@return fun(name: string): efr.perm.ProgramSearch
function M.new(fs, path_variable, machine)
  local self = { fs = fs, roots = roots_of(machine), doubts = {}, known = {},
    entries = entries_of(path_variable or "") }
  local why = not path_variable and "efr does not know the PATH of the shell"
    or #self.entries > ENTRIES_MAX and "PATH has too many entries"
  return function(name)
    if name:find("/", 1, true) then return by_path(self, name) end
    if why then return { doubt = why } end
    self.known[name] = self.known[name] or search(self, name)
    return self.known[name]
  end
end

return M
