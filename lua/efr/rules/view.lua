-- Owns: what a rule sees: read-only tables over plain data, and the methods of commands and paths.
-- Must not know: entries, messages, effects. Runs in the rules process. Pure.

local M = {}

local function refuse()
  error("this table is read only", 2)
end

---A read-only table over data; tables inside are read-only as well.
---@param data table
---@param methods table<string, function>?
---@return table
function M.of(data, methods)
  local inner = {}
  local function get(_, key)
    local value = data[key]
    if value == nil then return methods and methods[key] end
    if type(value) ~= "table" or getmetatable(value) == false then return value end
    inner[key] = inner[key] or M.of(value)
    return inner[key]
  end
  return setmetatable({}, {
    __index = get,
    __newindex = refuse,
    __len = function() return #data end,
    __pairs = function(self)
      return function(_, key)
        local found = next(data, key)
        if found == nil then return nil end
        return found, get(self, found)
      end, self, nil
    end,
    __metatable = false,
  })
end

---Whether path is dir or lies below it. Whole components count; both must be absolute.
---@param path any
---@param dir any
---@return boolean
function M.under(path, dir)
  if type(path) ~= "string" or type(dir) ~= "string" or dir:sub(1, 1) ~= "/" then return false end
  dir = dir:gsub("/+$", "")
  return path == dir or path:sub(1, #dir + 1) == dir .. "/"
end

-- As `forbid` of [[permissions.rules]] reads an option.
local function hits(wanted, word)
  if word == wanted then return true end
  if wanted:find("^%-%-.") then
    local name = word:match("^(%-%-[^=]+)")
    return name ~= nil and #name > 2 and wanted:sub(1, #name) == name
  end
  if wanted:find("^%-[^%-]$") then
    return word:find("^%-[^%-]") ~= nil and word:find(wanted:sub(2), 2, true) ~= nil
  end
  return false
end

local function has(args, wanted)
  for i = 1, #args do
    local word = args[i]
    if word == "--" then return false end
    if word and hits(wanted, word) then return true end
  end
  return false
end

local function any(args, ...)
  for i = 1, select("#", ...) do
    local wanted = select(i, ...)
    if type(wanted) ~= "string" then error("has() takes words", 3) end
    if has(args, wanted) then return true end
  end
  return false
end

-- The methods of a command. They hold its plain data: rules ask them often.
local function methods_of(program, args)
  local methods = {}
  -- Whether one of these words is certainly among the arguments.
  function methods.has(_, ...)
    return any(args, ...)
  end
  -- The same, and true when an argument is not known before the shell runs.
  function methods.might_have(_, ...)
    if any(args, ...) or not program then return true end
    for i = 1, #args do
      if not args[i] then return true end
    end
    return false
  end
  return methods
end

local function split(words, sources)
  local args, operands, texts, options_end = {}, {}, {}, false
  for i = 2, #words do
    local word = words[i]
    args[i - 1] = word
    texts[i - 1] = word or sources[i] or "?"
    if word == "--" and not options_end then
      options_end = true
    elseif options_end or not word or word == "-" or word:sub(1, 1) ~= "-" then
      operands[#operands + 1] = word
    end
  end
  return args, operands, texts
end

---A command of rules/line as rules see it.
---@param command table
---@param line string?
---@return table view
---@return string? name  of the program, without its directory
function M.command(command, line)
  local words = command.words or {}
  local args, operands, texts = split(words, command.texts or {})
  local program = words[1] or nil
  local name = program and program:match("[^/]*$")
  local pos, stop = command.pos, command.stop
  return M.of({
    program = program, name = name, args = args, operands = operands, texts = texts,
    assigns = command.assigns or {}, redirs = command.redirs or {}, behind = command.behind or {},
    text = line and pos and stop and line:sub(pos, stop) or nil, pos = pos, stop = stop,
  }, methods_of(program, args)), name
end

local Path = {}

function Path:under(dir)
  return M.under(self.path, dir)
end

---@param requirement table  {kind, path, tree}
---@return table
function M.path(requirement)
  return M.of({
    action = requirement.kind, path = requirement.path, tree = requirement.tree == true,
  }, Path)
end

return M
