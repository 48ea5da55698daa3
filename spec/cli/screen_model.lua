-- A small terminal for the specs: rows of text, a cursor, the few sequences that efr writes.
-- Anything else is an error, so a frame cannot smuggle a sequence.

local text = require "efr.text"

local M = {}

local Model = {}
Model.__index = Model

function M.new(cols)
  return setmetatable({ cols = cols, rows = { "" }, widths = {}, row = 1, col = 0 }, Model)
end

-- Puts one cluster at the cursor; the row after a full one starts at the next character.
function Model:_put(cluster)
  local width = text.width(cluster)
  if self.col + width > self.cols then
    self:_newline()
    self.col = 0
  end
  local line = self.rows[self.row]
  local held = self.widths[line] or text.width(line)
  assert(held == self.col, "text is only written at the end of a row")
  self.widths[line] = nil
  line = line .. cluster
  self.rows[self.row], self.widths[line] = line, held + width
  self.col = self.col + width
end

function Model:_newline()
  self.row = self.row + 1
  self.rows[self.row] = self.rows[self.row] or ""
end

local CSI = {}

function CSI.A(self, n)
  self.row = math.max(1, self.row - n)
end

function CSI.B(self, n)
  self.row = math.min(#self.rows, self.row + n)
end

function CSI.J(self)
  assert(self.col == 0)
  for i = #self.rows, self.row, -1 do
    self.rows[i] = nil
  end
  self.rows[self.row] = ""
end

function CSI.K(self)
  self.rows[self.row] = ""
end

function CSI.m() end

local MODE <const> = { ["?25h"] = false, ["?25l"] = true }

function Model:write(bytes)
  local i = 1
  while i <= #bytes do
    local c = bytes:sub(i, i)
    local args, final = bytes:match("^\27%[([%d;]*)(%a)", i)
    local mode = bytes:match("^\27%[(%?%d+[hl])", i)
    if c == "\r" then
      self.col, i = 0, i + 1
    elseif c == "\n" then
      self:_newline()
      i = i + 1
    elseif mode then
      if MODE[mode] ~= nil then
        self.hidden = MODE[mode]
      end
      i = i + 2 + #mode
    elseif final then
      assert(CSI[final], "unknown sequence")(self, tonumber(args) or 1)
      i = i + 3 + #args
    else
      assert(c:byte() >= 32, ("control character %d"):format(c:byte()))
      local j = text.next_grapheme(bytes, i)
      self:_put(bytes:sub(i, j - 1))
      i = j
    end
  end
end

--- A terminal that does not reflow becomes narrower: long rows are cut into several.
function Model:shrink(cols)
  local rows, at = {}, 1
  for i, line in ipairs(self.rows) do
    if i == self.row then
      at = #rows
    end
    repeat
      local cut = math.min(#line, cols)
      rows[#rows + 1] = line:sub(1, cut)
      line = line:sub(cut + 1)
    until line == ""
    if i == self.row then
      at = #rows
    end
  end
  self.rows, self.cols, self.row = rows, cols, at
  self.col = #rows[at]
end

return M
