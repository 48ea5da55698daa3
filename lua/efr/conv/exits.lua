-- Owns: the path of the exits of one call, from the decision to what the call may do: record,
-- who decides, what was decided, and what the call gets.
-- Must not know: how an exit was found (perm), how a question is asked (steps/decide), how a grant
-- is mounted. Runs in efrd, in the turn's task; waits for the reviewer and the store.
--
-- Policy: floors and the user's own deny rules refuse with no question. The user's always rules
-- come next, then the reviewer for what is the reviewer's, then the user. A reviewer that is not
-- there, is unsure or fails is the user. What was decided holds for this call alone, and the call
-- gets the grants of the decision and nothing else. Every request and every verdict is recorded
-- before the call runs.

local always = require "efr.conv.always"
local desktop = require "efr.conv.desktop"
local events = require "efr.conv.events"
local exit_check = require "efr.conv.exit_check"
local exit_grants = require "efr.conv.exit_grants"
local exit_record = require "efr.conv.exit_record"
local prompt = require "efr.conv.prompt"
local refuse = require "efr.conv.refuse"

local M = {}

local ROW_MAX <const>, TURN_MAX <const> = 3, 10 -- refusals of the reviewer

---@class efr.CallExits  what an approved call carries, in call.exits
---@field list efr.Exit[]
---@field outside boolean  it runs outside of the sandbox, alone
---@field grants efr.sbx.Grant[]
---@field env_set string[][]
---@field wire table[]  the grants as the protocol has them

-- Recording --------------------------------------------------------------------------------------

local function judged(call, judge, verdict, more)
  local fields = { call_id = call.id, judge = judge, verdict = verdict }
  for name, value in pairs(more or {}) do fields[name] = value end
  return events.make("exit_judged", fields)
end

-- Notes a verdict for the records of later calls of the turn.
local function note(turn, decision, verdict)
  for _, exit in ipairs(decision.exits) do
    turn.exits[#turn.exits + 1] = { kind = exit.kind, verdict = verdict }
  end
end

---The events of a request that nobody was asked about.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@param judge string
---@param verdict string
---@param more table?
---@return boolean recorded
local function settle(turn, call, decision, judge, verdict, more)
  local list = { judged(call, judge, verdict, more) }
  if not call.exit_requested then
    call.exit_requested = true
    table.insert(list, 1, events.make("exit_requested", exit_record.request(turn, call, decision)))
  end
  note(turn, decision, verdict)
  return turn:record(list) ~= nil
end

-- Desktop sockets --------------------------------------------------------------------------------

-- The one control socket of a desktop exit, from the terminal of the prompt.
local function find_sockets(turn, decision)
  for _, exit in ipairs(decision.exits) do
    if exit.kind == "desktop_ipc" and #exit.grants == 0 and exit.launch == "contained" then
      local grant, why = desktop.grant(turn, exit.target)
      if not grant then return nil, why end
      exit.grants = { grant }
      decision.grants[#decision.grants + 1] = grant
    end
  end
  return true
end

-- Who decides ------------------------------------------------------------------------------------

local function cite_of(decision, approver)
  for _, exit in ipairs(decision.exits) do
    if exit.approver == approver and exit.cite then return exit.cite end
  end
  return nil
end

local function approvers(decision)
  local out = {}
  for _, exit in ipairs(decision.exits) do out[exit.approver] = true end
  return out
end

-- Asks the reviewer about what is the reviewer's alone: "allow", "deny" or nothing. A call that
-- must ask for another reason goes to the user.
local function ask_reviewer(turn, call, decision)
  local reviewer, who = turn.app.reviewer, approvers(decision)
  if call.allowed_once or not reviewer or turn.reviewer.paused then return nil end
  if who.user or not who.reviewer or decision.inside == "ask" then return nil end
  local record = exit_record.record(turn, call, decision)
  -- An error of the reviewer is no verdict.
  local ok, found = pcall(turn.unless_stopped, turn, reviewer.judge, reviewer, turn, call, record)
  if not ok then turn.app.log:error("the reviewer failed: %s", found) end
  if not ok or not found then return nil end
  if found.verdict ~= "allow" and found.verdict ~= "deny" then
    call.judged = found
    return nil
  end
  return found.verdict, found
end

-- So many refusals pause the reviewer for the rest of the turn: a person decides then.
local function count_denial(turn)
  local state = turn.reviewer
  state.row, state.all = state.row + 1, state.all + 1
  if state.row >= ROW_MAX then
    state.paused = ("%d actions in a row"):format(state.row)
  elseif state.all >= TURN_MAX then
    state.paused = ("%d actions"):format(state.all)
  end
  if state.paused and turn.app.presence:is_away() then
    turn:fail("forbidden", ("auto stopped this turn: the reviewer refused %s and nobody could "
      .. "decide"):format(state.paused))
  end
end

local function reviewer_denied(turn, call, found)
  count_denial(turn)
  local why = found.rationale or found.category or "it did not say why"
  return refuse.call(turn, call, ("The reviewer refused this call: %s. It did not run, and it "
    .. "must not be worked around."):format(why) .. prompt.ALLOW_LAST,
    { kind = "reviewer", reason = why })
end

local OUTCOME <const> = { allow = "run", contain = "run", ask = "ask", deny = "deny" }

-- The rule of the user's that refuses the call, in an exit or in what it declares.
local function rule_of(decision)
  local cite = cite_of(decision, "denied")
  for _, reason in ipairs(decision.reasons) do
    if reason.effect == "deny" then cite = cite or reason.cite end
  end
  return cite
end

local function denied(turn, call, decision)
  local cite = rule_of(decision)
  settle(turn, call, decision, cite and "rule" or "floor", "deny", { rule = cite })
  return "deny"
end

-- What is decided without the reviewer and without a person: by full mode or always rules.
local function decided_already(turn, call, decision)
  local effect = decision.effect
  if approvers(decision).full then
    return settle(turn, call, decision, "full", "allow") and OUTCOME[effect] or nil
  end
  return settle(turn, call, decision, "always", "allow", { rule = cite_of(decision, "rule") })
    and "run" or nil
end

---Decides a call and its exits as far as no person is needed.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return string? outcome  "run", "ask" (a person), "deny" (nobody can open it); nil: the call
---  has ended
function M.decide(turn, call, decision)
  if #decision.exits == 0 then return OUTCOME[decision.effect] or "deny" end
  if decision.effect == "deny" then return denied(turn, call, decision) end
  local ok, missing = find_sockets(turn, decision)
  if not ok then
    return refuse.call(turn, call, missing .. ". The call did not run.",
      { kind = "unavailable", reason = missing })
  end
  exit_check.take(turn, call)
  if decision.effect ~= "ask" or approvers(decision).full then
    return decided_already(turn, call, decision)
  end
  local verdict, found = ask_reviewer(turn, call, decision)
  if turn:is_stopped() or not verdict then return "ask" end
  if not settle(turn, call, decision, "classifier", verdict, found) then return nil end
  if verdict == "deny" then return reviewer_denied(turn, call, found) end
  turn.reviewer.row = 0
  return "run"
end

-- The question -----------------------------------------------------------------------------------

---What a question about a call with exits says, and the event that comes before it.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return table? exit  ExitInfo; nil: the call has no exits
---@return string[]? reasons
---@return table? event  exit_requested
function M.question(turn, call, decision)
  if #decision.exits == 0 then return nil end
  local info, reasons = exit_record.info(turn, call, decision, call.judged)
  call.always_rule, info.always_rule = always.offer(turn, call, decision)
  if call.exit_requested then return info, reasons end
  call.exit_requested = true
  return info, reasons,
    events.make("exit_requested", exit_record.request(turn, call, decision))
end

---Records what a person said. Nobody's answer is no verdict.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@param verdict "allow"|"deny"
---@return boolean recorded
function M.answered(turn, call, decision, verdict)
  turn.reviewer.row = 0
  if #decision.exits == 0 then return true end
  return settle(turn, call, decision, "user", verdict)
end

-- What the call gets -----------------------------------------------------------------------------

---Sets what an approved call may do: call.exits.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return boolean ok  false: a grant cannot be given, and the call has ended
function M.open(turn, call, decision)
  if #decision.exits == 0 then return true end
  local opened, why = exit_grants.for_launcher(turn.app, decision.grants)
  if not opened then
    refuse.call(turn, call, why .. ". The call did not run.",
      { kind = "unavailable", reason = why })
    return false
  end
  call.exits = {
    list = decision.exits, outside = exit_record.launch(call, decision) == "unsandboxed",
    grants = opened.grants, env_set = opened.env_set,
    wire = exit_grants.for_wire(turn.app.ports.json, decision.grants),
  }
  call.ctx.granted = #opened.grants > 0
  return true
end

return M
