-- Owns: what efr's LPeg grammars share: the stack limit, whole-text matching that never raises, and
-- positions as line and column.
-- Must not know: any grammar.
-- Runs in every Lua state of efr. Pure.

local lpeg = require "lpeg"

local M = {}

-- LPeg's default of 400 entries overflows at about 50 nested brackets. The grammars of efr limit
-- their own depth far below what this allows.
local MAX_STACK <const> = 10000
lpeg.setmaxstack(MAX_STACK)

---Matches text from its start. A raised match error (stack overflow, an error of a capture
---function) comes back as a failure instead.
---@param pattern any  an LPeg pattern, anchored by the caller at its end
---@param text string
---@param max_bytes integer  longer input is refused before the match
---@return any ...  the captures; nil, err, code on failure
function M.match(pattern, text, max_bytes, ...)
  if #text > max_bytes then
    return nil, ("longer than %d bytes"):format(max_bytes), "EFR_TOO_BIG"
  end
  local function pack(ok, first, ...)
    if not ok then return nil, tostring(first), "EFR_PARSE" end
    if first == nil then return nil, "no match", "EFR_PARSE" end
    return first, ...
  end
  return pack(pcall(lpeg.match, pattern, text, 1, ...))
end

---Line and column (in bytes) of a byte position, both from 1. A position after the end counts
---as the end.
---@param text string
---@param pos integer
---@return integer line
---@return integer column
function M.line_column(text, pos)
  local line, start = 1, 1
  pos = math.min(pos, #text + 1)
  while true do
    local feed = text:find("\n", start, true)
    if not feed or feed >= pos then return line, pos - start + 1 end
    line, start = line + 1, feed + 1
  end
end

---A pattern that matches text whatever the case of its ASCII letters.
---@param text string
---@return any pattern
function M.nocase(text)
  local pattern = lpeg.P(true)
  for i = 1, #text do
    local c = text:sub(i, i)
    pattern = pattern * lpeg.S(c:lower() .. c:upper())
  end
  return pattern
end

return M
