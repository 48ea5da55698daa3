-- Owns: text that is no UTF-8 on its way through JSON: shown cleaned, kept exactly in NAME_b64.
-- Must not know: what a field means, or who sends it.
-- Runs in efrd and efr, main thread. `text` is efr.text (is_utf8, clean).
local text_util = require "efr.util.text"

local M = {}

---A copy of value in which every string is UTF-8. A named field that was not keeps its exact bytes
---in NAME_b64. Metatables (array marks) are kept.
---@param value any
---@param text table
function M.clean(value, text)
  if type(value) == "string" then
    return text.is_utf8(value) and value or text.clean(value)
  elseif type(value) ~= "table" then
    return value
  end
  local copy = {}
  for key, item in pairs(value) do
    if type(key) == "string" and not text.is_utf8(key) then key = text.clean(key) end
    local shown = M.clean(item, text)
    copy[key] = shown
    if type(key) == "string" and type(item) == "string" and shown ~= item then
      copy[key .. "_b64"] = text_util.base64(item)
    end
  end
  return setmetatable(copy, getmetatable(value))
end

---Puts exact bytes back in place: NAME takes the bytes of NAME_b64 where that is base64.
---Changes value, in all depths.
---@param value any
function M.restore(value)
  if type(value) ~= "table" then return value end
  local exact = {}
  for key, item in pairs(value) do
    local name = type(key) == "string" and type(item) == "string" and key:match("^(.+)_b64$")
    local bytes = name and type(value[name]) == "string" and text_util.unbase64(item)
    if bytes then exact[name] = bytes else M.restore(item) end
  end
  for name, bytes in pairs(exact) do
    value[name] = bytes
    value[name .. "_b64"] = nil
  end
  return value
end

return M
