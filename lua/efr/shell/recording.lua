-- The recording of one terminal: every byte of its output, in segments of 8 MiB.
--
-- Owns: the files below recordings/<pty_id>/ and their rows. Must not know: what the bytes mean.
-- Loop thread of efrd: each append is one write to the page cache, and nothing waits for the disk.
--
-- A chunk is "efr", its type, u32 length, i64 time in microseconds, then the payload (at most
-- 64 KiB); little-endian. A segment is named by the stream offset of its first byte; only output
-- counts. A write that fails costs what it held: the next segment starts behind the gap.

local M = {}

local TYPE_OUTPUT <const>, TYPE_RESIZE <const> = 1, 2
local HEADER_BYTES <const> = 16
local PAYLOAD_MAX <const> = 65536
local SEGMENT_BYTES <const> = 8 << 20
local RETRY_US <const> = 1000000
local PRIVATE_DIR <const>, PRIVATE_FILE <const> = 448, 384

---@class efr.shell.Chunk
---@field type integer  1 = output, 2 = resize
---@field time_us integer
---@field payload string

---@param kind integer
---@param payload string
---@param time_us integer
---@return string header
function M.header(kind, payload, time_us)
  return "efr" .. string.pack("<BI4i8", kind, #payload, time_us)
end

---The chunks of a segment, and how many of its bytes they fill; what follows is a torn tail. Pure.
---@param bytes string
---@return efr.shell.Chunk[]? chunks  nil: damaged
---@return integer|string valid  or what is wrong
function M.chunks(bytes)
  local chunks, pos = {}, 1
  while #bytes - pos + 1 >= HEADER_BYTES do
    local magic, kind, length, time = string.unpack("<c3BI4i8", bytes, pos)
    if magic ~= "efr" or kind < TYPE_OUTPUT or kind > TYPE_RESIZE or length > PAYLOAD_MAX then
      if bytes:find("^\0+$", pos) then break end
      return nil, ("no chunk at byte %d"):format(pos - 1)
    end
    local stop = pos + HEADER_BYTES + length
    if stop - 1 > #bytes then break end
    chunks[#chunks + 1] =
      { type = kind, time_us = time, payload = bytes:sub(pos + HEADER_BYTES, stop - 1) }
    pos = stop
  end
  return chunks, pos - 1
end

---@class efr.shell.RecordingOptions
---@field ports table  uv, fs, sys
---@field dir string  recordings in the data root
---@field pty_id string
---@field write fun(statement: table)?  a row for the database
---@field warn fun(message: string)?

---@class efr.shell.Recording
---@field seq integer  stream offset: output bytes so far, those that were lost too
local Recording = {}
Recording.__index = Recording

local function row(self, ...)
  if self._opts.write then self._opts.write { ... } end
end

local function relative(self, start)
  return ("%s/%d.rec"):format(self._opts.pty_id, start)
end

local function failed(self, err)
  if self._opts.warn and not self._warned then
    self._opts.warn(("recording of a terminal: %s"):format(err))
  end
  self._warned = true
  self._retry_at = self._opts.ports.sys.mono_us() + RETRY_US
end

local function open_file(self, start)
  local uv = self._opts.ports.uv
  local fd, err = uv.fs_open(("%s/%s"):format(self._opts.dir, relative(self, start)), "a+",
    PRIVATE_FILE)
  if not fd then
    failed(self, err)
    return nil
  end
  return fd
end

-- A new segment at the stream's end.
local function start_segment(self)
  if self._retry_at and self._opts.ports.sys.mono_us() < self._retry_at then return nil end
  local start = self.seq
  local fd = open_file(self, start)
  if not fd then return nil end
  self._fd, self._start, self._file_bytes, self._retry_at, self._warned = fd, start, 0, nil, nil
  row(self, "INSERT OR IGNORE INTO recording_segments (pty_id, start_seq, path, bytes, started_at)"
    .. " VALUES (?, ?, ?, 0, ?)",
    { self._opts.pty_id, start, relative(self, start), self._opts.ports.sys.now_us() })
  return fd
end

local function end_segment(self)
  local fd = self._fd
  if not fd then return end
  self._fd = nil
  self._opts.ports.uv.fs_close(fd)
  row(self, "UPDATE recording_segments SET bytes = ?, closed_at = ?"
    .. " WHERE pty_id = ? AND start_seq = ?",
    { self.seq - self._start, self._opts.ports.sys.now_us(), self._opts.pty_id, self._start })
end

-- The newest segment of a terminal that was recorded before: its torn tail is cut.
local function resume(self)
  local fs, uv = self._opts.ports.fs, self._opts.ports.uv
  local folder = self._opts.dir .. "/" .. self._opts.pty_id
  local newest
  for _, entry in ipairs(fs.readdir(folder) or {}) do
    local start = math.tointeger(tonumber(entry.name:match("^(%d+)%.rec$")))
    if start and (not newest or start > newest) then newest = start end
  end
  if not newest then return true end
  local path = ("%s/%d.rec"):format(folder, newest)
  local bytes, err = fs.read_file(path)
  if not bytes then return nil, err end
  local chunks, valid = M.chunks(bytes)
  if not chunks then return nil, ("%s: %s"):format(path, valid) end
  self._fd = open_file(self, newest)
  if not self._fd then return nil, path .. ": cannot be opened" end
  if valid < #bytes then uv.fs_ftruncate(self._fd, valid) end
  self._start, self._file_bytes, self.seq = newest, valid, newest
  for _, chunk in ipairs(chunks) do
    if chunk.type == TYPE_OUTPUT then self.seq = self.seq + #chunk.payload end
  end
  return true
end

---Start a recording, or go on with the one that is there.
---@param opts efr.shell.RecordingOptions
---@return efr.shell.Recording?
---@return string? err
function M.new(opts)
  local self = setmetatable({ _opts = opts, seq = 0 }, Recording)
  local ok, err = opts.ports.fs.mkdirs(opts.dir .. "/" .. opts.pty_id, PRIVATE_DIR)
  if ok then ok, err = resume(self) end
  if not ok then return nil, err end
  return self
end

local function write_chunk(self, kind, payload)
  local fd = self._fd or start_segment(self)
  if not fd then return end
  local uv = self._opts.ports.uv
  local header = M.header(kind, payload, self._opts.ports.sys.now_us())
  local written, err = uv.fs_write(fd, { header, payload })
  local size = HEADER_BYTES + #payload
  if written == size then
    self._file_bytes = self._file_bytes + size
    return true
  end
  uv.fs_ftruncate(fd, self._file_bytes)
  end_segment(self)
  failed(self, err or "the disk is full")
end

---The next output.
---@param bytes string  at most 64 KiB
function Recording:append(bytes)
  if self._closed then return end
  write_chunk(self, TYPE_OUTPUT, bytes)
  self.seq = self.seq + #bytes
  if self._fd and self._file_bytes >= SEGMENT_BYTES then end_segment(self) end
end

---@param cols integer
---@param rows integer
function Recording:resize(cols, rows)
  if not self._closed then write_chunk(self, TYPE_RESIZE, string.pack("<I2I2", cols, rows)) end
end

-- The offsets at which segments begin, in order.
local function segment_starts(self, folder)
  local starts = {}
  for _, entry in ipairs(self._opts.ports.fs.readdir(folder) or {}) do
    starts[#starts + 1] = math.tointeger(tonumber(entry.name:match("^(%d+)%.rec$")))
  end
  table.sort(starts)
  return starts
end

-- The output in a segment's bytes; nil: damaged.
local function output_of(bytes)
  local chunks, parts = M.chunks(bytes), {}
  for _, chunk in ipairs(chunks or {}) do
    if chunk.type == TYPE_OUTPUT then parts[#parts + 1] = chunk.payload end
  end
  return chunks and table.concat(parts)
end

---The output from an offset to the end. Reads files; for little that is near the end.
---@param from integer
---@return string? bytes  nil: a part of it was not kept
function Recording:since(from)
  if from == self.seq then return "" end
  local folder = self._opts.dir .. "/" .. self._opts.pty_id
  local starts = segment_starts(self, folder)
  local parts, at = {}, nil
  for i, start in ipairs(starts) do
    if not starts[i + 1] or starts[i + 1] > from then
      local bytes = self._opts.ports.fs.read_file(("%s/%d.rec"):format(folder, start))
      local output = bytes and output_of(bytes)
      if not output or (at and at ~= start) then return nil end
      parts[#parts + 1], at = output, start + #output
    end
  end
  local all = table.concat(parts)
  if at ~= self.seq or self.seq - from > #all then return nil end
  return all:sub(#all - (self.seq - from) + 1)
end

function Recording:close()
  self._closed = true
  end_segment(self)
end

return M
