-- Owns: what efr's LPeg grammars share: the stack limit, positions as line and column, small
-- patterns.
-- Must not know: any grammar.
-- Runs in every Lua state of efr. Pure.

local lpeg = require "lpeg"

local M = {}

-- LPeg's default of 400 entries overflows at about 50 nested brackets. The grammars of efr limit
-- their own depth far below what this allows.
local MAX_STACK <const> = 10000
lpeg.setmaxstack(MAX_STACK)

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
