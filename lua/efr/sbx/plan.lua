-- Owns: the launch plan of one contained call: from a description of the call to the fields that
-- efr-sbx reads (docs/protocol.md, "Plan and result").
-- Must not know: the disk (asked through the spec's functions) or the kernel.
-- Runs in efrd. Pure but for those functions.
--
-- Policy: masks, roots, checks, caches, private directories, pins, floors; then sorted by depth,
-- and at equal depth by kind, so that a deeper rule always lies on top: a mask beats a floor, a
-- floor beats a root and a grant. Whatever cannot be made as described refuses the call; nothing
-- is left out.

local caches = require "efr.sbx.caches"
local environment = require "efr.sbx.environment"
local grants_of = require "efr.sbx.grants"
local masks_of = require "efr.sbx.masks"
local paths = require "efr.perm.paths"
local roots_of = require "efr.sbx.roots"

local M = {}

M.VERSION = "1"
M.MAX_BYTES = 1024 * 1024
local MAX_PATH <const> = 4095
local NAME_MAX <const> = 255
local OWN_TREES <const> = { "/dev", "/proc" }
local OWN <const> = { mask = true, private = true, runtime = true }
local OPTIONAL <const> = { "bwrap", "assets", "replay" }
local LIMITS <const> = { "processes", "memory_bytes", "file_bytes", "open_files" }
local RANK <const> = {
  mask = 0, private = 1, runtime = 2, overlay = 3, root = 4, pin = 5, grant = 6, socket = 7,
  floor = 8,
}

---@class efr.sbx.Look  what a path is
---@field real string  all links resolved
---@field name string  the path with the links of its parents resolved, but not its own
---@field link boolean  whether the path itself is a link
---@field type string  "dir", "file", ... of the target

---@class efr.sbx.Spec
---@field uid integer
---@field nonce string  32 hex digits
---@field cwd string
---@field home string
---@field env table<string,string>  of the daemon: XAUTHORITY, HISTFILE, ZDOTDIR, PATH
---@field paths {config: string, data: string, state: string, runtime: string}  efr's roots
---@field tmp string  backing directory of /tmp and /var/tmp
---@field xrt string  the runtime directory that the call sees
---@field assets string?  directory shown as $XRT/efr-sbx
---@field records boolean?  descriptor 3 is kept
---@field replay string?  directory of the sandbox state, shown as replay in the assets
---@field argv string[]|fun(mounts: {kind: string, path: string}[]): string[]
---@field project_root string?
---@field scratch string?
---@field write_roots string[]?  of the settings
---@field extra_write string[]?  of this call
---@field masks string[]?  of the settings
---@field secret_paths string[]?  of the settings
---@field protect string[]?  of the settings: more floors
---@field caches string[]?  of the settings
---@field spare_cache string?  in place of caches when none of them exists
---@field cache_mode string?  "tmp", "overlay" or "readonly" (default)
---@field keep_downloads boolean?
---@field layers string?  the conversation's directory; with layers_name, unless readonly
---@field layers_name string?  of this call, for layers that memory cannot hold
---@field hidden_files string[]?  of projects, for their names
---@field hidden_roots table<string, boolean>?  where they were searched
---@field dry boolean?  the roots are overlays with kept layers
---@field grants efr.sbx.Grant[]?  of this call
---@field cgroup {dir: string, name: string}?  where the call gets one of its own
---@field limits table<string, integer>?  processes, memory_bytes, file_bytes, open_files
---@field bwrap string?  the bubblewrap that builds the call
---@field env_deny string[]?
---@field env_keep string[]?
---@field homes string[]?  home directories of all users, as root
---@field look fun(path: string): efr.sbx.Look?  nil: there is nothing
---@field list fun(dir: string): string[]?  names in a directory
---@field links fun(dir: string): string[]  names of the links in a directory, at most 4096
---@field trace fun(path: string): string[]  the links on the way to a path, by their real places
---@field projects string[]?  real roots of all registered projects
---@field other_projects string[]?  those of them that this call may write, but its own
---@field git_roots {path: string, work_tree: string}[]?  recorded git directories of projects
---@field entries fun(dir: string): {name: string, type: string}[]  type as fs.readdir gives it
---@field read (fun(path: string, max: integer): string?)?  a regular file, through no link
---@field program_dir string?  where the running efrd lies
---@field granted efr.sbx.Grants  filled in by build
---@field unmask string[]  filled in by build: hidden real paths that a grant shows
---@field shown string[]  filled in by build: what comes back inside masks
---@field real_home string  filled in by build
---@field real_data string  filled in by build

-- Absolute and normal, as the launcher demands it.
local function is_normal(path)
  if path:sub(1, 1) ~= "/" or #path > MAX_PATH or path:find("\0", 1, true) then return false end
  if path == "/" then return true end
  for part in (path:sub(2) .. "/"):gmatch("([^/]*)/") do
    if part == "" or part == "." or part == ".." then return false end
  end
  return true
end

local function depth(path)
  local _, count = path:gsub("/", "")
  return path == "/" and 0 or count
end

-- A relative entry would run programs of the directory in which the command stands.
local function check_path_variable(value)
  for entry in (value .. ":"):gmatch("([^:]*):") do
    if entry:sub(1, 1) ~= "/" then
      return nil, "PATH has an empty or relative entry: clean it and try again"
    end
  end
  return true
end

local function without_masked(mounts, masks)
  local out = {}
  for _, mount in ipairs(mounts) do
    if mount.back or not (mount.kind == "floor" and masks_of.over(masks, mount.path)) then
      out[#out + 1] = mount
    end
  end
  return out
end

---Sorts by depth, then kind, then path, and drops exact duplicates.
---@param mounts {kind: string, path: string}[]
---@return {kind: string, path: string}[]
function M.sort(mounts)
  local sorted = table.move(mounts, 1, #mounts, 1, {})
  table.sort(sorted, function(a, b)
    local da, db = depth(a.path), depth(b.path)
    if da ~= db then return da < db end
    if a.kind ~= b.kind then return RANK[a.kind] < RANK[b.kind] end
    return a.path < b.path
  end)
  local out = {}
  for _, mount in ipairs(sorted) do
    local last = out[#out]
    if not (last and last.kind == mount.kind and last.path == mount.path) then
      out[#out + 1] = mount
    end
  end
  return out
end

-- The directory must be one that the call can see.
local function check_cwd(spec, masks, roots, back)
  local mask = masks_of.over(masks, spec.cwd)
  if not mask then return true end
  for _, path in ipairs(back) do
    if paths.within(spec.cwd, path) then return true end
  end
  for _, root in ipairs(roots) do
    if paths.within(spec.cwd, root.path) then return true end
  end
  return nil, ("the directory %s is hidden in the sandbox"):format(spec.cwd)
end

-- What the masks, roots and floors of a call are; each may refuse it.
local function collect_parts(spec)
  local masks, err, back = masks_of.collect(spec)
  if not masks then return nil, err end
  spec.shown = back
  local roots, floors, ok
  roots, err = roots_of.collect(spec, masks)
  if not roots then return nil, err end
  ok, err = masks_of.check_links(spec, masks, roots)
  if not ok then return nil, err end
  local overlays = caches.collect(spec, masks, roots)
  floors, err = roots_of.floors(spec, roots, overlays, caches.pins(spec, overlays, roots))
  if not floors then return nil, err end
  ok, err = check_cwd(spec, masks, roots, back)
  if not ok then return nil, err end
  return { masks = masks, roots = roots, floors = floors, back = back, overlays = overlays }
end

-- The root as a mount. In a dry run it is an overlay, and what lies in another root needs none.
local function root_mount(spec, roots, root)
  if not spec.dry then
    return { kind = root.name == "grant" and "grant" or "root", path = root.path, name = root.name }
  end
  for _, other in ipairs(roots) do
    if paths.below(root.path, other.path) then return nil end
  end
  return { kind = "overlay", path = root.path, name = root.name, layer = caches.name(root.path),
    dry = true }
end

-- Nothing real is writable in a dry run.
local function check_dry(spec, mounts)
  for _, mount in ipairs(spec.dry and mounts or {}) do
    local is_real = mount.kind == "root" or mount.kind == "pin" or mount.kind == "grant"
    if is_real or mount.dry and #mount.layer > NAME_MAX then
      return nil, ("%s cannot be an overlay, so it cannot be part of a dry run"):format(mount.path)
    end
  end
  return true
end

local function collect_mounts(spec)
  local parts, err = collect_parts(spec)
  if not parts then return nil, err end
  local mounts, writable = {
    { kind = "private", path = "/tmp" }, { kind = "private", path = "/var/tmp" },
    { kind = "runtime", path = spec.xrt },
  }, {}
  for _, mask in ipairs(parts.masks) do
    if mask.path ~= spec.xrt then
      local from = mask.from
      mounts[#mounts + 1] = { kind = "mask", path = mask.path, group = mask.group, from = from }
    end
  end
  for _, root in ipairs(parts.roots) do
    local mount = root_mount(spec, parts.roots, root)
    mounts[#mounts + 1] = mount
    if mount and mount.dry then parts.overlays[#parts.overlays + 1] = mount end
    writable[root.path] = true
  end
  for _, path in ipairs(parts.back) do
    if not writable[path] then
      mounts[#mounts + 1] = { kind = "floor", path = path, back = true }
    end
  end
  for _, overlay in ipairs(parts.overlays) do
    if not overlay.dry then mounts[#mounts + 1] = overlay end
  end
  table.move(spec.granted.mounts, 1, #spec.granted.mounts, #mounts + 1, mounts)
  for _, floor in ipairs(parts.floors) do
    -- A pin shows the real directory, writable: in an overlay nothing needs it.
    if not (spec.dry and floor.kind == "pin") then mounts[#mounts + 1] = floor end
  end
  mounts = M.sort(without_masked(mounts, parts.masks))
  local ok
  ok, err = check_dry(spec, mounts)
  if not ok then return nil, err end
  return mounts, nil, parts.overlays
end

local function check_paths(spec, mounts)
  local given = { spec.cwd, spec.tmp, spec.xrt, spec.layers or "/", spec.assets, spec.replay }
  for _, path in ipairs(given) do
    if not is_normal(path) then return nil, path .. " is not an absolute, normal path" end
  end
  for _, mount in ipairs(mounts) do
    if not is_normal(mount.path) then
      return nil, mount.path .. " is not an absolute, normal path"
    end
  end
  return true
end

-- Real forms of what roots are compared with.
local function resolved(spec)
  local home, data = spec.look(spec.home), spec.look(spec.paths.data)
  return setmetatable({
    real_home = home and home.real or spec.home,
    real_data = data and data.real or spec.paths.data,
  }, { __index = spec })
end

local function arguments(spec, mounts)
  return type(spec.argv) == "function" and spec.argv(mounts) or spec.argv
end

local function limit_fields(spec)
  local out = spec.cgroup and { "cgroup", spec.cgroup.dir, spec.cgroup.name } or {}
  for _, name in ipairs(LIMITS) do
    local value = (spec.limits or {})[name]
    if value and value > 0 then
      table.move({ "limit", name, ("%d"):format(value) }, 1, 3, #out + 1, out)
    end
  end
  return out
end

---The fields of the plan, or the reason for which this call cannot run contained.
---@param spec efr.sbx.Spec
---@return string[]? fields
---@return string? err
---@return string? code  EFR_SANDBOX
---@return {kind: string, path: string}[]? mounts  with fields: what was planned, sorted
function M.build(spec)
  spec = resolved(spec)
  local ok, err, mounts, overlays
  ok, err = check_path_variable(spec.env.PATH or "/usr/bin:/bin")
  if not ok then return nil, err, "EFR_SANDBOX" end
  spec.granted, err = grants_of.resolve(spec)
  if not spec.granted then return nil, err, "EFR_SANDBOX" end
  spec.unmask = spec.granted.unmask
  mounts, err, overlays = collect_mounts(spec)
  if not mounts then return nil, err, "EFR_SANDBOX" end
  ok, err = check_paths(spec, mounts)
  if not ok then return nil, err, "EFR_SANDBOX" end
  local out = { "efr-plan", M.VERSION }
  local function add(...)
    for _, field in ipairs({ ... }) do out[#out + 1] = field end
  end
  add("nonce", spec.nonce, "uid", ("%d"):format(spec.uid), "cwd", spec.cwd, "tmp", spec.tmp)
  for _, name in ipairs(OPTIONAL) do
    if spec[name] then add(name, spec[name]) end
  end
  if spec.records then add("records", "1") end
  add(table.unpack(caches.fields(spec, overlays, mounts)))
  add(table.unpack(spec.granted.fields))
  add(table.unpack(limit_fields(spec)))
  for _, mount in ipairs(mounts) do add(mount.kind, mount.path, mount.layer) end
  add(table.unpack(environment.fields(spec)))
  for _, arg in ipairs(arguments(spec, mounts)) do add("arg", arg) end
  add("end")
  return out, nil, nil, mounts
end

---The kind of the mount that a path of the call lies on, nil where it is just the host's tree.
---@param mounts {kind: string, path: string}[]  sorted, as build returns them
---@param path string
---@return string?
function M.kind_over(mounts, path)
  local kind
  for _, mount in ipairs(mounts) do -- the deepest one at or above the path is the last
    if paths.within(path, mount.path) then kind = mount.kind end
  end
  return kind
end

---Whether a directory of the call is the same one outside: not hidden and not the call's own.
---@param mounts {kind: string, path: string}[]  sorted, as build returns them
---@param path string
---@return boolean
function M.is_shared(mounts, path)
  local kind = M.kind_over(mounts, path)
  for _, tree in ipairs(OWN_TREES) do
    if not kind and paths.within(path, tree) then return false end
  end
  return not OWN[kind]
end

---The bytes of the plan file.
---@param fields string[]
---@return string? bytes
---@return string? err
---@return string? code
function M.encode(fields)
  for _, field in ipairs(fields) do
    if field:find("\0", 1, true) then
      return nil, "a field of the plan holds a NUL byte", "EFR_SANDBOX"
    end
  end
  local bytes = table.concat(fields, "\0") .. "\0"
  if #bytes > M.MAX_BYTES then
    return nil, "the plan is larger than 1 MiB", "EFR_SANDBOX"
  end
  return bytes
end

return M
