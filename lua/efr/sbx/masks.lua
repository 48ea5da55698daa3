-- Owns: which paths a contained call sees empty: engine secrets, credential stores, histories,
-- profiles, socket directories, efr's own roots, container and root secrets.
-- Must not know: the disk (asked through `look` and `list`) or how a mask is mounted.
-- Runs in efrd. Pure but for those two functions.
--
-- Policy: a mask lies on the real target of every link. What is missing needs no mask and gets
-- none. A mask at or below another one is dropped, because the outer one hides it already. Some
-- files come back, read-only: those that the resolver needs, and what a grant of the call shows.
-- A grant never shows an engine secret or a place of efr's own, and shows nothing else that is
-- hidden below its path. A mask on whose way lies a link that the call could replace refuses it:
-- the next call would hide another place.

local data = require "efr.perm.data.masks"
local floors = require "efr.sbx.floors"
local list = require "efr.util.list"
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
-- Read-only again inside a mask; the last part may hold one star.
M.BACK = { "/run/systemd/resolve/*.conf" }
-- Every call has its own, so nothing of the host's shows there (and HISTFILE is often /dev/null).
M.KERNEL_TREES = { "/dev", "/proc", "/sys" }
M.CONTAINER = data.container
M.ROOT = {
  "/etc/ssh/ssh_host_*_key", "/etc/ssl/private", "/var/lib/docker", "/var/lib/containerd",
  "/var/lib/kubelet", "/etc/kubernetes",
}

-- Entries of a directory that fit a name with one star, in the order of the names.
local function expand(pattern, names_in)
  local dir, name = pattern:match("^(.*)/([^/]*)$")
  local before, after = name:match("^([^*]*)%*([^*]*)$")
  if not before then return { pattern } end
  local found = {}
  for _, entry in ipairs(names_in(dir) or {}) do
    local fits = entry:sub(1, #before) == before and #entry >= #before + #after
      and entry:sub(#entry - #after + 1) == after
    if fits then found[#found + 1] = dir .. "/" .. entry end
  end
  table.sort(found)
  return found
end

local function add_all(out, items, group)
  for _, path in ipairs(items or {}) do out[#out + 1] = { path = path, group = group } end
end

local function below_home(out, home)
  for _, names in ipairs({ M.STORES, M.TOOL_CREDENTIALS, M.PROFILES, M.HISTORIES }) do
    add_all(out, list.map(names, function(name) return home .. "/" .. name end), "home")
  end
end

-- As root the homes of all users count.
local function secrets_of(home)
  if home == "/" then return {} end
  return paths.prepare({ home = home }).secrets
end

---Every candidate, unresolved, in a fixed order. Groups: engine, home, own, system, user, hidden.
---@param spec efr.sbx.Spec
---@return {path: string, group: string}[]
function M.candidates(spec)
  local out = {}
  add_all(out, paths.prepare({
    home = spec.home, secret_paths = spec.secret_paths, secrets_dir = spec.paths.data .. "/secrets",
  }).secrets, "engine")
  below_home(out, spec.home)
  for _, name in ipairs(M.VARIABLES) do
    local value = spec.env[name]
    if value and value:sub(1, 1) == "/" then add_all(out, { value }, "home") end
  end
  add_all(out, { spec.paths.data, spec.paths.state, spec.paths.runtime }, "own")
  for _, pattern in ipairs(M.SOCKET_DIRS) do add_all(out, expand(pattern, spec.list), "system") end
  add_all(out, M.CONTAINER, "system")
  if spec.uid == 0 then
    for _, pattern in ipairs(M.ROOT) do add_all(out, expand(pattern, spec.list), "system") end
    for _, home in ipairs(spec.homes or {}) do add_all(out, secrets_of(home), "engine") end
  end
  add_all(out, spec.masks, "user")
  add_all(out, spec.hidden_files, "hidden")
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
  table.sort(found, function(a, b)
    if a.path ~= b.path then return a.path < b.path end
    return a.group ~= "hidden" and b.group == "hidden" -- what else hides it names the rule
  end)
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

-- What no grant shows.
local function is_sealed(mask)
  return mask.group == "engine" or mask.group == "own"
end

-- Takes the mask at a granted path away; true when one was there.
local function take_at(found, path)
  local taken = false
  for i = #found, 1, -1 do
    if found[i].path == path then
      table.remove(found, i)
      taken = true
    end
  end
  return taken
end

-- Applies the grants that show a hidden path. The second value holds what must come back inside a
-- mask that stays.
local function unmask(found, grants)
  local back = {}
  for _, path in ipairs(grants or {}) do
    for _, mask in ipairs(found) do
      if is_sealed(mask) and paths.within(path, mask.path) then
        return nil, ("%s is a secret that no grant shows"):format(path)
      end
    end
    local taken = take_at(found, path)
    if M.over(found, path) then
      back[#back + 1] = path
    elseif not taken then
      return nil, path .. " is not hidden, so there is nothing to show"
    end
  end
  return back
end

-- Masks below what comes back inside an outer mask lie on top of it again.
local function add_below_back(masks, found, back)
  local known = {}
  for _, mask in ipairs(masks) do known[mask.path] = true end
  for _, path in ipairs(back) do
    local below = {}
    for _, mask in ipairs(found) do
      if paths.below(mask.path, path) and not known[mask.path] then below[#below + 1] = mask end
    end
    for _, mask in ipairs(outermost(below)) do
      known[mask.path] = true
      masks[#masks + 1] = mask
    end
  end
end

-- Files that every call may read inside a mask.
local function readable_again(spec, masks, back)
  for _, pattern in ipairs(M.BACK) do
    local dir = pattern:match("^(.*)/")
    for _, path in ipairs(expand(pattern, spec.list)) do
      local seen = spec.look(path)
      if seen and seen.type == "file" and paths.below(seen.real, dir)
        and M.over(masks, seen.real) then
        back[#back + 1] = seen.real
      end
    end
  end
end

---The masks of a call: real paths, outermost only.
---@param spec efr.sbx.Spec
---@return {path: string, type: string, group: string, from: string}[]? masks
---@return string? err
---@return string[]? back  real paths inside masks that are shown, read-only
function M.collect(spec)
  local found = {}
  for _, candidate in ipairs(M.candidates(spec)) do
    local seen = spec.look(candidate.path)
    if seen and seen.real == "/" then
      return nil, candidate.path .. " leads to /, which cannot be hidden"
    elseif seen and not in_kernel_tree(seen.real) then
      found[#found + 1] = {
        path = seen.real, type = seen.type, group = candidate.group, from = candidate.path,
      }
    end
  end
  local back, err = unmask(found, spec.unmask)
  if not back then return nil, err end
  local masks = outermost(found)
  add_below_back(masks, found, back)
  readable_again(spec, masks, back)
  return masks, nil, back
end

---Whether a link on the way to a mask lies in a write root. What is hidden for its name in a
---project is found anew for each call.
---@param spec efr.sbx.Spec
---@param masks {path: string, group: string, from: string}[]
---@param roots {path: string}[]
---@return true?
---@return string? err
function M.check_links(spec, masks, roots)
  for _, mask in ipairs(masks) do
    local link = mask.group ~= "hidden"
      and floors.changeable_link(spec, roots, mask.from, mask.path)
    if link then
      return nil, ("%s is hidden, and the call could change the link %s on the way to it"):format(
        mask.from, link)
    end
  end
  return true
end

---Whether one of some paths is at or above a path.
---@param places string[]?
---@param path string
---@return boolean
function M.over_any(places, path)
  for _, place in ipairs(places or {}) do
    if paths.within(path, place) then return true end
  end
  return false
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
