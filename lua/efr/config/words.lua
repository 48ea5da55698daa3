-- Owns: a setting given as words on a command line.
-- Must not know: files, the command line.
-- Runs in efr. Pure.

local schema = require "efr.config.schema"
local toml = require "efr.config.toml"

local M = {}

local function literal(text)
  local root = toml.parse("value = " .. text)
  return root and root.value
end

local KINDS <const> = {
  string = function(text) return text end,
  boolean = function(text)
    if text == "true" then return true end
    if text == "false" then return false end
    return nil, "must be true or false"
  end,
  integer = function(text)
    local value = text:find("^[+-]?%d+$") and math.tointeger(tonumber(text))
    if not value then return nil, "must be an integer" end
    return value
  end,
  rules = function() return nil, "is a list of tables; use efr config edit" end,
  allow = function() return nil, "is a list of tables; use efr config edit" end,
}

-- Words with commas between them, or an array as it stands in the file.
function KINDS.list(text)
  if text:find("^%s*%[") then
    local value = literal(text)
    if not toml.is_array(value) then return nil, "must be a list: a,b or [\"a\", \"b\"]" end
    return value
  end
  local out = {}
  for word in text:gmatch("[^,]+") do
    word = word:match("^%s*(.-)%s*$")
    if word ~= "" then out[#out + 1] = word end
  end
  return toml.array(out)
end

---The value that words mean for a key, as it goes into the file.
---@param key table  of a section
---@param text string
---@param home string
---@return any? value  nil when it is refused (false is a value)
---@return string? err  words that follow the key's name
function M.read(key, text, home)
  local value, err = (KINDS[key.type] or KINDS.string)(text)
  if value == nil then return nil, err end
  local fine
  fine, err = schema.check(key, value, home)
  if fine == nil then return nil, err end
  return value
end

return M
