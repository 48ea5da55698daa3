-- Following one turn to its end: the stream, the answers, Ctrl+C, the exit code.
-- Owns: what a client does while a turn runs. Must not know: rows or terminal sequences.
-- Loop thread of `efr`; run waits in a task.

local answer = require "efr.cli.answer"
local async = require "efr.util.async"
local block = require "efr.cli.view.block"
local exit_view = require "efr.cli.view.exit"
local failure = require "efr.cli.failure"
local groups = require "efr.cli.view.groups"
local keys = require "efr.cli.keys"
local plain = require "efr.cli.view.plain"
local question_view = require "efr.cli.view.question"
local rpc = require "efr.cli.rpc"
local screen = require "efr.cli.screen"
local turn = require "efr.cli.view.turn"
local waits = require "efr.cli.view.waits"

local M = {}

local INTERRUPT_WAIT_MS <const> = 3000
local OVERFLOWS_MAX <const> = 100

local Follow = {}
Follow.__index = Follow

local function render_options(env)
  local config, message = env:config()
  if not config then
    env:warn("warning: " .. message)
    return { motion = true, turn_summary = true, diff_lines = 20 }
  end
  return {
    motion = config:get("render.motion"),
    turn_summary = config:get("render.turn_summary"),
    diff_lines = config:get("render.diff_lines"),
    groups = groups.of_config(config),
  }
end

-- The view without a terminal has the same face as the screen.
local function plain_view(self, options)
  local env = self.env
  local view = plain.new(self.turn, {
    out = function(bytes)
      if not env.ports.tty.write(1, bytes) then
        self.done:set("broken")
      end
    end,
    err = function(bytes)
      env:err(bytes)
    end,
    home = env.home,
    diff_lines = options.diff_lines,
    turn_summary = options.turn_summary,
    groups = options.groups,
  })
  return {
    now = function()
      return env.ports.uv.hrtime() // 1000000
    end,
    changed = function(face)
      view:update(face:now())
      self:_ask()
    end,
    finish = function(face)
      view:update(face:now())
    end,
  }
end

local function is_screen(env)
  local term = env.environ.TERM or ""
  return env:is_tty(1) and term ~= "" and term ~= "dumb"
end

local function open_view(self, options)
  if not self.on_screen then
    return plain_view(self, options)
  end
  options.after = function()
    self:_ask()
  end
  options.prepare = self.keys and function()
    self.keys:prepare()
  end
  options.broken = function()
    self.done:set("broken")
  end
  return screen.new(self.env, self.turn, options)
end

-- Sends the answer to a question. A question that is gone was answered elsewhere or expired.
function Follow:_answer(question, decision, always)
  question.sent = true
  self.keys:stop()
  local method, params = "approval.respond", { call_id = question.call_id, decision = decision }
  if question.question_id then
    method = "sandbox.surface_respond"
    params = { question_id = question.question_id, keep = decision == "allow" }
  end
  params.command_id = self.env.ports.sys.uuid7()
  params.conversation_id = self.conversation_id
  params.always = always or nil
  async.spawn(function()
    local reply, message, code = self.link:call(method, params)
    if not reply and code ~= "not_found" and code ~= rpc.LOST then
      question.sent, question.confirms = nil, nil
      self.turn:note("the answer was not taken: " .. message)
    end
    if reply and always then
      self.turn:note(exit_view.saved_words(reply))
    end
    self.view:changed(true)
  end)
end

local DECISION <const> = { y = "allow", Y = "allow", n = "deny", N = "deny" }

-- `a` is confirmed with `y`; what was typed before that line stands does not count.
function Follow:_key(question, key)
  if question.confirms then
    if key == "y" or key == "Y" then
      return self:_answer(question, "allow", true)
    end
    question.confirms = nil
  elseif DECISION[key] then
    return self:_answer(question, DECISION[key])
  elseif (key == "a" or key == "A") and question_view.rule(question) then
    question.confirms = true
  else
    return
  end
  self.keys:listen(function() end)
  self.view:changed(true)
end

-- Listens for the answer to the question, or to the command's wait, that stands on the screen now.
function Follow:_ask()
  if not self.keys then
    return
  end
  local question = self.turn:open_question()
  if question and question.sent then
    question = nil
  end
  self.answer:offer()
  local asked = question or waits.open(self.turn)
  local confirms = question and question.confirms
  local same = asked == self.asked and confirms == self.confirms
  if same and (asked or not self.answer:is_over()) then
    return
  end
  self.asked, self.confirms = asked, confirms
  if not asked then
    return self.answer:rest()
  elseif not question then
    return self.answer:ask(asked)
  end
  self.keys:listen(function(key)
    self:_key(question, key)
  end)
end

-- Events that bypass the frame limit: a person waits for them.
local URGENT <const> = {
  approval_requested = true,
  approval_resolved = true,
  approval_expired = true,
  surface_question_requested = true,
  surface_question_answered = true,
  tool_call_input_changed = true,
  shell_command_input_changed = true,
  turn_completed = true,
  turn_failed = true,
  turn_interrupted = true,
}

function Follow:_event(envelope)
  if (envelope.seq or 0) <= self.turn.seq then
    return
  end
  local ok, why = self.turn:event(envelope, self.view:now())
  if not ok then
    return self.done:set("malformed", why)
  end
  self.view:changed(URGENT[envelope.event.kind])
  if self.turn.phase == "ended" then
    self.done:set("ended")
  end
end

function Follow:_item(item)
  if type(item) ~= "table" then
    return
  end
  if item.kind == "event" then
    self:_event(item)
  elseif item.kind == "snapshot" then
    for _, envelope in ipairs(item.events or {}) do
      self:_event(envelope)
    end
    self.turn.seq = math.max(self.turn.seq, item.hwm or 0)
  elseif item.kind == "draft" then
    self.turn:draft(item, self.view:now())
    self.view:changed(false)
  end
end

function Follow:_subscribe()
  local id, why, kind = self.link:stream("conversation.subscribe", {
    conversation_id = self.conversation_id,
    after_seq = self.turn.seq,
    drafts = true,
    answers_input = self.keys ~= nil or nil,
  }, function(item)
    self:_item(item)
  end, function(_, message, code, data)
    if self.done.done then
      return
    end
    if code == "overflow" and self.overflows < OVERFLOWS_MAX then
      self.overflows = self.overflows + 1
      return self:_subscribe()
    end
    self.done:set("lost", message or "efrd ended the stream", code or rpc.LOST, data)
  end)
  if not id then
    self.done:set("lost", why, kind)
  end
end

-- Ctrl+C: stops the turn; a second one leaves at once.
function Follow:_interrupt()
  if self.interrupting then
    return self.done:set("left")
  end
  self.interrupting = true
  if self.turn.phase == "queued" then
    self.turn:note("the prompt still waits behind the running turn; it was not interrupted")
    return self.done:set("left")
  end
  async.spawn(function()
    local ok, message, code = self.link:call("turn.interrupt", {
      command_id = self.env.ports.sys.uuid7(),
      conversation_id = self.conversation_id,
      turn_id = self.turn.id,
    })
    if not ok and code ~= "conflict" then
      self.turn:note("the interrupt was not taken: " .. message)
      self.done:set("left")
    end
  end)
  self.patience = assert(self.env.ports.uv.new_timer())
  self.patience:start(INTERRUPT_WAIT_MS, 0, function()
    self.turn:note("efrd did not confirm the interrupt; the turn may still run")
    self.done:set("left")
  end)
end

local function open_interrupt(self)
  local signal = assert(self.env.ports.uv.new_signal())
  signal:start("sigint", function()
    self:_interrupt()
  end)
  return signal
end

-- The exit code of a turn that ended, or the failure to print.
local function outcome(self)
  local ended = self.turn
  if ended.outcome == "completed" then
    return failure.OK
  end
  if ended.outcome == "failed" then
    local err = ended.error
    local config = self.env:config()
    local provider = config and config:get("model.provider")
    local hint = failure.turn_hint(err, provider)
    local data = type(err.data) == "table" and err.data or {}
    return nil, err.message or "the turn failed", err.code, { hint = data.hint or hint }
  end
  if ended.outcome == "interrupted" and self.interrupting then
    return failure.INTERRUPTED
  end
  return failure.FAILED
end

local RESULT = {
  ended = outcome,
  left = function()
    return failure.INTERRUPTED
  end,
  broken = function()
    return nil, nil, "EFR_SILENT"
  end,
  malformed = function(_, why)
    return nil, "efrd sent a malformed event: " .. why, "internal"
  end,
  lost = function(self, message, code, data)
    data = data or {}
    data.hint = ("the turn may still run; see: efr history %s"):format(self.conversation_id)
    return nil, message, code, data
  end,
}

--- Follows the turn of a prompt until it ends.
--- @param link efr.cli.conn
--- @param sent table the result of prompt.send
--- @return integer? exit, string? message, string? code, table? data
function M.run(env, link, sent)
  local self = setmetatable({
    env = env,
    link = link,
    conversation_id = sent.conversation_id,
    done = async.future(),
    overflows = 0,
    on_screen = is_screen(env),
  }, Follow)
  -- A card that nobody sees is not asked here.
  self.keys = (self.on_screen or env:is_tty(2)) and keys.open(env, self.on_screen) or nil
  self.turn = turn.new({
    id = sent.turn_id,
    now_ms = env.ports.uv.hrtime() // 1000000,
    answers = self.keys ~= nil,
  })
  self.turn.seq = math.max((sent.seq or 1) - 1, 0)
  self.answer = answer.new(self)
  for _, words in ipairs(block.settings_notes(sent.settings)) do
    self.turn:note(words)
  end
  local options = render_options(env)
  self.view = open_view(self, options)
  local signal = open_interrupt(self)
  self.view:changed(true)
  self:_subscribe()
  local how, message, code, data = self.done:get()
  self.view:finish()
  local flush = self.answer:close()
  if self.keys then
    self.keys:close(flush)
  end
  signal:close()
  if self.patience then
    self.patience:close()
  end
  link:close()
  return RESULT[how](self, message, code, data)
end

return M
