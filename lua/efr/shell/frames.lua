-- Frames of efr-worker, role `screen`: u32 length, u8 type, payload of at most 64 KiB.
--
-- Owns: bytes to fields and back. What comes was written by a process that hostile output may have
-- taken over, so everything is checked, and only the newest unfinished frame is kept.
-- Must not know: processes, shells. Pure. Loop thread of efrd.

local M = {}

M.MAX_BYTES = 65536 ---@type integer
local HEADER <const> = 5

---One frame as bytes. Raises above the limit.
---@param kind string  one byte
---@param payload string
---@return string
function M.encode(kind, payload)
  assert(#payload <= M.MAX_BYTES, "a frame is too long")
  return string.pack("<I4", #payload) .. kind .. payload
end

---@class efr.shell.Decoder
---@field _on_frame fun(kind: string, payload: string)
local Decoder = {}
Decoder.__index = Decoder

---@param on_frame fun(kind: string, payload: string)
---@return efr.shell.Decoder
function M.decoder(on_frame)
  return setmetatable({ _on_frame = on_frame, _parts = {}, _have = 0, _need = HEADER }, Decoder)
end

---Read the next bytes. nil: they are no frames, and nothing more can be read.
---@param bytes string
---@return true? ok
---@return string? err
function Decoder:feed(bytes)
  local parts = self._parts
  parts[#parts + 1] = bytes
  self._have = self._have + #bytes
  if self._have < self._need then return true end
  local text, pos = table.concat(parts), 1
  while #text - pos + 1 >= HEADER do
    local length = string.unpack("<I4", text, pos)
    if length > M.MAX_BYTES then return nil, "a frame is too long" end
    self._need = HEADER + length
    if #text - pos + 1 < self._need then break end
    local from = pos + HEADER
    pos = from + length
    self._need = HEADER
    self._on_frame(text:sub(from - 1, from - 1), text:sub(from, pos - 1))
  end
  self._parts, self._have = { text:sub(pos) }, #text - pos + 1
  return true
end

local FLAG_HIDDEN <const>, FLAG_ALTERNATE <const>, FLAG_KEYS <const> = 1, 2, 4
local FLAG_WRAPPED <const>, FLAG_HISTORY <const> = 1, 2
local FLAG_LOST <const>, FLAG_USED_ALTERNATE <const> = 1, 2

local parse = {}

function parse.P(payload)
  if #payload ~= 8 then return nil end
  return { consumed = string.unpack("<i8", payload) }
end

function parse.R(payload)
  if #payload > 256 then return nil end
  return { bytes = payload }
end

function parse.H(payload)
  if #payload < 13 then return nil end
  local id, cols, rows, row, col, flags, at = string.unpack("<I4I2I2I2I2B", payload)
  return {
    id = id, cols = cols, rows = rows, row = row, col = col, title = payload:sub(at),
    hidden = flags & FLAG_HIDDEN ~= 0, alternate = flags & FLAG_ALTERNATE ~= 0,
    application_keys = flags & FLAG_KEYS ~= 0,
  }
end

function parse.L(payload)
  if #payload < 5 then return nil end
  local id, flags, at = string.unpack("<I4B", payload)
  return {
    id = id, wrapped = flags & FLAG_WRAPPED ~= 0, history = flags & FLAG_HISTORY ~= 0,
    runs = payload:sub(at),
  }
end

function parse.Z(payload)
  if #payload ~= 4 then return nil end
  return { id = string.unpack("<I4", payload) }
end

function parse.T(payload)
  if #payload < 4 then return nil end
  return { id = string.unpack("<I4", payload), text = payload:sub(5) }
end

function parse.X(payload)
  if #payload ~= 5 then return nil end
  local id, flags = string.unpack("<I4B", payload)
  return {
    id = id, lost = flags & FLAG_LOST ~= 0, alternate = flags & FLAG_USED_ALTERNATE ~= 0,
  }
end

---The fields of a frame of the worker; nil: it is none.
---@param kind string
---@param payload string
---@return table?
function M.parse(kind, payload)
  local parser = parse[kind]
  return parser and parser(payload)
end

local function color(number)
  local kind = number >> 24
  if kind == 1 then return { indexed = number & 255 } end
  if kind == 2 then
    return { rgb = { number >> 16 & 255, number >> 8 & 255, number & 255 } }
  end
  return nil
end

-- The cells of one run; nil when they do not fill it exactly.
local function read_cells(cells, bytes, style)
  local pos = 1
  while pos <= #bytes do
    local head = bytes:byte(pos)
    local text = bytes:sub(pos + 1, pos + (head & 127))
    if #text == 0 or #text ~= head & 127 or not utf8.len(text) then return nil end
    local cell = { text = text, wide = head & 128 ~= 0 or nil }
    for name, value in pairs(style) do cell[name] = value end
    cells[#cells + 1] = cell
    pos = pos + 1 + #text
  end
  return true
end

---The cells of a row, as the screen types of the protocol name them; nil: the bytes are no row.
---@param runs string
---@return table[]? cells
function M.cells(runs)
  local cells, pos = {}, 1
  while pos <= #runs do
    if #runs - pos < 10 then return nil end
    local attrs, fg, bg, length, at = string.unpack("<BI4I4I2", runs, pos)
    local bytes = runs:sub(at, at + length - 1)
    local style = {
      fg = color(fg), bg = color(bg), bold = attrs & 1 ~= 0 or nil, italic = attrs & 2 ~= 0 or nil,
      underline = attrs & 4 ~= 0 or nil, inverse = attrs & 8 ~= 0 or nil,
    }
    if #bytes ~= length or not read_cells(cells, bytes, style) then return nil end
    pos = at + length
  end
  return cells
end

return M
