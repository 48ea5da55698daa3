-- What /proc says of a hidden shell.
--
-- Owns: its directory, the launcher among its children. Must not know: runs. Loop thread of efrd.

local M = {}

---The directory of the shell as it names it, if that is where its process is; else the kernel's own
---name for it.
---@param fs table
---@param pid integer
---@param claimed string?
---@return string? cwd
function M.cwd(fs, pid, claimed)
  local link = ("/proc/%d/cwd"):format(pid)
  local real = fs.stat(link)
  local there = claimed and fs.stat(claimed)
  if real and there and real.dev == there.dev and real.ino == there.ino then return claimed end
  return fs.readlink(link)
end

---The launcher's process: the child of the shell that has our arguments.
---@param fs table
---@param pid integer  of the shell
---@param call_dir string
---@return integer? pid
function M.launcher(fs, pid, call_dir)
  local wanted = table.concat({ "", "--call-dir", call_dir, "" }, "\0")
  local children = fs.read_file(("/proc/%d/task/%d/children"):format(pid, pid), 65536)
  for child in (children or ""):gmatch("%d+") do
    local argv = fs.read_file(("/proc/%s/cmdline"):format(child), 65536) or ""
    if argv:sub(-#wanted) == wanted then return math.tointeger(tonumber(child)) end
  end
  return nil
end

---The first of some directories that exists.
---@param fs table  port
---@param dirs string[]
---@return string?
function M.first_dir(fs, dirs)
  for _, dir in ipairs(dirs) do
    local info = fs.stat(dir)
    if info and info.type == "dir" then return dir end
  end
  return nil
end

return M
