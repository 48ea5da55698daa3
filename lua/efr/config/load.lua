-- Owns: the effective settings: defaults < config.toml < environment < flags, and where each value
-- comes from.
-- Must not know: how the file is read from disk, or what a setting does.
-- Runs in efrd and efr. Pure.

local list = require "efr.util.list"
local lpegx = require "efr.util.lpegx"
local schema = require "efr.config.schema"
local toml = require "efr.config.toml"

local M = {}

-- The only settings that the environment may give.
local ENVIRONMENT <const> = { EFR_LOG = "log" }

local Config = {}
Config.__index = Config

---The effective value; nil when it is unset. An unknown name is a bug of ours and raises.
---@param name string  such as "permissions.mode"
---@return any
function Config:get(name)
  if not self._schema.keys[name] then error("no setting " .. tostring(name), 2) end
  return self._values[name]
end

---Where the value comes from.
---@param name string
---@return string source  "default", "file", "environment" or "flag"
function Config:source(name)
  if not self._schema.keys[name] then error("no setting " .. tostring(name), 2) end
  return self._sources[name] or "default"
end

---All settings in the order of the sections, for `config show`.
---@return { name: string, value: any, source: string, key: table }[]
function Config:all()
  return list.map(self._schema.order, function(name)
    return {
      name = name, value = self._values[name], source = self:source(name),
      key = self._schema.keys[name],
    }
  end)
end

-- The place of what is wrong goes along as data, for the protocol.
local function refuse(reader, entry, key, message)
  local pos = entry and (entry.key_from or entry.from) or 1
  local line, column = lpegx.line_column(reader.text, pos)
  local err = ("%s line %d column %d: %s"):format(reader.path, line, column, message)
  return nil, err, "EFR_CONFIG", { line = line, column = column, key = key }
end

-- A part of a value has a place of its own.
local function inner(reader, entry, at)
  local where = at and reader.where[at[1]]
  return where and where[at[2]] or entry
end

local function read_key(reader, full, value, entry)
  local key = reader.schema.keys[full]
  if not key then return refuse(reader, entry, full, "unknown key " .. full) end
  local fine, err, at = schema.check(key, value, reader.home)
  if fine == nil then
    return refuse(reader, inner(reader, entry, at), full, schema.named(full, err))
  end
  reader.values[full], reader.sources[full], reader.entries[full] = fine, "file", entry
  return true
end

local function read_section(reader, name, section)
  local where = reader.where[section]
  for _, key in ipairs(list.keys(section)) do
    local full, value = name .. "." .. key, section[key]
    local inside = reader.known[full] and type(value) == "table" and not getmetatable(value)
    local read = inside and read_section or read_key
    local ok, err, code, place = read(reader, full, value, where[key])
    if not ok then return nil, err, code, place end
  end
  return true
end

local function read_top(reader, name, value, entry)
  if reader.known[name] then
    if type(value) == "table" and getmetatable(value) == nil then
      return read_section(reader, name, value)
    end
    return refuse(reader, entry, name, name .. " must be a table")
  elseif type(value) == "table" and getmetatable(value) == nil then
    return refuse(reader, entry, name, ("unknown section [%s]"):format(name))
  end
  return read_key(reader, name, value, entry)
end

local function read_file(reader)
  local root, document, place = toml.parse(reader.text)
  if not root then
    return nil, ("%s %s"):format(reader.path, document), "EFR_CONFIG", place
  end
  reader.where = document.where
  for _, name in ipairs(list.keys(root)) do
    local ok, err, code, at = read_top(reader, name, root[name], reader.where[root][name])
    if not ok then return nil, err, code, at end
  end
  return true
end

local function override(reader, name, value, source, shown)
  local fine, err = schema.check(reader.schema.keys[name], value, reader.home)
  if fine == nil then
    return nil, ("%s: %s"):format(shown, schema.named(name, err)), "EFR_CONFIG"
  end
  reader.values[name], reader.sources[name] = fine, source
  return true
end

local function overrides(reader, opts)
  for variable, name in pairs(ENVIRONMENT) do
    local value = opts.env and opts.env[variable]
    if value and value ~= "" then
      local ok, err, code = override(reader, name, value, "environment", variable)
      if not ok then return nil, err, code end
    end
  end
  for _, name in ipairs(list.keys(opts.flags or {})) do
    local ok, err, code = override(reader, name, opts.flags[name], "flag", "--" .. name)
    if not ok then return nil, err, code end
  end
  return true
end

-- What no key can say alone.
local function check_together(reader)
  for _, section in ipairs(reader.schema.sections) do
    if section.check then
      local name, err = section.check(reader.values)
      if name then return refuse(reader, reader.entries[name], name, name .. " " .. err) end
    end
  end
  return true
end

-- Never the section's own table; paths in it are absolute.
local function default_of(key, home)
  local default = key.default
  if type(default) ~= "table" then return default end
  if key.type == "list" and key.items.type == "path" then
    return list.map(default, function(path) return assert(schema.check(key.items, path, home)) end)
  end
  return list.copy(default)
end

---Reads the settings.
---@param opts table  schema (efr.ConfigSchema); home (absolute); text (of the file, nil when there
---  is none); path (of the file, for errors); env (a table, for EFR_LOG); flags ({log = ...})
---@return table? config
---@return string? err  names file, line, column and key
---@return string? code  "EFR_CONFIG"
---@return table? place  {line, column, key?} of an error in the file
function M.load(opts)
  local reader = {
    schema = opts.schema, home = opts.home, text = opts.text or "",
    path = opts.path or "config.toml", values = {}, sources = {}, known = {},
    entries = {},
  }
  for name, key in pairs(opts.schema.keys) do
    reader.values[name] = default_of(key, opts.home)
  end
  for _, section in ipairs(opts.schema.sections) do
    local name = section.name ~= "" and section.name
    while name do -- what is above [a.b] may have no keys of its own
      reader.known[name] = true
      name = name:match("^(.*)%.")
    end
  end
  local ok, err, code, place = read_file(reader)
  if ok then ok, err, code, place = check_together(reader) end
  if ok then ok, err, code = overrides(reader, opts) end
  if not ok then return nil, err, code, place end
  return setmetatable({
    _schema = opts.schema, _values = reader.values, _sources = reader.sources, path = opts.path,
  }, Config)
end

---Names of the settings that differ and apply only after a restart of the daemon.
---@param running table
---@param fresh table
---@return string[]
function M.restart_needed(running, fresh)
  return list.filter(running._schema.order, function(name)
    local key = running._schema.keys[name]
    return key.restart and not list.same(running._values[name], fresh._values[name])
  end)
end

return M
