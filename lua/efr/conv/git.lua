-- Owns: finding the git work tree and branch of a directory by reading .git, without running git.
-- Must not know: what they are used for. Files come through the fs port. Runs in efrd.
--
-- Policy: only regular files are read, through no link, and little of each: others may write there
-- at this moment. What cannot be read is simply not known.

local M = {}

local MAX <const> = 4096

local function git_dir(fs, dir)
  local path = dir .. "/.git"
  local info = fs.lstat(path)
  if not info then return nil end
  if info.type == "dir" then return path end
  local text = info.type == "file" and fs.read_real(path, MAX)
  local target = text and text:match("^gitdir: ([^\r\n]+)")
  if not target then return nil end
  return target:sub(1, 1) == "/" and target or dir .. "/" .. target
end

---The work tree that `cwd` lies in.
---@param fs table
---@param cwd string  absolute
---@return string|nil root
---@return string|nil branch  or the first 12 digits of a detached head
function M.find(fs, cwd)
  local dir = cwd
  for _ = 1, 128 do
    local found = git_dir(fs, dir == "/" and "" or dir)
    if found then
      local head = fs.read_real(found .. "/HEAD", MAX)
      local branch = head and (head:match("^ref: refs/heads/([^\r\n]+)") or head:match("^%x+"))
      if branch and not head:find("^ref") then branch = branch:sub(1, 12) end
      return dir, branch
    end
    if dir == "/" then return nil end
    dir = dir:match("^(.+)/[^/]*$") or "/"
  end
  return nil
end

return M
