-- Owns: the conversations of the daemon: which one a prompt goes to, and the commands on them. Each
-- command's receipt is in the batch of its effect.
-- Must not know: the wire, how a turn works inside. Runs in efrd; the commands wait, so they run in
-- coroutines.
--
-- Policy: what can be decided in memory is decided before the first wait, so that two commands
-- never both win: a prompt takes its place in the queue, a question is taken by its answer, a
-- withdrawn prompt leaves the queue. When the batch is not recorded, that is put back. A
-- conversation that rests, whose shell has ended and to which nobody listens, is forgotten: the
-- store has it.

local allow_last = require "efr.conv.allow_last"
local always = require "efr.conv.always"
local async = require "efr.util.async"
local conversation = require "efr.conv.conversation"
local decisions = require "efr.conv.decisions"
local events = require "efr.conv.events"
local input = require "efr.conv.input"
local machine = require "efr.conv.machine"
local presence = require "efr.conv.presence"
local registry = require "efr.tools.registry"
local route = require "efr.conv.route"
local settings = require "efr.conv.settings"
local tidy = require "efr.conv.tidy"

local M = {}

---@class efr.Conversations
local Manager = {}
Manager.__index = Manager

---The conversations of one daemon.
---@param app table  ports, config, store, query, providers, sandbox, shells, projects, paths, env
---@return efr.Conversations
function M.new(app)
  app.tools = app.tools or registry.new(app.ports)
  app.decisions = app.decisions or decisions.new(app.ports)
  app.presence = app.presence or presence.new(app)
  app.tidy = app.tidy or tidy.new(app.ports.sys)
  return setmetatable({ app = app, open = {} }, Manager)
end

---How a past call was decided; see conv.decisions.
---@param conversation_id string?
---@param call_id string?
---@return table? data
function Manager:decision(conversation_id, call_id)
  return self.app.decisions:get(conversation_id, call_id)
end

-- Keeps a conversation until it is quiet.
local function keep(self, conv)
  self.open[conv.id] = conv
  conv.on_quiet = function()
    self.open[conv.id] = nil
    conv.on_quiet = nil
    self.app.shells:close_conversation(conv.id)
  end
end

-- The conversation of an id: from memory, else from the store.
local function find(self, id)
  local conv = self.open[id]
  if conv then return conv end
  local row, message, code = self.app.query:conversation(id)
  if not row then
    return nil, message or "unknown conversation", message and code or "not_found"
  end
  -- The read does not wait, so nobody else has made it meanwhile.
  conv = conversation.new(self.app, id, row)
  keep(self, conv)
  return conv
end

-- The code of a failed append as a client gets it.
local function refused(message, code)
  if code == "EFR_CONFLICT" then return nil, message, "conflict" end
  if code == "EFR_BUSY" then return nil, message, "busy" end
  return nil, message, code
end

-- The conversation that a prompt goes to; made in memory when it is new.
local function target(self, params, session)
  if params.new_conversation and params.conversation_id then
    return nil, "new_conversation and conversation_id exclude each other", "invalid"
  end
  if params.conversation_id then return find(self, params.conversation_id) end
  local tty = params.context and params.context.tty or session.tty
  if tty and not params.new_conversation then
    local row, message, code = self.app.query:conversation_of_tty(tty)
    if not row and message then return nil, message, code end
    local open = row and self.open[row.id]
    if row and route.is_active(self.app, row, params.context, open and open:is_busy()) then
      return find(self, row.id)
    end
  end
  local id = self.app.ports.sys.uuid7()
  local conv = conversation.new(self.app, id)
  return conv, tty, true
end

local function prompt_events(conv, item, params, session, tty, is_new)
  local list = {}
  if is_new then
    list[1] = events.make("conversation_created", { origin = session.origin, tty = tty })
  end
  list[#list + 1] = events.make("prompt_queued", {
    turn_id = item.turn_id,
    command_id = params.command_id,
    text = params.text,
    origin = session.origin,
    context = params.context,
    settings = params.settings,
    allow_once = params.allow_once and params.allow_once.call_id,
  })
  conv.title = conv.title or params.text
  return list
end

---Takes a prompt: records it and runs it when its turn comes.
---@param params table  of prompt.send
---@param session table  {origin, tty}
---@return table|nil result  {conversation_id, turn_id, seq, queued?, settings}
---@return string? message
---@return string? code
---@return table? data
function Manager:prompt_send(params, session)
  if not params.text:find("%S") then return nil, "the prompt is empty", "invalid" end
  local wanted, message, code, data =
    settings.resolve(self.app.config, params.settings, session.origin, function()
      return machine.full(self.app)
    end)
  if not wanted then return nil, message, code, data end
  local conv, tty, is_new = target(self, params, session)
  if not conv then return nil, tty, is_new end
  if conv.queue:len() >= self.app.config:get("conversation.max_queued") then
    return nil, ("%d prompts wait already"):format(conv.queue:len()), "busy"
  end
  local queued = conv:is_busy() or nil
  local item = {
    turn_id = self.app.ports.sys.uuid7(),
    recorded = false,
    text = params.text,
    origin = session.origin,
    tty = params.context and params.context.tty or session.tty,
    context = params.context,
    settings = params.settings,
    last_command = params.last_command,
    recent_commands = params.recent_commands,
    allow_once = params.allow_once,
  }
  conv.queue:push(item)
  local list = prompt_events(conv, item, params, session, is_new and tty or nil, is_new)
  local result = {
    conversation_id = conv.id,
    turn_id = item.turn_id,
    queued = queued,
    settings = settings.effective(wanted),
  }
  local seqs
  seqs, message, code = conv:append({
    events = list,
    receipt = {
      command_id = params.command_id,
      method = params.allow_once and "call.allow_last" or "prompt.send",
      result = result,
      seq_event = #list,
    },
  })
  if not seqs then
    conv.queue:remove(item)
    conv:kick()
    return refused(message, code)
  end
  self.app.presence:input()
  item.recorded, item.seq = true, seqs[#seqs]
  if is_new then keep(self, conv) end
  conv:kick()
  local reply = {}
  for name, value in pairs(result) do reply[name] = value end
  reply.seq = item.seq
  return reply
end

---A turn in which the model may call once what was refused last.
---@param params table  of call.allow_last
---@param session table
---@return table|nil result  as prompt_send
---@return string? message
---@return string? code
function Manager:allow_last(params, session)
  local wanted, message, code = allow_last.find(self.app, params.conversation_id)
  if not wanted then return nil, message, code end
  if wanted.call_id ~= params.call_id then
    return nil, "another call was refused meanwhile", "conflict"
  end
  return self:prompt_send({
    command_id = params.command_id, conversation_id = params.conversation_id,
    text = allow_last.prompt(self.app, wanted), context = wanted.context,
    settings = wanted.settings, allow_once = wanted,
  }, session)
end

local function find_waiting(self, conv, wanted)
  if wanted.kind == "newest_from_tty" then
    local item = conv.queue:newest_from_tty(wanted.tty)
    if item then return item end
    return nil, "no prompt from this terminal waits", "not_found"
  end
  local item = conv.queue:find(wanted.turn_id)
  if item then return item end
  local row = self.app.query:turn(wanted.turn_id)
  if row and row.conversation_id == conv.id then
    return nil, "this prompt does not wait any more", "conflict"
  end
  return nil, "unknown turn", "not_found"
end

---Takes a waiting prompt back.
---@param params table  of prompt.withdraw
---@param session table
---@return table|nil result  {withdrawn = {turn_id, seq, text}}
---@return string? message
---@return string? code
function Manager:withdraw(params, session)
  local conv, message, code = find(self, params.conversation_id)
  if not conv then return nil, message, code end
  local item
  item, message, code = find_waiting(self, conv, params.target)
  if not item then return nil, message, code end
  local removed = { { item = item, at = conv.queue:remove(item) } }
  local withdrawn = { turn_id = item.turn_id, text = item.text }
  local seqs
  seqs, message, code = conv:append({
    events = { events.make("prompt_withdrawn", {
      turn_id = item.turn_id,
      origin = session.origin,
    }) },
    receipt = {
      command_id = params.command_id,
      method = "prompt.withdraw",
      result = { withdrawn = withdrawn },
      seq_event = 1,
    },
  })
  if not seqs then
    conv.queue:restore(removed)
    conv:kick()
    return refused(message, code)
  end
  return { withdrawn = { turn_id = item.turn_id, text = item.text, seq = seqs[1] }, seq = seqs[1] }
end

-- Takes the named prompts out of the queue, all or none.
local function take_prompts(conv, turn_ids)
  local wanted, removed = {}, {}
  for _, id in ipairs(turn_ids or {}) do
    if not conv.queue:find(id) then return nil end
    wanted[id] = true
  end
  for at = #conv.queue.items, 1, -1 do
    local item = conv.queue.items[at]
    if wanted[item.turn_id] then
      conv.queue:remove(item)
      table.insert(removed, 1, { item = item, at = at })
    end
  end
  return removed
end

local function interrupt_events(turn, removed, origin)
  local list = { events.make("turn_interrupt_requested", { turn_id = turn.id, origin = origin }) }
  for _, entry in ipairs(removed) do
    list[#list + 1] = events.make("prompt_withdrawn", {
      turn_id = entry.item.turn_id,
      origin = origin,
    })
  end
  return list
end

---Asks the running turn to stop, and takes waiting prompts back, in one batch.
---@param params table  of turn.interrupt
---@param session table
---@return table|nil result  {turn_id, seq, withdrawn}
---@return string? message
---@return string? code
function Manager:interrupt(params, session)
  local conv, message, code = find(self, params.conversation_id)
  if not conv then return nil, message, code end
  local turn = conv.current
  if not turn or turn.ended then return nil, "no turn runs", "conflict" end
  if params.turn_id and params.turn_id ~= turn.id then
    return nil, "another turn runs", "conflict"
  end
  local removed = take_prompts(conv, params.withdraw)
  if not removed then return nil, "a prompt to withdraw does not wait any more", "conflict" end
  local array = self.app.ports.json.array
  local withdrawn = array({})
  for i, entry in ipairs(removed) do
    withdrawn[i] = { turn_id = entry.item.turn_id, text = entry.item.text }
  end
  local seqs
  seqs, message, code = conv:append({
    events = interrupt_events(turn, removed, session.origin),
    receipt = {
      command_id = params.command_id,
      method = "turn.interrupt",
      result = { turn_id = turn.id, withdrawn = withdrawn },
      seq_event = 1,
    },
  })
  if not seqs then
    conv.queue:restore(removed)
    conv:kick()
    return refused(message, code)
  end
  turn.token:cancel("interrupt")
  local reply = array({})
  for i, entry in ipairs(removed) do
    reply[i] = { turn_id = entry.item.turn_id, text = entry.item.text, seq = seqs[i + 1] }
  end
  return { turn_id = turn.id, seq = seqs[1], withdrawn = reply }
end

-- Takes the answer to a question, if it still waits: {event, answer, command_id, method, before?}.
-- `before` runs when the answer is recorded and the turn does not know it yet.
local function take_answer(self, conv, question, how)
  if not question or question.taken or question.answer.done then
    return nil, "no such question waits", "not_found"
  end
  question.taken = true
  how.event.turn_id = question.turn_id
  local seqs, message, code = conv:append({
    events = { how.event },
    receipt = {
      command_id = how.command_id, method = how.method, result = {}, seq_event = 1,
    },
  })
  if not seqs then
    question.taken = false
    if question.late then question.answer:set(question.late) end
    return refused(message, code)
  end
  self.app.presence:input()
  local result = { seq = seqs[1] }
  if how.before then how.before(result) end
  question.answer:set(how.answer)
  return result
end

---Answers a question of the running turn.
---@param params table  of approval.respond
---@param session table
---@return table|nil result  {seq, rule_saved? {index, words}, rule_error?}
---@return string? message
---@return string? code
function Manager:approve(params, session)
  local conv, message, code = find(self, params.conversation_id)
  if not conv then return nil, message, code end
  local question = conv.approvals[params.call_id]
  if params.always then
    message, code = always.refusal(question, params, session)
    if message then return nil, message, code end
  end
  return take_answer(self, conv, question, {
    event = events.make("approval_resolved", {
      call_id = params.call_id, decision = params.decision, origin = session.origin,
    }),
    answer = params.decision, command_id = params.command_id, method = "approval.respond",
    before = params.always and function(result)
      local ok, saved, why = pcall(always.save, self.app, question.rule)
      if not ok then self.app.log:error("save a rule: %s", saved) end
      result.rule_saved = ok and saved or nil
      result.rule_error = not result.rule_saved and (ok and why or "an internal error") or nil
    end,
  })
end

---Answers whether what lies in quarantine is kept.
---@param params table  of sandbox.surface_respond
---@param session table
---@return table|nil result  {seq}
---@return string? message
---@return string? code
function Manager:surface_respond(params, session)
  local conv, message, code = find(self, params.conversation_id)
  if not conv then return nil, message, code end
  return take_answer(self, conv, conv.surface_questions[params.question_id], {
    event = events.make("surface_question_answered", {
      question_id = params.question_id, keep = params.keep or nil, origin = session.origin,
    }),
    answer = params.keep and "keep" or "leave", command_id = params.command_id,
    method = "sandbox.surface_respond",
  })
end

---Keeps a conversation from running turns: prompts that come meanwhile wait. Of a turn that is
---named, the conversation is looked up.
---@param conversation_id string?
---@param turn_id string?
---@return fun()? release
---@return string? message
---@return string? code  conflict: something runs
function Manager:hold(conversation_id, turn_id)
  if turn_id then
    local row, message, code = self.app.query:turn(turn_id)
    if message then return nil, message, code end
    conversation_id = row and row.conversation_id
  end
  if not conversation_id then return function() end end
  local conv, message, code = find(self, conversation_id)
  if not conv then return nil, message, code end
  if conv.held then return nil, "an undo of this conversation runs", "conflict" end
  if conv:is_busy() then
    return nil, "a turn of this conversation runs; wait for it or stop it", "conflict"
  end
  local shell = self.app.shells:of_conversation(conversation_id)
  local status = shell and shell:status()
  if status and status.state == "running" then
    return nil, "a command of this conversation still runs in its hidden shell; see: efr shell",
      "conflict"
  end
  conv.held = true
  return function()
    conv.held = nil
    conv:kick()
    conv:look_quiet()
  end
end

---Types a person's answer at a command that waits.
---@param params table  of input.respond
---@return table|nil result
---@return string? message
---@return string? code
function Manager:respond(params)
  local conv, message, code = find(self, params.conversation_id)
  if not conv then return nil, message, code end
  self.app.presence:input()
  return input.respond(conv, params)
end

---Listens to the drafts of a conversation.
---@param conversation_id string
---@param fn fun(draft: table)
---@return fun() unsubscribe
function Manager:drafts(conversation_id, fn)
  local conv = find(self, conversation_id)
  if not conv then return function() end end
  return conv:listen(fn)
end

---How many conversations are in memory, and how many have a running turn.
---@return {open: integer, running: integer}
function Manager:counts()
  local open, running = 0, 0
  for _, conv in pairs(self.open) do
    open = open + 1
    if conv.current then running = running + 1 end
  end
  return { open = open, running = running }
end

---Whether a turn in full mode runs.
---@return boolean
function Manager:full_runs()
  for _, conv in pairs(self.open) do
    local turn = conv.current
    if turn and turn.settings and turn.settings.mode == "full" then return true end
  end
  return false
end

---Ends every running turn for the end of the daemon. Waits until they have ended.
function Manager:close()
  local tasks = {}
  for _, conv in pairs(self.open) do
    tasks[#tasks + 1] = async.spawn(conv.close, conv)
  end
  for _, task in ipairs(tasks) do task:wait() end
end

return M
