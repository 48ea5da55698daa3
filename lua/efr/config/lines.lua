-- Owns: what the writer of TOML files needs of text: whole lines put in and taken out, and values
-- written as TOML.
-- Must not know: keys, sections, files.
-- Runs in efrd and efr. Pure.
--
-- Whatever `insert` adds, `cut` takes away without a trace: the line ends of the file are used, and
-- a file that ends inside a line ends inside a line afterwards as well.

local list = require "efr.util.list"
local toml = require "efr.config.toml"

local M = {}

local BOM <const> = "\xEF\xBB\xBF"

---The first byte after a byte order mark.
function M.body(text)
  return text:sub(1, #BOM) == BOM and #BOM + 1 or 1
end

---The line end that the file uses.
function M.ending(text)
  return text:match("(\r?\n)") or "\n"
end

---The first byte of the line that holds pos.
function M.first(text, pos)
  local body = M.body(text)
  while pos > body and text:byte(pos - 1) ~= 10 do pos = pos - 1 end
  return pos
end

---The first byte of the next line; one past the end when there is none.
function M.after(text, pos)
  return (text:find("\n", pos, true) or #text) + 1
end

---Puts lines (without the last line end) before the line that starts at pos.
---@param text string
---@param pos integer  the start of a line, or one past the end
---@param lines string
---@return string
function M.insert(text, pos, lines)
  local ending = M.ending(text)
  lines = lines:gsub("\n", ending)
  if pos > #text and pos > M.body(text) and text:sub(-1) ~= "\n" then
    return text .. ending .. lines
  end
  return text:sub(1, pos - 1) .. lines .. ending .. text:sub(pos)
end

---Takes away the lines from the one that holds `from` to the one that holds `to`.
---@return string text
---@return integer at  where they stood
function M.cut(text, from, to)
  local first, after = M.first(text, from), M.after(text, to)
  if after > #text and text:sub(-1) ~= "\n" then
    first = text:sub(1, first - 1):match("()\r?\n$") or first
  end
  return text:sub(1, first - 1) .. text:sub(after), first
end

---The line that starts at pos, without its line end.
function M.line(text, pos)
  return (text:sub(pos, M.after(text, pos) - 1):gsub("\r?\n$", ""))
end

---The start of the line above the line that starts at pos; nil for the first line.
function M.above(text, pos)
  if pos <= M.body(text) then return nil end
  return M.first(text, pos - 1)
end

---Whether the line that starts at pos has nothing but blanks.
function M.is_blank(text, pos)
  return M.line(text, pos):find("^[ \t]*$") ~= nil
end

-- Values ---------------------------------------------------------------------------------------

local ESCAPES <const> = {
  ["\\"] = "\\\\", ['"'] = '\\"', ["\b"] = "\\b", ["\t"] = "\\t", ["\n"] = "\\n", ["\f"] = "\\f",
  ["\r"] = "\\r",
}

local function quote(s)
  return '"' .. s:gsub('[%z\1-\31\127\\"]', function(c)
    return ESCAPES[c] or ("\\u%04X"):format(c:byte())
  end) .. '"'
end

---A key as it stands in a file.
---@param name string
---@return string
function M.key(name)
  return name:find("^[%w_-]+$") and name or quote(name)
end

local function float(value)
  if value ~= value then return "nan" end
  if value == math.huge then return "inf" end
  if value == -math.huge then return "-inf" end
  local text = ("%.17g"):format(value)
  return text:find("[.e]") and text or text .. ".0"
end

local write

local function write_table(value)
  local parts = {}
  for i, name in ipairs(list.keys(value)) do
    parts[i] = M.key(name) .. " = " .. write(value[name])
  end
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

function write(value)
  if type(value) == "string" then return quote(value) end
  if math.type(value) == "float" then return float(value) end
  if type(value) ~= "table" then return tostring(value) end
  if getmetatable(value) == toml.Datetime then return value.text end
  if value[1] == nil and next(value) ~= nil then return write_table(value) end
  return "[" .. table.concat(list.map(value, write), ", ") .. "]"
end

---A value on one line. An empty table without a metatable is an empty array.
---@param value any  string, number, boolean, array, table or efr.TomlDatetime
---@return string
function M.value(value)
  return write(value)
end

return M
