-- Rows of styled text: widths, cutting and wrapping.
-- Owns: the row type and every rule about columns. A row is an array of spans {text, role?, look?};
-- looks are those of cli/render/spans.lua.
-- Must not know: events, colours, the terminal. Pure; runs in `efr`.

local text = require "efr.text"

local M = {}

local TAB <const> = "    "

--- Makes foreign text safe to print: tabs become blanks, every other control or format
--- character a visible stand-in. The argument holds no newline that should stay one.
function M.safe(s)
  return text.printable((s:gsub("\t", TAB)))
end

--- Columns of a string of safe text.
function M.width(s)
  return text.width(s)
end

--- Columns of a row.
function M.row_width(row)
  local cols = 0
  for _, span in ipairs(row) do
    cols = cols + text.width(span[1])
  end
  return cols
end

--- The row's text without roles.
function M.plain(row)
  local parts = {}
  for i, span in ipairs(row) do
    parts[i] = span[1]
  end
  return table.concat(parts)
end

--- Splits text into lines at newlines; one final newline opens no further line.
function M.lines(s)
  local lines = {}
  for line in (s:gsub("\n$", "") .. "\n"):gmatch("(.-)\n") do
    lines[#lines + 1] = line
  end
  return lines
end

-- The byte after the cluster at byte `i`, and its columns. Two ASCII bytes in a row need no
-- lookup: safe text holds no control character.
local function cluster(s, i)
  local a, b = s:byte(i, i + 1)
  if a < 128 and (not b or b < 128) then
    return i + 1, 1
  end
  local j = text.next_grapheme(s, i)
  return j, text.width(s:sub(i, j - 1))
end

-- Takes clusters of `s` from byte `i` while they fit into `cols`.
-- Returns the byte after the last one taken and their columns. At least one cluster is taken.
local function take(s, i, cols)
  -- ASCII up to and with the first byte that does not fit: a byte is a column.
  if not s:sub(i, i + math.max(cols, 1)):find("[\x80-\xFF]") then
    local stop = math.min(i + math.max(cols, 1), #s + 1)
    return stop, stop - i
  end
  local used, start = 0, i
  while i <= #s do
    local j, w = cluster(s, i)
    if used + w > cols and i > start then
      break
    end
    used, i = used + w, j
  end
  return i, used
end

--- Cuts text to `cols` columns; a cut is shown by an ellipsis.
function M.cut(s, cols)
  if cols <= 0 then
    return ""
  end
  if text.width(s) <= cols then
    return s
  end
  if cols == 1 then
    return "…"
  end
  local j = take(s, 1, cols - 1)
  return s:sub(1, j - 1) .. "…"
end

--- Cuts a row to `cols` columns.
function M.cut_row(row, cols)
  if M.row_width(row) <= cols then
    return row
  end
  local out, room = {}, cols
  for i, span in ipairs(row) do
    local width = text.width(span[1])
    if width > room or width == room and row[i + 1] then
      -- The ellipsis has to show, also where the cut falls between two spans.
      local cut = width > room and M.cut(span[1], room) or M.cut(span[1] .. " ", room)
      out[i] = { cut, span[2], span[3] }
      return out
    end
    out[i], room = span, room - width
  end
  return out
end

--- The longest start of safe text that fits into `cols` columns, at least one cluster.
function M.head(s, cols)
  return s:sub(1, take(s, 1, cols) - 1)
end

-- Where the row that starts at byte `i` ends and where the next one starts (nil: no next one).
-- Blanks hang past the edge; a word longer than the row is broken inside.
local function break_at(s, i, cols)
  local stop = take(s, i, cols)
  local rest = s:find("[^ ]", stop)
  if not rest then
    return #s, nil
  end
  if s:sub(stop, stop) == " " then
    return stop - 1, rest
  end
  local from = s:find("[^ ]", i) or i
  for k = stop - 1, from + 1, -1 do
    if s:sub(k, k) == " " then
      return k - 1, k + 1
    end
  end
  return stop - 1, stop
end

--- Wraps one line of safe prose at blanks. Rows of it never change when text is appended,
--- but for the last one: that is what makes streaming and whole text look the same.
--- @return string[] rows; the last one keeps its trailing blanks
function M.wrap(s, cols)
  local out, i = {}, 1
  cols = math.max(cols, 1)
  while true do
    local stop, next_start = break_at(s, i, cols)
    if not next_start then
      out[#out + 1] = s:sub(i)
      return out
    end
    out[#out + 1] = (s:sub(i, stop):gsub(" +$", ""))
    i = next_start
  end
end

--- Wraps prose with a hanging indent.
function M.wrap_indented(s, cols, indent)
  local first = M.wrap(s, cols)
  if #first == 1 then
    return first
  end
  local rest = s:sub(#first[1] + 1):gsub("^ +", "")
  local out = { first[1] }
  for _, row in ipairs(M.wrap(rest, math.max(cols - indent, 1))) do
    out[#out + 1] = (" "):rep(indent) .. row
  end
  return out
end

-- The last blank in s[i, stop) after which at least half of `cols` is used; nil: none.
local function blank_break(s, i, stop, cols)
  for k = stop - 1, i, -1 do
    if s:sub(k, k) == " " then
      return text.width(s:sub(i, k)) * 2 >= cols and k or nil
    end
  end
  return nil
end

--- Wraps one line of code; nothing is ever cut. A break at a blank ends in a muted `\` and
--- the next rows are indented by 4, a break inside a word in a muted `↩` with no indent.
--- @return table[] rows of spans
function M.wrap_code(s, cols, role)
  local out, i, indent = {}, 1, 0
  cols = math.max(cols, 8)
  while true do
    local pad, room = (" "):rep(indent), cols - indent
    if take(s, i, room) > #s then
      out[#out + 1] = { { pad .. s:sub(i), role } }
      return out
    end
    local stop = take(s, i, room - 1)
    local blank = blank_break(s, i, stop, room)
    if blank then
      out[#out + 1] = { { pad .. s:sub(i, blank), role }, { "\\", "muted" } }
      i, indent = blank + 1, 4
    else
      out[#out + 1] = { { pad .. s:sub(i, stop - 1), role }, { "↩", "muted" } }
      i, indent = stop, 0
    end
  end
end

--- Puts spans before each row: `first` before the first one, `other` before the rest.
function M.prefix(list, first, other)
  local out = {}
  for i, row in ipairs(list) do
    local lead = i == 1 and first or other
    local joined = {}
    for _, span in ipairs(lead) do
      joined[#joined + 1] = span
    end
    for _, span in ipairs(row) do
      joined[#joined + 1] = span
    end
    out[i] = joined
  end
  return out
end

--- Appends all of `more` to `list`.
function M.extend(list, more)
  table.move(more, 1, #more, #list + 1, list)
  return list
end

return M
