-- Frames: the bytes that bring the terminal from the last picture to the next one.
-- Owns: the live zone and the cursor. Must not know: what the rows mean, the descriptor.
-- Pure: returns strings. Runs in `efr`.

local rows = require "efr.cli.view.rows"

local M = {}

local SYNC_ON <const>, SYNC_OFF <const> = "\27[?2026h", "\27[?2026l"
local HIDE <const>, SHOW <const> = "\27[?25l", "\27[?25h"

local Live = {}
Live.__index = Live

--- @param style efr.cli.style
function M.new(style)
  return setmetatable({ style = style, zone = {}, widths = {}, cols = 0, hidden = false }, Live)
end

local function up(count)
  return count > 0 and ("\27[%dA"):format(count) or ""
end

-- Screen rows that the live zone takes at a width (a narrower screen wraps its rows).
local function height(widths, cols)
  local total = 0
  for _, width in ipairs(widths) do
    total = total + math.max(1, (width + cols - 1) // cols)
  end
  return total
end

-- Erases the live zone; the cursor ends where its first row was.
function Live:_erase(cols)
  if #self.zone == 0 then
    return ""
  end
  return "\r" .. up(height(self.widths, cols) - 1) .. "\27[J"
end

-- Only rows that differ are written, in place. nil: the zone has another shape.
function Live:_patch(zone, cols)
  if #zone ~= #self.zone or cols ~= self.cols or #zone == 0 then
    return nil
  end
  local parts = {}
  for i, bytes in ipairs(zone) do
    if bytes ~= self.zone[i] then
      local distance = #zone - i
      parts[#parts + 1] = "\r" .. up(distance) .. "\27[2K" .. bytes
      if distance > 0 then
        parts[#parts + 1] = ("\27[%dB"):format(distance)
      end
    end
  end
  return table.concat(parts)
end

function Live:_remember(list, zone, cols)
  self.zone, self.cols, self.widths = zone, cols, {}
  for i, row in ipairs(list) do
    self.widths[i] = rows.row_width(row)
  end
end

--- The bytes of the next frame; an empty string when nothing changed.
--- @param commit table[] rows that go to the scrollback
--- @param list table[] rows of the live zone
--- @param size {cols: integer, lines: integer}
function Live:frame(commit, list, size)
  local room = math.max(size.lines - 1, 1)
  if #list > room then
    list = table.move(list, #list - room + 1, #list, 1, {})
  end
  local zone, cut = {}, {}
  for i, row in ipairs(list) do
    cut[i] = rows.cut_row(row, size.cols) -- a row of the zone is one row of the screen
    zone[i] = self.style:row(cut[i])
  end
  list = cut
  local body = #commit == 0 and self:_patch(zone, size.cols)
  if not body then
    local parts = { self:_erase(size.cols) }
    for _, row in ipairs(commit) do
      parts[#parts + 1] = self.style:row(row) .. "\r\n"
    end
    parts[#parts + 1] = table.concat(zone, "\r\n")
    body = table.concat(parts)
  end
  self:_remember(list, zone, size.cols)
  if body == "" then
    return ""
  end
  local hide = self.hidden and "" or HIDE
  self.hidden = true
  return SYNC_ON .. hide .. body .. SYNC_OFF
end

--- What leaves the terminal clean when the process dies now.
function Live:farewell(cols)
  return self:_erase(cols) .. (self.hidden and SHOW or "")
end

--- Removes the live zone and shows the cursor.
function Live:finish(cols)
  local bytes = self:farewell(cols)
  self.zone, self.widths, self.hidden = {}, {}, false
  return bytes
end

--- Forgets the live zone: the next frame starts below whatever stands on the screen now.
function Live:forget()
  self.zone, self.widths, self.hidden = {}, {}, false
end

return M
