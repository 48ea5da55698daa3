-- Who may see whom (docs/style.md, the map): #include lines of host/, sbx/ and cli/, and require
-- lines of lua/ and cli/.
local lib = dofile((os.getenv("EFR_SOURCE") or ".") .. "/tests/lint/lib.lua")

-- ---- C ----

-- Files of efrbase by rank: an include goes to the same rank or below.
local RANK <const> = {
  err = 0, util = 0, buf = 0, log = 0, embed = 0,
  loop = 1, sys = 1, text = 1, wire = 1, fs = 1, fs_tree = 1, watch = 1, spawn = 1, proc = 1,
  luax = 2,
  state = 4,
  program = 5,
}
local MAY_USE_LUA <const> = { luax = true, state = true, rules = true, main = true }

local function base_rank(name)
  return RANK[name] or (name:match("^lua_") and 3) or nil
end

local BASE_LUA <const> = {
  sys = true,
  fs = true,
  watch = true,
  proc = true,
  json = true,
  text = true,
  modules = true,
  assets = true,
}

local function is_host_base(name)
  local module = name:match("^lua_(.+)$")
  if module then
    return BASE_LUA[module] == true
  end
  return RANK[name] ~= nil
end

local function check_host_include(path, line, name, header)
  local included = header:gsub("%.h$", "")
  if header == "lua.h" or header == "lauxlib.h" or header == "lualib.h" then
    if not (MAY_USE_LUA[name] or name:match("^lua_")) then
      lib.report(path, line, "only luax, lua_*, state, rules and main see Lua")
    end
  elseif included:match("^lua_") then
    lib.report(path, line, "a binding file is included")
  elseif is_host_base(name) and base_rank(included) == nil and not header:match("[/<]") then
    local own = io.open(lib.root .. "/host/" .. header)
    if own then
      own:close()
      lib.report(path, line, "efrbase sees " .. header .. " of efrhost")
    end
  elseif is_host_base(name) and base_rank(included) and base_rank(included) > base_rank(name) then
    lib.report(path, line, name .. " sees " .. header .. ", which stands above it")
  end
end

local function includes(path)
  local list, line = {}, 0
  for text in lib.read(path):gmatch("([^\n]*)\n") do
    line = line + 1
    local header = text:match('^#%s*include%s+[<"](.-)[>"]')
    if header then
      list[#list + 1] = { line = line, header = header }
    end
  end
  return list
end

local function exists(path)
  local file = io.open(lib.root .. "/" .. path)
  if file then
    file:close()
  end
  return file ~= nil
end

-- The folders of ours that hold a header of this name; none for a header of the system.
local function homes(header)
  local set = { any = false }
  for _, folder in ipairs({ "host", "sbx", "cli", "host/worker" }) do
    set[folder] = exists(folder .. "/" .. header)
    set.any = set.any or set[folder]
  end
  return set
end

local function check_include(path, line, header)
  local home = homes(header)
  if path:match("^sbx/") then
    if home.any and not home.sbx then
      lib.report(path, line, "sbx sees " .. header)
    end
  elseif path:match("^host/worker/") then
    if home.any and not home.sbx and not home["host/worker"] then
      lib.report(path, line, "the worker sees " .. header)
    end
  elseif path:match("^host/") then
    check_host_include(path, line, path:match("([^/]+)%.[ch]$"), header)
  elseif home.sbx and not home.cli and not home.host then
    lib.report(path, line, "cli sees " .. header .. " of sbx")
  end
end

local function check_c()
  for _, ending in ipairs({ ".c", ".h" }) do
    for _, path in ipairs(lib.files({ "host", "sbx", "cli" }, ending)) do
      for _, entry in ipairs(includes(path)) do
        check_include(path, entry.line, entry.header)
      end
    end
  end
end

-- ---- Lua ----

local LUA_RANK <const> = {
  util = 0,
  config = 1, store = 1, perm = 1, rules = 1,
  sbx = 2, net = 2, model = 2, shell = 2, tools = 2, undo = 2,
  conv = 3,
  daemon = 4,
}
-- `efr explain` decides without a daemon, and asks git what the daemon asks it.
local CLI_MAY_MODULE <const> = { ["efr.sbx.git"] = true }
local CLI_MAY <const> = {
  cli = true, util = true, config = true, perm = true, rules = true, sbx = true,
}
-- Only these name C modules; all others get them as ports.
local ENTRY <const> = {
  ["lua/efr/boot.lua"] = true,
  ["lua/efr/room.lua"] = true,
  ["lua/efr/daemon/main.lua"] = true,
  ["lua/efr/daemon/server.lua"] = true,
  ["cli/main.lua"] = true,
}
local PURE_C <const> = { lpeg = true, re = true, ["efr.text"] = true }

local function native_modules()
  local set = { luv = true }
  for _, path in ipairs(lib.files({ "host", "cli" }, ".c")) do
    for name in lib.read(path):gmatch('EFR_LUA_MODULE%([%w_]+, "([%w_.]+)"') do
      set[name] = true
    end
  end
  return set
end

local function check_native(path, line, wanted)
  if not ENTRY[path] and not PURE_C[wanted] then
    lib.report(path, line, "requires the C module " .. wanted .. ": take it as a port")
  end
end

local function check_cli_require(path, line, wanted, folder)
  if wanted:match("^efr%.") and not CLI_MAY[folder] and not CLI_MAY_MODULE[wanted] then
    lib.report(path, line, "cli requires " .. wanted)
  end
end

local function check_lua_require(path, line, wanted)
  local own = path:match("^lua/efr/([%w_]+)/") or ""
  local other = wanted:match("^efr%.([%w_]+)%.") or ""
  if path:match("^cli/") then
    return check_cli_require(path, line, wanted, other)
  end
  if other == "cli" then
    lib.report(path, line, "requires " .. wanted .. " of the command")
  end
  if own == "" or own == other or not LUA_RANK[other] then
    return
  end
  if not LUA_RANK[own] then
    lib.report(path, line, "folder " .. own .. " has no rank")
  elseif LUA_RANK[other] >= LUA_RANK[own] then
    lib.report(path, line, ("%s requires %s, which stands beside or above it"):format(own, wanted))
  elseif own == "tools" and other == "perm" and wanted ~= "efr.perm.requirements" then
    lib.report(path, line, "tools declare requirements, they do not ask perm")
  end
end

local function check_lua()
  local native = native_modules()
  for _, path in ipairs(lib.files({ "lua", "cli" }, ".lua")) do
    local line = 0
    for text in (lib.read(path) .. "\n"):gmatch("([^\n]*)\n") do
      line = line + 1
      local code = text:gsub("^%s*%-%-.*$", "")
      for wanted in code:gmatch("require%s*%(?%s*[\"']([%w_.%-]+)[\"']") do
        if native[wanted] then
          check_native(path, line, wanted)
        else
          check_lua_require(path, line, wanted)
        end
      end
    end
  end
end

check_c()
check_lua()
lib.finish("layers")
