-- Output that moves the cursor, as text: replayed on a throw-away screen and read back.
--
-- Owns: when a replay is needed, what becomes of its text. Must not know: processes, runs.
-- Loop thread of efrd; the functions wait.
--
-- Policy: a replay is for programs that move the cursor up or along a line. Programs that set a
-- scroll region (apt draws its bar below one) stay with the cleaner, which drops the moves; so does
-- everything when there is no screen.

local output = require "efr.shell.output"

local M = {}

-- Whether output stops in the middle of a line; sequences and controls at its end do not count.
local function is_open(bytes)
  local line = bytes:sub(-4096):match("[^\n]*$")
  return output.clean(line) ~= ""
end

local function played(screen, bytes)
  local text = screen:replay(bytes)
  return text and text ~= "" and text .. "\n" or text
end

---The whole output as text, at most about 1 MiB. Nothing may be fed afterwards.
---@param out efr.shell.Output
---@param screen efr.shell.Screen?  nil: the cleaner's text
---@return string text
---@return boolean truncated
function M.finish(out, screen)
  if not screen or not out:moves() then return out:finish() end
  local head, tail, omitted = out:raw()
  local first = played(screen, head)
  local last = first and tail and played(screen, tail)
  if not first or (tail and not last) then return out:finish() end
  if out:full_screen() then
    if tail then last = last .. output.NOTE else first = first .. output.NOTE end
  end
  if not tail and not out:full_screen() and is_open(head) then first = first:sub(1, -2) end
  return out:fit(first, last, omitted)
end

---Text of the newest output, at most `count` bytes.
---@param out efr.shell.Output
---@param screen efr.shell.Screen?
---@param count integer
---@return string
function M.tail(out, screen, count)
  if screen and out:moves() then
    local text = screen:replay(out:recent())
    if text then return output.last_bytes(text, count) end
  end
  return out:tail(count)
end

return M
