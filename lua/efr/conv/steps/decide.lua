-- Step decide: the single check point. Asks the engine, waits for the user where it says ask, and
-- sets how the call may run. Nothing else of efr calls the engine before a tool runs.
-- Must not know: tools' insides, the wire. Runs in efrd, in the turn's task; waits.
--
-- Policy: allow runs directly, contain in the sandbox, deny not at all, ask parks the call on a
-- question until an answer, the timeout or an interrupt. In auto a shell line runs in the sandbox,
-- also after a yes, unless one of its exits can only be served outside (conv.exits). Three refusals
-- in a row in auto, with no person involved, end the turn.

local allow_last = require "efr.conv.allow_last"
local engine = require "efr.perm.engine"
local events = require "efr.conv.events"
local exits = require "efr.conv.exits"
local machine = require "efr.conv.machine"
local modes = require "efr.perm.modes"
local own_rules = require "efr.conv.own_rules"
local prompt = require "efr.conv.prompt"
local question_of = require "efr.conv.question"
local refuse = require "efr.conv.refuse"

local M = {}

M.MAX_REFUSALS = 3 ---@type integer

local MAX_SUMMARY <const> = 4096

-- A guarded delete has a question of its own form.
local function reasons_of(decision, effect, without_exits)
  local out, guarded = {}, false
  for _, reason in ipairs(decision.reasons or {}) do
    guarded = guarded or reason.guard
    local counts = not reason.guard and not (without_exits and reason.exit)
    if reason.effect == effect and counts then out[#out + 1] = reason.text end
  end
  if without_exits and #out == 0 then return out end
  if #out == 0 and guarded then out[1] = "it deletes what efr guards" end
  if #out == 0 then out[1] = "there is no rule that allows it" end
  return out
end

-- Whether nothing refuses the call but that its line has more than the command that must run
-- outside: no refusal, the model is told to split it.
local function is_not_alone(decision)
  local alone = false
  for _, reason in ipairs(decision.reasons or {}) do
    if reason.effect == "deny" and not reason.alone then return false end
    alone = alone or reason.effect == "deny"
  end
  return alone
end

local function deny(turn, call, decision)
  local reasons = reasons_of(decision, "deny")
  local refusal = { kind = "floor", reason = table.concat(reasons, "; ") }
  if is_not_alone(decision) then
    return refuse.call(turn, call, prompt.split(reasons), refusal)
  end
  refuse.call(turn, call, prompt.refused(reasons), refusal)
  turn.refusals = turn.refusals + 1
  if turn.settings.mode == "auto" and turn.refusals >= M.MAX_REFUSALS then
    turn:fail("forbidden", ("auto stopped this turn: %d actions were refused in a row"):format(
      turn.refusals))
  end
  return nil
end

---What a question shows of a call: the line of a shell call, else the tool and its path.
---@param call table
---@return string
function M.summary(call)
  local input = call.input
  local text = call.name
  if call.tool.summary then
    text = call.tool.summary(input)
  elseif type(input.command) == "string" then
    text = input.command
  elseif type(input.path) == "string" then
    text = call.name .. " " .. input.path
  end
  if #text <= MAX_SUMMARY then return text end
  local cut = MAX_SUMMARY
  while cut > 0 and (text:byte(cut + 1) & 0xC0) == 0x80 do cut = cut - 1 end
  return text:sub(1, cut) .. "..."
end

local function is_interactive(call)
  for _, requirement in ipairs(call.requirements) do
    if requirement.kind == "interactive" then return true end
  end
  return nil
end

-- How a call with this effect runs.
local function launch_of(turn, call, effect)
  if effect ~= "allow" and effect ~= "ask" and effect ~= "contain" then return nil end
  if call.name ~= "shell" then return "direct" end
  if call.decision.launch == "unsandboxed" then return "outside" end
  if turn.settings.mode == "auto" then return "contained" end
  return effect == "contain" and "contained" or "direct"
end

-- A guarded delete has a time of its own; without an answer it does not run. Its question names
-- each target, and that no undo brings it back.
local function guard_of(turn, call, decision)
  local guard
  for _, reason in ipairs(decision.reasons) do
    if reason.guard then
      guard = guard or { seconds = reason.seconds, deletes = turn.app.ports.json.array({}),
        undo = call.facts ~= nil and call.facts.covered == true }
      guard.deletes[#guard.deletes + 1] = reason.deletes
    end
  end
  return guard
end

-- The events of a question: the request of its exits comes first.
local function question_events(turn, call, decision, guard)
  local exit, why, request = exits.question(turn, call, decision)
  local reasons = reasons_of(decision, "ask", exit ~= nil)
  local list = { request }
  list[#list + 1] = events.make("approval_requested", {
    call_id = call.id,
    tool = call.name,
    summary = M.summary(call),
    reasons = table.move(why or {}, 1, #(why or {}), #reasons + 1, reasons),
    diff_preview = call.tool.preview and call.tool.preview(call.input, call.ctx) or nil,
    interactive = is_interactive(call),
    guard = guard,
    exit = exit,
  })
  return list
end

-- A call that a person did not let run.
local function not_allowed(turn, call, decision, answer)
  if answer == "deny" then
    exits.answered(turn, call, decision, "deny")
    return refuse.call(turn, call, prompt.denied(call.name),
      { kind = "user", reason = "denied by the user" })
  end
  turn:record({ events.make("approval_expired", { call_id = call.id }) })
  if answer == "interrupted" then
    return refuse.call(turn, call, prompt.cut_off(turn.token.reason, false),
      { kind = "interrupted", reason = "the turn was interrupted" })
  end
  if answer == "away" then
    return refuse.call(turn, call, prompt.AWAY,
      { kind = "expired", reason = "nobody answered while you were away" })
  end
  return refuse.call(turn, call, prompt.EXPIRED,
    { kind = "expired", reason = reasons_of(decision, "ask")[1] })
end

local function ask(turn, call, decision)
  local conv = turn.conv
  local guard = guard_of(turn, call, decision)
  local asked = question_events(turn, call, decision, guard)
  local question = question_of.new(turn)
  question.rule = call.always_rule
  conv.approvals[call.id] = question
  if not turn:record(asked) then
    conv.approvals[call.id] = nil
    return nil
  end
  local secs = guard and guard.seconds
    or turn.app.config:get("conversation.approval_timeout_secs")
  -- Nobody deletes what is guarded while the user is away.
  if guard and turn.app.presence:is_away() then secs = 0 end
  local answer = question_of.wait(turn, question, secs)
  conv.approvals[call.id] = nil
  turn.refusals = 0
  if answer ~= "allow" then return not_allowed(turn, call, decision, answer) end
  return exits.answered(turn, call, decision, "allow") or nil
end

-- The user let exactly this call run once: their yes is recorded as an answer, at once.
local function allowed_once(turn, call, decision)
  local list = question_events(turn, call, decision)
  list[#list + 1] = events.make("approval_resolved",
    { call_id = call.id, decision = "allow", origin = turn.prompt.origin })
  turn.refusals = 0
  return turn:record(list) and exits.answered(turn, call, decision, "allow") or nil
end

-- Full mode can be turned off between the start of a turn and a call.
local function full_is_off(turn)
  if turn.settings.mode ~= "full" then return nil end
  local refusal = modes.full_refusal(machine.full(turn.app))
  return refusal and { reasons = { { effect = "deny", text = "the mode full cannot be used: "
    .. refusal } } }
end

local function input_of(turn, call)
  return {
    requirements = call.requirements,
    tool = call.name,
    mode = turn.settings.mode,
    origin = turn.prompt.origin,
    scope = { kind = turn.scope.kind, root = turn.project_root },
    machine = call.machine,
    rules = turn.app.config:get("permissions.rules"),
    lua = call.lua,
    facts = call.facts,
    lines = call.lines,
  }
end

local function remember(turn, call, input, effect)
  local launch = launch_of(turn, call, effect) or "none"
  local kept, message = turn.app.decisions:add({
    call_id = call.id, conversation_id = turn.conv.id, decision = call.decision, input = input,
    line = call.name == "shell" and call.input.command or nil, effect = effect,
    launch = launch == "outside" and "unsandboxed" or launch, -- the protocol's word
  })
  if not kept then
    turn.app.log:error("call %s: its decision cannot be explained later: %s", call.id, message)
  end
end

-- Lets a decided call go on: asks where a person must, refuses where nobody can.
local function settle(turn, call, decision)
  call.allowed_once = decision.effect == "ask" and not guard_of(turn, call, decision)
    and allow_last.takes(turn, call, decision)
  local outcome = exits.decide(turn, call, decision)
  if not outcome or turn.outcome then return nil end
  if outcome == "ask" and call.allowed_once then return allowed_once(turn, call, decision) end
  if outcome == "ask" then return ask(turn, call, decision) end
  if outcome == "deny" then return deny(turn, call, decision) end
  turn.refusals = 0
  return true
end

---@param turn efr.Turn
---@param call table
---@return true|nil
function M.run(turn, call)
  local off = full_is_off(turn)
  if off then return deny(turn, call, off) end
  local input = input_of(turn, call)
  local decision = engine.decide(input)
  if own_rules.ask_exits(turn, call, decision.exits) then
    input = input_of(turn, call)
    decision = engine.decide(input)
  end
  call.decision, call.decided = decision, input
  remember(turn, call, input, decision.effect)
  if not settle(turn, call, decision) then return nil end
  if not exits.open(turn, call, decision) then return nil end
  call.launch = launch_of(turn, call, decision.effect)
  call.ctx.launch = call.launch
  return true
end

return M
