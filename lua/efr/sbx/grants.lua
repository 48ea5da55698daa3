-- Owns: what one call gets beyond the envelope: a file or directory to write, a hidden path to
-- read, a socket, a device, the host's network, namespaces of its own.
-- Must not know: who granted it and why (the permission engine, the user), how it is mounted.
-- Runs in efrd. Pure but for the spec's functions.
--
-- Policy: a grant is for one real object. What does not exist or is of another kind refuses the
-- call: nothing else may stand in for it. A write grant obeys the rules of a write root (never the
-- home directory or above, never in a mask or floor). The launcher checks the kind again, by
-- descriptor.

local paths = require "efr.perm.paths"

local M = {}

-- Every call has its own of these.
local OWN_DEVICES <const> = { "/dev/pts", "/dev/shm" }

---@class efr.sbx.Grant
---@field kind "write"|"unmask"|"socket"|"device"|"host_network"|"userns"
---@field path string?  of the first four

---@class efr.sbx.Grants  resolved
---@field write {path: string, type: string}[]
---@field unmask string[]
---@field mounts {kind: string, path: string}[]  sockets
---@field fields string[]  of the plan
---@field host_network boolean
---@field userns boolean

local function seen_of(spec, grant)
  local seen = spec.look(grant.path)
  if not seen then return nil, ("%s: there is nothing to grant"):format(grant.path) end
  return seen
end

local function add(out, keyword, value)
  out.fields[#out.fields + 1] = keyword
  out.fields[#out.fields + 1] = value
end

local KINDS <const> = {}

function KINDS.write(out, spec, grant)
  local seen, err = seen_of(spec, grant)
  if not seen then return nil, err end
  if seen.type ~= "file" and seen.type ~= "dir" then
    return nil, ("%s: only a file or a directory can be granted for writing"):format(grant.path)
  end
  out.write[#out.write + 1] = { path = seen.real, type = seen.type }
  return true
end

function KINDS.unmask(out, spec, grant)
  local seen, err = seen_of(spec, grant)
  if not seen then return nil, err end
  out.unmask[#out.unmask + 1] = seen.real
  return true
end

function KINDS.socket(out, spec, grant)
  local seen, err = seen_of(spec, grant)
  if not seen then return nil, err end
  if seen.type ~= "socket" then return nil, grant.path .. " is no socket" end
  out.mounts[#out.mounts + 1] = { kind = "socket", path = seen.real }
  return true
end

function KINDS.device(out, spec, grant)
  local seen, err = seen_of(spec, grant)
  if not seen then return nil, err end
  if not paths.below(seen.real, "/dev") then
    return nil, grant.path .. " does not lie below /dev"
  end
  if seen.type ~= "char" and seen.type ~= "block" then return nil, grant.path .. " is no device" end
  for _, dir in ipairs(OWN_DEVICES) do
    if paths.within(seen.real, dir) then
      return nil, ("%s: every call has its own %s"):format(grant.path, dir)
    end
  end
  add(out, "device", seen.real)
  return true
end

function KINDS.host_network(out)
  if not out.host_network then add(out, "network", "host") end
  out.host_network = true
  return true
end

function KINDS.userns(out)
  if not out.userns then add(out, "userns", "1") end
  out.userns = true
  return true
end

---Resolves the grants of a call.
---@param spec efr.sbx.Spec
---@return efr.sbx.Grants? grants
---@return string? err  why the call is refused
function M.resolve(spec)
  local out = {
    write = {}, unmask = {}, mounts = {}, fields = {}, host_network = false, userns = false,
  }
  for _, grant in ipairs(spec.grants or {}) do
    local resolve = KINDS[grant.kind]
    if not resolve then return nil, "unknown grant: " .. tostring(grant.kind) end
    local ok, err = resolve(out, spec, grant)
    if not ok then return nil, err end
  end
  return out
end

return M
