-- Owns: the events of a command that goes on in the hidden shell after its call has answered.
-- Must not know: when a run is left, how it ends. Runs in efrd; the functions wait.
--
-- Policy: who follows hears of the beginning before the end, also when the command ends while the
-- beginning is being recorded; without a beginning there is no end.

local async = require "efr.util.async"
local events = require "efr.conv.events"

local M = {}

local LINE_MAX <const> = 4096

---@class efr.conv.Left
local Left = {}
Left.__index = Left

---@param conv efr.Conversation
---@param turn_id string
---@param call_id string
---@param line string
---@return efr.conv.Left
function M.new(conv, turn_id, call_id, line)
  return setmetatable({
    _conv = conv, _turn_id = turn_id, _call_id = call_id, _line = line, _told = async.future(),
  }, Left)
end

local function append(self, event)
  local ok, message = self._conv:append({ events = { event } })
  if not ok then
    self._conv.app.log:warn("conversation %s: %s: %s", self._conv.id, event.kind, message)
  end
  return ok ~= nil
end

---The call has answered and its command goes on.
---@param pty_id string
function Left:begins(pty_id)
  self._pty_id = pty_id
  local line = self._conv.app.ports.text.clean(self._line)
  if #line > LINE_MAX then line = line:sub(1, (utf8.offset(line, 0, LINE_MAX + 1) or 1) - 1) end
  self._told:set(append(self, events.make("shell_command_left", {
    turn_id = self._turn_id, call_id = self._call_id, pty_id = pty_id, line = line,
  })))
end

---The command has ended.
---@param exit_code integer?
function Left:ends(exit_code)
  if not self._told:get() then return end
  append(self, events.make("shell_command_ended", {
    call_id = self._call_id, pty_id = self._pty_id, exit_code = exit_code,
  }))
end

return M
