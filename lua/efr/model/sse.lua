-- Owns: the parser of server-sent events (text/event-stream, WHATWG rules).
-- Pure: bytes in, events out; it knows no provider and no connection. Runs in efrd, on the loop
-- thread.
--
-- Rules kept here: lines end with LF, CR or CR LF; one BOM at the start is dropped; a line that
-- starts with a colon is a comment; one blank after the field's colon is dropped; an event without
-- its final blank line is discarded. `id` and `retry` are read and ignored: no provider resumes a
-- stream. Bytes are kept as they came, so a character that is split between two reads arrives
-- whole. The work is linear in the bytes, however they are cut.

local M = {}

---Most bytes that one event may hold, and that one line may hold before it ends.
M.MAX_BYTES = 16 * 1024 * 1024 ---@type integer

local BOM <const> = "\xEF\xBB\xBF"

---@class efr.SseEvent
---@field event string  "message" when the stream named none
---@field data string

---@class efr.SseParser
local Parser = {}
Parser.__index = Parser

---A parser for one stream.
---@param opts? {max_bytes?: integer}
---@return efr.SseParser
function M.new(opts)
  return setmetatable({
    max_bytes = opts and opts.max_bytes or M.MAX_BYTES,
    pieces = {}, -- parts of the line that has not ended
    held = 0, -- their bytes
    data = {}, -- data lines of the open event
    size = 0, -- their bytes
    event = nil,
    started = false, -- the BOM was looked for
    head = "", -- at most two bytes that may begin a BOM
    skip_lf = false, -- the last byte was CR, so a LF now belongs to it
    failed = nil,
  }, Parser)
end

local function take_field(self, line)
  if line == "" then
    local data, event = self.data, self.event
    self.data, self.size, self.event = {}, 0, nil
    if #data == 0 then return nil end
    return { event = event or "message", data = table.concat(data, "\n") }
  end
  if line:byte(1) == 58 then return nil end
  local name, value = line, ""
  local colon = line:find(":", 1, true)
  if colon then
    name = line:sub(1, colon - 1)
    value = line:sub(line:byte(colon + 1) == 32 and colon + 2 or colon + 1)
  end
  if name == "data" then
    self.data[#self.data + 1] = value
    self.size = self.size + #value + 1
  elseif name == "event" then
    self.event = value ~= "" and value or nil
  end
  return nil
end

-- Ends a line with the bytes `tail` and adds the event that it completes to `out`.
local function end_line(self, tail, out)
  local line = tail
  if self.held > 0 then
    self.pieces[#self.pieces + 1] = tail
    line = table.concat(self.pieces)
    self.pieces, self.held = {}, 0
  end
  local event = take_field(self, line)
  if event then out[#out + 1] = event end
end

-- Drops one BOM at the start of the stream. Returns nil while the bytes so far could still become
-- one.
local function without_bom(self, bytes)
  if self.started then return bytes end
  bytes = self.head .. bytes
  if #bytes < #BOM and bytes == BOM:sub(1, #bytes) then
    self.head = bytes
    return nil
  end
  self.started, self.head = true, ""
  if bytes:sub(1, #BOM) == BOM then return bytes:sub(#BOM + 1) end
  return bytes
end

local function too_big(self)
  self.failed = ("an event of the stream is larger than %d bytes"):format(self.max_bytes)
  return nil, self.failed, "EFR_TOO_BIG"
end

---Takes the next bytes and returns the events that they complete.
---@param bytes string
---@return efr.SseEvent[]|nil events  nil after an event over the limit: the stream is over
---@return string? message
---@return string? code  "EFR_TOO_BIG"
function Parser:feed(bytes)
  if self.failed then return nil, self.failed, "EFR_TOO_BIG" end
  local out = {}
  bytes = without_bom(self, bytes)
  if not bytes or bytes == "" then return out end
  local from = 1
  if self.skip_lf then
    self.skip_lf = false
    if bytes:byte(1) == 10 then from = 2 end
  end
  while true do
    local at = bytes:find("[\r\n]", from)
    if not at then break end
    if self.size + self.held + (at - from) > self.max_bytes then return too_big(self) end
    end_line(self, bytes:sub(from, at - 1), out)
    from = at + 1
    if bytes:byte(at) == 13 then
      if from > #bytes then
        self.skip_lf = true
      elseif bytes:byte(from) == 10 then
        from = from + 1
      end
    end
  end
  if from <= #bytes then
    self.pieces[#self.pieces + 1] = bytes:sub(from)
    self.held = self.held + #bytes - from + 1
    if self.size + self.held > self.max_bytes then return too_big(self) end
  end
  return out
end

return M
