-- The output of one command: what is kept of it, and its text by the cleaner.
--
-- Owns: the bound on memory. The first and the last half MiB of text are kept, the middle is told
-- as "[... N bytes omitted ...]"; of the raw bytes that a replay needs, the first half MiB and the
-- last MiB.
-- Must not know: PTYs, marks, calls, screens. Pure. Loop thread of efrd.

local cleaner = require "efr.shell.cleaner"
local ring = require "efr.shell.ring"

local M = {}

local MIB <const> = 1024 * 1024
local TAIL_RAW <const> = 16384

M.NOTE = cleaner.NOTE
M.clean = cleaner.clean

-- Cuts at a character boundary.
local function first_bytes(text, count)
  if #text <= count then return text end
  while count > 0 and text:find("^[\x80-\xBF]", count + 1) do count = count - 1 end
  return text:sub(1, count)
end

---The last bytes of a text, cut at a character boundary.
---@param text string
---@param count integer
---@return string
function M.last_bytes(text, count)
  if #text <= count then return text end
  local from = #text - count + 1
  while from <= #text and text:find("^[\x80-\xBF]", from) do from = from + 1 end
  return text:sub(from)
end

---Collects the output of one command. The head is cleaned as it comes; once it is full, the raw
---bytes of the tail wait in a ring and are cleaned at the end, so a flood costs almost nothing.
---@class efr.shell.Output
---@field total_bytes integer  raw bytes fed so far
---@field _cleaned integer  raw bytes that the head was made of
local Output = {}
Output.__index = Output

---@class efr.shell.OutputOptions
---@field limit_bytes integer?  default 1 MiB: half for the head, half for the tail

---@param opts efr.shell.OutputOptions?
---@return efr.shell.Output
function M.new(opts)
  local half = ((opts and opts.limit_bytes) or MIB) // 2
  local self = setmetatable({
    total_bytes = 0, _half = half, _head = {}, _head_bytes = 0, _cleaned = 0,
    _raw = {}, _raw_bytes = 0, _tail = ring.new(2 * half), _recent = ring.new(TAIL_RAW),
  }, Output)
  self._cleaner = cleaner.new(function(text)
    self._head[#self._head + 1] = text
    self._head_bytes = self._head_bytes + #text
    if #self._head > 512 then self._head = { table.concat(self._head) } end
  end)
  return self
end

-- The first raw bytes; returns what did not fit.
local function keep_head(self, bytes)
  local room = self._half - self._raw_bytes
  if room <= 0 then return bytes end
  local part = bytes:sub(1, room)
  self._raw[#self._raw + 1] = part
  self._raw_bytes = self._raw_bytes + #part
  if #self._raw > 512 then self._raw = { table.concat(self._raw) } end
  return bytes:sub(room + 1)
end

---@param bytes string
function Output:feed(bytes)
  if bytes == "" then return end
  self.total_bytes = self.total_bytes + #bytes
  self._recent:push(bytes)
  if self._head_bytes < self._half then
    self._cleaner:feed(bytes)
    self._cleaned = self.total_bytes
  end
  local rest = keep_head(self, bytes)
  if rest ~= "" then self._tail:push(rest) end
end

---Whether the text needs a replay: the cursor moved, and no scroll region was set.
---@return boolean
function Output:moves()
  return self._cleaner.moves and not self._cleaner.region
end

---Whether a program used the alternate screen.
---@return boolean
function Output:full_screen()
  return self._cleaner.full_screen
end

---The newest raw bytes, at most 16 KiB, from the start of a line where one is known.
---@return string
function Output:recent()
  local recent = self._recent:text()
  if #recent < self.total_bytes then recent = recent:match("\n(.*)$") or recent end
  return recent
end

---Text of the newest output, at most `count` bytes.
---@param count integer
---@return string
function Output:tail(count)
  return M.last_bytes(M.clean(self:recent()), count)
end

-- Raw bytes from an offset on, and the offset where they begin: those in between are gone.
local function raw_from(self, offset)
  local head, tail, gone = table.concat(self._raw), self._tail:text(), self._tail.dropped
  local start = #head + gone
  if gone == 0 and offset < #head then return head:sub(offset + 1) .. tail, offset end
  if offset <= start then return tail, start end
  return tail:sub(offset - start + 1), offset
end

---The raw bytes for a replay: all, or the first and the last with the count of those between.
---@return string head
---@return string? tail
---@return integer? omitted
function Output:raw()
  local head, tail = table.concat(self._raw), self._tail:text()
  if self._tail.dropped == 0 then return head .. tail end
  local start = (tail:find("\n", 1, true) or 0) + 1
  return head, tail:sub(start), self._tail.dropped + start - 1
end

local function with_note(head, tail, omitted)
  local note = ("[... %d bytes omitted ...]"):format(math.max(omitted, 1))
  if head:sub(-1) ~= "\n" then head = head .. "\n" end
  return head .. note .. "\n" .. tail, true
end

---A text, or its head and tail, within the limit.
---@param head string
---@param tail string?
---@param omitted integer?  bytes between them
---@return string text
---@return boolean truncated
function Output:fit(head, tail, omitted)
  local half = self._half
  if not tail then
    if #head <= 2 * half then return head, false end
    tail, head = M.last_bytes(head, half), first_bytes(head, half)
    return with_note(head, tail, self.total_bytes - #head - #tail)
  end
  local first, last = first_bytes(head, half), M.last_bytes(tail, half)
  return with_note(first, last, omitted + #head - #first + #tail - #last)
end

---The whole output as text by the cleaner. Nothing may be fed afterwards.
---@return string text
---@return boolean truncated
function Output:finish()
  local rest, start = raw_from(self, self._cleaned)
  if start == self._cleaned then
    self._cleaner:feed(rest)
    self._cleaner:finish()
    return self:fit(table.concat(self._head))
  end
  self._cleaner:finish()
  local line = (rest:find("\n", 1, true) or 0) + 1
  return self:fit(table.concat(self._head), M.clean(rest:sub(line)),
    start - self._cleaned + line - 1)
end

return M
