-- Owns: which caches of tools a call can write, what stays read-only inside them, whose layer
-- takes the writes, and where variables of caches point.
-- Must not know: the disk (asked through `look`) or how an overlay is mounted.
-- Runs in efrd. Pure but for that function; prepare makes the directories of kept layers.
--
-- Policy: a cache is the real directory behind an entry of sandbox.caches. It gets no overlay when
-- it is missing, hidden, at or inside a write root, inside another cache, a directory of
-- programs, or so wide that it holds the home directory. Masks, floors and pins lie on top.
-- tmp: writes vanish with the call. overlay: the conversation keeps them. readonly: none.
-- keep_downloads: in tmp mode, the caches of downloads are kept as in overlay mode.
-- A cache that is missing is found by variables of its tool in the call's own directories: nothing
-- is created in the home directory to mount on.
-- A pin is a floor: what programs run or read as settings, and every directory on PATH.

local masks_of = require "efr.sbx.masks"
local paths = require "efr.perm.paths"

local M = {}

-- Below the home directory.
M.DOWNLOADS = { ".cargo", "go/pkg/mod", ".npm", ".bun/install/cache", ".local/share/pnpm/store" }
M.PINS = {
  { dir = ".cargo", variable = "CARGO_HOME", names = { "bin", "config.toml", "config", "env" } },
  { dir = ".rustup", variable = "RUSTUP_HOME", names = { "settings.toml" } },
}
-- Variables that move a cache; outside of every writable place they lead below ~/.cache.
M.VARIABLES = { CCACHE_DIR = "ccache", SCCACHE_DIR = "sccache", ZIG_GLOBAL_CACHE_DIR = "zig" }
local ORDER <const> = { "CCACHE_DIR", "SCCACHE_DIR", "ZIG_GLOBAL_CACHE_DIR" }
-- What tools read instead of their place below the home directory, where that does not exist: no
-- overlay can be mounted there. dir: what has to be missing, where that is more than the cache;
-- before: what stands before the path in the variable.
M.MISSING = {
  { cache = ".cache", variable = "XDG_CACHE_HOME" },
  { cache = ".npm", variable = "npm_config_cache" },
  { cache = ".cargo", variable = "CARGO_HOME" },
  { cache = "go/pkg/mod", variable = "GOMODCACHE" },
  { cache = ".bun/install/cache", variable = "BUN_INSTALL_CACHE_DIR" },
  { cache = ".gradle/caches", dir = ".gradle", variable = "GRADLE_USER_HOME" },
  { cache = ".m2/repository", variable = "MAVEN_OPTS", before = "-Dmaven.repo.local=" },
}
local MAX_NAME <const> = 255
local DIR_MODE <const> = 448 -- 0700

---The name of a cache's layer: the parts of its path joined by %.
---@param path string  absolute and normal
---@return string
function M.name(path)
  return (path:sub(2):gsub("%%", "%%25"):gsub("/", "%%"))
end

local function over(places, path)
  for _, place in ipairs(places) do
    if paths.within(path, place.path) then return place end
  end
  return nil
end

-- Directories of programs, real.
local function program_dirs(spec)
  local out = {}
  for entry in ((spec.env.PATH or "") .. ":"):gmatch("([^:]*):") do
    local seen = entry:sub(1, 1) == "/" and spec.look(entry)
    if seen and seen.type == "dir" then out[#out + 1] = seen.real end
  end
  return out
end

local function in_own_tree(path)
  for _, tree in ipairs({ "/tmp", "/var/tmp", table.unpack(masks_of.KERNEL_TREES) }) do
    if paths.within(path, tree) then return true end
  end
  return false
end

local function is_usable(spec, real, masks, roots, programs)
  if paths.within(spec.real_home, real) or in_own_tree(real) then return false end
  for _, dir in ipairs(programs) do
    if paths.within(real, dir) then return false end
  end
  return not (masks_of.over(masks, real) or over(roots, real))
end

-- Real directories without those inside another one, shorter paths first.
local function outermost(found)
  table.sort(found, function(a, b)
    if #a.path ~= #b.path then return #a.path < #b.path end
    return a.path < b.path
  end)
  local out = {}
  for _, cache in ipairs(found) do
    local outer = over(out, cache.path)
    if not outer then out[#out + 1] = cache end
  end
  return out
end

local function is_kept(spec, path)
  if spec.cache_mode == "overlay" then return true end
  if not spec.keep_downloads then return false end
  for _, name in ipairs(M.DOWNLOADS) do
    if path == spec.home .. "/" .. name then return true end
    local seen = spec.look(spec.home .. "/" .. name)
    if seen and seen.real == path then return true end
  end
  return false
end

local function overlays_of(spec, entries, masks, roots)
  local found, programs = {}, program_dirs(spec)
  for _, entry in ipairs(entries) do
    local seen = spec.look(entry)
    if seen and seen.type == "dir" and is_usable(spec, seen.real, masks, roots, programs) then
      found[#found + 1] = { kind = "overlay", path = seen.real }
    end
  end
  local out = {}
  for _, cache in ipairs(outermost(found)) do
    cache.layer = is_kept(spec, cache.path) and M.name(cache.path) or "tmp"
    -- A path too long for a name stays read-only.
    if #cache.layer <= MAX_NAME then out[#out + 1] = cache end
  end
  return out
end

---The overlays of a call. layer is "tmp", or the name of a kept layer.
---@param spec efr.sbx.Spec
---@param masks {path: string}[]
---@param roots {path: string}[]
---@return {kind: string, path: string, layer: string}[] overlays
function M.collect(spec, masks, roots)
  if (spec.cache_mode or "readonly") == "readonly" then return {} end
  local out = overlays_of(spec, spec.caches or {}, masks, roots)
  if #out == 0 and spec.spare_cache then
    out = overlays_of(spec, { spec.spare_cache }, masks, roots)
  end
  return out
end

local function pin_candidates(spec)
  local out = {}
  for _, pins in ipairs(M.PINS) do
    local moved = spec.env[pins.variable]
    for _, dir in ipairs({ spec.home .. "/" .. pins.dir, moved }) do
      for _, name in ipairs(dir:sub(1, 1) == "/" and pins.names or {}) do
        local seen = spec.look(dir .. "/" .. name)
        if seen then out[#out + 1] = seen.real end
      end
    end
  end
  return out
end

---The pins of a call, as floors, where something could be written.
---@param spec efr.sbx.Spec
---@param overlays {path: string}[]
---@param roots {path: string}[]
---@return {kind: string, path: string}[] floors
function M.pins(spec, overlays, roots)
  local out = {}
  local function add(path, places)
    local place = over(places, path)
    if place and place.path ~= path then out[#out + 1] = { kind = "floor", path = path } end
  end
  for _, path in ipairs(program_dirs(spec)) do add(path, overlays) end
  for _, path in ipairs(pin_candidates(spec)) do
    add(path, overlays)
    add(path, roots)
  end
  return out
end

-- Where a cache that does not exist is instead: gone with the call, or kept for the conversation.
local function stand_in(spec, cache)
  local top = is_kept(spec, spec.home .. "/" .. cache) and "/tmp" or spec.xrt
  return ("%s/efr-cache/%s"):format(top, cache)
end

-- Whether a path that does not exist can be made in a place that the call can write.
local function can_be_made(spec, path, places)
  local rest = ""
  while path ~= "" and not spec.look(path) do
    rest, path = path:match("/[^/]*$") .. rest, path:match("^(.*)/")
  end
  return over(places, (path ~= "" and spec.look(path).real or "") .. rest) ~= nil
end

-- Caches of the settings that are not there: {cache, variable, path, value}.
local function missing(spec, mounts)
  local out, wanted, places = {}, {}, {}
  for _, mount in ipairs(mounts) do
    if mount.kind == "overlay" or mount.kind == "root" then places[#places + 1] = mount end
  end
  if (spec.cache_mode or "readonly") == "readonly" then return out end
  for _, entry in ipairs(spec.caches or {}) do wanted[entry] = true end
  for _, row in ipairs(M.MISSING) do
    local path = spec.home .. "/" .. row.cache
    if wanted[path] and not spec.look(spec.home .. "/" .. (row.dir or row.cache))
      and not can_be_made(spec, path, places) then
      local place = stand_in(spec, row.cache)
      local value = (row.before or "") .. place
      out[#out + 1] = { variable = row.variable, cache = row.cache, path = place, value = value }
    end
  end
  return out
end

---The plan's fields for the layers and the variables of caches.
---@param spec efr.sbx.Spec
---@param overlays {path: string}[]
---@param mounts {kind: string, path: string}[]  all of the call
---@return string[] fields
function M.fields(spec, overlays, mounts)
  local out, absent = {}, missing(spec, mounts)
  if #overlays > 0 then out = { "layers", spec.layers, spec.layers_name } end
  local cache = spec.look(spec.home .. "/.cache")
  local real = cache and over(overlays, cache.real) and cache.real
  for _, found in ipairs(absent) do
    if found.cache == ".cache" then real = found.path end
    table.move({ "default", found.variable, found.value }, 1, 3, #out + 1, out)
  end
  for _, name in ipairs(real and ORDER or {}) do
    table.move({ "move", name, real .. "/" .. M.VARIABLES[name] }, 1, 3, #out + 1, out)
  end
  return out
end

---Whether a plan keeps a layer.
---@param mounts {layer: string?}[]
---@return boolean
function M.keeps(mounts)
  for _, mount in ipairs(mounts) do
    if mount.layer and mount.layer ~= "tmp" then return true end
  end
  return false
end

---Makes the directories of the kept layers of a plan.
---@param fs table
---@param layers string  the conversation's directory
---@param mounts {kind: string, layer: string?}[]
---@return true? ok
---@return string? err
---@return string? code
function M.prepare(fs, layers, mounts)
  for _, mount in ipairs(mounts) do
    if mount.kind == "overlay" and mount.layer ~= "tmp" then
      for _, part in ipairs({ "upper", "work" }) do
        local dir = ("%s/cache/%s/%s"):format(layers, mount.layer, part)
        local ok, err, code = fs.mkdirs_real(dir, DIR_MODE)
        if not ok then return nil, err, code end
      end
    end
  end
  return true
end

return M
