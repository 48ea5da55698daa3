-- Owns: one turn, from its start to its terminal event: the loop of model calls, and the table of
-- steps that each tool call goes through.
-- Must not know: the wire, what a tool does, how a decision is made. Runs in efrd, one task per
-- turn.
--
-- The steps stand in one table, each in conv/steps/NAME.lua. A tool call goes surface -> facts ->
-- decide -> before_call -> run -> after_call, in this order and one call after another. Step decide
-- is the only caller of the permission engine, and run refuses a call that decide did not pass.
-- A step returns true to go on; anything else ends the call (its result is set) or the turn (its
-- outcome is set).

local after_call = require "efr.conv.steps.after_call"
local answer = require "efr.conv.answer"
local async = require "efr.util.async"
local before_call = require "efr.conv.steps.before_call"
local before_turn = require "efr.conv.steps.before_turn"
local decide = require "efr.conv.steps.decide"
local end_of_turn = require "efr.conv.steps.end_of_turn"
local errors = require "efr.model.errors"
local facts = require "efr.conv.steps.facts"
local prompt = require "efr.conv.prompt"
local run = require "efr.conv.steps.run"
local surface = require "efr.conv.steps.surface"

local M = {}

M.MAX_CALLS = 64 ---@type integer

M.STEPS = {
  before_turn = before_turn.run,
  surface = surface.run,
  facts = facts.run,
  decide = decide.run,
  before_call = before_call.run,
  run = run.run,
  after_call = after_call.run,
  end_of_turn = end_of_turn.run,
}

-- What may be used of the window while there is no compaction.
local CAP_PERCENT <const> = 95

local CALL_STEPS <const> = {
  "surface", "facts", "decide", "before_call", "run", "after_call",
}

local SUMS <const> = {
  "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cache_write_tokens",
  "cache_write_1h_tokens",
}

---@class efr.Turn
---@field id string
---@field conv efr.Conversation
---@field app table
---@field prompt table  the queued prompt
---@field token efr.Token  cancelled by an interrupt or the end of the daemon
---@field ended boolean  set before the terminal event is written
---@field outcome table|nil  {kind = "completed"|"failed"|"interrupted"|"cancelled", error?}
---@field rows string[]  the messages that this turn adds to the history, as they are saved
---@field unsaved string|nil  why they cannot be saved
---@field touched table  files that run code later, as they were before the turn's calls
---@field reviewer {row: integer, all: integer, paused: string?}  its refusals
---@field exits {kind: string, verdict: string}[]  what was decided of exits so far
---@field kept table<string, table>  what a person took out of quarantine: {path, detail?}
local Turn = {}
Turn.__index = Turn

local function new(conv, queued)
  return setmetatable({
    id = queued.turn_id,
    conv = conv,
    app = conv.app,
    prompt = queued,
    token = async.token(),
    ended = false,
    rows = {},
    usage = {},
    calls = 0,
    next_index = 0,
    refusals = 0,
    exits = {}, reviewer = { row = 0, all = 0 },
    changes = {},
    touched = {},
    kept = {},
  }, Turn)
end

---Ends the turn after the step that runs.
---@param code string  an error name of the protocol
---@param message string
---@param data? table
function Turn:fail(code, message, data)
  self.outcome = self.outcome or {
    kind = "failed",
    error = { code = code, message = message, data = data },
  }
end

---Ends the turn because an event could not be recorded.
function Turn:fail_store(message)
  self:fail("internal", "the event could not be recorded: " .. tostring(message))
end

---Records events of this turn. A failure ends the turn.
---@param list table[]
---@return integer[]|nil seqs
function Turn:record(list)
  for _, event in ipairs(list) do event.turn_id = self.id end
  local seqs, message = self.conv:append({ events = list })
  if not seqs then self:fail_store(message) end
  return seqs
end

---Sets the outcome when somebody asked the turn to stop.
---@return boolean stopped
function Turn:is_stopped()
  if self.outcome then return true end
  if self.token.cancelled then
    self.outcome = { kind = self.token.reason == "shutdown" and "cancelled" or "interrupted" }
    return true
  end
  return false
end

---How full the context window is after the newest model call, or nil before the first.
---@return {tokens: integer, limit: integer, window: integer}|nil
function Turn:context()
  if not self.context_tokens or not self.provider then return nil end
  local window = self.provider:window(self.settings.model)
  return { tokens = self.context_tokens, limit = window * CAP_PERCENT // 100, window = window }
end

---Waits for fn(...) but not longer than until somebody asks the turn to stop.
---@return any ...  the results of fn; nothing when the turn was stopped first
function Turn:unless_stopped(fn, ...)
  local args = table.pack(...)
  local results = async.await(function(resume)
    local remove = self.token:on_cancel(function() resume(nil) end)
    async.spawn(function()
      local found = table.pack(pcall(fn, table.unpack(args, 1, args.n)))
      remove()
      resume(found)
    end)
  end)
  if not results then return nil end
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

---Adds a message to the history. A failure to send it ends the turn.
function Turn:add_message(role, content, provider_raw)
  local json = self.app.ports.json
  local message = { role = role, content = json.array(content), provider_raw = provider_raw }
  local row, why = json.encode(message, { sort = true })
  if row then
    self.rows[#self.rows + 1] = row
  else
    self.unsaved = why
  end
  local ok
  ok, why = self.conv.history:add(message)
  if not ok then self:fail("internal", why) end
end

local function add_usage(turn, usage, request)
  if not usage then
    -- No numbers from the server: the estimate, so that a client still sees the size.
    local bytes = 0
    for _, text in ipairs(request.sent) do bytes = bytes + #text end
    turn.context_tokens = (bytes + 3) // 4
    return
  end
  for _, key in ipairs(SUMS) do turn.usage[key] = (turn.usage[key] or 0) + (usage[key] or 0) end
  turn.context_tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
end

local function show_context(turn)
  local draft = turn:context()
  draft.kind = "context"
  turn.conv:send_drafts({
    { turn_id = turn.id, after_seq = turn.conv.last_seq, draft = draft },
  })
end

local function add_answer(turn, got)
  local content = {}
  if got.text ~= "" then content[1] = { kind = "text", text = got.text } end
  for _, call in ipairs(got.calls) do
    content[#content + 1] = {
      kind = "tool_call",
      call_id = call.provider_id,
      name = call.name,
      input = call.input or {},
    }
  end
  if #content > 0 then turn:add_message("assistant", content, got.provider_raw) end
end

-- Runs the steps of one call; whatever happens, it has a result afterwards.
local function run_call(turn, call)
  for _, name in ipairs(CALL_STEPS) do
    if not M.STEPS[name](turn, call) then break end
  end
  call.result = call.result or { output = prompt.UNFINISHED, is_error = true }
end

-- Calls run one after another; all results go into one user message, in the order of the calls.
local function run_calls(turn, calls)
  local content = {}
  for i, call in ipairs(calls) do
    if not turn:is_stopped() then
      run_call(turn, call)
    elseif turn.outcome.kind == "failed" then
      call.result = { output = prompt.TURN_ENDED, is_error = true }
    else
      call.result = { output = prompt.cut_off(turn.token.reason, false), is_error = true }
    end
    content[i] = {
      kind = "tool_result",
      call_id = call.provider_id,
      output = call.result.output,
      is_error = call.result.is_error or false,
    }
  end
  turn:add_message("user", content)
end

local function request_of(turn)
  local history = turn.conv.history
  return {
    conversation_id = turn.conv.id,
    model = turn.settings.model,
    effort = turn.settings.effort,
    system = turn.system,
    sent = history:sent(),
    tools = turn.tools,
    max_output_tokens = turn.max_output_tokens,
    turn = history:count() + 1,
    call = turn.calls,
  }
end

-- One model call and the tools that it asks for. Returns true when another model call follows.
local function round(turn)
  local request = request_of(turn)
  local got = answer.receive(turn, request)
  turn.calls = turn.calls + 1
  add_answer(turn, got)
  if got.outcome ~= "error" then
    add_usage(turn, got.usage, request)
    show_context(turn)
  end
  if got.store_error then
    turn:fail_store(got.store_error)
  elseif got.outcome == "error" then
    local failure = errors.failure(got.err)
    turn:fail(failure.code, failure.message, failure.data)
  elseif got.outcome == "interrupted" then
    turn:is_stopped()
  end
  if #got.calls == 0 then
    turn.outcome = turn.outcome or { kind = "completed" }
    return false
  end
  run_calls(turn, got.calls)
  return not turn:is_stopped()
end

local function loop(turn)
  if not M.STEPS.before_turn(turn) then return end
  for _ = 1, M.MAX_CALLS do
    if turn:is_stopped() or not round(turn) then return end
  end
  turn:fail("internal", ("stopped after %d model calls without a final answer"):format(M.MAX_CALLS))
end

---Runs a turn to its end. Waits; never raises.
---@param conv efr.Conversation
---@param queued table  the prompt
function M.run(conv, queued)
  local turn = new(conv, queued)
  conv.current = turn
  for _, step in ipairs({ loop, M.STEPS.end_of_turn }) do
    local ok, traceback = async.spawn(step, turn):wait()
    if not ok then
      conv.app.log:error("turn %s: %s", turn.id, traceback)
      turn:fail("internal", "an internal error ended the turn; the log of efrd has the details")
    end
  end
  conv.current = nil
  if turn.settings and turn.settings.mode == "full" then conv.app.full_ended() end
end

return M
