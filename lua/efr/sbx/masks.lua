-- Owns: which paths a contained call sees empty: engine secrets, credential stores, histories,
-- profiles, socket directories, efr's own roots, container and root secrets.
-- Must not know: the disk (asked through `look` and `list`) or how a mask is mounted.
-- Runs in efrd. Pure but for those two functions.
--
-- Policy: a mask lies on the real target of every link. What is missing needs no mask and gets
-- none. A mask at or below another one is dropped, because the outer one hides it already.

local data = require "efr.perm.data.masks"
local paths = require "efr.perm.paths"

local M = {}

-- Below the home directory.
M.STORES = data.stores
M.TOOL_CREDENTIALS = data.tool_credentials
M.PROFILES = data.profiles
M.HISTORIES = data.histories
M.VARIABLES = { "XAUTHORITY", "HISTFILE" }
-- Absolute; the last part may hold one star.
M.SOCKET_DIRS = {
  "/run/dbus", "/run/docker*", "/run/containerd", "/run/podman", "/run/systemd", "/run/user",
  "/run/nscd", "/run/avahi-daemon",
}
-- Every call has its own, so nothing of the host's shows there (and HISTFILE is often /dev/null).
M.KERNEL_TREES = { "/dev", "/proc", "/sys" }
M.CONTAINER = data.container
M.ROOT = {
  "/etc/ssh/ssh_host_*_key", "/etc/ssl/private", "/var/lib/docker", "/var/lib/containerd",
  "/var/lib/kubelet", "/etc/kubernetes",
}

-- Entries of a directory that fit a name with one star, in the order of the names.
local function expand(pattern, list)
  local dir, name = pattern:match("^(.*)/([^/]*)$")
  local before, after = name:match("^([^*]*)%*([^*]*)$")
  if not before then return { pattern } end
  local found = {}
  for _, entry in ipairs(list(dir) or {}) do
    local fits = entry:sub(1, #before) == before and #entry >= #before + #after
      and entry:sub(#entry - #after + 1) == after
    if fits then found[#found + 1] = dir .. "/" .. entry end
  end
  table.sort(found)
  return found
end

local function below_home(out, home)
  for _, names in ipairs({ M.STORES, M.TOOL_CREDENTIALS, M.PROFILES, M.HISTORIES }) do
    for _, name in ipairs(names) do out[#out + 1] = home .. "/" .. name end
  end
end

local function add_all(out, list)
  for _, path in ipairs(list or {}) do out[#out + 1] = path end
end

-- As root the homes of all users count.
local function secrets_of(home)
  if home == "/" then return {} end
  return paths.prepare({ home = home }).secrets
end

---Every candidate, unresolved, in a fixed order.
---@param spec efr.sbx.Spec
---@return string[]
function M.candidates(spec)
  local out = {}
  add_all(out, paths.prepare({
    home = spec.home, secret_paths = spec.secret_paths, secrets_dir = spec.paths.data .. "/secrets",
  }).secrets)
  below_home(out, spec.home)
  for _, name in ipairs(M.VARIABLES) do
    local value = spec.env[name]
    if value and value:sub(1, 1) == "/" then out[#out + 1] = value end
  end
  add_all(out, { spec.paths.data, spec.paths.state, spec.paths.runtime })
  for _, pattern in ipairs(M.SOCKET_DIRS) do add_all(out, expand(pattern, spec.list)) end
  add_all(out, M.CONTAINER)
  if spec.uid == 0 then
    for _, pattern in ipairs(M.ROOT) do add_all(out, expand(pattern, spec.list)) end
    for _, home in ipairs(spec.homes or {}) do add_all(out, secrets_of(home)) end
  end
  add_all(out, spec.masks)
  add_all(out, spec.hidden_files)
  return out
end

local function in_kernel_tree(path)
  for _, tree in ipairs(M.KERNEL_TREES) do
    if paths.within(path, tree) then return true end
  end
  return false
end

-- Without duplicates and without what lies below another one. Outer paths sort before inner ones.
local function outermost(found)
  table.sort(found, function(a, b) return a.path < b.path end)
  local kept, seen = {}, {}
  for _, mask in ipairs(found) do
    local hidden = seen[mask.path]
    for dir in mask.path:gmatch("()/") do
      hidden = hidden or seen[mask.path:sub(1, dir - 1)]
    end
    if not hidden then
      kept[#kept + 1] = mask
      seen[mask.path] = true
    end
  end
  return kept
end

---The masks of a call: real paths, outermost only, sorted.
---@param spec efr.sbx.Spec
---@return {path: string, type: string}[]? masks
---@return string? err
function M.collect(spec)
  local found = {}
  for _, candidate in ipairs(M.candidates(spec)) do
    local seen = spec.look(candidate)
    if seen and seen.real == "/" then
      return nil, candidate .. " leads to /, which cannot be hidden"
    elseif seen and not in_kernel_tree(seen.real) then
      found[#found + 1] = { path = seen.real, type = seen.type }
    end
  end
  return outermost(found)
end

---The mask at or above a path, if any.
---@param masks {path: string}[]
---@param path string
---@return {path: string}?
function M.over(masks, path)
  for _, mask in ipairs(masks) do
    if paths.within(path, mask.path) then return mask end
  end
  return nil
end

return M
