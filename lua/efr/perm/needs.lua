-- Owns: the model's `needs` of a call: its shape, its limits, and its values in normal form.
-- Must not know: what an exit is decided by, the disk.
-- Runs in efrd and efr. Pure.
--
-- needs = {write = {path...}, hosts = {host...}, sockets = {path...}, bus = "system"|"session",
--          device = path, unmask = {path...}, outside = bool, userns = bool, reason = text}

local list = require "efr.util.list"

local M = {}

local MAX_WRITE <const>, MAX_HOSTS <const>, MAX_SOCKETS <const>, MAX_UNMASK <const> = 8, 8, 2, 4
local MAX_REASON <const> = 300
local MAX_HOST_BYTES <const> = 253
local HTTPS_PORT <const>, HTTP_PORT <const> = 443, 80

local KEYS <const> = list.set {
  "write", "hosts", "sockets", "bus", "device", "unmask", "outside", "userns", "reason",
}

-- Hosts ----------------------------------------------------------------------------------------

local function port_of(text, default)
  if not text or text == "" then return default end
  local port = text:find("^%d+$") and #text <= 5 and math.tointeger(tonumber(text))
  if not port or port < 1 or port > 65535 then return nil end
  return port
end

local function name_of(host)
  host = host:lower():gsub("%.$", "")
  if host == "" or #host > MAX_HOST_BYTES then return nil end
  if host:find("^%[[%x:.]+%]$") then return host:sub(2, -2) end
  if not host:find("^[%w][%w%-._]*$") or host:find("..", 1, true) then return nil end
  return host
end

---The host and port of a word: `host`, `host:port`, a URL, `[v6]:port`.
---@param text string
---@return string? host  lower case, without a dot at the end
---@return integer? port  443 by default, 80 for http
function M.host(text)
  local scheme, rest = text:match("^(%a[%w+.-]*)://(.*)$")
  local default = scheme and scheme:lower() == "http" and HTTP_PORT or HTTPS_PORT
  rest = (rest or text):match("^[^/?#]*")
  rest = rest:match("@([^@]*)$") or rest
  local host, port = rest:match("^(%[[^%]]*%])(.*)$")
  if not host then host, port = rest:match("^([^:]*)(.*)$") end
  if port ~= "" and not port:find("^:.") then return nil end
  local name, number = name_of(host), port_of(port:sub(2), default)
  if not name or not number then return nil end
  return name, number
end

-- Shape ----------------------------------------------------------------------------------------

local function is_path(word)
  return type(word) == "string" and word:find("^/") ~= nil and not word:find("\0", 1, true)
end

local function is_host(word)
  return type(word) == "string" and M.host(word) ~= nil
end

local function check_list(needs, key, max, fine, what)
  local value = needs[key]
  if value == nil then return true end
  if type(value) ~= "table" then return nil, ("needs.%s must be a list"):format(key) end
  for name in pairs(value) do
    if math.type(name) ~= "integer" or name < 1 or name > #value then
      return nil, ("needs.%s must be a list"):format(key)
    end
  end
  if #value > max then return nil, ("needs.%s has more than %d items"):format(key, max) end
  for i, item in ipairs(value) do
    if not fine(item) then return nil, ("needs.%s[%d] is no %s"):format(key, i - 1, what) end
  end
  return true
end

local function check_flag(needs, key)
  if needs[key] == nil or type(needs[key]) == "boolean" then return true end
  return nil, ("needs.%s must be true or false"):format(key)
end

local function check_reason(needs)
  local reason = needs.reason
  if reason == nil then return true end
  local length = type(reason) == "string" and (utf8.len(reason) or #reason)
  if not length or length > MAX_REASON then
    return nil, ("needs.reason must be a text of at most %d characters"):format(MAX_REASON)
  end
  return true
end

local CHECKS <const> = {
  function(needs)
    for _, key in ipairs(list.keys(needs)) do
      if not KEYS[key] then return nil, ("needs has no part %s"):format(tostring(key)) end
    end
    return true
  end,
  function(needs) return check_list(needs, "write", MAX_WRITE, is_path, "absolute path") end,
  function(needs) return check_list(needs, "hosts", MAX_HOSTS, is_host, "host") end,
  function(needs) return check_list(needs, "sockets", MAX_SOCKETS, is_path, "absolute path") end,
  function(needs) return check_list(needs, "unmask", MAX_UNMASK, is_path, "absolute path") end,
  function(needs)
    if needs.bus == nil or needs.bus == "system" or needs.bus == "session" then return true end
    return nil, "needs.bus must be system or session"
  end,
  function(needs)
    if needs.device == nil then return true end
    if is_path(needs.device) and needs.device:find("^/dev/.") then return true end
    return nil, "needs.device must be a path below /dev"
  end,
  function(needs) return check_flag(needs, "outside") end,
  function(needs) return check_flag(needs, "userns") end,
  check_reason,
}

---Checks `needs` as a call declares it. `~/` at the start of a path must be put in before.
---@param needs any
---@return boolean? ok
---@return string? err  for the model
function M.check(needs)
  if type(needs) ~= "table" then return nil, "needs must be an object" end
  for key in pairs(needs) do
    if type(key) ~= "string" then return nil, "needs must be an object" end
  end
  for _, check in ipairs(CHECKS) do
    local ok, err = check(needs)
    if not ok then return nil, err end
  end
  return true
end

-- Sockets --------------------------------------------------------------------------------------

local CONTAINER_SOCKETS <const> = list.set { "docker.sock", "podman.sock", "containerd.sock" }

local function is_desktop(path, name)
  return path:find("^/tmp/%.X11%-unix/.") ~= nil or name:find("^wayland%-") ~= nil
    or name:find("^sway%-ipc") ~= nil or name:find("^niri") ~= nil
    or path:find("/hypr/", 1, true) ~= nil
end

---What opening a socket means: "privilege", "bus" with which one, "desktop_ipc" or "socket".
---@param path string  in normal form
---@param session_bus string[]?  paths of the session bus, also its real one
---@return string kind
---@return string? bus  "system" or "session"
function M.socket_kind(path, session_bus)
  local name = path:match("[^/]*$")
  if CONTAINER_SOCKETS[name] then return "privilege" end
  if path == "/run/dbus/system_bus_socket" or path == "/var/run/dbus/system_bus_socket" then
    return "bus", "system"
  end
  if path:find("^/run/user/[^/]+/bus$") or list.contains(session_bus or {}, path) then
    return "bus", "session"
  end
  if is_desktop(path, name) then return "desktop_ipc" end
  return "socket"
end

return M
