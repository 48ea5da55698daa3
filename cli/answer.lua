-- Typing an answer at a command that waits.
-- Owns: the line that is typed, what becomes of keys around it. Must not know: rows, events.
-- Loop thread of `efr`; sending runs in a task.
--
-- Policy: what is typed goes to the wait that stood on the screen when the typing began, and to no
-- other. After anything secret further keys are read and thrown away until the command's call ends,
-- and unread ones with them: a password that is typed twice must never reach the shell.

local async = require "efr.util.async"
local input = require "efr.cli.view.input"
local line = require "efr.cli.line"
local rpc = require "efr.cli.rpc"
local waits = require "efr.cli.view.waits"

local M = {}

--- @class efr.cli.answer
local Answer = {}
Answer.__index = Answer

--- @param follow table {env, keys, link, conversation_id, view, turn}, as it is when something is
---   asked
--- @return efr.cli.answer
function M.new(follow)
  return setmetatable({ follow = follow, line = line.new() }, Answer)
end

local function is_secret(item)
  return not input.is_shown(item)
end

local function changed(self)
  self.follow.view:changed(true)
end

local function send(self, item)
  local follow, text = self.follow, self.line:text()
  self.line:clear()
  item.typed, item.state = nil, "sending"
  local params = {
    conversation_id = follow.conversation_id, call_id = item.call_id, text = text,
    hidden = item.wait == "hidden", manual = item.wait == "manual" or nil,
  }
  async.spawn(function()
    local ok, message, code = follow.link:call("input.respond", params)
    item.state = ok and "sent" or "refused"
    if item.wait == "manual" then
      item.call.wait, item.call.heard_ms = nil, follow.view:now()
    end
    if not ok and code ~= "conflict" and code ~= "not_found" and code ~= rpc.LOST then
      follow.turn:note("the answer was not taken: " .. message)
    end
    changed(self)
  end)
end

--- Asks for the answer to a wait from now on.
--- @param item table an open block of kind input
function Answer:ask(item)
  self.line:clear()
  if is_secret(item) then
    self.guards = item.call
  end
  self.follow.keys:type(function(bytes)
    if item.state ~= "open" then
      return
    end
    if self.line:feed(bytes) == "enter" then
      send(self, item)
    elseif input.is_shown(item) then
      item.typed = self.line:text()
    end
    changed(self)
  end)
end

-- Ctrl+\: takes the offer to type, or gives it back. Without either it does what it always does.
local function on_quit(self)
  local follow = self.follow
  local item = waits.open(follow.turn)
  local call = not item and waits.offered(follow.turn, follow.view:now())
  if item and item.wait == "manual" then
    self.line:clear()
    waits.cancel(item)
  elseif call then
    waits.type_by_hand(follow.turn, call)
  else
    local flush = self:close()
    follow.view:finish()
    follow.keys:close(flush)
    return follow.env.ports.uv.kill(follow.env.ports.sys.getpid(), "sigquit")
  end
  changed(self)
end

--- Ctrl+\ is caught from the first offer on.
function Answer:offer()
  if self.signal or not waits.offered(self.follow.turn, self.follow.view:now()) then
    return
  end
  self.signal = assert(self.follow.env.ports.uv.new_signal())
  self.signal:start("sigquit", function()
    on_quit(self)
  end)
end

--- Gives everything back.
--- @return boolean flush unread keys may be a secret typed again
function Answer:close()
  self.line:clear()
  if self.signal then
    self.signal:close()
    self.signal = nil
  end
  return self.guards ~= nil
end

--- Nothing is asked: keys go back to the terminal, or nowhere while a secret may still be typed.
function Answer:rest()
  self.line:clear()
  local keys = self.follow.keys
  if self.guards and self.guards.state == "running" then
    return keys:type(function() end)
  end
  keys:stop(self.guards ~= nil)
  self.guards = nil
end

--- The call of a secret has ended, so keys can go back.
function Answer:is_over()
  return self.guards ~= nil and self.guards.state ~= "running"
end

return M
