-- Owns: the commented example, from which a new config.toml starts: every key with its meaning, its
-- range and its default, all of them commented out.
-- Must not know: files.
-- Runs in efrd and efr. Pure.

local lines = require "efr.config.lines"

local M = {}

local WIDTH <const> = 98

local HEAD <const> = [[
# The settings of efr. Every line that is commented out shows the default, or an example where there
# is none. `efr config check` checks this file, and efrd reads it again when it changes. All keys,
# with their meaning: docs/config.md.
]]

-- Of keys that are arrays of tables.
local ENTRY <const> = {
  rules = [=[
#[[permissions.rules]]
#action = "execute"
#resource = { command = { program = "cargo", args = ["test|check"] } }
#effect = "allow"
]=],
  allow = [=[
#[[sandbox.allow]]
#kind = "write"
#under = "~/notes"
]=],
}

-- What to show where a key has no default.
local SHOWN <const> = {
  string = function() return "..." end,
  choice = function(key) return key.choices[1] end,
  integer = function(key) return key.min end,
  boolean = function() return true end,
  path = function() return "~/path" end,
  colour = function() return "yellow" end,
  url = function() return "http://localhost:11434/v1" end,
  list = function() return {} end,
}

local function wrapped(text, out)
  local line = "#"
  for word in text:gmatch("%S+") do
    if #line + 1 + #word > WIDTH then
      out[#out + 1] = line
      line = "#"
    end
    line = line .. " " .. word
  end
  out[#out + 1] = line
end

local function range(key)
  if key.choices then return " One of: " .. table.concat(key.choices, ", ") .. "." end
  if key.type == "integer" then return (" %d to %d."):format(key.min, key.max) end
  return ""
end

local function add_key(key, out)
  local doc = key.doc .. range(key) .. (key.restart and " Needs a restart of efrd." or "")
  wrapped(doc, out)
  if ENTRY[key.type] then
    out[#out + 1] = ENTRY[key.type]:sub(1, -2)
  else
    local value = key.default
    if value == nil then value = key.example end
    if value == nil then value = SHOWN[key.type](key) end
    out[#out + 1] = ("#%s = %s"):format(lines.key(key.name), lines.value(value))
  end
  out[#out + 1] = ""
end

---The example.
---@param schema efr.ConfigSchema
---@return string
function M.text(schema)
  local out = { HEAD }
  for _, section in ipairs(schema.sections) do
    if section.name ~= "" then
      out[#out + 1] = ("[%s]"):format(section.name)
      wrapped(section.doc, out)
      out[#out + 1] = ""
    end
    for _, key in ipairs(section.keys) do add_key(key, out) end
  end
  out[#out] = nil
  return table.concat(out, "\n") .. "\n"
end

return M
