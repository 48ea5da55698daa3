-- Single keys for an open question.
-- Owns: the input modes of the user's terminal while a turn is followed. Must not know: what a
-- question asks. Loop thread of `efr`.
--
-- While nothing is asked, typing is not echoed and stays in the terminal for the shell. A key
-- answers only a question that stood on the screen before it was typed: unread input is thrown
-- away at that moment.

local M = {}

local Keys = {}
Keys.__index = Keys

--- @return table? keys nil when this process cannot ask here
function M.open(env)
  local tty = env.ports.tty
  if not env:is_tty(0) or not tty.foreground(0) or not tty.save(0) then
    return nil
  end
  local self = setmetatable({ tty = tty, uv = env.ports.uv, on_key = nil }, Keys)
  tty.set_mode("quiet")
  return self
end

--- Sets the modes again after the shell had the terminal.
function Keys:prepare()
  if self.tty.foreground(0) and self.tty.save(0) then
    self.tty.set_mode(self.on_key and "keys" or "quiet")
  end
end

--- Reads keys from now on; what was typed before is dropped.
function Keys:listen(on_key)
  self.tty.flush_input(0)
  if not self.on_key then
    self.tty.set_mode("keys")
    self.poll = assert(self.uv.new_poll(0))
    self.poll:start("r", function()
      self:_read()
    end)
  end
  self.on_key = on_key
end

function Keys:_read()
  local bytes = self.tty.read(0)
  if not bytes then
    return self:stop()
  end
  -- One answer for one key: a paste or an escape sequence is none.
  if #bytes == 1 and self.on_key then
    self.on_key(bytes)
  end
end

--- Stops reading.
function Keys:stop()
  if self.on_key then
    self.on_key = nil
    self.poll:close()
    self.poll = nil
    self.tty.set_mode("quiet")
  end
end

function Keys:close()
  self:stop()
  self.tty.restore(false)
end

return M
