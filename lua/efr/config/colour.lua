-- Owns: how a colour is written in the settings: #rrggbb, a slot from 0 to 15, or a name.
-- Must not know: what it colours, how a terminal gets it. Pure.

local M = {}

---What a colour must be, in words.
M.SHAPE = "#rrggbb, a number from 0 to 15, or a name such as yellow or bright-blue" ---@type string

local NAMES <const> = {
  black = 0, red = 1, green = 2, yellow = 3, blue = 4, magenta = 5, cyan = 6, white = 7,
}

---@param value any
---@return {slot: integer?, rgb: integer[]?}?  nil: this is no colour
function M.parse(value)
  if math.type(value) == "integer" then
    return value >= 0 and value <= 15 and { slot = value } or nil
  elseif type(value) ~= "string" then
    return nil
  end
  local r, g, b = value:match("^#(%x%x)(%x%x)(%x%x)$")
  if r then
    return { rgb = { tonumber(r, 16), tonumber(g, 16), tonumber(b, 16) } }
  end
  local digits = value:match("^%d%d?$")
  if digits then
    return M.parse(math.tointeger(tonumber(digits)))
  end
  local slot = NAMES[value:match("^bright%-(%l+)$") or value]
  return slot and { slot = value:find("^bright%-") and slot + 8 or slot } or nil
end

return M
