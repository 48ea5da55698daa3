-- The last bytes of a stream.
--
-- Owns: pieces in order, at least as many bytes as wanted and at most one piece more.
-- Must not know: what the bytes are. Pure.

local M = {}

local PIECES_MAX <const> = 4096

---@class efr.shell.Ring
---@field bytes integer  kept
---@field dropped integer  gone at the front
local Ring = {}
Ring.__index = Ring

---@param max integer  bytes
---@return efr.shell.Ring
function M.new(max)
  return setmetatable({ bytes = 0, dropped = 0, _max = max, _pieces = {}, _first = 1 }, Ring)
end

---@param piece string
function Ring:push(piece)
  local pieces = self._pieces
  pieces[#pieces + 1] = piece
  self.bytes = self.bytes + #piece
  while self.bytes - #pieces[self._first] >= self._max do
    local gone = #pieces[self._first]
    self.bytes, self.dropped = self.bytes - gone, self.dropped + gone
    pieces[self._first] = false
    self._first = self._first + 1
  end
  if self._first > PIECES_MAX or #pieces - self._first > PIECES_MAX then
    -- Many small pieces become one, which is cut here: as the first it would never be dropped.
    local kept = table.concat(pieces, "", self._first)
    local gone = math.max(0, #kept - self._max)
    self._pieces, self._first = { kept:sub(gone + 1) }, 1
    self.bytes, self.dropped = #kept - gone, self.dropped + gone
  end
end

---@return string
function Ring:text()
  return table.concat(self._pieces, "", self._first)
end

return M
