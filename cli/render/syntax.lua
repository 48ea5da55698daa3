-- The shapes of lines that begin a block (CommonMark 0.31, GitHub's tables and tasks).
-- Owns: how a line of markdown is recognized. Must not know: rendering, columns. Pure.
-- Lines come without their newline and without tabs.

local M = {}

local function trim(s)
  return (s:gsub("^ +", ""):gsub(" +$", ""))
end

--- Columns of blanks at the start.
function M.indent(line)
  return #line:match("^ *")
end

function M.is_blank(line)
  return not line:find("[^ ]")
end

--- An ATX heading.
--- @return integer? level, string? text
function M.heading(line)
  local marks, text = line:match("^ ? ? ?(#+)(.*)$")
  if not marks or #marks > 6 or not (text == "" or text:find("^ ")) then
    return nil
  end
  text = trim(text)
  local bare = text:gsub("#+$", "")
  if bare == "" or bare:sub(-1) == " " then
    text = bare:gsub(" +$", "")
  end
  return #marks, text
end

--- The underline of a setext heading.
--- @return integer? level
function M.underline(line)
  return line:find("^ ? ? ?=+ *$") and 1 or line:find("^ ? ? ?%-+ *$") and 2 or nil
end

--- A thematic break.
function M.is_rule(line)
  local marks = line:gsub(" ", "")
  return M.indent(line) < 4 and #marks >= 3
    and (marks:find("^%*+$") or marks:find("^%-+$") or marks:find("^_+$")) ~= nil
end

--- The start of a fenced block: {indent, char, length, info}.
--- @return table?
function M.fence(line)
  local indent, marks, info = line:match("^( *)([`~]+)(.*)$")
  if not indent or #indent > 3 or #marks < 3 or marks:find("`~", 1, true)
    or marks:find("~`", 1, true) then
    return nil
  end
  local char = marks:sub(1, 1)
  if char == "`" and info:find("`", 1, true) then
    return nil
  end
  return { indent = #indent, char = char, length = #marks, info = trim(info) }
end

--- Whether the line ends that block.
function M.closes(fence, line)
  local marks = line:match("^ ? ? ?(%" .. fence.char .. "+) *$")
  return marks ~= nil and #marks >= fence.length
end

--- The line inside a quote; nil: it has no quote mark.
function M.quoted(line)
  return line:match("^ ? ? ?> ?(.*)$")
end

--- A list item: {indent, width, marker = "-"|"*"|"+"|"."|")", number?, text}. width: the columns
--- from the start of the line to the item's own text.
--- @return table?
function M.item(line)
  local blanks, marker, rest = line:match("^( *)([-*+])(.*)$")
  local number
  if not blanks then
    blanks, number, marker, rest = line:match("^( *)(%d%d?%d?%d?%d?%d?%d?%d?%d?)([.)])(.*)$")
  end
  if not blanks or not (rest == "" or rest:sub(1, 1) == " ") or M.is_rule(line) then
    return nil
  end
  local mark = #blanks + #(number or "") + 1
  local pad = #rest:match("^ *")
  if pad == #rest or pad > 4 then
    pad = 1 -- an empty item, or indented code in the item
  end
  return {
    indent = #blanks, width = mark + pad, marker = marker, number = tonumber(number),
    text = rest:sub(pad + 1),
  }
end

-- The piece of a table's line at byte i: text, nil at a pipe that ends a cell; the byte after it;
-- the run of backticks that is open then.
local function piece(body, i, ticks)
  local special = body:find("[\\`|]", i) or #body + 1
  if special > i then
    return body:sub(i, special - 1), special, ticks
  end
  local c = body:sub(i, i)
  if c == "\\" then
    local after = body:sub(i + 1, i + 1)
    return after == "|" and "|" or c .. after, i + 2, ticks
  elseif c == "`" then
    local run = body:match("^`+", i)
    return run, i + #run, not ticks and run or ticks ~= run and ticks or nil
  end
  return ticks and c, i + 1, ticks
end

--- The cells of a table's line, split at pipes that no backslash and no code span holds.
--- @return string[]
function M.cells(line)
  local out, cell, ticks, i = {}, {}, nil, 1
  local body = trim(line):gsub("^|", "")
  local text
  while i <= #body do
    text, i, ticks = piece(body, i, ticks)
    if text then
      cell[#cell + 1] = text
    else
      out[#out + 1] = trim(table.concat(cell))
      cell = {}
    end
  end
  if #cell > 0 or body:sub(-1) ~= "|" then
    out[#out + 1] = trim(table.concat(cell))
  end
  return out
end

--- The alignments of a table's delimiter row: a list of "left", "right", "center".
--- @return string[]?
function M.delimiters(line)
  if not line:find("^[ |:%-]+$") or not line:find("-", 1, true) or M.indent(line) > 3 then
    return nil
  end
  local out = {}
  for i, cell in ipairs(M.cells(line)) do
    local left, right = cell:match("^(:?)%-+(:?)$")
    if not left then
      return nil
    end
    out[i] = right == "" and "left" or left == "" and "right" or "center"
  end
  return #out > 0 and out or nil
end

local BLOCK_TAGS <const> = {}
for name in ([[
  address article aside blockquote body caption center col colgroup dd details dialog dir div dl dt
  fieldset figcaption figure footer form frame h1 h2 h3 h4 h5 h6 head header hr html iframe legend
  li link main menu nav ol optgroup option p param pre script search section style summary table
  tbody td textarea tfoot th thead title tr track ul]]):gmatch("%w+")
do
  BLOCK_TAGS[name] = true
end

--- A line that begins a block of HTML: a comment, a tag of a block, or nothing but one tag.
function M.is_html(line)
  if line:find("^ ? ? ?<!%-%-") or line:find("^ ? ? ?</?%a[^<>]*> *$") then
    return true
  end
  local name = line:match("^ ? ? ?</?(%a%w*)%f[^%w-]")
  return name ~= nil and BLOCK_TAGS[name:lower()] == true
end

return M
