-- Owns: what the user's files can call: the table `efr` and the globals around it, and the
-- entries that the files make with it. docs/lua-api.md is written for this file.
-- Must not know: messages, time, when an entry is asked. Runs in the rules process. Pure.
--
-- An entry is what the user gave, checked, with kind, index, file, line, and names (a set of
-- program names or exit kinds, or nil for any).

local bytes = require "efr.rules.bytes"
local view = require "efr.rules.view"

local M = {}

local MAX_ENTRIES <const> = 500
local MAX_ID <const> = 100
local MAX_TEXT <const> = 300
local MAX_PRINTED <const> = 100

local EFFECTS <const> = { allow = true, ask = true, deny = true }
local SUBJECTS <const> = { command = true, line = true, path = true }

local CHECKS = {}

function CHECKS.text(value)
  return type(value) == "string" and value ~= "" and #value <= MAX_TEXT, "must be a text"
end

function CHECKS.id(value)
  return type(value) == "string" and #value <= MAX_ID and value:find("^[%w._:-]+$") ~= nil,
    "must be a name of letters, digits and . _ : -"
end

function CHECKS.effect(value)
  return EFFECTS[value] == true, 'must be "allow", "ask" or "deny"'
end

function CHECKS.subject(value)
  return SUBJECTS[value] == true, 'must be "command", "line" or "path"'
end

function CHECKS.fn(value)
  return type(value) == "function", "must be a function"
end

function CHECKS.flag(value)
  return type(value) == "boolean", "must be true or false"
end

function CHECKS.flag_or_fn(value)
  return type(value) == "boolean" or type(value) == "function", "must be true, false or a function"
end

local function is_names(value)
  if type(value) ~= "table" or #value == 0 then return false end
  for key, name in pairs(value) do
    if math.type(key) ~= "integer" or type(name) ~= "string" or name == "" then return false end
  end
  return true
end

function CHECKS.names(value)
  return type(value) == "string" and value ~= "" or is_names(value),
    "must be a name or a list of names"
end

local function is_host(text)
  local name = text:match("^(.-):%d+$") or text
  return (name:match("^%*%.(.+)$") or name):find("^%w[%w.-]*$") ~= nil
end

function CHECKS.hosts(value)
  local fine = CHECKS.names(value)
  for _, name in ipairs(fine and (type(value) == "table" and value or { value }) or {}) do
    fine = fine and is_host(name)
  end
  return fine, "must be a host or a list of hosts, such as example.org or *.example.org"
end

function CHECKS.paths(value)
  return type(value) == "function" or CHECKS.names(value),
    "must be a path, a list of paths or a function"
end

-- For each function of `efr`: its fields, those that must be there, and which one becomes `names`.
local FORMS <const> = {
  rule = {
    fields = {
      id = "id", effect = "effect", on = "subject", program = "names", when = "fn", why = "text",
      parse = "flag",
    },
    needs = { "effect" }, names = "program",
  },
  exit = {
    fields = { id = "id", effect = "effect", kind = "names", when = "fn", why = "text" },
    needs = { "effect" }, names = "kind",
  },
  program = {
    fields = {
      name = "names", reads = "paths", writes = "paths", network = "flag_or_fn",
      interactive = "flag_or_fn",
    },
    needs = { "name" }, names = "name",
  },
  preset = { fields = { name = "id", hosts = "hosts" }, needs = { "name", "hosts" } },
  hint = { fields = { text = "text", when = "fn" }, needs = { "text" } },
}

local function set_of(names)
  local set = {}
  for _, name in ipairs(type(names) == "table" and names or { names }) do set[name] = true end
  return set
end

-- A copy, so that what the file does with its table afterwards changes nothing.
local function copy_of(value)
  if type(value) ~= "table" then return value end
  return table.move(value, 1, #value, 1, {})
end

-- The first in byte order, so that a file gives the same words each time.
local function unknown_field(form, given)
  local least
  for key in next, given do
    local name = tostring(key)
    if not form.fields[key] and (not least or name < least) then least = name end
  end
  return least
end

local function check(kind, form, given)
  if type(given) ~= "table" then return nil, "takes one table" end
  local entry = { kind = kind }
  local unknown = unknown_field(form, given)
  if unknown then return nil, ("has no field '%s'"):format(bytes.shown(unknown, MAX_ID)) end
  local keys = {}
  for key in next, given do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local name, value = form.fields[key], given[key]
    local fine, wrong = CHECKS[name](value)
    if not fine then return nil, key .. " " .. wrong end
    -- `kind` of an exit is no kind of an entry.
    if key == form.names then
      entry.names = set_of(value)
    else
      entry[key] = copy_of(value)
    end
  end
  for _, key in ipairs(form.needs) do
    if given[key] == nil then return nil, "needs " .. key end
  end
  return entry
end

-- A rule that matches everything is a mistake more often than a wish, so it takes a `when`.
local function check_rule(entry)
  entry.on = entry.on or "command"
  if not entry.when and not entry.names then return "needs when or program" end
  if entry.names and entry.on ~= "command" then return "has program, which goes with commands" end
  return nil
end

local Api = {}
Api.__index = Api

function Api:fail(name, message)
  local file, line = self.native.where(1)
  error(("%s:%d: efr.%s: %s"):format(file or "?", line or 0, name, message), 0)
end

function Api:add(kind, given)
  local entry, wrong = check(kind, FORMS[kind], given)
  if entry and kind == "rule" then wrong = check_rule(entry) end
  if self.closed then wrong = "belongs to the top of a file, not into a function that efr calls" end
  if #self.entries >= MAX_ENTRIES then wrong = ("more than %d entries"):format(MAX_ENTRIES) end
  if wrong then self:fail(kind, wrong) end
  entry.file, entry.line = self.native.where(1)
  entry.place = ("%s:%d"):format(entry.file or "?", entry.line or 0)
  entry.index = #self.entries + 1
  self.entries[entry.index] = entry
end

local function copy_library(library)
  local out = {}
  for name, value in next, library do out[name] = value end
  return out
end

local function undefined(_, name)
  error(("'%s' is not defined; rules have no io, os, require, load or debug"):format(
    bytes.shown(tostring(name), MAX_ID)), 2)
end

local BASE <const> = {
  "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget",
  "rawlen", "select", "setmetatable", "tonumber", "tostring", "type", "xpcall", "_VERSION",
}

-- The globals of the user's files. All files share them.
local function make_env(self, lpeg)
  local env = { lpeg = copy_library(lpeg), efr = { under = view.under } }
  for _, name in ipairs(BASE) do env[name] = _G[name] end
  for _, name in ipairs { "string", "table", "math", "utf8", "coroutine" } do
    env[name] = copy_library(_G[name])
  end
  for kind in next, FORMS do
    env.efr[kind] = function(given) self:add(kind, given) end
  end
  function env.print(...)
    if #self.printed >= MAX_PRINTED then return end
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    self.printed[#self.printed + 1] = bytes.shown(table.concat(parts, "\t"), MAX_TEXT)
  end
  env._G = env
  return setmetatable(env, { __index = undefined, __metatable = false })
end

---@class efr.rules.Api
---@field env table  globals of the user's files
---@field entries table[]
---@field printed string[]  what print wrote

---@param deps {native: table, lpeg: table}
---@return efr.rules.Api
function M.new(deps)
  local self = setmetatable({
    native = deps.native, entries = {}, printed = {}, closed = false,
  }, Api)
  self.env = make_env(self, deps.lpeg)
  return self
end

---After loading: functions that efr calls add no entries.
function Api:close()
  self.closed = true
end

return M
