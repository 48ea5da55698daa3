-- The screen of a hidden shell's terminal, as efrd tells it, on the user's own terminal.
-- Owns: the picture, and the bytes that draw what changed of it. Must not know: the wire, keys, the
-- descriptor. Pure; runs in `efr`.
--
-- Policy: what the program wrote never reaches the user's terminal. Only cells do, each with text
-- that is safe and as wide as the cell says; so no query is answered twice and no mode is left.

local rows = require "efr.cli.view.rows"

local M = {}

local SYNC_ON <const>, SYNC_OFF <const> = "\27[?2026h", "\27[?2026l"
local HIDE <const>, SHOW <const> = "\27[?25l", "\27[?25h"
local COLOUR_BASE <const> = { fg = 30, bg = 40 }

--- @class efr.cli.picture
--- @field size {cols: integer, rows: integer}?  nil before the first item
--- @field application_keys boolean?
local Picture = {}
Picture.__index = Picture

function M.new()
  return setmetatable({ rows = {}, stale = {} }, Picture)
end

local KEYS <const> = { "cursor", "alternate_screen", "application_keys", "title" }

--- Takes an item of pty.attach. False: it is none that a picture is made of.
--- @param item table
--- @return boolean
function Picture:item(item)
  local from = item.kind == "snapshot" and item.snapshot or item.kind == "screen" and item
  if type(from) ~= "table" or type(from.cursor) ~= "table" then
    return false
  end
  for _, name in ipairs(KEYS) do
    self[name] = from[name]
  end
  if item.kind == "snapshot" then
    self.size, self.rows, self.all = from.size, from.rows, true
    return true
  end
  for _, row in ipairs(from.changed or {}) do
    self.rows[row.row + 1], self.stale[row.row + 1] = row, true
  end
  return true
end

-- The text of a cell, exactly as wide as the cell.
local function text_of(cell)
  local wide = cell.wide and 2 or 1
  local text = rows.safe(cell.text)
  return rows.width(text) == wide and text or ("?"):rep(wide), wide
end

local function colour(codes, value, base)
  if type(value) ~= "table" then
    return
  elseif value.rgb then
    codes[#codes + 1] = ("%d;2;%d;%d;%d"):format(base + 8, table.unpack(value.rgb, 1, 3))
  elseif value.indexed < 8 then
    codes[#codes + 1] = ("%d"):format(base + value.indexed)
  elseif value.indexed < 16 then
    codes[#codes + 1] = ("%d"):format(base + 60 + value.indexed - 8)
  else
    codes[#codes + 1] = ("%d;5;%d"):format(base + 8, value.indexed)
  end
end

local ATTRIBUTES <const> = {
  { "bold", "1" }, { "italic", "3" }, { "underline", "4" }, { "inverse", "7" },
}

-- The SGR sequence of a cell.
local function style_of(cell)
  local codes = { "0" }
  for _, attribute in ipairs(ATTRIBUTES) do
    if cell[attribute[1]] then
      codes[#codes + 1] = attribute[2]
    end
  end
  colour(codes, cell.fg, COLOUR_BASE.fg)
  colour(codes, cell.bg, COLOUR_BASE.bg)
  return "\27[" .. table.concat(codes, ";") .. "m"
end

local function draw_row(row, cols)
  local parts, used, style = {}, 0, "\27[0m"
  for _, cell in ipairs(row.cells) do
    local text, wide = text_of(cell)
    if used + wide > cols then
      break
    end
    local wanted = style_of(cell)
    if wanted ~= style then
      parts[#parts + 1], style = wanted, wanted
    end
    parts[#parts + 1], used = text, used + wide
  end
  return table.concat(parts) .. "\27[0m" .. (used < cols and "\27[K" or "")
end

--- The bytes that draw what is new; everything with `all`. The picture begins at the top.
--- @param cols integer  of the user's terminal
--- @param lines integer  of it that the picture may use
--- @param all boolean?
--- @return string
function Picture:draw(cols, lines, all)
  if not self.size then
    return ""
  end
  local parts = { SYNC_ON, HIDE }
  all = all or self.all
  for at = 1, lines do
    if all or self.stale[at] then
      local row = self.rows[at]
      parts[#parts + 1] = ("\27[%d;1H%s"):format(at, row and draw_row(row, cols) or "\27[0m\27[K")
    end
  end
  self.stale, self.all = {}, false
  local row, col = self.cursor.row + 1, self.cursor.col + 1
  parts[#parts + 1] = ("\27[%d;%dH"):format(math.min(row, lines), math.min(col, cols))
  parts[#parts + 1] = self.cursor.hidden and "" or SHOW
  parts[#parts + 1] = SYNC_OFF
  return table.concat(parts)
end

--- The rows as safe text, without the empty ones at the end.
--- @return string[]
function Picture:lines()
  local out = {}
  for i, row in ipairs(self.rows) do
    local parts = {}
    for at, cell in ipairs(row.cells) do
      parts[at] = (text_of(cell))
    end
    out[i] = (table.concat(parts):gsub(" +$", ""))
  end
  while #out > 0 and out[#out] == "" do
    out[#out] = nil
  end
  return out
end

return M
