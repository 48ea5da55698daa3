-- Owns: what is recorded of a project whose git directory lies elsewhere (a linked work tree, a
-- submodule): which directory that is, as it was when the user registered the project.
-- Must not know: how a call gets to write there (sbx.roots).
-- Runs in efrd on the loop thread. Waits for nothing.
--
-- Policy: a `.git` file says where to write, and a call could have made it, so it counts only
-- while it says what the record says. A record is made by `efr project add` alone, and only when
-- the git directory knows the project too. Files are read through no link, 4 KiB of each.

local git_config = require "efr.sbx.git_config"
local paths = require "efr.perm.paths"

local M = {}

local SMALL <const> = 4096
local RECORD_BYTES <const> = 64 * 1024
local NAME_MAX <const> = 255
local FILE_MODE <const>, DIR_MODE <const> = 384, 448
local PARTS <const> = { "HEAD", "objects", "refs" }

---@class efr.sbx.GitRecord
---@field root string
---@field git_dir string  real path
---@field common_dir string  real path; the same for a submodule

-- The path in a small file of git's, resolved; relative to `base`.
local function read_path(fs, file, pattern, base)
  local text, err = fs.read_real(file, SMALL)
  if not text then return nil, err end
  local path = text:match(pattern)
  if not path then return nil, file .. " names no directory" end
  return fs.realpath(path:sub(1, 1) == "/" and path or base .. "/" .. path)
end

local function file_of(state, root)
  local name = root:sub(2):gsub("/", "%%") .. ".json"
  if #name > NAME_MAX then return nil, "the project's path is too long for a record" end
  return ("%s/sandbox/projects/%s"):format(state, name)
end

-- What the `.git` file of a root says now. nil, nil: there is none.
local function look(fs, root)
  local info = fs.lstat(root .. "/.git")
  if not info or info.type ~= "file" then return nil end
  local git_dir, err = read_path(fs, root .. "/.git", "^gitdir: ([^\r\n]+)[\r\n]*$", root)
  if not git_dir then return nil, ("%s/.git: %s"):format(root, err) end
  local common = git_dir
  if fs.lstat(git_dir .. "/commondir") then
    common, err = read_path(fs, git_dir .. "/commondir", "^([^\r\n]+)[\r\n]*$", git_dir)
    if not common then return nil, ("%s/commondir: %s"):format(git_dir, err) end
  end
  return { root = root, git_dir = git_dir, common_dir = common }
end

-- The work tree that the settings of a submodule's git directory name.
local function work_tree_of(fs, git_dir)
  local text = fs.read_real(git_dir .. "/config", git_config.MAX_BYTES)
  local found
  for _, setting in ipairs(text and git_config.parse(text) or {}) do
    if setting.key == "core.worktree" then found = setting.value end
  end
  if not found or found == "" then return nil end
  return fs.realpath(found:sub(1, 1) == "/" and found or git_dir .. "/" .. found)
end

-- Whether the git directory names the project: a linked work tree by its file `gitdir`, a
-- submodule by `core.worktree`.
local function is_known_there(fs, found)
  local back = fs.read_real(found.git_dir .. "/gitdir", SMALL)
  local named = back and back:match("^([^\r\n]+)")
  if not named then return work_tree_of(fs, found.git_dir) == found.root end
  if named:sub(1, 1) ~= "/" then named = found.git_dir .. "/" .. named end
  local dir = named:match("^(.*)/%.git$")
  return dir ~= nil and fs.realpath(dir) == found.root
end

local function is_git_directory(fs, found)
  if not fs.lstat(found.git_dir .. "/HEAD") then return false end
  for _, name in ipairs(PARTS) do
    if not fs.lstat(found.common_dir .. "/" .. name) then return false end
  end
  return paths.within(found.git_dir, found.common_dir)
end

---Records the git directory of a project that is being registered. Nothing is recorded, and an
---old record goes, where `.git` is a directory or missing.
---@param deps {fs: table, json: table, state: string}
---@param root string  real path
---@return efr.sbx.GitRecord? record
---@return string? why  a `.git` file that is not taken
function M.make(deps, root)
  M.remove(deps, root)
  local fs = deps.fs
  local found, why = look(fs, root)
  if not found then return nil, why end
  if not is_git_directory(fs, found) then
    return nil, ("%s/.git names %s, which is no git directory"):format(root, found.git_dir)
  elseif not is_known_there(fs, found) then
    return nil, ("%s/.git names %s, which does not know this work tree"):format(root, found.git_dir)
  end
  local file, ok
  file, why = file_of(deps.state, root)
  if not file then return nil, why end
  ok, why = fs.mkdirs(file:match("^(.*)/"), DIR_MODE)
  if ok then
    ok, why = fs.write_atomic(file, deps.json.encode(found, { sort = true }) .. "\n", FILE_MODE)
  end
  return ok and found or nil, why
end

---Forgets the record of a project.
---@param deps {fs: table, state: string}
---@param root string
function M.remove(deps, root)
  local file = file_of(deps.state, root)
  if file then deps.fs.unlink(file) end
end

local function stored(deps, root)
  local file = file_of(deps.state, root)
  local text = file and deps.fs.read_real(file, RECORD_BYTES)
  local record = text and deps.json.decode(text, { max_depth = 2 })
  if type(record) ~= "table" or record.root ~= root then return nil end
  if type(record.git_dir) ~= "string" or type(record.common_dir) ~= "string" then return nil end
  return record
end

---The git directories that calls of a project may write.
---@param deps {fs: table, json: table, state: string}
---@param root string  real path of the project
---@return efr.sbx.GitRecord? record  nil: none, and `.git` is a directory or missing or `note` says
---why not
---@return string? note
function M.read(deps, root)
  local info = deps.fs.lstat(root .. "/.git")
  if not info or info.type ~= "file" then return nil end
  local found, record = look(deps.fs, root), stored(deps, root)
  if found and record and found.git_dir == record.git_dir
    and found.common_dir == record.common_dir and is_git_directory(deps.fs, found) then
    return record
  end
  return nil, ("git cannot write in %s: its git directory lies elsewhere and is not recorded%s; "
    .. "run `efr project add %s` to record it"):format(root, record and " so" or "", root)
end

return M
