-- Each C module and its LuaCATS stub in lua/efr/meta name the same functions, constants and
-- methods, with the same number of parameters. The number in C is the one of lua_settop, the first
-- statement of every binding. Run under efr-lua, which holds all modules.
local lib = dofile((os.getenv("EFR_SOURCE") or ".") .. "/tests/lint/lib.lua")

-- C function name -> its number of arguments, and the arrays of {"name", function} of a file.
local function read_source(path)
  local text = lib.read(path)
  local counts, names = {}, {}
  for name, body in text:gmatch("\nstatic int ([%w_]+)%(lua_State %*L%)\n{\n(.-)\n}\n") do
    counts[name] = tonumber(body:match("^%s*lua_settop%(L, (%d+)%)"))
  end
  for lua_name, c_name in text:gmatch('{"([%w_]+)", ([%w_]+)}') do
    names[lua_name] = names[lua_name] or {}
    names[lua_name][#names[lua_name] + 1] = { name = c_name, count = counts[c_name] }
  end
  return names
end

local function has_count(rows, count)
  for _, row in ipairs(rows) do
    if row.count == nil or row.count == count then
      return true
    end
  end
  return false
end

local function check_parameters(meta, names, name, fn)
  local info = debug.getinfo(fn, "u")
  local rows = names[name]
  if rows and not info.isvararg and not has_count(rows, info.nparams) then
    local text = "%s has %d parameters, in C %s"
    lib.report(meta, nil, text:format(name, info.nparams, tostring(rows[1].count)))
  end
end

local function check_module(name, source)
  local meta = "lua/efr/meta/" .. name:gsub("^efr%.", "") .. ".lua"
  local file = io.open(lib.root .. "/" .. meta)
  if not file then
    return lib.report(meta, nil, "no stub of the C module " .. name)
  end
  file:close()
  local stub = dofile(lib.root .. "/" .. meta)
  local real = require(name)
  local names = read_source(source)
  local text = lib.read(meta)
  for key, value in pairs(real) do
    if type(value) == "userdata" then -- a stub can only name it: M.null = nil
      if not text:find("\nM." .. key .. " = ", 1, true) then
        lib.report(meta, nil, "no stub of " .. name .. "." .. key)
      end
    elseif stub[key] == nil then
      lib.report(meta, nil, "no stub of " .. name .. "." .. key)
    elseif type(stub[key]) ~= type(value) then
      lib.report(meta, nil, ("%s is a %s in C"):format(key, type(value)))
    end
  end
  for key, value in pairs(stub) do
    if real[key] == nil then
      lib.report(meta, nil, key .. " is not in the C module")
    elseif type(value) == "function" then
      check_parameters(meta, names, key, value)
    end
  end
end

-- Methods: every method of a metatable of the C file is written as function Name:method( in the
-- stub, and the reverse.
local function check_methods(name, source)
  local meta = "lua/efr/meta/" .. name:gsub("^efr%.", "") .. ".lua"
  if not io.open(lib.root .. "/" .. meta) then
    return
  end
  local names, stub = read_source(source), lib.read(meta)
  local real, methods = require(name), {}
  for method, list in stub:gmatch("\nfunction %w+:([%w_]+)(%b())") do
    methods[method] = true
    local _, commas = list:gsub(",", "")
    local count = list == "()" and 1 or commas + 2
    if not names[method] then
      lib.report(meta, nil, "method " .. method .. " is not in " .. source)
    elseif not list:find("%.%.%.") and not has_count(names[method], count) then
      lib.report(meta, nil, ("method %s has %d parameters with self"):format(method, count))
    end
  end
  for key in pairs(names) do
    if real[key] == nil and not methods[key] and not key:match("^__") then
      lib.report(meta, nil, "no stub of the method " .. key)
    end
  end
end

for _, path in ipairs(lib.files({ "host", "cli" }, ".c")) do
  for name in lib.read(path):gmatch('EFR_LUA_MODULE%([%w_]+, "([%w_.]+)"') do
    check_module(name, path)
    check_methods(name, path)
  end
end

lib.finish("stubs")
