-- Owns: checks of plain tables against a schema: protocol parameters, requirements, entries of
-- files.
-- Must not know: where a value came from.
-- Runs in every Lua state of efr. Pure.
--
-- A schema is a table {name = field}. A field:
--   type      string | integer | number | boolean | table | uuid | choice | list | any
--   optional  true: the value may be missing
--   min, max  integer and number: the value; string: bytes; list: items
--   choices   choice: the allowed strings, in the order in which an error names them
--   items     list: the field that every item has
--   fields    table: the schema of its keys; without it any table is accepted
--   nul       string: may hold NUL bytes, which no path, argument or name can
--   pattern   string: a Lua pattern that the whole value matches, and `shape`, words for the error
-- Unknown names are ignored unless opts.strict is set.

local M = {}

local UUID <const> = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

local function in_range(field, n, what)
  if field.min and n < field.min then return nil, ("%s at least %s"):format(what, field.min) end
  if field.max and n > field.max then return nil, ("%s at most %s"):format(what, field.max) end
  return true
end

local function number_check(kind)
  return function(field, value)
    local ok
    if kind == "integer" then
      ok = math.type(value) == "integer"
    else
      ok = math.type(value) ~= nil and value == value
    end
    if not ok then return nil, "must be " .. (kind == "integer" and "an integer" or "a number") end
    return in_range(field, value, "must be")
  end
end

local check_table, check_field

local CHECKS = {
  any = function() return true end,
  boolean = function(_, value)
    if type(value) ~= "boolean" then return nil, "must be true or false" end
    return true
  end,
  integer = number_check("integer"),
  number = number_check("number"),
}

function CHECKS.string(field, value)
  if type(value) ~= "string" then return nil, "must be a string" end
  if not field.nul and value:find("\0", 1, true) then return nil, "must hold no NUL byte" end
  if field.pattern and not value:find(field.pattern) then
    return nil, "must be " .. (field.shape or "of another form")
  end
  return in_range(field, #value, "must have a length of")
end

function CHECKS.uuid(_, value)
  if type(value) ~= "string" or not value:find(UUID) or value:find("%u") then
    return nil, "must be a lowercase UUID"
  end
  return true
end

function CHECKS.choice(field, value)
  for _, choice in ipairs(field.choices) do
    if choice == value then return true end
  end
  return nil, "must be one of " .. table.concat(field.choices, ", ")
end

function CHECKS.list(field, value, name, opts)
  if type(value) ~= "table" or (next(value) ~= nil and #value == 0) then
    return nil, "must be a list"
  end
  local ok, err = in_range(field, #value, "must have a length of")
  if not ok then return nil, err end
  if not field.items then return true end
  for i, item in ipairs(value) do
    local fine, why, at = check_field(field.items, item, ("%s[%d]"):format(name, i - 1), opts)
    if not fine then return nil, why, at end
  end
  return true
end

function CHECKS.table(field, value, name, opts)
  if type(value) ~= "table" then return nil, "must be a table" end
  if not field.fields then return true end
  return check_table(field.fields, value, name, opts)
end

-- Returns true | nil, words, name of the offending field (the innermost one).
function check_field(field, value, name, opts)
  if value == nil then
    if field.optional then return true end
    return nil, "is missing", name
  end
  local check = CHECKS[field.type] or error("validate: no type " .. tostring(field.type))
  local ok, why, at = check(field, value, name, opts)
  if ok then return true end
  return nil, why, at or name
end

-- The names of a schema in order, made once.
local NAMES <const> = setmetatable({}, { __mode = "k" })

local function names_of(schema)
  local names = NAMES[schema]
  if names then return names end
  names = {}
  for name in pairs(schema) do names[#names + 1] = name end
  table.sort(names)
  NAMES[schema] = names
  return names
end

function check_table(schema, value, prefix, opts)
  local names = names_of(schema)
  local dot = prefix == "" and "" or prefix .. "."
  for _, name in ipairs(names) do
    local ok, why, at = check_field(schema[name], value[name], dot .. name, opts)
    if not ok then return nil, why, at end
  end
  if not opts.strict then return true end
  local unknown = {}
  for key in pairs(value) do
    if schema[key] == nil then unknown[#unknown + 1] = tostring(key) end
  end
  if #unknown == 0 then return true end
  table.sort(unknown)
  return nil, "is not known", dot .. unknown[1]
end

---Checks value against schema. A missing value is named before a wrong one of a later name.
---@param schema table<string, table>
---@param value any
---@param opts { strict: boolean? }?  strict: a name that the schema does not know is an error
---@return boolean? ok
---@return string? err  names the field, such as `items[0].path must be a string`
function M.check(schema, value, opts)
  if type(value) ~= "table" then return nil, "must be a table" end
  local ok, why, at = check_table(schema, value, "", opts or {})
  if ok then return true end
  return nil, at .. " " .. why
end

return M
