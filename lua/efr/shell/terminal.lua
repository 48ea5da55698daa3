-- One pseudo-terminal and all that follows its output: recording, screen, marks.
--
-- Owns: the order of the three, the start of a new screen after one died, which answers to
-- queries are typed, who watches, the size. Must not know: shells' phases, runs. Loop thread of
-- efrd.
--
-- Policy: each piece goes to the recording first, then to the screen's worker, then through the
-- scanner of marks. The scanner is Lua in efrd and not in the worker: so a worker that dies or lies
-- costs a screen, and never a mark, on which the end of a call rests.

local marks = require "efr.shell.marks"
local screen = require "efr.shell.screen"

local M = {}

-- Of one screen's answers to queries.
local REPLY_WINDOW_US <const>, REPLY_MAX <const> = 100000, 4096
-- CAN, a soft reset, the main screen, the cursor shown. For the screen alone: no recording has it.
local SCREEN_RESET <const> = "\24\27[!p\27[?1047l\27[?25h"
-- Above the screen of any person; the cells of a screen are memory.
local COLS_MAX <const>, ROWS_MAX <const> = 500, 300

---@class efr.shell.TerminalOptions
---@field ports table  pty, uv, sys, proc
---@field spawn efr.PtyOptions
---@field worker string?  path of efr-worker; nil: no screen
---@field recording efr.shell.Recording?
---@field warn fun(message: string)?
---@field on_bytes fun(bytes: string)  output without marks
---@field on_mark fun(mark: efr.shell.Mark)
---@field on_exit fun(code: integer, signal: integer)
---@field wants_reply fun(): boolean  whether the program that asks could read the answer

---@class efr.shell.Terminal
---@field pty efr.Pty
---@field cols integer
---@field rows integer
local Terminal = {}
Terminal.__index = Terminal

local function on_reply(self, bytes)
  local now = self._opts.ports.sys.mono_us()
  if now - self._window > REPLY_WINDOW_US then self._window, self._replied = now, 0 end
  self._replied = self._replied + #bytes
  if self._replied <= REPLY_MAX and self._opts.wants_reply() then self.pty:write(bytes) end
end

local function start_screen(self)
  local opts = self._opts
  local err
  self._screen, err = screen.start {
    ports = opts.ports, program = opts.worker, cols = self.cols, rows = self.rows,
    on_reply = function(bytes) on_reply(self, bytes) end,
    on_full = function(full) self.pty:pause(full) end,
    on_end = function(message) self:_warn("the screen of a terminal is gone: " .. message) end,
  }
  if not self._screen then self:_warn("start a screen: " .. err) end
end

function Terminal:_warn(message)
  if self._opts.warn then self._opts.warn(message) end
end

---The screen; nil when there is none.
---@return efr.shell.Screen?
function Terminal:screen()
  return self._screen and not self._screen.ended and self._screen or nil
end

---A new command begins: what a program that was killed left of modes is not the next one's. A new
---screen, empty, in the place of one that died.
function Terminal:ensure_screen()
  local live = self:screen()
  if live then
    live:feed(SCREEN_RESET)
  elseif self._opts.worker and not self._closed then
    start_screen(self)
  end
end

---Start a program on a new terminal.
---@param opts efr.shell.TerminalOptions
---@return efr.shell.Terminal?
---@return string? err
---@return string? code
function M.open(opts)
  local pty, err, code = opts.ports.pty.open(opts.spawn)
  if not pty then return nil, err, code end
  local self = setmetatable({
    _opts = opts, pty = pty, _window = 0, _replied = 0, _watchers = {}, _watched = 0, _seq = 0,
    cols = opts.spawn.cols, rows = opts.spawn.rows,
  }, Terminal)
  local scanner = marks.new { data = opts.on_bytes, mark = opts.on_mark }
  self:ensure_screen()
  if opts.recording then opts.recording:resize(opts.spawn.cols, opts.spawn.rows) end
  pty:on_data(function(bytes)
    if opts.recording then opts.recording:append(bytes) end
    if self._screen then self._screen:feed(bytes) end
    self._seq = self._seq + #bytes
    self:_tell("output", bytes)
    -- A mark may close the terminal in the middle of a piece.
    if not self._closed then scanner:feed(bytes) end
  end)
  pty:on_exit(opts.on_exit)
  return self
end

---How many bytes the terminal has shown: the offset in its recording.
---@return integer
function Terminal:seq()
  return self._seq
end

---The recording; nil when there is none.
---@return efr.shell.Recording?
function Terminal:recording()
  return self._opts.recording
end

function Terminal:_tell(kind, value)
  for _, fn in pairs(self._watchers) do fn(kind, value) end
end

---Watch the terminal: `fn` gets "output" and bytes, "resized" and {cols, rows}, at last "closed".
---@param fn fun(kind: string, value: any)
---@return fun() stop
function Terminal:watch(fn)
  local key = {}
  self._watchers[key], self._watched = fn, self._watched + 1
  return function()
    if self._watchers[key] then
      self._watchers[key], self._watched = nil, self._watched - 1
    end
  end
end

---Whether somebody watches.
---@return boolean
function Terminal:is_watched()
  return self._watched > 0
end

---Another size, within the limits; the recording has it before the program sees it.
---@param cols integer  at least 1
---@param rows integer  at least 1
---@return {cols: integer, rows: integer}? size  in force
---@return string? err
function Terminal:resize(cols, rows)
  if self._closed then return nil, "the terminal is closed" end
  cols, rows = math.min(cols, COLS_MAX), math.min(rows, ROWS_MAX)
  local size = { cols = cols, rows = rows }
  if cols == self.cols and rows == self.rows then return size end
  if self._opts.recording then self._opts.recording:resize(cols, rows) end
  local ok, err = self.pty:resize(cols, rows)
  if not ok then return nil, err end
  self.cols, self.rows = cols, rows
  if self._screen then self._screen:resize(cols, rows) end
  self:_tell("resized", size)
  return size
end

---The size that a program gets when nobody watches.
---@return {cols: integer, rows: integer}?
function Terminal:usual_size()
  return self:resize(self._opts.spawn.cols, self._opts.spawn.rows)
end

---Hang up.
function Terminal:close()
  if self._closed then return end
  self._closed = true
  self:_tell("closed")
  if self._screen then self._screen:close() end
  self.pty:close()
  if self._opts.recording then self._opts.recording:close() end
end

return M
