-- Owns: the settings as a JSON schema, for editors.
-- Must not know: JSON text, files.
-- Runs in efr. Pure.

local allow = require "efr.config.allow"
local list = require "efr.util.list"
local rules = require "efr.config.rules"

local M = {}

local DIALECT <const> = "http://json-schema.org/draft-07/schema#"

local write

local function object(properties, required)
  return {
    type = "object", properties = properties, required = required, additionalProperties = false,
  }
end

local function fields_of(key)
  local properties, required = {}, {}
  for _, name in ipairs(list.keys(key.fields)) do
    properties[name] = write(key.fields[name])
    if key.fields[name].required then required[#required + 1] = name end
  end
  return object(properties, required[1] and required or nil)
end

local COLOUR <const> = "^(#[0-9a-fA-F]{6}|[0-9]|1[0-5]"
  .. "|(bright-)?(black|red|green|yellow|blue|magenta|cyan|white))$"

local KINDS <const> = {
  string = function() return { type = "string", minLength = 1 } end,
  choice = function(key) return { enum = list.copy(key.choices) } end,
  integer = function(key)
    return { type = "integer", minimum = key.min, maximum = key.max }
  end,
  boolean = function() return { type = "boolean" } end,
  path = function() return { type = "string", pattern = "^(/|~$|~/)" } end,
  url = function() return { type = "string", pattern = "^https?://" } end,
  colour = function()
    local slot = { type = "integer", minimum = 0, maximum = 15 }
    return { anyOf = { slot, { type = "string", pattern = COLOUR } } }
  end,
  list = function(key) return { type = "array", items = write(key.items) } end,
  table = fields_of,
  either = function(key) return { anyOf = list.map(key.either, write) } end,
  rules = rules.json_schema,
  allow = allow.json_schema,
}

function write(key)
  local out = KINDS[key.type](key)
  out.description = key.doc
  if key.default ~= nil and type(key.default) ~= "table" then out.default = key.default end
  return out
end

---The JSON schema of config.toml.
---@param schema efr.ConfigSchema
---@return table  plain tables; no array in it is empty
function M.build(schema)
  local out = object({})
  for _, section in ipairs(schema.sections) do
    local place = out
    for name in section.name:gmatch("[^.]+") do
      place.properties[name] = place.properties[name] or object({})
      place = place.properties[name]
    end
    if section.name ~= "" then place.description = section.doc end
    for _, key in ipairs(section.keys) do place.properties[key.name] = write(key) end
  end
  out["$schema"] = DIALECT
  out.title = "config.toml of efr"
  return out
end

return M
