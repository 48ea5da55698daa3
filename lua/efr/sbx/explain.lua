-- Owns: what a contained call finds at one path and why: which row of its plan decides, which
-- setting or table made the row, and what would change it.
-- Must not know: the disk (asked through the spec), how it is shown.
-- Runs in efrd and efr. Pure but for the spec's functions. Never reads what lies at the path.

local floors = require "efr.perm.floors"
local paths = require "efr.perm.paths"

local M = {}

local MAX_NAMED <const> = 10

---@class efr.sbx.Explanation
---@field path string
---@field real string?  where its links lead, when that is elsewhere
---@field missing boolean?  nothing is there
---@field role string  write_root cache_overlay private_tmp runtime read_only masked floor pin
---  device proc granted
---@field read boolean
---@field write boolean
---@field reason string
---@field change string?  what would change it
---@field read_exit string?
---@field write_exit string?
---@field at string?  the path of the plan's row
---@field hidden_below string[]?  hidden places below it
---@field read_only_below string[]?  places below it that stay read-only
---@field nested string[]?  mounts of the host below it, or the one that it lies on, in a write root

local SEALED <const> = "nothing shows it to a command"

-- Of masks, by their group.
local MASKS <const> = {
  engine = { "one of efr's table of secrets", SEALED },
  own = { "efr's own files", SEALED },
  home = { "one of efr's table of credentials, histories and profiles",
    "no setting; a grant for one call (the exit masked_read, which you alone approve)" },
  system = { "one of efr's table of the system's sockets and secrets",
    "no setting; a grant for one call (the exit masked_read, which you alone approve)" },
  user = { "an entry of sandbox.mask", "take it out of sandbox.mask" },
  hidden = { "a name of sandbox.mask_globs", "an entry `!NAME` in sandbox.mask_globs" },
}

local FLOORS <const> = {
  startup = "a startup file of a shell",
  autostart = "it starts with the session",
  tool = "programs run code from it",
  efr = "efr's own programs and settings",
  protect = "an entry of sandbox.protect",
  agent = "settings of agents, editors or direnv",
  dotfile = "a link of your home directory leads to it",
  path = "a directory on PATH",
}

local ROOTS <const> = {
  project = "the project of the call",
  scratch = "$SCRATCH of the conversation",
  setting = "an entry of sandbox.write_roots",
  call = "given with --write",
}

local function real_of(spec, path)
  local seen = spec.look(path)
  if seen then return seen.real, false end
  local dir, base = path:match("^(.*)/([^/]+)$")
  if not dir then return path, true end
  local parent = real_of(spec, dir == "" and "/" or dir)
  return (parent == "/" and "" or parent) .. "/" .. base, true
end

-- The deepest row at or above a path is the last of the sorted rows.
local function deciding(mounts, real)
  local found
  for _, mount in ipairs(mounts) do
    if paths.within(real, mount.path) then found = mount end
  end
  return found
end

local function mask(out, spec, row)
  local words = MASKS[row.group] or MASKS.engine
  out.role, out.read, out.write = "masked", false, false
  out.reason, out.change = "hidden, it shows empty: " .. words[1], words[2]
  for _, path in ipairs(spec.secret_paths or {}) do
    if row.from == path then
      out.reason = "hidden, it shows empty: an entry of permissions.secret_paths"
      out.change = "take it out of permissions.secret_paths"
    end
  end
  if row.from and row.from ~= row.path then
    out.reason = ("%s (through %s)"):format(out.reason, row.from)
  end
  local sealed = row.group == "engine" or row.group == "own"
  if not sealed then out.read_exit = "masked_read" end
end

local function floor(out, row)
  out.role = "floor"
  if row.back then
    out.reason = "shown again, read-only, inside a hidden place: programs need it"
    return
  end
  local words = FLOORS[row.group]
  if not words then
    words = (row.path .. "/"):find("/%.git/") and "settings and hooks of git run code"
      or "programs run from there"
  end
  out.reason = "read-only also in a write root: " .. words
  out.change = row.group == "protect" and "take it out of sandbox.protect" or nil
  out.write_exit = "persistence"
end

local ROLES <const> = {
  mask = mask,
  floor = function(out, _, row) floor(out, row) end,
  private = function(out)
    out.role, out.write = "private_tmp", true
    out.reason = "the conversation's own directory, not that of the host"
  end,
  runtime = function(out)
    out.role, out.write = "runtime", true
    out.reason = "the call's own runtime directory, empty at its start"
  end,
  overlay = function(out, spec)
    out.role, out.write = "cache_overlay", true
    out.reason = "a tool's cache (sandbox.caches): writes go to a layer, the real one stays"
    out.change = ("sandbox.cache_mode is %s"):format(spec.cache_mode or "readonly")
  end,
  root = function(out, _, row)
    out.role, out.write = "write_root", true
    out.reason = "writable: " .. (ROOTS[row.name] or "another project (sandbox.write_projects)")
  end,
  grant = function(out)
    out.role, out.write, out.reason = "granted", true, "writable: granted to the call"
  end,
  socket = function(out)
    out.role, out.reason = "granted", "a socket that was granted to the call: it can connect"
  end,
  pin = function(out)
    out.role, out.write = "pin", true
    out.reason = "writable, but it cannot be renamed or replaced as a whole"
  end,
}

-- Outside of every root: what a write there would be.
local function read_only(out, spec, real)
  out.role, out.reason = "read_only", "outside of every write root"
  if paths.within(real, spec.paths.config) then
    out.reason = "outside of every write root, and efr's own settings: no command writes them"
    return
  end
  out.write_exit = "write"
  for group, names in pairs({
    startup = floors.STARTUP, autostart = floors.AUTOSTART, tool = floors.TOOLS,
  }) do
    for _, name in ipairs(names) do
      if paths.within(real, spec.home .. "/" .. name) then
        out.reason, out.write_exit = "outside of every write root; " .. FLOORS[group], "persistence"
        return
      end
    end
  end
  out.change = "register the project (efr project add), or sandbox.write_roots"
end

local KERNEL <const> = {
  { "/dev/shm", "private_tmp", true, "the call's own, empty at its start" },
  { "/dev", "device", false,
    "a /dev of the call's own: null, zero, full, random, urandom, tty, pts, shm" },
  { "/proc", "proc", false, "the call's own processes, read-only" },
}

-- What needs the right to trace a process, and nobody has that of a call's first one.
local TRACED <const> = {
  auxv = true, clear_refs = true, cwd = true, environ = true, exe = true, fd = true, fdinfo = true,
  io = true, map_files = true, maps = true, mem = true, ns = true, numa_maps = true,
  pagemap = true, personality = true, root = true, smaps = true, smaps_rollup = true,
  stack = true, syscall = true, timers = true,
}

local function is_pid1_secret(real)
  local rest = real:match("^/proc/1/task/1/(.+)$") or real:match("^/proc/1/(.+)$")
  return rest ~= nil and TRACED[rest:match("^[^/]+")] == true
end

local function is_granted_device(spec, real)
  for _, grant in ipairs(spec.grants or {}) do
    local seen = grant.kind == "device" and spec.look(grant.path)
    if seen and seen.real == real then return true end
  end
  return false
end

local function kernel_tree(out, spec, real)
  if is_pid1_secret(real) then
    out.role, out.read = "proc", false
    out.reason = "the call's own first process, which no command can look into"
    return true
  elseif is_granted_device(spec, real) then
    out.role, out.write, out.reason = "granted", true, "a device that was granted to the call"
    return true
  end
  for _, row in ipairs(KERNEL) do
    if paths.within(real, row[1]) then
      out.role, out.write, out.reason = row[2], row[3], row[4]
      return true
    end
  end
  return false
end

-- Rows below a path, and mounts of the host: what differs from the answer for the path itself.
local function below(out, mounts, host_mounts, real, row)
  local hidden, fixed, nested = {}, {}, {}
  for _, mount in ipairs(mounts) do
    if paths.below(mount.path, real) then
      if mount.kind == "mask" then hidden[#hidden + 1] = mount.path end
      if mount.kind == "floor" and out.write then fixed[#fixed + 1] = mount.path end
    end
  end
  local in_root = row and (row.kind == "root" or row.kind == "pin")
  for _, point in ipairs(in_root and host_mounts or {}) do
    if paths.below(point, real) then nested[#nested + 1] = point end
    if paths.within(real, point) and paths.below(point, row.path) then
      out.write, out.nested = false, { point }
      out.reason = ("it lies on the mount %s inside the write root %s, and such mounts stay "
        .. "read-only"):format(point, row.path)
      out.change = "make it a write root of its own: sandbox.write_roots"
    end
  end
  local function keep(name, list)
    if #list > 0 then out[name] = { table.unpack(list, 1, MAX_NAMED) } end
  end
  keep("hidden_below", hidden)
  keep("read_only_below", fixed)
  if not out.nested then keep("nested", nested) end
end

---A path as the user wrote it, absolute, with the links of the directory above it resolved, but not
---its own.
---@param fs table  port: realpath
---@param word string
---@param cwd string
---@param home string?
---@return string? path
---@return string? err
---@return string? code
function M.named(fs, word, cwd, home)
  if home and (word == "~" or word:sub(1, 2) == "~/") then word = home .. word:sub(2) end
  if word:sub(1, 1) ~= "/" then word = cwd .. "/" .. word end
  local path = word:gsub("/+", "/"):gsub("(.)/$", "%1")
  local dir, base = path:match("^(.*)/([^/]*)$")
  if base == "." or base == ".." or base == "" then return fs.realpath(path) end
  local parent, message, code = fs.realpath(dir == "" and "/" or dir)
  if not parent and (path .. "/"):find("/%.%.?/") then return nil, message, code end
  return (parent == "/" and "" or parent or dir) .. "/" .. base
end

---The mount points in the text of /proc/self/mountinfo.
---@param text string
---@return string[]
function M.mount_points(text)
  local out = {}
  for line in text:gmatch("[^\n]+") do
    local point = line:match("^%d+ %d+ %d+:%d+ %S+ (%S+)")
    if point then
      out[#out + 1] = point:gsub("\\(%d%d%d)", function(octal)
        return string.char(tonumber(octal, 8))
      end)
    end
  end
  table.sort(out)
  return out
end

---Explains one path.
---@param spec efr.sbx.Spec
---@param mounts table[]  sorted, as plan.build gives them
---@param path string  absolute and normal
---@param host_mounts string[]  mount points of the host
---@return efr.sbx.Explanation
function M.path(spec, mounts, path, host_mounts)
  local real, missing = real_of(spec, path)
  local out = {
    path = path, real = real ~= path and real or nil, missing = missing or nil, read = true,
    write = false,
  }
  if kernel_tree(out, spec, real) then return out end
  local row = deciding(mounts, real)
  if row then
    out.at = row.path
    ROLES[row.kind](out, spec, row)
  else
    read_only(out, spec, real)
  end
  if out.role ~= "masked" then below(out, mounts, host_mounts, real, row) end
  return out
end

return M
