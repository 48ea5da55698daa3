-- Owns: finding the repository that git would use in a directory: its work tree and its git
-- directories.
-- Must not know: settings, or what is decided.
-- Runs in efrd and efr. Looks at the disk through a port.

local M = {}

local SMALL <const> = 4096
local DEEP_MAX <const> = 128
local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

local function below(dir, name)
  return (dir == "/" and "" or dir) .. "/" .. name
end

-- A path in a small file of git's, relative to the file's directory.
local function read_path(fs, file, pattern)
  local text = fs.read_real(file, SMALL)
  local path = text and text:match(pattern)
  if not path then return nil end
  if path:sub(1, 1) ~= "/" then path = parent_of(file) .. "/" .. path end
  return (fs.realpath(path))
end

-- The git directory that a `.git` file names, and the one that it shares.
local function linked(fs, root, file)
  local git_dir = read_path(fs, file, "^gitdir: ([^\r\n]+)[\r\n]*$")
  if not git_dir or not fs.lstat(git_dir .. "/HEAD") then return nil end
  local common = git_dir
  if fs.lstat(git_dir .. "/commondir") then
    common = read_path(fs, git_dir .. "/commondir", "^([^\r\n]+)[\r\n]*$")
    if not common then return nil end
  end
  return { root = root, common = common,
    git_dirs = common == git_dir and { git_dir } or { git_dir, common } }
end

---The repository whose work tree begins at a directory.
---@param fs table
---@param dir string
---@return { root: string, common: string, git_dirs: string[] }|false|nil repository  nil: none
---does; false: not known
function M.at(fs, dir)
  local path = below(dir, ".git")
  local info, _, code = fs.lstat(path)
  if info and info.type == "dir" then
    return { root = dir, common = path, git_dirs = {} }
  elseif info then
    return info.type == "file" and linked(fs, dir, path) or false
  elseif not NOT_THERE[code] then
    return false
  end
  -- A bare repository, or a place inside of a git directory.
  local head, _, why = fs.lstat(below(dir, "HEAD"))
  if head or not NOT_THERE[why] then return false end
  return nil
end

---The repository whose work tree a directory lies in: its root, the git directory that its work
---trees share, and the git directories outside of the root. All real paths.
---@param fs table
---@param start string
---@return { root: string, common: string, git_dirs: string[] }|false|nil repository  nil: there is
---none; false: not known
function M.find(fs, start)
  local dir = fs.realpath(start)
  if not dir then return false end
  for _ = 1, DEEP_MAX do
    local found = M.at(fs, dir)
    if found ~= nil then return found end
    if dir == "/" then return nil end
    dir = parent_of(dir)
  end
  return false
end

return M
