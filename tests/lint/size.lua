-- Hard size limits of docs/style.md: lines of files and functions, complexity, parameters. Tables
-- of data are exempt and stand in DATA. Complexity and length of C functions come from pmccabe, of
-- Lua functions from luacheck and luac.
local lib = dofile((os.getenv("EFR_SOURCE") or ".") .. "/tests/lint/lib.lua")

local C_FILE <const>, LUA_FILE <const> = 800, 500
local C_FUNCTION <const>, LUA_FUNCTION <const> = 80, 60
local C_COMPLEXITY <const> = 25
local C_PARAMETERS <const> = 6

local DATA <const> = { ["lua/efr/perm/programs.lua"] = true }

local function count_lines(text)
  local _, count = text:gsub("\n", "")
  return count
end

local function file_limit(path, limit)
  local count = count_lines(lib.read(path))
  if count > limit and not DATA[path] then
    lib.report(path, count, ("%d lines, the limit is %d"):format(count, limit))
  end
end

local function c_functions(files)
  for _, row in ipairs(lib.lines("pmccabe " .. table.concat(files, " "))) do
    local complexity, _, _, line, length, path, name =
      row:match("^(%d+)%s+(%d+)%s+(%d+)%s+(%d+)%s+(%d+)%s+(.-)%(%d+%): (.*)$")
    if complexity and tonumber(complexity) > C_COMPLEXITY then
      lib.report(path, line, ("%s: complexity %s"):format(name, complexity))
    end
    if length and tonumber(length) > C_FUNCTION then
      lib.report(path, line, ("%s: %s lines"):format(name, length))
    end
  end
end

-- Definitions start in the first column, and so does the brace of their body.
local function c_parameters(path)
  local text = "\n" .. lib.read(path)
  for at, name, list in text:gmatch("\n()[%w_][^\n;={}#/]-([%w_]+)(%b())%s*\n{") do
    local _, commas = list:gsub("%b()", ""):gsub(",", "")
    if commas + 1 > C_PARAMETERS then
      local line = count_lines(text:sub(1, at)) - 1
      lib.report(path, line, ("%s: %d parameters"):format(name, commas + 1))
    end
  end
end

local function lua_functions(path)
  if DATA[path] then
    return
  end
  for _, row in ipairs(lib.lines("luac5.4 -l -p '" .. path .. "'")) do
    local first, last = row:match("^function <.-:(%d+),(%d+)>")
    if first and last - first + 1 > LUA_FUNCTION then
      lib.report(path, first, ("function of %d lines"):format(last - first + 1))
    end
  end
end

local c_files = lib.files({ "host", "sbx", "cli" }, ".c")
for _, path in ipairs(c_files) do
  file_limit(path, C_FILE)
  c_parameters(path)
end
c_functions(c_files)
for _, path in ipairs(lib.files({ "host", "sbx", "cli" }, ".h")) do
  file_limit(path, C_FILE)
end

for _, path in ipairs(lib.files({ "lua", "cli" }, ".lua")) do
  file_limit(path, LUA_FILE)
  lua_functions(path)
end
local complexity = "luacheck lua cli --no-color --formatter plain --only 561 || true"
for _, row in ipairs(lib.lines(complexity)) do
  local path, line, text = row:match("^(.-):(%d+):%d+: (.*)$")
  if path then
    lib.report(path, line, text)
  end
end

lib.finish("size")
