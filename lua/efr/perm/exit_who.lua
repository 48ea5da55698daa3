-- Owns: who decides an exit, how its call would be launched, and what it would be granted.
-- Must not know: how an exit was found.
-- Runs in efrd and efr. Pure.
--
-- Policy: permissions.md 11.5 and 11.6. What is not listed as the reviewer's is the user's.

local always = require "efr.perm.always"
local list = require "efr.util.list"
local rules = require "efr.perm.rules"

local M = {}

local HTTPS_PORT <const>, HTTP_PORT <const> = 443, 80

-- user: only the user decides. outside: no sandbox can serve it. floor: refused.
local KINDS <const> = {
  secret = { floor = true }, config = { floor = true },
  write = {}, host = {}, host_view = {}, socket = {}, desktop_ipc = {}, bus = {}, device = {},
  destructive = {},
  masked_read = { user = true }, userns = { user = true },
  outside = { outside = true }, upload = { outside = true }, persistence = { outside = true },
  privilege = { user = true, outside = true }, synced_write = { user = true, outside = true },
  above_root = { user = true, outside = true },
}

-- What the sandbox serves by itself -------------------------------------------------------------

local function in_allow_list(network, host)
  if not host then return false end
  for _, name in ipairs(network.allow or {}) do
    if name == host then return true end
    local suffix = name:match("^%*(%..+)$")
    if suffix and host:sub(-#suffix) == suffix then return true end
  end
  return false
end

local function host_served(call, exit)
  local network = call.facts.network
  if not network or network.mode ~= "proxy" or exit.raw then return false end
  if exit.preset then return list.contains(network.presets or {}, exit.preset) end
  if exit.port and exit.port ~= HTTPS_PORT then return false end
  return in_allow_list(network, exit.host)
end

local SERVED <const> = {
  host = host_served,
  host_view = function(call) return call.network_view == true end,
  bus = function(call, exit) return exit.filtered and call.facts.bus_filter == true end,
  destructive = function(call, exit)
    local covered = call.facts.covered_paths or {}
    return exit.routine and (call.facts.covered == true or covered[exit.target] == true)
  end,
}

---Whether no exit is needed, because the sandbox or the snapshot serves it.
---@param call table
---@param exit table
---@return boolean
function M.is_served(call, exit)
  local served = SERVED[exit.kind]
  if call.settles then return false end
  return served ~= nil and served(call, exit) == true
end

local OPENS_NETWORK <const> = list.set {
  "host", "upload", "outside", "privilege", "persistence", "above_root", "synced_write",
}

---Whether a call with this exit has its network explained.
---@param exit table
---@return boolean
function M.opens_network(exit)
  return OPENS_NETWORK[exit.kind] == true
end

-- Grants ----------------------------------------------------------------------------------------

local function is_local_host(host)
  return host == "localhost" or host:find("^127%.") ~= nil or host:find("^10%.") ~= nil
    or host:find("^192%.168%.") ~= nil or host:find("^172%.[123]%d?%.") ~= nil
    or host:find("^169%.254%.") ~= nil or host:find(":", 1, true) ~= nil
    or host:find("%.localhost$") ~= nil
end

local function host_grant(call, exit)
  local network = call.facts.network
  local port = exit.port or HTTPS_PORT
  local proxied = network and network.mode == "proxy" and exit.host and not exit.raw
    and not is_local_host(exit.host) and (port == HTTPS_PORT or port == HTTP_PORT)
  if proxied then return { { host = exit.host, port = port } } end
  return { { open_network = true } }
end

---A grant in words.
---@param grant table
---@return string
function M.grant_text(grant)
  if grant.host then return ("host %s:%d"):format(grant.host, grant.port) end
  for _, name in ipairs({ "write", "socket", "bus", "device", "unmask" }) do
    if grant[name] then return name .. " " .. grant[name] end
  end
  if grant.open_network then return "the whole network" end
  return grant.network_view and "the host's network" or "user namespaces"
end

-- Who -------------------------------------------------------------------------------------------

-- The user's own rules for exits, from the Lua files: the last that meets it, never freer than the
-- kind is.
local function rule_for(call, exit)
  local own = call.lua and call.lua.exits or {}
  for i = #own, 1, -1 do
    local rule = own[i]
    local kind = rule.kind == nil or rule.kind == "any" or rule.kind == exit.kind
    if kind and (rule.target == nil or rule.target == exit.target) then return rule end
  end
  return nil
end

-- git runs its own code with the user's keys: unknown counts as writable by the sandbox. What is no
-- remote is a directory with hooks. Gives what is to be said, or nil.
local function runs_foreign_code(call, exit)
  if not exit.git_code then return nil end
  if (call.facts.remote_code or "unknown") ~= "clean" then
    local part = call.facts.remote_part
    return part and ("; git runs %s, which a sandboxed command can write"):format(part) or ""
  end
  if exit.remote and not (call.facts.remotes or {})[exit.remote] then
    return ("; %s is no remote of the repository, so git takes it as a directory"):format(
      exit.remote)
  end
  return nil
end

local function approver(call, exit, kind)
  if kind.floor then return "denied" end
  if call.settles then return "full" end
  local rule = rule_for(call, exit)
  if rule and rule.effect ~= "allow" then
    exit.cite = rule.cite
    return rule.effect == "deny" and "denied" or "user"
  end
  if kind.user or exit.user_only then return "user" end
  local why = runs_foreign_code(call, exit)
  if why then
    exit.why = exit.why .. why
    return "user"
  end
  local covering = always.covering(call, exit)
  if not covering then return "reviewer" end
  exit.cite = covering.cite
  return "rule"
end

---Sets who decides an exit, its launch and its grants.
---@param call table
---@param exit efr.Exit
function M.settle(call, exit)
  local kind = KINDS[exit.kind] or error("no exit kind " .. tostring(exit.kind))
  if kind.floor then
    exit.launch = "none"
  elseif kind.outside or exit.served == "outside" then
    exit.launch = "unsandboxed"
  else
    exit.launch = "contained"
  end
  if exit.kind == "host" then exit.grants = host_grant(call, exit) end
  exit.approver = approver(call, exit, kind)
end

---Leaves what the reviewer or a rule would let through to the user.
---@param exits efr.Exit[]  settled
---@param tree string  the tree that is read outside of the sandbox, as text
function M.leave_to_user(exits, tree)
  for _, exit in ipairs(exits) do
    if exit.approver == "reviewer" or exit.approver == "rule" then
      exit.approver, exit.cite = "user", nil
      exit.why = ("%s; what is hidden in the sandbox is read below %s"):format(exit.why, tree)
    end
  end
end

-- Effects ---------------------------------------------------------------------------------------

local WORDS <const> = {
  user = "only you decide", reviewer = "the reviewer decides, else you",
  rule = "your rule in sandbox.allow lets it", full = "full mode lets it through",
}

---The effect of an exit, and who decides it, in words.
---@param exit efr.Exit  settled
---@return string effect
---@return string words
function M.effect(exit)
  if exit.approver == "denied" then
    return "deny", exit.cite and ("your rule refuses it (%s)"):format(exit.cite)
      or "nobody can open it"
  end
  local words = WORDS[exit.approver]
  if exit.cite then words = ("%s (%s)"):format(words, exit.cite) end
  if exit.approver == "rule" then return "contain", words end
  if exit.approver == "full" then return "allow", words end
  if exit.launch == "unsandboxed" then words = words .. "; it would run outside of the sandbox" end
  return "ask", words
end

---The kinds of exits, sorted.
M.KINDS = list.keys(KINDS)

---The order of effects, for callers that compare.
M.ORDER = rules.ORDER

return M
