-- Owns: Lua values with strings of any bytes inside JSON. A string that is no UTF-8 becomes
-- {bytes = "..."}, with one character for each byte.
-- Must not know: what the values are. Runs in efrd, efr and the rules process. Pure.

local M = {}

local MAX_DEPTH <const> = 180 -- the JSON writer stops at 200

local function pack(s)
  if utf8.len(s) then return s end
  return { bytes = (s:gsub("[\128-\255]", function(c) return utf8.char(c:byte()) end)) }
end

local function unpack(s)
  return (s:gsub("[\194\195][\128-\191]", function(c) return string.char(utf8.codepoint(c)) end))
end

local function is_list(t)
  local n = 0
  for key in pairs(t) do
    if math.type(key) ~= "integer" or key < 1 then return false end
    n = n + 1
  end
  return n == #t
end

local function pack_any(value, budget, depth)
  if type(value) == "string" then
    budget.left = budget.left - #value - 8
    return pack(value)
  end
  if type(value) ~= "table" then
    budget.left = budget.left - 8
    return value
  end
  if depth > MAX_DEPTH then budget.left = -1 end
  local out, list = {}, is_list(value)
  for key, item in pairs(value) do
    if budget.left < 0 then return nil end
    if not list then key = tostring(key) end
    budget.left = budget.left - 8
    out[key] = pack_any(item, budget, depth + 1)
  end
  return out
end

---A copy that JSON can hold.
---@param value any
---@param max_bytes integer  about how long its JSON may be
---@return any copy  nil when it is too large or too deep
function M.pack(value, max_bytes)
  local budget = { left = max_bytes }
  local out = pack_any(value, budget, 0)
  if budget.left < 0 then return nil end
  return out
end

---The value that pack was given, from decoded JSON. Keys that are whole numbers are numbers again.
---@param value any
---@return any
function M.unpack(value)
  if type(value) ~= "table" then return value end
  if type(value.bytes) == "string" and next(value, next(value)) == nil then
    return unpack(value.bytes)
  end
  local out = {}
  for key, item in pairs(value) do
    if type(key) == "string" and key:find("^%d+$") then key = math.tointeger(tonumber(key)) end
    out[key] = M.unpack(item)
  end
  return out
end

---Text for a person: valid UTF-8 without control characters, cut at max bytes.
---@param s string
---@param max integer
---@return string
function M.shown(s, max)
  s = s:gsub("%c+", " ")
  if #s > max then s = s:sub(1, max):gsub("[\192-\255]?[\128-\191]*$", "") .. "..." end
  if utf8.len(s) then return s end
  return (s:gsub("[\128-\255]", "?"))
end

return M
