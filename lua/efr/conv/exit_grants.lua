-- Owns: what the grants of a decision mean for one call: the launcher's grants and variables, the
-- files that efr makes first, and the words and wire forms of a grant.
-- Must not know: who granted, how a grant is mounted. Runs in efrd, on the loop thread.
--
-- Policy: a grant is for one real object, looked up again for each call. What is not there refuses
-- the call and names what is missing; nothing else stands in for it. efr makes a file or directory
-- only where nothing is, and takes it away again when the call does not run.

local M = {}

local SYSTEM_BUS <const> = "/run/dbus/system_bus_socket"
local NEW_FILE_MODE <const> = 420 -- 0644
local NEW_DIR_MODE <const> = 493 -- 0755
local NO_PROXY <const> = "a grant of one host opens with the network proxy, which is not there"

-- The bus ----------------------------------------------------------------------------------------

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function encoded(path)
  return (path:gsub("[^%w%-_/.\\*]", function(byte) return ("%%%02x"):format(byte:byte()) end))
end

---The socket of the session bus, as this environment names it; nil: there is none.
---@param env table<string, string>
---@return string?
function M.session_bus(env)
  local address = env.DBUS_SESSION_BUS_ADDRESS or ""
  for part in address:gmatch("[^;]+") do
    local path = (part .. ","):match("^unix:path=([^,]+),") or
      (part .. ","):match("^unix:.*,path=([^,]+),")
    if path and path:sub(1, 1) == "/" then return decoded(path) end
  end
  local runtime = env.XDG_RUNTIME_DIR or ""
  return runtime:sub(1, 1) == "/" and runtime .. "/bus" or nil
end

---The names of the session bus, also its real one, for the engine's facts.
---@param app table
---@return string[]
function M.session_buses(app)
  local path = M.session_bus(app.env)
  local real = path and app.ports.fs.realpath(path)
  return real and real ~= path and { path, real } or { path }
end

-- One grant --------------------------------------------------------------------------------------

local function plain(kind)
  return function(out, grant)
    out.grants[#out.grants + 1] = { kind = kind, path = grant[kind] }
    return true
  end
end

local function bus(out, grant, app)
  local path = grant.bus == "system" and SYSTEM_BUS or M.session_bus(app.env)
  if not path then return nil, "efr found no session bus" end
  out.grants[#out.grants + 1] = { kind = "socket", path = path }
  if grant.bus == "session" then
    out.env_set[#out.env_set + 1] = { "DBUS_SESSION_BUS_ADDRESS", "unix:path=" .. encoded(path) }
  end
  return true
end

local function whole_network(out)
  out.grants[#out.grants + 1] = { kind = "host_network" }
  return true
end

-- In the order in which a grant is told apart: one may have more than one of these fields.
local KINDS <const> = {
  { "host", function() return nil, NO_PROXY end },
  { "open_network", whole_network }, { "network_view", whole_network },
  { "write", plain("write") }, { "unmask", plain("unmask") }, { "device", plain("device") },
  { "socket", plain("socket") }, { "bus", bus },
  { "userns", function(out)
    out.grants[#out.grants + 1] = { kind = "userns" }
    return true
  end },
}

local function kind_of(grant)
  for _, row in ipairs(KINDS) do
    if grant[row[1]] then return row[1], row[2] end
  end
  error("a grant of no kind")
end

---What the launcher gets for the grants of a decision.
---@param app table
---@param grants table[]  as perm.exits gives them; a desktop socket has `variable` {name, value}
---@return { grants: efr.sbx.Grant[], env_set: string[][] }?
---@return string? err  what is missing
function M.for_launcher(app, grants)
  local out = { grants = {}, env_set = {} }
  for _, grant in ipairs(grants) do
    local _, add = kind_of(grant)
    local ok, err = add(out, grant, app)
    if not ok then return nil, err end
    if grant.variable then out.env_set[#out.env_set + 1] = grant.variable end
  end
  return out
end

---The grants in the form of the protocol.
---@param json table  port
---@param grants table[]
---@return table[]
function M.for_wire(json, grants)
  local out = json.array({})
  for i, grant in ipairs(grants) do
    local kind = kind_of(grant)
    local one = { kind = kind }
    if kind == "host" then
      one.host, one.port = grant.host, grant.port
    elseif kind == "bus" then
      one.bus = grant.bus
    elseif type(grant[kind]) == "string" then
      one.path = grant[kind]
    end
    out[i] = one
  end
  return out
end

-- What efr makes first ---------------------------------------------------------------------------

local function take_away(fs, made)
  for i = #made, 1, -1 do
    local one = made[i]
    if one.kind == "dir" then
      fs.rmdir(one.path)
    else
      local info = fs.lstat(one.path)
      if info and info.type == "file" and info.size == 0 and info.ino == one.ino then
        fs.unlink(one.path)
      end
    end
  end
end

local function make(fs, uv, one)
  if one.kind == "dir" then return fs.mkdirs_real(one.path, NEW_DIR_MODE) end
  local fd, err = uv.fs_open(one.path, "wx", NEW_FILE_MODE)
  if not fd then return nil, err end
  one.ino = uv.fs_fstat(fd).ino
  uv.fs_close(fd)
  return true
end

---Makes what exits say that efr makes first: an empty file, a directory. Of a name behind a link
---only its real place is made, which is an exit of its own.
---@param ports table  fs, uv
---@param exits efr.Exit[]
---@param reals table<string, string>  what names really reach, where that is another place
---@return { paths: string[], undo: fun() }?  undo takes away what is still empty
---@return string? err
function M.make(ports, exits, reals)
  local made, paths = {}, {}
  for _, exit in ipairs(exits) do
    if exit.make and not reals[exit.target] then
      local one = { path = exit.target, kind = exit.make }
      local ok, err = make(ports.fs, ports.uv, one)
      if not ok then
        take_away(ports.fs, made)
        return nil, ("%s cannot be made: %s"):format(one.path, err)
      end
      made[#made + 1], paths[#paths + 1] = one, one.path
    end
  end
  return { paths = paths, undo = function() take_away(ports.fs, made) end }
end

return M
