-- Owns: small helpers for sequences and sets.
-- Must not know: any other part of efr.
-- Runs in every Lua state of efr. Pure.

local M = {}

---The position of value in list.
---@param list any[]
---@param value any
---@return integer? index nil when it is not there
function M.index_of(list, value)
  for i = 1, #list do
    if list[i] == value then return i end
  end
  return nil
end

---Whether list holds value.
---@param list any[]
---@param value any
---@return boolean
function M.contains(list, value)
  return M.index_of(list, value) ~= nil
end

---A new list of fn(item, index) for each item.
---@param list any[]
---@param fn fun(item: any, index: integer): any  must not return nil
---@return any[]
function M.map(list, fn)
  local out = {}
  for i = 1, #list do out[i] = fn(list[i], i) end
  return out
end

---A new list of the items for which fn is true.
---@param list any[]
---@param fn fun(item: any): any
---@return any[]
function M.filter(list, fn)
  local out = {}
  for i = 1, #list do
    if fn(list[i]) then out[#out + 1] = list[i] end
  end
  return out
end

---Appends every item of more to list, and returns list.
---@param list any[]
---@param more any[]
---@return any[]
function M.extend(list, more)
  local n = #list
  for i = 1, #more do list[n + i] = more[i] end
  return list
end

---A copy of one level (the items are shared).
---@param list any[]
---@return any[]
function M.copy(list)
  return table.move(list, 1, #list, 1, {})
end

---Whether two values are the same, tables by what they hold.
---@param a any
---@param b any
---@return boolean
function M.same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, value in pairs(a) do
    if not M.same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

---The keys of a table in sorted order. All keys must be comparable with each other.
---@param map table
---@return any[]
function M.keys(map)
  local out = {}
  for key in pairs(map) do out[#out + 1] = key end
  table.sort(out)
  return out
end

---A set {item = true} of the items.
---@param list any[]
---@return table<any, boolean>
function M.set(list)
  local out = {}
  for i = 1, #list do out[list[i]] = true end
  return out
end

return M
