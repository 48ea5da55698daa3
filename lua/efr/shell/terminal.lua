-- One pseudo-terminal and all that follows its output: recording, screen, marks.
--
-- Owns: the order of the three, the start of a new screen after one died, which answers to
-- queries are typed. Must not know: shells' phases, runs. Loop thread of efrd.
--
-- Policy: each piece goes to the recording first, then to the screen's worker, then through the
-- scanner of marks. The scanner is Lua in efrd and not in the worker: so a worker that dies or lies
-- costs a screen, and never a mark, on which the end of a call rests.

local marks = require "efr.shell.marks"
local screen = require "efr.shell.screen"

local M = {}

-- Of one screen's answers to queries.
local REPLY_WINDOW_US <const>, REPLY_MAX <const> = 100000, 4096

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
    ports = opts.ports, program = opts.worker, cols = opts.spawn.cols, rows = opts.spawn.rows,
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

---A new screen, empty, in the place of one that died.
function Terminal:ensure_screen()
  if self._opts.worker and not self._closed and not self:screen() then start_screen(self) end
end

---Start a program on a new terminal.
---@param opts efr.shell.TerminalOptions
---@return efr.shell.Terminal?
---@return string? err
---@return string? code
function M.open(opts)
  local pty, err, code = opts.ports.pty.open(opts.spawn)
  if not pty then return nil, err, code end
  local self = setmetatable({ _opts = opts, pty = pty, _window = 0, _replied = 0 }, Terminal)
  local scanner = marks.new { data = opts.on_bytes, mark = opts.on_mark }
  self:ensure_screen()
  if opts.recording then opts.recording:resize(opts.spawn.cols, opts.spawn.rows) end
  pty:on_data(function(bytes)
    if opts.recording then opts.recording:append(bytes) end
    if self._screen then self._screen:feed(bytes) end
    -- A mark may close the terminal in the middle of a piece.
    if not self._closed then scanner:feed(bytes) end
  end)
  pty:on_exit(opts.on_exit)
  return self
end

---Hang up.
function Terminal:close()
  if self._closed then return end
  self._closed = true
  if self._screen then self._screen:close() end
  self.pty:close()
  if self._opts.recording then self._opts.recording:close() end
end

return M
