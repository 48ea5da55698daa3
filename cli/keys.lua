-- Keys for an open question: single ones, or all that is typed.
-- Owns: the input modes of the user's terminal while a turn is followed. Must not know: what a
-- question asks. Loop thread of `efr`.
--
-- While nothing is asked, typing is not echoed and stays in the terminal for the shell. A key
-- answers only a question that stood on the screen before it was typed: unread input is thrown
-- away at that moment.

local M = {}

local Keys = {}
Keys.__index = Keys

--- @param quiet boolean typing is not echoed while nothing is asked; false leaves the terminal to
---   others, such as a pager, until a question opens
--- @return table? keys nil when this process cannot ask here
function M.open(env, quiet)
  local tty = env.ports.tty
  if not env:is_tty(0) or not tty.foreground(0) then
    return nil
  end
  local self = setmetatable({ tty = tty, uv = env.ports.uv, quiet = quiet }, Keys)
  self:prepare()
  return self
end

--- Sets the modes, also after the shell had the terminal. In the background it is the shell's, and
--- a read would stop this process.
function Keys:prepare()
  local ours = self.tty.foreground(0)
  if ours and (self.quiet or self.on_key) and self.tty.save(0) then
    self.tty.set_mode(self.on_key and "keys" or "quiet")
  end
  if not self.on_key then
    return
  end
  self.poll = self.poll or assert(self.uv.new_poll(0))
  self.poll:stop()
  if ours then
    self.poll:start("r", function()
      self:_read()
    end)
  end
end

--- Reads single keys from now on; what was typed before is dropped.
--- @param on_key fun(key: string)
function Keys:listen(on_key)
  self:type(function(bytes)
    -- One answer for one key: a paste or an escape sequence is none.
    if #bytes == 1 then
      on_key(bytes)
    end
  end)
end

--- Reads everything from now on; what was typed before is dropped.
--- @param on_bytes fun(bytes: string)
function Keys:type(on_bytes)
  local first = not self.on_key
  self.on_key = on_bytes
  if self.tty.foreground(0) then
    self.tty.flush_input(0)
  end
  if first then
    self:prepare()
  end
end

function Keys:_read()
  local bytes = self.tty.read(0)
  if not bytes then
    return self:stop()
  end
  if bytes ~= "" and self.on_key then
    self.on_key(bytes)
  end
end

--- Stops reading.
--- @param flush boolean? what was typed and not read is thrown away
function Keys:stop(flush)
  if self.on_key then
    self.on_key = nil
    self.poll:close()
    self.poll = nil
    self.tty.restore(flush or false)
    self:prepare()
  end
end

--- Gives the terminal back.
--- @param flush boolean? what was typed and not read is thrown away
function Keys:close(flush)
  self.quiet = false
  self:stop(flush)
  self.tty.restore(flush or false)
end

return M
