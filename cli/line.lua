-- One line that a person types without the terminal's help.
-- Owns: its characters, the few keys that edit it. Must not know: the terminal, what it is for.
-- Pure; runs in `efr`.
--
-- The line may be a password: it has a fixed size, is held as single characters and is dropped as
-- soon as it is sent; what is freed is overwritten (docs/adr/input-is-wiped.md).

local M = {}

M.MAX_BYTES = 1024 ---@type integer

--- @class efr.cli.line
local Line = {}
Line.__index = Line

--- An empty line.
--- @return efr.cli.line
function M.new()
  return setmetatable({ chars = {}, bytes = 0, state = "text", part = "" }, Line)
end

--- Drops everything.
function Line:clear()
  for i = 1, #self.chars do
    self.chars[i] = false
  end
  self.chars, self.bytes, self.state, self.part = {}, 0, "text", ""
end

--- What was typed. The caller drops it soon.
--- @return string
function Line:text()
  return table.concat(self.chars)
end

local function add(self, char)
  if self.bytes + #char <= M.MAX_BYTES then
    self.chars[#self.chars + 1] = char
    self.bytes = self.bytes + #char
  end
end

local function take_last(self)
  local last = table.remove(self.chars)
  self.bytes = self.bytes - #(last or "")
end

local function char_length(byte)
  return byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or byte >= 0xC0 and 2 or 1
end

-- A byte of a character of several; what is no UTF-8 is dropped.
local function add_part(self, byte)
  local char = string.char(byte)
  if byte >= 0xC0 then
    self.part = char
  elseif self.part ~= "" then
    self.part = self.part .. char
  end
  if self.part ~= "" and #self.part == char_length(self.part:byte()) then
    if utf8.len(self.part) then
      add(self, self.part)
    end
    self.part = ""
  end
end

local KEYS <const> = {
  [13] = function()
    return "enter"
  end,
  [127] = take_last,
  [21] = function(self)
    self.chars, self.bytes = {}, 0
  end,
  [27] = function(self)
    self.state = "escape"
  end,
}
KEYS[10], KEYS[8] = KEYS[13], KEYS[127]

-- Each state reads one byte. Sequences of function keys are skipped.
local states = {}

function states.text(self, byte)
  local key = KEYS[byte]
  if key then
    self.part = ""
    return key(self)
  elseif byte >= 0x80 then
    add_part(self, byte)
  elseif byte >= 0x20 then
    self.part = ""
    add(self, string.char(byte))
  end
end

function states.escape(self, byte)
  local introducer = byte == 91 or byte == 79 -- [ and O
  self.state = introducer and "sequence" or byte == 27 and "escape" or "text"
end

function states.sequence(self, byte)
  if byte >= 0x40 and byte <= 0x7E then
    self.state = "text"
  end
end

--- Takes typed bytes. What follows Enter is dropped.
--- @param bytes string
--- @return "enter"?
function Line:feed(bytes)
  for i = 1, #bytes do
    if states[self.state](self, bytes:byte(i)) == "enter" then
      return "enter"
    end
  end
  return nil
end

return M
