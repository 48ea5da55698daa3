-- The user's terminal joined to the hidden shell's: the program's screen, and keys for it.
-- Owns: the modes of the user's terminal meanwhile, the way back, the last row, the size. Must not
-- know: what runs, rows of the turn view. Loop thread of `efr`; run waits in a task.
--
-- Policy: Ctrl+\ always leaves, whatever the program and efrd do. Keys are sent one message after
-- another; of a paste that efrd does not take in time the rest is dropped. However efr ends, the
-- terminal is as it was.

local async = require "efr.util.async"
local picture = require "efr.cli.view.picture"
local rows = require "efr.cli.view.rows"
local text = require "efr.util.text"

local M = {}

local ENTER <const> = "\27[?1049h\27[2J\27[H"
local LEAVE <const> = "\27[0m\27[?25h\27[?1049l"
local LEAVE_KEY <const>, CTRL_C <const> = "\28", "\3"
local PENDING_MAX <const> = 262144
local MESSAGE_MAX <const> = 16384

local Attach = {}
Attach.__index = Attach

-- Rows of the user's terminal that the program gets: all but the last.
local function size(self)
  local cols, lines = self.tty.size(1)
  self.cols, self.lines = cols or 80, math.max((lines or 24) - 1, 1)
end

function Attach:_draw(all)
  local bytes = self.picture:draw(self.cols, self.lines, all)
  if all then
    local bar = rows.cut(self.words, self.cols)
    bar = bar .. (" "):rep(self.cols - rows.width(bar))
    bytes = ("\27[?25l\27[%d;1H\27[0;7m%s\27[0m"):format(self.lines + 1, bar) .. bytes
  end
  if not self.tty.write(1, bytes) then
    self.done:set("left")
  end
end

function Attach:_resize()
  size(self)
  async.spawn(function()
    self.link:call("pty.resize", {
      pty_id = self.pty_id, size = { cols = self.cols, rows = self.lines },
    })
  end)
  self:_draw(true)
end

-- Sends what was typed, one message at a time.
function Attach:_send()
  if self.sending then
    return
  end
  self.sending = true
  async.spawn(function()
    while self.pending ~= "" and not self.done.done do
      local bytes = self.pending:sub(1, MESSAGE_MAX)
      local _, _, code, data =
        self.link:call("pty.write", { pty_id = self.pty_id, data = text.base64(bytes) })
      -- Busy: the program does not read; the rest waits here. Any other refusal: nobody reads.
      local sent = code == "busy" and type(data) == "table" and data.written or #bytes
      self.pending = self.pending:sub(sent + 1)
    end
    self.sending = false
  end)
end

function Attach:_typed(bytes)
  local at = bytes:find(LEAVE_KEY, 1, true)
  local keys = at and bytes:sub(1, at - 1) or bytes
  if not self.takes_keys then
    if keys:find(CTRL_C, 1, true) then
      self.on_interrupt()
    end
  elseif #self.pending + #keys <= PENDING_MAX then
    if self.picture.application_keys then
      keys = keys:gsub("\27%[([A-DFH])", "\27O%1")
    end
    self.pending = self.pending .. keys
    self:_send()
  end
  if at then
    self.done:set("left")
  end
end

local function listen(self)
  self.poll = assert(self.uv.new_poll(0))
  self.poll:start("r", function()
    local bytes = self.tty.read(0)
    if not bytes or bytes == "" then
      return self.done:set("left")
    end
    self:_typed(bytes)
  end)
end

local function watch_size(self)
  self.signal = assert(self.uv.new_signal())
  self.signal:start("sigwinch", function()
    self:_resize()
  end)
end

--- @class efr.cli.attach_options
--- @field pty_id string
--- @field words string  of the last row; safe text
--- @field takes_keys boolean  false: only Ctrl+C and the key that leaves mean something
--- @field on_interrupt fun()  for Ctrl+C then
--- @field done efr.Future  set from outside when nothing runs any more

--- Joins the terminals until Ctrl+\, the end of the stream or `done`.
--- @param env table
--- @param link efr.cli.conn
--- @param opts efr.cli.attach_options
--- @return string how "left" or what `done` was set to
--- @return string? message of a stream that failed
function M.run(env, link, opts)
  local self = setmetatable({
    uv = env.ports.uv, tty = env.ports.tty, link = link, pty_id = opts.pty_id,
    words = opts.words, takes_keys = opts.takes_keys, on_interrupt = opts.on_interrupt,
    done = opts.done, picture = picture.new(), pending = "",
  }, Attach)
  self.tty.save(0)
  self.tty.farewell(1, LEAVE)
  self.tty.set_mode("raw")
  self.tty.write(1, ENTER)
  local id = link:stream("pty.attach", { pty_id = opts.pty_id, screens = true }, function(item)
    if not self.done.done and type(item) == "table" and self.picture:item(item) then
      self:_draw(false)
    end
  end, function(_, message)
    if not self.done.done then
      self.done:set("ended", message)
    end
  end)
  self:_resize()
  listen(self)
  watch_size(self)
  local how, message = self.done:get()
  self.poll:close()
  self.signal:close()
  if id then
    link:cancel(id)
  end
  self.tty.write(1, LEAVE)
  self.tty.farewell(1, "")
  self.tty.restore(true)
  return how, message
end

return M
