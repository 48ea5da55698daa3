-- Targets of hyperlinks: which of them become links, and in which bytes.
-- Owns: the schemes and the escaping. Must not know: markdown, the terminal. Pure.

local M = {}

local SCHEMES <const> = { http = true, https = true, mailto = true, file = true }
local TARGET_MAX <const> = 2048

-- Bytes that stand in a target as they are (RFC 3986: unreserved, reserved, and the percent sign).
local function escaped(s)
  return (s:gsub("[^%w%-._~:/?#%[%]@!$&'()*+,;=%%]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end

--- The target in the form in which a terminal gets it; nil: this is no link for a terminal.
--- An absolute path is a file.
--- @param target string
--- @return string?
function M.target(target)
  if #target == 0 or #target > TARGET_MAX then
    return nil
  end
  if target:sub(1, 1) == "/" and target:sub(2, 2) ~= "/" then
    return "file://" .. escaped(target):gsub("[?#]", { ["?"] = "%3F", ["#"] = "%23" })
  end
  local scheme = target:match("^(%a[%w+.-]*):")
  if scheme and SCHEMES[scheme:lower()] then
    return escaped(target)
  end
  return nil
end

--- Whether text is one absolute path, as in inline code.
function M.is_path(s)
  return s:find("^/[%w._~+@%-][^%s%c]*$") ~= nil
end

-- A bare address ends before punctuation that belongs to the sentence, and before a closing
-- parenthesis that the address did not open.
local function trim(url)
  while true do
    local last = url:sub(-1)
    if last:find("[.,;:!?'\"*_~]") then
      url = url:sub(1, -2)
    elseif last == ")" then
      local _, opened = url:gsub("%(", "")
      local _, closed = url:gsub("%)", "")
      if closed <= opened then
        return url
      end
      url = url:sub(1, -2)
    else
      return url
    end
  end
end

--- The bare http(s) address that starts at byte `i` of s.
--- @return string? url
function M.bare(s, i)
  if not s:find("^https?://", i) then
    return nil
  end
  local url = trim(s:sub(i, i + TARGET_MAX - 1):match("^[^][%s<>`%c]+"))
  return url and #url > 8 and url or nil
end

return M
