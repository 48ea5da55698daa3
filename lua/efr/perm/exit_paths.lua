-- Owns: which exit a write or a read of a path needs, and what one call would be granted for it.
-- Must not know: the disk (facts say what a target is), programs, who decides in the end.
-- Runs in efrd and efr. Pure.
--
-- Policy: the first match of the table in permissions.md 11.2 wins. A missing fact counts as the
-- stricter case: a target that nothing is known of exists.

local floors = require "efr.perm.floors"
local list = require "efr.util.list"
local paths = require "efr.perm.paths"
local tables = require "efr.perm.exit_tables"

local M = {}

local SHARED <const> = { "", "/.config", "/.local", "/.local/share", "/.local/state" }

-- Programs that efr can put an empty file or directory in place for.
local MAKES_FILE <const> = list.set { "tee", "touch", "redirect" }
local MAKES_DIR <const> = list.set { "mkdir", "git worktree add", "git clone" }

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

-- A directory that holds more than what the call is about.
local function is_shared(dir, call)
  for _, name in ipairs(SHARED) do
    if dir == call.machine.home .. name then return true end
  end
  for _, root in ipairs(call.write_roots) do
    if paths.within(root, dir) then return true end
  end
  return paths.within(call.machine.home, dir)
end

---Whether a path is at or above one of these roots.
---@param path string
---@param roots string[]
---@return boolean
local function covers(path, roots)
  for _, root in ipairs(roots) do
    if paths.within(root, path) then return true end
  end
  return false
end

-- Devices ---------------------------------------------------------------------------------------

---What a path below /dev is: "sandbox" (every call has it), "device", or nil for other paths.
---@param path string  in normal form
---@return string? what
function M.device(path)
  local rest = path:match("^/dev/(.+)$")
  if not rest then return nil end
  local first, more = rest:match("^([^/]+)(.*)$")
  if tables.DEVICES[first] then return more == "" and "sandbox" or "below" end
  if tables.DEVICE_DIRS[first] then return more == "" and "sandbox" or
    (first == "shm" and "shm" or select(2, more:gsub("/", "")) == 1 and "sandbox" or "below") end
  return "device"
end

local function device_exit(path, what)
  if what == "sandbox" or what == "shm" then return nil end
  if what == "below" then
    return { kind = "write", target = path, served = "outside", user_only = true,
      why = "it lies below a device" }
  end
  return { kind = "device", target = path, grants = { { device = path } },
    why = "it is a device of this machine" }
end

-- Binds -----------------------------------------------------------------------------------------

-- The nearest directory above a path that exists, as far as the facts know.
local function nearest(path, call)
  local dir = parent_of(path)
  while dir ~= "/" and call.target(dir) == "missing" do dir = parent_of(dir) end
  return dir
end

-- `make`: what efr puts there before the call, so that it can be bound.
local function bind(path, why, make)
  return { kind = "write", target = path, grants = { { write = path } }, bind = true, why = why,
    make = make }
end

-- The same for a path whose directory is what is opened.
local function bind_around(path, dir, why)
  local exit = bind(path, why)
  exit.grants = { { write = dir } }
  return exit
end

local OUTSIDE_ONLY <const> = "no path inside the sandbox can stand for it"

local function missing(path, maker, call)
  if MAKES_FILE[maker] then return bind(path, "efr creates the file first", "file") end
  if MAKES_DIR[maker] then return bind(path, "efr creates the directory first", "dir") end
  local dir = nearest(path, call)
  if is_shared(dir, call) then
    return { kind = "write", target = path, served = "outside", user_only = true,
      why = OUTSIDE_ONLY }
  end
  return bind_around(path, dir, "it does not exist yet, so its directory is opened")
end

local function home_write(path, maker, call)
  local what = call.target(path)
  if what == "missing" then return missing(path, maker, call) end
  if what == "dir" then return bind(path, "it lies outside of the write roots") end
  local parent = parent_of(path)
  if is_shared(parent, call) then return bind(path, "in place only: a rename over it fails") end
  return bind_around(path, parent, "its directory is opened, so that a rename over it works")
end

-- The table of 11.2 -----------------------------------------------------------------------------

local function is_within_any(path, roots)
  for _, root in ipairs(roots) do
    if paths.within(path, root) then return true end
  end
  return false
end

local function is_below_any(path, roots)
  for _, root in ipairs(roots) do
    if paths.below(path, root) then return true end
  end
  return false
end

local function floor_exit(path, group)
  return { kind = "persistence", target = path, group = group, named = "file",
    user_only = not floors.can_be_named(group),
    why = "what lies there runs later, or tells programs what to run" }
end

local ROWS <const> = {
  function(path, _, call)
    if not paths.is_secret(path, call.machine) then return nil end
    return { kind = "secret", target = path, why = "it is a secret" }
  end,
  function(path, _, call)
    if not paths.is_write_sealed(path, call.machine) then return nil end
    return { kind = "config", target = path, why = "it is efr's configuration" }
  end,
  function(path, _, call)
    local above = covers(path, call.write_roots) or covers(path, { call.machine.home })
      or paths.holds_write_sealed(path, call.machine)
    if not above then return nil end
    return { kind = "above_root", target = path,
      why = "a project, your home directory or efr's configuration is it or lies in it" }
  end,
  function(path, _, call)
    local group = floors.group(path, call.floors, call.machine.project_roots)
    return group and floor_exit(path, group)
  end,
  function(path, _, call)
    if not paths.is_masked(path, call.machine) then return nil end
    return { kind = "write", target = path, served = "outside", user_only = true,
      why = "the sandbox hides it" }
  end,
  function(path, _, call) return is_below_any(path, call.write_roots) and "none" or nil end,
  function(path, _, call)
    if not is_within_any(path, call.machine.synced) then return nil end
    return { kind = "synced_write", target = path, why = "other machines get it" }
  end,
  function(path, _, call)
    if paths.within(path, call.machine.home) then return nil end
    return { kind = "write", target = path, served = "outside", user_only = true,
      why = "it lies outside of your home directory" }
  end,
  home_write,
}

---The exit that a write needs.
---@param path string  in normal form
---@param maker string?  what makes it, as in 11.2
---@param call { machine: table, write_roots: string[], floors: table,
---  target: fun(path: string): string? }
---  target: "file", "dir", "other", "missing", nil = not known
---@return table? exit
function M.write(path, maker, call)
  local device = M.device(path)
  if device then return device_exit(path, device) end
  for _, row in ipairs(ROWS) do
    local found = row(path, maker, call)
    if found == "none" then return nil end
    if found then return found end
  end
  return nil
end

---The exit that a read needs.
---@param path string  in normal form
---@param call table  as for write; opened(path) says whether a rule of the user opened a secret
---@return table? exit
function M.read(path, call)
  if paths.is_secret(path, call.machine) then
    if call.opened and call.opened(path) then return nil end
    return { kind = "secret", target = path, why = "it is a secret" }
  end
  local device = M.device(path)
  if device then return device == "device" and device_exit(path, device) or nil end
  if paths.is_masked(path, call.machine) then
    return { kind = "masked_read", target = path, grants = { { unmask = path } },
      why = "the sandbox hides it" }
  end
  return nil
end

return M
