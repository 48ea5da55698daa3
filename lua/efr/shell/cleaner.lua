-- Terminal bytes as text, without a screen.
--
-- Owns: removing escape sequences and controls, carriage-return overprint, backspaces, invalid
-- UTF-8 (becomes U+FFFD), and what kind of output it is: whether it moves the cursor, sets a scroll
-- region, shows the alternate screen. What a program draws there becomes one note.
-- Must not know: PTYs, marks, calls. Pure. Loop thread of efrd.
--
-- Cursor movement other than CR, BS and erase-in-line is dropped here; output that moves is
-- replayed on a screen (shell/replay).

local M = {}

local FFFD <const> = "\u{FFFD}"
local MAX_LINE_BYTES <const> = 65536
local MAX_CELLS <const> = 16384
local MAX_CSI <const> = 256

---What stands for a full-screen program.
M.NOTE = "[a full-screen program ran here; its screen is not shown]\n"

-- Final bytes of sequences that move the cursor or lines, and the same of plain escapes.
local MOVES <const> = "[@A-HJLMPSTXZ`ade-gus]"
local ESCAPE_MOVES <const> = "[78DEMc]"
local ALTERNATE <const> = { ["47"] = true, ["1047"] = true, ["1049"] = true }

-- Proper prefixes of well-formed sequences, longest first.
local PREFIXES <const> = {
  "^\xF0[\x90-\xBF][\x80-\xBF]", "^[\xF1-\xF3][\x80-\xBF][\x80-\xBF]",
  "^\xF4[\x80-\x8F][\x80-\xBF]",
  "^\xE0[\xA0-\xBF]", "^[\xE1-\xEC\xEE\xEF][\x80-\xBF]", "^\xED[\x80-\x9F]",
  "^\xF0[\x90-\xBF]", "^[\xF1-\xF3][\x80-\xBF]", "^\xF4[\x80-\x8F]",
  "^[\xC2-\xDF]", "^[\xE0-\xEF]", "^[\xF0-\xF4]",
}

-- Length of the ill-formed piece at `pos`, and whether more bytes could still complete it.
local function broken_piece(bytes, pos)
  local piece = bytes:sub(pos, pos + 2)
  for _, prefix in ipairs(PREFIXES) do
    local _, size = piece:find(prefix)
    if size then return size, pos + size - 1 == #bytes end
  end
  return 1, false
end

-- Well-formed text of `bytes`, without C1 controls, and the incomplete sequence at the end.
local function decode(bytes)
  local rest, text = "", bytes
  local length, bad = utf8.len(bytes)
  if not length then
    local parts, pos = {}, 1
    while bad do
      parts[#parts + 1] = bytes:sub(pos, bad - 1)
      local size, incomplete = broken_piece(bytes, bad)
      pos = bad + size
      if incomplete then
        rest = bytes:sub(bad)
        break
      end
      parts[#parts + 1] = FFFD
      length, bad = utf8.len(bytes, pos)
      if length then parts[#parts + 1] = bytes:sub(pos) end
    end
    text = table.concat(parts)
  end
  if text:find("\xC2[\x80-\x9F]") then text = text:gsub("\xC2[\x80-\x9F]", "") end
  return text, rest
end

---Turns terminal bytes into text, piece by piece; may be split at any byte.
---@class efr.shell.Cleaner
---@field _emit fun(text: string)  finished text, in order
---@field _state string
---@field _partial string  incomplete UTF-8 at the end of the last piece
---@field _line string[]  the current line while it only grew
---@field _line_bytes integer
---@field _cells string[]?  the current line once something was printed over
---@field _col integer  0-based column of the next character; only in _cells mode
---@field moves boolean  the cursor moved otherwise than by printing
---@field region boolean  a scroll region was set
---@field full_screen boolean  the alternate screen was shown
---@field _alternate boolean  it is shown now
---@field _home boolean  a carriage return waits: the next text starts at column 0
local Cleaner = {}
Cleaner.__index = Cleaner

---@param emit fun(text: string)
---@return efr.shell.Cleaner
function M.new(emit)
  return setmetatable({
    _emit = emit, _state = "text", _partial = "", _csi = "",
    _line = {}, _line_bytes = 0, _cells = nil, _col = 0, _home = false,
    moves = false, region = false, full_screen = false, _alternate = false,
  }, Cleaner)
end

function Cleaner:_take_line()
  local text = table.concat(self._cells or self._line)
  self._line, self._line_bytes, self._cells, self._col, self._home = {}, 0, nil, 0, false
  return text
end

function Cleaner:_to_cells()
  if self._cells then return end
  local cells = {}
  for char in table.concat(self._line):gmatch(utf8.charpattern) do cells[#cells + 1] = char end
  self._cells, self._col, self._line, self._line_bytes = cells, #cells, {}, 0
end

-- The first text after a carriage return. A progress bar mostly covers its former self: then the
-- line is simply replaced.
function Cleaner:_overprint(text)
  self._home = false
  local old = table.concat(self._line)
  if utf8.len(text) >= utf8.len(old) then
    self._line, self._line_bytes = {}, 0
    return
  end
  self._line = { old }
  self:_to_cells()
  self._col = 0
end

-- Prints text without newlines at the cursor.
function Cleaner:_print(text)
  if text == "" then return end
  if self._home then self:_overprint(text) end
  if not self._cells then
    self._line[#self._line + 1] = text
    self._line_bytes = self._line_bytes + #text
    if self._line_bytes > MAX_LINE_BYTES then self._emit(self:_take_line()) end
    return
  end
  local cells, col = self._cells, self._col
  for char in text:gmatch(utf8.charpattern) do
    col = col + 1
    cells[col] = char
  end
  self._col = col
  if #cells > MAX_CELLS then self._emit(self:_take_line()) end
end

-- Text that may hold newlines and tabs and nothing else below a space.
function Cleaner:_text(text)
  if self._alternate then return end
  local first = text:find("\n", 1, true)
  if not first then return self:_print(text) end
  self:_print(text:sub(1, first - 1))
  local last = text:find("\n[^\n]*$")
  self._emit(self:_take_line() .. text:sub(first, last))
  self:_print(text:sub(last + 1))
end

-- Raw bytes between two controls; `final` when no byte can complete a sequence any more.
function Cleaner:_bytes(bytes, final)
  local text, rest = decode(self._partial .. bytes)
  if final and rest ~= "" then text, rest = text .. FFFD, "" end
  self._partial = rest
  self:_text(text)
end

local function erase_line(self, how)
  if how == "2" then
    self._line, self._line_bytes = {}, 0
    self._cells = nil
    return
  end
  if how ~= "" and how ~= "0" then return end
  if self._home then
    self._line, self._line_bytes, self._cells, self._col, self._home = {}, 0, nil, 0, false
  elseif self._cells then
    for i = #self._cells, self._col + 1, -1 do self._cells[i] = nil end
  end
end

local controls = {}

controls["\r"] = function(self)
  if self._alternate then return end
  if self._cells then self._col = 0 else self._home = true end
end

controls["\8"] = function(self)
  if self._home or self._alternate then return end
  self:_to_cells()
  self._col = math.max(0, self._col - 1)
end

controls["\27"] = function(self) self._state = "escape" end

local steps = {}

function steps.text(self, bytes, pos)
  -- Every control but tab and newline.
  local at = bytes:find("[\0-\8\11-\31\127]", pos)
  if not at then
    self:_bytes(bytes:sub(pos), false)
    return #bytes + 1
  end
  if at > pos or self._partial ~= "" then self:_bytes(bytes:sub(pos, at - 1), true) end
  local control = controls[bytes:sub(at, at)]
  if control then control(self) end
  return at + 1
end

function steps.escape(self, bytes, pos)
  local byte = bytes:sub(pos, pos)
  if byte == "[" then
    self._state, self._csi = "csi", ""
  elseif byte == "]" then
    self._state = "osc"
  elseif byte:find("[PX^_]") then
    self._state = "string"
  elseif byte:find("[ -/]") then
    self._state = "charset"
  elseif byte:find("[0-~]") then
    self._state = "text"
    if not self._alternate and byte:find(ESCAPE_MOVES) then self.moves = true end
  else
    self._state = "text"
    return pos
  end
  return pos + 1
end

-- ESC, intermediate bytes, one final byte.
function steps.charset(self, bytes, pos)
  local at = bytes:find("[^ -/]", pos)
  if not at then return #bytes + 1 end
  self._state = "text"
  return bytes:find("^[0-~]", at) and at + 1 or at
end

local function show_alternate(self, on)
  if on and not self.full_screen then
    self.full_screen = true
    local text = self:_take_line()
    self._emit((text == "" and "" or text .. "\n") .. M.NOTE)
  end
  self._alternate = on
end

-- A whole sequence: its parameters and its final byte.
local function end_csi(self, byte)
  local params = self._csi
  if byte == "h" or byte == "l" then
    for mode in (params:match("^%?([%d;]*)$") or ""):gmatch("%d+") do
      if ALTERNATE[mode] then show_alternate(self, byte == "h") end
    end
  end
  if self._alternate or params:find("^[<=>?]") then return end
  if byte == "K" and params:find("^%d*$") then
    erase_line(self, params)
  elseif byte == "r" then
    self.region = true
  elseif byte:find(MOVES) then
    self.moves = true
  end
end

function steps.csi(self, bytes, pos)
  local at = bytes:find("[^ -?]", pos)
  local stop = at and at - 1 or #bytes
  self._csi = (self._csi .. bytes:sub(pos, math.min(stop, pos + MAX_CSI))):sub(1, MAX_CSI)
  if not at then return #bytes + 1 end
  self._state = "text"
  local byte = bytes:sub(at, at)
  end_csi(self, byte)
  return byte:find("[@-~]") and at + 1 or at
end

local function skip_string(self, bytes, pos, set)
  local at = bytes:find(set, pos)
  if not at then return #bytes + 1 end
  self._state = bytes:sub(at, at) == "\27" and self._state .. "_escape" or "text"
  return at + 1
end

function steps.osc(self, bytes, pos)
  return skip_string(self, bytes, pos, "[\7\24\26\27]")
end

function steps.string(self, bytes, pos)
  return skip_string(self, bytes, pos, "[\24\26\27]")
end

-- ESC inside a string: a backslash ends it, a doubled ESC is payload, all else begins a sequence.
local function string_escape(self, bytes, pos, back)
  local byte = bytes:sub(pos, pos)
  if byte == "\\" then
    self._state = "text"
  elseif byte == "\27" then
    self._state = back
  else
    self._state = "escape"
    return pos
  end
  return pos + 1
end

function steps.osc_escape(self, bytes, pos)
  return string_escape(self, bytes, pos, "osc")
end

function steps.string_escape(self, bytes, pos)
  return string_escape(self, bytes, pos, "string")
end

---@param bytes string
function Cleaner:feed(bytes)
  local pos, last = 1, #bytes
  while pos <= last do
    pos = steps[self._state](self, bytes, pos)
  end
end

---The line that has not ended yet goes out; the cleaner is at its start again.
function Cleaner:finish()
  if self._partial ~= "" then self:_bytes("", true) end
  self._state = "text"
  local text = self:_take_line()
  if text ~= "" then self._emit(text) end
end

---Text of a whole piece of output. Pure.
---@param bytes string
---@return string
function M.clean(bytes)
  local parts = {}
  local cleaner = M.new(function(text) parts[#parts + 1] = text end)
  cleaner:feed(bytes)
  cleaner:finish()
  return table.concat(parts)
end

return M
