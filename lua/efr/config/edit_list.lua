-- Owns: changing the items of an array in a file and keeping its layout and its comments.
-- Must not know: keys, sections, files.
-- Runs in efrd and efr. Pure.
--
-- An item that stands on lines of its own comes and goes with them; another one with its comma.

local lines = require "efr.config.lines"

local M = {}

-- The byte of the comma after an item, before `limit`; nil when there is none.
local function comma_after(text, pos, limit)
  while pos < limit do
    local c = text:sub(pos, pos)
    if c == "," then return pos end
    if c == "#" then pos = lines.after(text, pos) else pos = pos + 1 end
  end
  return nil
end

-- Whether only blanks stand before pos on its line.
local function leads(text, pos)
  return text:sub(lines.first(text, pos), pos - 1):find("^[ \t]*$") ~= nil
end

local function owns_lines(text, item)
  local rest = text:sub(item.to + 1, lines.after(text, item.to) - 1)
  return leads(text, item.from) and rest:find("^[ \t]*,?[ \t]*\r?\n$") ~= nil
    or leads(text, item.from) and rest:find("^[ \t]*,?[ \t]*#[^\n]*\n$") ~= nil
end

---Takes item i out.
---@param text string
---@param places table[]  {from, to} of each item, as the TOML reader gives them
---@param value { from: integer, to: integer }  of the array with its brackets
---@param i integer
---@return string text
function M.remove(text, places, value, i)
  local item, last, following = places[i], places[i - 1], places[i + 1]
  if owns_lines(text, item) then return (lines.cut(text, item.from, item.to)) end
  if following and text:sub(item.to + 1, following.from - 1):find("^[ \t]*,[ \t]*$") then
    return text:sub(1, item.from - 1) .. text:sub(following.from)
  end
  if last and text:sub(last.to + 1, item.from - 1):find("^[ \t]*,[ \t]*$") then
    return text:sub(1, last.to) .. text:sub(item.to + 1)
  end
  local comma = comma_after(text, item.to + 1, following and following.from or value.to)
  if comma then text = text:sub(1, comma - 1) .. text:sub(comma + 1) end
  return text:sub(1, item.from - 1) .. text:sub(item.to + 1)
end

local function append_first(text, value, written)
  if leads(text, value.to) and text:sub(value.from, value.to):find("\n", 1, true) then
    local at = lines.first(text, value.to)
    local indent = text:sub(at, value.to - 1)
    return lines.insert(text, at, indent .. "  " .. written .. ",")
  end
  return text:sub(1, value.to - 1) .. written .. text:sub(value.to)
end

---Puts an item at the end.
---@param text string
---@param places table[]
---@param value { from: integer, to: integer }
---@param written string  the item as TOML
---@return string text
function M.append(text, places, value, written)
  local item = places[#places]
  if not item then return append_first(text, value, written) end
  local comma = comma_after(text, item.to + 1, value.to)
  if not leads(text, item.from) or lines.after(text, comma or item.to) > value.to then
    return text:sub(1, item.to) .. ", " .. written .. text:sub(item.to + 1)
  end
  local indent = text:sub(lines.first(text, item.from), item.from - 1)
  local added = indent .. written .. (comma and "," or "")
  if not comma then
    text = text:sub(1, item.to) .. "," .. text:sub(item.to + 1)
    comma = item.to + 1
  end
  return lines.insert(text, lines.after(text, comma), added)
end

return M
