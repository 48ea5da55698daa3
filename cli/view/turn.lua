-- The state of one followed turn: events and drafts in, blocks out.
-- Owns: what a turn's events mean for the reader. Must not know: rows, widths, the terminal,
-- the wire. Pure: time comes as an argument in milliseconds. Runs in `efr`.

local notes = require "efr.cli.view.notes"
local waits = require "efr.cli.view.waits"

local M = {}

--- @class efr.cli.turn
--- @field id string
--- @field phase "queued"|"running"|"ended"
--- @field outcome string? completed, interrupted, failed, cancelled or withdrawn
--- @field blocks table[] prose, call, question and note blocks in the order of their start
--- @field activity table what the status row says: {kind=, detail=}
--- @field seq integer the newest event of the conversation that was applied
local Turn = {}
Turn.__index = Turn

-- kind -> fields that must be there, with their types
local REQUIRED <const> = {
  turn_started = { cwd = "string" },
  assistant_message_updated = { index = "number", offset = "number", delta = "string" },
  assistant_message_completed = { index = "number", text = "string" },
  tool_call_started = { call_id = "string", tool = "string" },
  tool_call_output_updated = { call_id = "string", tail = "string" },
  tool_call_input_changed = { call_id = "string", input = "string" },
  shell_command_input_changed = { call_id = "string", input = "string" },
  tool_call_completed = { call_id = "string" },
  approval_requested = { call_id = "string", summary = "string" },
  approval_resolved = { call_id = "string", decision = "string" },
  approval_expired = { call_id = "string" },
  exit_requested = { call_id = "string", kinds = "table", record = "table" },
  exit_judged = { call_id = "string", judge = "string", verdict = "string" },
  turn_failed = { error = "table" },
  turn_completed = {},
  turn_interrupted = {},
  sandbox_surface_changed = { call_id = "string", changes = "table" },
  surface_question_requested = { call_id = "string", question_id = "string", changes = "table" },
  surface_question_answered = { question_id = "string" },
  turn_surface_report = { files = "table" },
  shell_command_left = { call_id = "string", line = "string" },
  shell_command_ended = { call_id = "string" },
  turn_undone = { undo_id = "string" },
  home_file_changed = { path = "string" },
}

-- Fields that may be missing, in every kind that has them.
local OPTIONAL <const> = {
  changes = "table",
  context = "table",
  diff = "string",
  diff_preview = "string",
  exit = "table", guard = "table",
  exit_code = "number",
  output = "string",
  reasons = "table",
  refusal = "table",
  sandbox = "table",
  quarantined = "table",
  settings = "table",
  undo = "table",
  usage = "table",
}

-- Events after which drafts of the model call before them are old.
local ENDS_CALL <const> = {
  turn_started = true, tool_call_started = true, approval_requested = true,
  surface_question_requested = true,
}

-- Events that count also after the end of their turn: a command went on after its call.
local AFTER_END <const> = {
  sandbox_surface_changed = true, shell_command_left = true, shell_command_ended = true,
  turn_undone = true,
}

-- Events of a command that was left running; they name its call and no turn.
local OF_A_CALL <const> = { shell_command_input_changed = true, shell_command_ended = true }

--- @param opts {id: string, now_ms: number, answers: boolean, past: boolean?} answers = a person
---   here can answer; past = a record of what was
function M.new(opts)
  return setmetatable({
    id = opts.id,
    answers = opts.answers,
    past = opts.past,
    phase = "queued",
    blocks = {},
    prose = {}, home_changes = {},
    calls = {},
    questions = {},
    quarantined = {}, -- by call: what lies in quarantine
    left = {}, -- by call: the line that went on in the hidden shell
    activity = { kind = "queued" },
    seq = 0,
    ended_seq = 0, -- the event that ended the newest model call
    paused_ms = 0,
    life_ms = opts.now_ms,
    other = nil,
  }, Turn)
end

local function malformed(event)
  for field, kind in pairs(REQUIRED[event.kind] or {}) do
    if type(event[field]) ~= kind then
      return ("the event %s has no valid %s"):format(event.kind, field)
    end
  end
  for field, kind in pairs(REQUIRED[event.kind] and OPTIONAL or {}) do
    if event[field] ~= nil and type(event[field]) ~= kind then
      return ("the event %s has no valid %s"):format(event.kind, field)
    end
  end
  return nil
end

function Turn:_add(block)
  self.blocks[#self.blocks + 1] = block
  return block
end

--- Adds a note block.
function Turn:note(text, role)
  return self:_add({ kind = "note", text = text, role = role or "muted" })
end

--- Seconds of work since the start, without the time spent on questions here.
function Turn:seconds(now_ms)
  if not self.started_ms then
    return 0
  end
  local until_ms = self.ended_ms or now_ms
  local paused = self.paused_ms
  if self.asked_ms then
    paused = paused + (until_ms - self.asked_ms)
  end
  return math.max(0, (until_ms - self.started_ms - paused) / 1000)
end

--- The question that waits for an answer, oldest first.
function Turn:open_question()
  for _, block in ipairs(self.blocks) do
    if block.kind == "question" and block.state == "open" then
      return block
    end
  end
  return nil
end

-- Stops or restarts the clock when the first question opens or the last one is answered.
function Turn:_clock(now_ms)
  local open = self.answers and self:open_question() ~= nil
  if open and not self.asked_ms then
    self.asked_ms = now_ms
  elseif not open and self.asked_ms then
    self.paused_ms = self.paused_ms + (now_ms - self.asked_ms)
    self.asked_ms = nil
  end
end

-- Adds text that starts at a byte offset. What is held already changes nothing; text past
-- what is held waits for the next persisted update.
local function merge(block, offset, delta)
  local have = #block.text
  if offset > have or offset + #delta <= have then
    return false
  end
  block.text = block.text .. delta:sub(have - offset + 1)
  return true
end

function Turn:_prose(index)
  local block = self.prose[index]
  if not block then
    block = self:_add({ kind = "prose", index = index, text = "", done = false })
    self.prose[index] = block
  end
  return block
end

local on = {}

function on.turn_started(self, event, now_ms)
  self.phase = "running"
  self.started_ms = now_ms
  self.cwd = event.cwd
  self.settings = event.settings
  self.activity = { kind = "waiting" }
  local text = notes.fallback(type(event.settings) == "table" and event.settings or nil)
  if text then
    self:note(text)
  end
end

function on.prompt_queued(self, event)
  self.text = event.text
end

function on.prompt_withdrawn(self, _, now_ms)
  self:_end("withdrawn", now_ms)
end

function on.assistant_message_updated(self, event)
  merge(self:_prose(event.index), event.offset, event.delta)
  self.activity = { kind = "writing" }
end

function on.assistant_message_completed(self, event)
  local block = self:_prose(event.index)
  if event.text:sub(1, #block.text) ~= block.text then
    -- The truth differs from what was drafted; what stands on the screen cannot be taken back.
    block.done = true
    block = self:_add({ kind = "prose", index = event.index, text = "" })
    self.prose[event.index] = block
  end
  block.text, block.done = event.text, true
  self.activity = { kind = "waiting" }
end

function on.tool_call_started(self, event, now_ms)
  local question = self.questions[event.call_id]
  self.calls[event.call_id] = self:_add({
    kind = "call",
    call_id = event.call_id,
    tool = event.tool,
    input = event.input,
    state = "running",
    started_ms = now_ms,
    heard_ms = now_ms,
    manual = event.manual_input == true,
    contained = type(event.launch) == "table" and event.launch.kind == "contained",
    denied = question and question.state ~= "allowed" or nil,
  })
  self.activity = { kind = "running", detail = event.tool }
end

function on.tool_call_output_updated(self, event, now_ms)
  local call = self.calls[event.call_id]
  if call then
    call.tail, call.heard_ms = event.tail, now_ms
  end
end

function on.tool_call_input_changed(self, event)
  local call = self.calls[event.call_id]
  if call and call.state == "running" then
    waits.change(self, call, event)
  end
end

function on.shell_command_input_changed(self, event)
  local call = self.calls[event.call_id]
  if call and call.state == "done" then
    waits.change(self, call, event)
  end
end

function on.tool_call_completed(self, event, now_ms)
  local call = self.calls[event.call_id]
  self.activity = { kind = "waiting" }
  if not call then
    return
  end
  waits.finish(call)
  call.state = "done"
  call.seconds = (now_ms - call.started_ms) / 1000
  for _, field in ipairs({
    "output", "is_error", "exit_code", "refusal", "changes", "diff", "sandbox",
  }) do
    call[field] = event[field]
  end
end

function on.approval_requested(self, event)
  self.questions[event.call_id] = self:_add({
    kind = "question",
    state = "open",
    call_id = event.call_id,
    tool = event.tool,
    summary = event.summary,
    reasons = event.reasons,
    diff_preview = event.diff_preview,
    exit = event.exit,
    guard = event.guard,
  })
  self.activity = { kind = "answer" }
end

local function resolve(self, call_id, state, origin)
  local question = self.questions[call_id]
  if question then
    question.state, question.origin = state, origin
  end
  local tool = question and question.tool
  self.activity = state == "allowed" and { kind = "waiting" } or { kind = "running", detail = tool }
end

function on.approval_resolved(self, event)
  resolve(self, event.call_id, event.decision == "allow" and "allowed" or "denied", event.origin)
end

function on.approval_expired(self, event)
  resolve(self, event.call_id, "expired")
end

function on.home_file_changed(self, event)
  table.insert(self.home_changes, event)
end

-- Only the full record shows it.
function on.exit_requested(self, event)
  self:_add({ kind = "exit", request = event })
end

-- What a person said stands in the line of the answer, and a refusal in that of the call.
function on.exit_judged(self, event)
  local told = event.judge == "user" or event.verdict == "deny"
  self:_add({ kind = "exit", verdict = event, told = told })
end

function on.sandbox_surface_changed(self, event)
  self.quarantined[event.call_id] = event.quarantined or self.quarantined[event.call_id]
  self:_add({ kind = "note", changed = event })
end

function on.surface_question_requested(self, event)
  self.questions[event.question_id] = self:_add({
    kind = "question",
    state = "open",
    question_id = event.question_id,
    call_id = event.call_id,
    changes = event.changes,
  })
  self.activity = { kind = "answer" }
end

-- A note says where it lies, so that it can be put back by hand.
local function leave(self, question)
  question.state = "left"
  local quarantined = self.quarantined[question.call_id]
  if quarantined then
    self:_add({ kind = "note", quarantined = quarantined })
  end
end

function on.surface_question_answered(self, event)
  local question = self.questions[event.question_id]
  self.activity = { kind = "waiting" }
  if not question then
    return
  end
  question.origin = event.origin
  if event.keep then
    question.state = "kept"
  else
    leave(self, question)
  end
end

function on.turn_surface_report(self, event)
  self:_add({ kind = "note", report = event })
end

function on.shell_command_left(self, event)
  self.left[event.call_id] = event.line
  self:note(notes.left(event.line))
end

function on.shell_command_ended(self, event)
  local line, call = self.left[event.call_id], self.calls[event.call_id]
  if call then
    waits.finish(call)
  end
  if line then
    self:note(notes.left_ended(line, event.exit_code))
  end
end

function on.turn_undone(self, event)
  self:note(notes.undone(event))
end

function on.turn_interrupt_requested(self)
  self.activity = { kind = "interrupting" }
end

function on.turn_completed(self, event, now_ms)
  self.changes, self.undo = event.changes, event.undo
  self:_end("completed", now_ms, event)
end

function on.turn_interrupted(self, event, now_ms)
  self:_end("interrupted", now_ms, event)
end

function on.turn_failed(self, event, now_ms)
  self.error = event.error
  self:_end("failed", now_ms, event)
end

function on.turn_cancelled(self, event, now_ms)
  self:_end("cancelled", now_ms, event)
end

function Turn:_end(outcome, now_ms, event)
  self.ended_ms = now_ms
  self.phase, self.outcome = "ended", outcome
  self.usage = event and event.usage
  self.context = event and event.context or self.context
  for _, block in ipairs(self.blocks) do
    if block.kind == "prose" then
      block.done = true
    elseif block.kind == "question" and block.state == "open" then
      block.state = block.question_id and "left" or "expired"
    elseif block.kind == "input" and block.state == "open" then
      block.state, block.typed = "over", nil
    elseif block.kind == "call" and block.state == "running" then
      block.state = "done"
      block.unfinished = true
    end
  end
end

--- Applies one event of the conversation. Events of other turns only tell that something runs.
--- @return true|nil, string? error of a known kind with a malformed body
function Turn:event(envelope, now_ms)
  local event = envelope.event
  if type(event) ~= "table" or type(event.kind) ~= "string" then
    return nil, "an event without a kind"
  end
  self.seq = math.max(self.seq, envelope.seq or 0)
  self.life_ms = now_ms
  if event.turn_id ~= self.id and not OF_A_CALL[event.kind] then
    return true
  end
  local wrong = malformed(event)
  if wrong then
    return nil, wrong
  end
  if ENDS_CALL[event.kind] then
    self.ended_seq = self.seq
  end
  local handler = on[event.kind]
  if handler and (self.phase ~= "ended" or AFTER_END[event.kind]) then
    handler(self, event, now_ms)
    self:_clock(now_ms)
  end
  return true
end

local draft = {}

function draft.text(self, d)
  local block = self.prose[d.index]
  if block and block.done then
    return
  end
  if not block and d.offset ~= 0 then
    return
  end
  merge(self:_prose(d.index), d.offset, d.delta)
  self.activity = { kind = "writing" }
end

function draft.reasoning(self, d)
  self.activity = { kind = "thinking", detail = d.title or self.activity.detail }
end

function draft.tool_input(self, d)
  self.activity = { kind = "preparing", detail = d.tool, bytes = d.bytes }
end

function draft.context(self, d)
  self.context = { tokens = d.tokens, limit = d.limit, window = d.window }
end

function draft.unsaved(self, d)
  self:note(notes.unsaved(d.message), "error").urgent = true
end

--- Applies a draft. A draft of another turn, or one that is older than what ended its subject,
--- changes nothing.
function Turn:draft(item, now_ms)
  local d = item.draft
  if item.turn_id ~= self.id or type(d) ~= "table" or self.phase ~= "running" then
    return
  end
  local handler = draft[d.kind]
  if not handler then
    return
  end
  self.life_ms = now_ms
  local fleeting = d.kind == "reasoning" or d.kind == "tool_input"
  if not fleeting or (item.after_seq or self.seq) >= self.ended_seq then
    handler(self, d)
  end
end

return M
