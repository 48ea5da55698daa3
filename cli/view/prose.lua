-- Streamed reply text as rows: complete rows are committed, the open one stays live.
-- Owns: the cut between both. Must not know: events, the terminal. Pure; runs in `efr`.
-- How the text arrived in pieces never changes what is committed.

local rows = require "efr.cli.view.rows"

local M = {}

local Prose = {}
Prose.__index = Prose

function M.new()
  return setmetatable({
    pos = 0, -- bytes of the block's text that were read
    line = "", -- safe text of the open line that is not committed
    open = false, -- rows of the open line were committed
    any = false, -- anything was committed
    blanks = 0, -- empty lines that show only if text follows
  }, Prose)
end

--- The length of a text without an incomplete UTF-8 sequence at its end.
function M.whole_length(s)
  local tail = s:sub(-4):match("[\xC0-\xFF][\x80-\xBF]*$")
  if not tail then
    return #s
  end
  local lead = tail:byte()
  local need = lead >= 0xF0 and 4 or lead >= 0xE0 and 3 or 2
  return #tail < need and #s - #tail or #s
end

function Prose:_emit(out, row)
  for _ = 1, self.blanks do
    out[#out + 1] = {}
  end
  self.blanks, self.any = 0, true
  out[#out + 1] = { { row } }
end

function Prose:_end_line(out, cols)
  local list = rows.wrap(self.line, cols)
  local last = table.remove(list):gsub(" +$", "")
  for _, row in ipairs(list) do
    self:_emit(out, row)
  end
  if last ~= "" then
    self:_emit(out, last)
  elseif not self.open and #list == 0 and self.any then
    self.blanks = self.blanks + 1
  end
  self.line, self.open = "", false
end

--- Reads what is new in a prose block.
--- @return table[] rows to commit
function Prose:feed(block, cols)
  local out = {}
  local stop = block.done and #block.text or M.whole_length(block.text)
  local chunk = block.text:sub(self.pos + 1, stop)
  self.pos = stop
  local from = 1
  while true do
    local newline = chunk:find("\n", from, true)
    self.line = self.line .. rows.safe(chunk:sub(from, (newline or 0) - 1))
    if not newline then
      break
    end
    self:_end_line(out, cols)
    from = newline + 1
  end
  local list = rows.wrap(self.line, cols)
  self.line = table.remove(list)
  for _, row in ipairs(list) do
    self:_emit(out, row)
    self.open = true
  end
  if block.done then
    self:_end_line(out, cols)
  end
  return out
end

--- Rows of the open line at the current width.
function Prose:live_rows(cols)
  local out = {}
  if self.line:find("[^ ]") then
    for _ = 1, self.blanks do
      out[#out + 1] = {}
    end
    for _, row in ipairs(rows.wrap(self.line, cols)) do
      out[#out + 1] = { { (row:gsub(" +$", "")) } }
    end
  end
  return out
end

return M
