-- The answer that is typed while looking at the hidden shell.
-- Owns: when a line is open, where it goes, what becomes of keys afterwards. Must not know: rows of
-- the screen, when the command is over. Loop thread of `efr`; sending runs in a task.
--
-- Policy: as in answer.lua. After anything secret keys are read and thrown away, so that a password
-- that is typed twice reaches neither the program nor the user's shell; the next wait of the same
-- command opens its line by itself.

local async = require "efr.util.async"
local line = require "efr.cli.line"
local view = require "efr.cli.view.input"

local M = {}

--- Whether the command waits for something that may be answered here.
--- @param status table of shell.status
--- @return boolean
function M.can(status)
  if status.contained and (status.input == "hidden" or status.looks_secret) then
    return false
  end
  return status.input == "visible" or status.input == "hidden"
end

--- @class efr.cli.replying
--- @field item table?  the wait whose answer is being typed
local Replying = {}
Replying.__index = Replying

--- @param deps {link: table, keys: table, listen: fun(), note: fun(text: string?)}
function M.new(deps)
  return setmetatable({ deps = deps, line = line.new(), guarded = false }, Replying)
end

--- Whether keys are thrown away, for fear of a secret.
function Replying:is_guarding()
  return self.guarded and not self.item
end

--- The rows of the open line.
function Replying:rows(cols)
  return view.rows(self.item, { cols = cols })
end

local function close(self)
  self.item = nil
  self.line:clear()
  if self.guarded then
    return self.deps.keys:type(function() end)
  end
  self.deps.listen()
end

local function send(self)
  local item, text = self.item, self.line:text()
  close(self)
  async.spawn(function()
    local ok, message, code = self.deps.link:call("input.respond", {
      conversation_id = item.conversation_id, call_id = item.call_id, text = text,
      hidden = item.wait == "hidden",
    })
    local refused = code == "conflict" or code == "not_found"
    local words = view.is_shown(item) and "answer sent" or nil
    if not ok then
      words = refused and view.REFUSED or "the answer was not taken: " .. message
    end
    self.deps.note(words)
  end)
end

--- Opens the line for what the command waits for.
--- @param status table of shell.status
function Replying:open(status)
  self.item = {
    wait = status.input, looks_secret = status.looks_secret, call_id = status.call_id,
    conversation_id = status.conversation_id,
  }
  self.line:clear()
  self.guarded = self.guarded or not view.is_shown(self.item)
  self.deps.keys:type(function(bytes)
    if not self.item then
      return
    elseif self.line:feed(bytes) == "enter" then
      return send(self)
    elseif view.is_shown(self.item) then
      self.item.typed = self.line:text()
    end
    self.deps.note(nil)
  end)
end

--- Follows the state: a line whose wait is over closes.
--- @param status table of shell.status
function Replying:update(status)
  local item = self.item
  if item and (status.input ~= item.wait or status.looks_secret ~= item.looks_secret) then
    close(self)
  end
  if self:is_guarding() and M.can(status) then
    self:open(status)
  end
end

return M
