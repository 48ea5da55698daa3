-- Owns: which exits the model's `needs` of a call mean.
-- Must not know: the shape of needs (perm.needs checks it), who decides in the end.
-- Runs in efrd and efr. Pure.
--
-- Policy: what the sandbox has anyway needs nothing. A secret stays a floor, whoever asks for it.

local exit_paths = require "efr.perm.exit_paths"
local needs = require "efr.perm.needs"
local paths = require "efr.perm.paths"

local M = {}

local WANTED <const> = "the model asks for it"

-- A path and the place that it really reaches, in normal form.
local function names_of(call, path)
  local normal = paths.normalise(path, call.machine)
  if not normal then return {} end
  local real = (call.facts.reals or {})[normal]
  real = real and paths.normalise(real, call.machine)
  return { normal, real ~= normal and real or nil }
end

local function writes(call, wanted, add)
  for _, path in ipairs(wanted.write or {}) do
    for _, name in ipairs(names_of(call, path)) do
      local found = exit_paths.write(name, nil, call)
      if found then add(found, "needs") end
    end
  end
end

local function hosts(wanted, add)
  for _, word in ipairs(wanted.hosts or {}) do
    local host, port = needs.host(word)
    add({ kind = "host", target = host, host = host, port = port, why = WANTED }, "needs")
  end
end

local SOCKETS <const> = {
  privilege = function(path)
    return { kind = "privilege", target = path, why = "its owner runs containers with all rights" }
  end,
  bus = function(path, which)
    return { kind = "bus", target = which, why = WANTED, user_only = which == "session",
      grants = { { bus = which } }, path = path }
  end,
  desktop_ipc = function(path)
    return { kind = "desktop_ipc", target = path, why = "it controls the desktop",
      user_only = true, grants = { { socket = path } } }
  end,
  socket = function(path)
    -- The socket of git's credential cache hands out passwords.
    local cache = path:find("/git/credential/", 1, true)
      or path:find("/.git-credential-cache/", 1, true)
    return { kind = "socket", target = path, why = WANTED, grants = { { socket = path } },
      user_only = cache ~= nil }
  end,
}

local function sockets(call, wanted, add)
  for _, path in ipairs(wanted.sockets or {}) do
    for _, name in ipairs(names_of(call, path)) do
      local kind, which = needs.socket_kind(name, call.facts.session_bus)
      add(SOCKETS[kind](name, which), "needs")
    end
  end
end

local function unmasks(call, wanted, add)
  for _, path in ipairs(wanted.unmask or {}) do
    for _, name in ipairs(names_of(call, path)) do
      local found = exit_paths.read(name, call)
      if found then add(found, "needs") end
    end
  end
end

---Reports the exits of `needs`.
---@param call table
---@param wanted table
---@param add fun(exit: table, source: string)
function M.exits(call, wanted, add)
  if call.mode ~= "auto" then return end
  writes(call, wanted, add)
  hosts(wanted, add)
  sockets(call, wanted, add)
  unmasks(call, wanted, add)
  if wanted.bus then add(SOCKETS.bus(nil, wanted.bus), "needs") end
  local device = wanted.device and paths.normalise(wanted.device, call.machine)
  local found = device and exit_paths.write(device, nil, call)
  if found then add(found, "needs") end
  if wanted.outside then
    add({ kind = "outside", target = "the line", why = WANTED, user_only = true }, "needs")
  end
  if wanted.userns then
    add({ kind = "userns", target = "user namespaces", why = WANTED,
      grants = { { userns = true } } }, "needs")
  end
end

return M
