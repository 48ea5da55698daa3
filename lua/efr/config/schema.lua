-- Owns: the kinds of settings, the check of one value, and the collection of the sections.
-- Must not know: files, sources or what a setting does.
-- Runs in efrd and efr. Pure; which section modules exist comes from a port.
--
-- A section is a module lua/efr/config/sections/NAME.lua that returns
--   { name = "model", doc = "...", keys = { key, ... } }     name "" = the top level
-- and a section may have check, fn(values by full name) -> nil, or a key and words about it: what
-- no key can say alone. A key is a table with
--   name     as in the file
--   type     string | choice | integer | boolean | path | url | colour | list | rules | allow
--   default  nil = unset
--   choices  choice      min, max  integer: the value; string: bytes
--   pattern  string: a Lua pattern for the whole value, and `shape`, what it should be in words
--   items    list: the key of one item (type, or type "table" with `fields`; a list of two kinds
--            gives both in `either`)
--   check    fn(value) -> true | nil, words: what the kinds above cannot say
--   doc      one sentence
--   example  what the commented example shows where there is no default
--   restart  true: applies at the next start of the daemon
--   client   true: read by the command, not by the daemon
-- Only keys exist whose feature exists.

local allow = require "efr.config.allow"
local colour = require "efr.config.colour"
local list = require "efr.util.list"
local paths = require "efr.config.paths"
local rules = require "efr.config.rules"
local toml = require "efr.config.toml"

local M = {}

local PREFIX <const> = "efr.config.sections."

local check

local KINDS = {
  boolean = function(_, value)
    if type(value) ~= "boolean" then return nil, "must be true or false" end
    return value
  end,
}

function KINDS.string(key, value)
  if type(value) ~= "string" then return nil, "must be a string" end
  if key.pattern and not value:find(key.pattern) then return nil, "must be " .. key.shape end
  if value == "" then return nil, "must not be empty" end
  return value
end

function KINDS.choice(key, value)
  if list.contains(key.choices, value) then return value end
  return nil, "must be one of " .. table.concat(key.choices, ", ")
end

function KINDS.integer(key, value)
  if math.type(value) ~= "integer" then return nil, "must be an integer" end
  if value < key.min or value > key.max then
    return nil, ("must be between %d and %d"):format(key.min, key.max)
  end
  return value
end

function KINDS.path(_, value, home)
  if type(value) ~= "string" then return nil, "must be a path" end
  local path, err = paths.expand(value, home)
  if not path then return nil, err .. ", not " .. value end
  return path
end

function KINDS.url(_, value)
  local host = type(value) == "string" and value:match("^https?://([^/?#%s]+)[^%s#]*$")
  if not host then return nil, "must be an http or https URL" end
  if host:find("@", 1, true) then return nil, "must not hold a user name or password" end
  return (value:gsub("/+$", ""))
end

function KINDS.colour(_, value)
  if not colour.parse(value) then return nil, "must be " .. colour.SHAPE end
  return value
end

function KINDS.table(key, value, home)
  if type(value) ~= "table" or toml.is_array(value) then return nil, "must be a table" end
  local out = {}
  for _, name in ipairs(list.keys(value)) do
    local field = key.fields[name]
    if not field then return nil, ("has an unknown key '%s'"):format(name), { value, name } end
    local fine, err = check(field, value[name], home)
    if fine == nil then
      return nil, ("has a key '%s' that %s"):format(name, err), { value, name }
    end
    out[name] = fine
  end
  for _, name in ipairs(list.keys(key.fields)) do
    if key.fields[name].required and out[name] == nil then
      return nil, ("has no key '%s'"):format(name)
    end
  end
  return out
end

function KINDS.either(key, value, home)
  for _, form in ipairs(key.either) do
    local wanted = form.type == "table" and "table" or "string"
    if type(value) == wanted then return check(form, value, home) end
  end
  return nil, "must be " .. key.shape
end

function KINDS.list(key, value, home)
  if not toml.is_array(value) then return nil, "must be a list" end
  local out = {}
  for i, item in ipairs(value) do
    local fine, err, at = check(key.items, item, home)
    if fine == nil then return nil, ("item %d %s"):format(i - 1, err), at or { value, i } end
    out[i] = fine
  end
  return out
end

function KINDS.rules(_, value, home)
  return rules.check(value, home)
end

function KINDS.allow(_, value, home)
  return allow.check(value, home)
end

-- Returns the value in the form in which efr uses it (absolute paths), or nil, what is wrong and
-- where in the value.
function check(key, value, home)
  local fine, err, at = KINDS[key.type](key, value, home)
  if fine == nil then return nil, err, at end
  if key.check then
    local ok, why = key.check(fine, home)
    if not ok then return nil, why end
  end
  return fine
end

---Checks one value of a file.
---@param key table  of a section
---@param value any  as the TOML reader returns it
---@param home string
---@return any? value  with absolute paths; nil when it is refused (false is a value)
---@return string? err  words that follow the key's name: `must be an integer`; see M.named
---@return table? at  {table, key} of the reader, when a part of the value is wrong
function M.check(key, value, home)
  return check(key, value, home)
end

---The name of a key and what is wrong with it, as one text.
---@param name string
---@param err string  of M.check
---@return string
function M.named(name, err)
  return name .. (err:find("^%[") and "" or " ") .. err
end

---@class efr.ConfigSchema
---@field sections table[]  in order of their names
---@field keys table<string, table>  by full name, such as "model.provider"
---@field order string[]  all full names

---Collects the sections. Two keys of one name are a bug of ours and raise.
---@param list_modules fun(prefix: string): string[]  names of the modules that exist
---@return efr.ConfigSchema
function M.load(list_modules)
  local out = { sections = {}, keys = {}, order = {} }
  local names = list.copy(list_modules(PREFIX))
  for _, module in ipairs(names) do
    out.sections[#out.sections + 1] = require(module)
  end
  table.sort(out.sections, function(a, b) return a.name < b.name end)
  for _, section in ipairs(out.sections) do
    for _, key in ipairs(section.keys) do
      local full = section.name == "" and key.name or section.name .. "." .. key.name
      assert(not out.keys[full], full .. " is in two sections")
      out.keys[full] = key
      out.order[#out.order + 1] = full
    end
  end
  return out
end

return M
