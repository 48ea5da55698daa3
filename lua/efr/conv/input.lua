-- Owns: what a turn's shell line waits for: the events of it, who can be asked, the answers.
-- Must not know: how a wait is seen or typed at (efr.shell), the wire. Runs in efrd, on the loop
-- thread; recording waits.
--
-- Policy: an answer goes to the line that waits and to no other, and nothing about it is recorded.
-- Hidden input that nobody can give ends an outside line at once; a visible wait may be a guess and
-- ends nothing. A line that was left running is told of under another event, and stays. A contained
-- line never gets a secret: the shell ends it, here it is only recorded why.

local async = require "efr.util.async"
local events = require "efr.conv.events"
local starts_shell = require "efr.perm.starts_shell"

local M = {}

local MINUTE_US <const> = 60000000

-- Requirements of a line that may ask at the terminal.
local MAY_ASK <const> = { interactive = true, may_prompt = true }

---Whether a person may type at a call by hand, though no wait of it is known. At an interpreter
---that would be a command.
---@param call table  decided
---@return boolean
function M.takes_manual(call)
  if call.name ~= "shell" or call.launch == "contained" then return false end
  return not call.input.nested_shell and not starts_shell.line(call.input.command)
end

local function may_ask(call)
  for _, requirement in ipairs(call.requirements or {}) do
    if MAY_ASK[requirement.kind] then return true end
  end
  return false
end

---@class efr.conv.Watch
local Watch = {}
Watch.__index = Watch

local function fields_of(self, wait)
  local fields = {
    call_id = self.call.id, input = wait.kind, looks_secret = wait.looks_secret or nil,
  }
  if wait.late then
    fields.pty_id = wait.pty_id
    return events.make("shell_command_input_changed", fields)
  end
  fields.turn_id = self.turn.id
  return events.make("tool_call_input_changed", fields)
end

-- A failure is one of the turn, as long as the call is one of the turn's.
local function record(self, wait)
  if not wait.late and self.call.flush_output then self.call.flush_output() end
  local ok, message = self.turn.conv:append({ events = { fields_of(self, wait) } })
  if ok then return end
  if not wait.late then return self.turn:fail_store(message) end
  self.turn.app.log:warn("input wait of %s: %s", self.call.id, message)
end

-- Ends a line that waits for hidden input as soon as nobody can answer.
local function watch_people(self, wait)
  local app, id = self.turn.app, self.turn.conv.id
  async.spawn(function()
    app.answering:wait(id, function() return self.newest ~= wait end)
    if self.newest == wait then self.hidden:refuse_input(self.prepared) end
  end)
end

-- In order, and each after the output before it.
local function pump(self)
  if self.pumping then return end
  self.pumping = true
  async.spawn(function()
    while self.waits[1] do record(self, table.remove(self.waits, 1)) end
    self.pumping = false
  end)
end

local function on_wait(self, wait)
  self.newest = wait
  self.turn.app.answering:wake(self.turn.conv.id)
  table.insert(self.waits, wait)
  pump(self)
  if wait.kind == "hidden" and not wait.late and self.call.launch ~= "contained" then
    watch_people(self, wait)
  end
end

---Adds to the options of hidden:run what the line's waits need.
---@param options table
---@return table options
function Watch:options(options)
  local call, app = self.call, self.turn.app
  local asks = may_ask(call)
  options.on_wait = function(wait) on_wait(self, wait) end
  options.shell_line = call.input.nested_shell or starts_shell.line(call.input.command)
  options.manual_input = M.takes_manual(call)
  if call.launch ~= "contained" then
    local sys = app.ports.sys
    local stop_us = sys.mono_us()
      + app.config:get("shell.interactive_timeout_minutes") * MINUTE_US
    options.may_wait = function()
      local waiting = self.newest and self.newest.kind ~= "none"
      return (asks or waiting) and sys.mono_us() < stop_us
        and app.answering:somebody(self.turn.conv.id)
    end
  end
  return options
end

---The line does not run any more.
function Watch:finish()
  local conv = self.turn.conv
  self.newest = nil
  if conv.lines[self.call.id] == self then conv.lines[self.call.id] = nil end
  self.turn.app.answering:wake(conv.id)
end

---Follows the line of a call, until finish.
---@param turn efr.Turn
---@param call table
---@param hidden efr.Hidden
---@param prepared table  the call of sbx.calls
---@return efr.conv.Watch
function M.follow(turn, call, hidden, prepared)
  local self = setmetatable({
    turn = turn, call = call, hidden = hidden, prepared = prepared, waits = {},
  }, Watch)
  turn.conv.lines[call.id] = self
  return self
end

---Types an answer at the line of a call. Nothing about it is kept.
---@param conv efr.Conversation
---@param params {call_id: string, text: string, hidden: boolean, manual: boolean?}
---@return table? result
---@return string? message
---@return string? code
function M.respond(conv, params)
  local line = conv.lines[params.call_id]
  if not line then return nil, "no command of this call runs", "not_found" end
  local ok, message, code = line.hidden:answer(line.prepared, {
    text = params.text, hidden = params.hidden, manual = params.manual,
  })
  if not ok then return nil, message, code end
  return {}
end

return M
