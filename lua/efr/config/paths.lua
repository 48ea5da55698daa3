-- Owns: where efr's four roots are, and which paths a setting may hold.
-- Must not know: what lies in the roots.
-- Runs in efrd and efr. Pure but for the fs port that resolve takes.

local M = {}

local ROOTS <const> = {
  { name = "config", xdg = "XDG_CONFIG_HOME", below_home = ".config/efr" },
  { name = "data", xdg = "XDG_DATA_HOME", below_home = ".local/share/efr" },
  { name = "state", xdg = "XDG_STATE_HOME", below_home = ".local/state/efr" },
}

---An absolute path without trailing slashes; `~` and `~/...` stand for the home directory.
---@param path string
---@param home string
---@return string? absolute
---@return string? err
function M.expand(path, home)
  if path:find("\0", 1, true) then return nil, "holds a NUL byte" end
  local tail = path == "~" and "" or path:match("^~(/.*)$")
  if tail then
    path = home .. tail
  elseif path:sub(1, 1) ~= "/" then
    return nil, "must be absolute or start with ~/"
  end
  path = path:gsub("/+$", "")
  return path == "" and "/" or path
end

-- The directory that a variable of the environment names; unset and empty are the same.
local function named(env, name)
  local value = env[name]
  if not value or value == "" then return nil end
  if value:sub(1, 1) ~= "/" then
    return nil, name .. " must be an absolute path, not " .. value, "EFR_CONFIG"
  end
  return (value:gsub("(.)/+$", "%1"))
end

-- EFR_<NAME>_DIR, then $EFR_HOME/<name>. Returns nil, nil when neither is set.
local function own(env, name)
  local variable = "EFR_" .. name:upper() .. "_DIR"
  local dir, err, code = named(env, variable)
  if dir or err then return dir and { path = dir, source = variable }, err, code end
  dir, err, code = named(env, "EFR_HOME")
  return dir and { path = dir .. "/" .. name, source = "EFR_HOME" }, err, code
end

-- The XDG specification says that a relative value is to be ignored.
local function xdg(env, variable)
  local value = env[variable]
  return value and value:sub(1, 1) == "/" and (value:gsub("(.)/+$", "%1")) or nil
end

local function runtime(env, uid, home, fs)
  local dir = xdg(env, "XDG_RUNTIME_DIR")
  if dir then return { path = dir .. "/efr", source = "XDG_RUNTIME_DIR" } end
  local parent = ("/run/user/%d"):format(uid)
  local stat = fs.lstat(parent)
  if stat and stat.type == "dir" and stat.uid == uid and stat.mode & 511 == 448 then
    return { path = parent .. "/efr", source = parent }
  end
  return { path = home .. "/.local/state/efr/run", source = "default" }
end

---The roots. Source is the variable that decided, the parent under /run, or `default`.
---@param env table<string, string>  the environment; HOME must be set
---@param uid integer
---@param fs { lstat: fun(path: string): table? }
---@return table<string, { path: string, source: string }>? roots config, data, state, runtime
---@return string? err
---@return string? code
function M.resolve(env, uid, fs)
  local home, why, which = named(env, "HOME")
  if not home then return nil, why or "HOME is not set", which or "EFR_CONFIG" end
  local out = {}
  for _, root in ipairs(ROOTS) do
    local found, err, code = own(env, root.name)
    if err then return nil, err, code end
    if not found then
      local base = xdg(env, root.xdg)
      found = base and { path = base .. "/efr", source = root.xdg }
        or { path = home .. "/" .. root.below_home, source = "default" }
    end
    out[root.name] = found
  end
  local found, err, code = own(env, "runtime")
  if err then return nil, err, code end
  out.runtime = found or runtime(env, uid, home, fs)
  return out
end

return M
