-- Owns: the effect and the reason of a command line, and of the network of a line.
-- Must not know: paths, exits, where rules come from.
-- Runs in efrd and efr. Pure.
--
-- Policy: each simple command is judged by the rules, and the strictest decides. A line whose every
-- node is read-only is judged node by node, and a rule of the user can only make it stricter. A
-- line that cannot be read strictly meets the rules for anything, and each stricter rule of the
-- user that may mean one of the commands in it.

local line_of = require "efr.perm.line"
local matching = require "efr.perm.matching"
local read_only = require "efr.perm.read_only"
local reasons = require "efr.perm.reasons"
local rules = require "efr.perm.rules"

local M = {}

local ORDER <const> = rules.ORDER

-- Parts -----------------------------------------------------------------------------------------

-- What is judged: {command?, row?, node?} for each command, and why a row does not take the line.
local function parts_of(call, line)
  local parts, why
  if call.rows then parts, why = line_of.read_only(line, call.facts) end
  if parts then
    if #parts == 0 then parts = { { row = call.rows } } end
    return parts, nil, line.commands == nil
  end
  if not line.commands then return { {} }, why, true end
  local out = {}
  for i, command in ipairs(line.commands) do
    local row = call.rows and read_only.row(command, call.facts) or nil
    out[i] = { command = command, row = row }
  end
  return out, why, false
end

local function place_of(call, item)
  return { cwd = item.cwd, home = call.machine.home, project = call.project,
    scratch = call.machine.scratch[1] }
end

local function subject_of(part, action, place)
  return { action = action, command = part.command, row = part.row, place = place }
end

-- The last rule of the user that may mean a command which could only be read roughly.
local function possible_rule(list, command, action, place)
  for i = #list, 1, -1 do
    local rule = list[i]
    local kind = rule.user and (rule.action == action or rule.action == "any"
      and action == "execute") and rule.resource.kind
    if kind == "place" then
      -- What opens needs the strict reading.
      if rule.effect ~= "allow" and rules.at_place(rule.resource, command) then return rule end
    elseif kind == "command" then
      local pattern = rule.resource.command
      if rule.effect == "allow" then
        if matching.command(pattern, command, place) then return nil end
      elseif matching.might(pattern, command, place) then
        return rule
      end
    end
  end
  return nil
end

local function stricter_rule(rule, other)
  if other and (not rule or ORDER[other.effect] > ORDER[rule.effect]) then return other end
  return rule
end

local OF_COMMANDS <const> = { command = true, place = true }

-- A rule lets a program run by its name. When the name may lead to a file that changes without a
-- question, the rule does not know what it lets run.
local function without_doubt(call, rule, command)
  if rule.effect ~= "allow" or not command or not OF_COMMANDS[rule.resource.kind] then
    return rule
  end
  local why = read_only.untrusted(command, call.facts)
  if not why then return rule end
  return { id = rule.id, cite = rule.cite, conversation = rule.conversation, effect = "ask",
    resource = rule.resource, because = why }
end

-- The stricter rules of the user for the programs behind the one that runs them as another user.
local function rule_behind(call, line, command, action, place)
  local found
  for _, inner in ipairs(call.has_command_rules and line_of.found(line) or {}) do
    if inner.node == command.node then
      found = stricter_rule(found, possible_rule(call.rules, inner, action, place))
    end
  end
  return found
end

-- The base rules see of a command only whether a row takes it: one answer for all that are alike.
local function base_rule(call, part, action)
  local key = part.row ~= nil and action .. " with a row" or action
  local known = call.answers[key]
  if not known then
    known = rules.decide(call.rules, { action = action, row = part.row }, call.project)
    call.answers[key] = known
  end
  return known
end

local function rule_of(call, line, part, action, place, rough)
  if call.answers then return base_rule(call, part, action) end
  local command = part.command
  local rule = rules.decide(call.rules, subject_of(part, action, place), call.project)
  rule = rule and without_doubt(call, rule, command)
  if (rough or part.rough) and command then
    rule = stricter_rule(rule, possible_rule(call.rules, command, action, place))
  end
  if command and command.privileged then
    rule = stricter_rule(rule, rule_behind(call, line, command, action, place))
  end
  return rule
end

-- The stricter rules of the user for commands in a line that only the lenient reading sees.
local function rule_of_rough(call, line, action, place)
  local found
  for _, command in ipairs(call.has_command_rules and line_of.found(line) or {}) do
    local rule = possible_rule(call.rules, command, action, place)
    if rule and (not found or ORDER[rule.effect] > ORDER[found.rule.effect]) then
      found = { rule = rule, command = command }
    end
  end
  return found
end

-- Words -----------------------------------------------------------------------------------------

local function text_of(command)
  local words = {}
  for i, word in ipairs(command.words) do words[i] = word.text or "?" end
  return reasons.shown(table.concat(words, " "))
end

local function row_id(part)
  return type(part.row) == "table" and part.row.id or nil
end

-- The rule as a reason cites it: the rows of read-only commands stand behind one rule.
local function cited(rule, part)
  if rule.resource.kind ~= "read_only" then return rule end
  return {
    id = row_id(part) or rule.id, effect = rule.effect, because = rule.because,
    resource = rule.resource,
  }
end

local function note_of(line, rule, why)
  if rule.user or rule.effect == "allow" then return nil end
  if why and why ~= line.construct then return why end
  return line.construct and ("the line holds a construct: " .. line.construct) or nil
end

-- The lines -------------------------------------------------------------------------------------

local function strictest(call, line, item, action)
  local place = place_of(call, item)
  local parts, why, rough = parts_of(call, line)
  local best
  for i = 1, #parts do
    local part = parts[i]
    local rule = rule_of(call, line, part, action, place, rough)
    if not rule then return nil end
    if not best or ORDER[rule.effect] > ORDER[best.rule.effect] then
      best = { rule = rule, part = part }
    end
  end
  local several = #parts > 1
  if not line.commands and #parts == 1 and not parts[1].command then
    local found = rule_of_rough(call, line, action, place)
    if found and ORDER[found.rule.effect] > ORDER[best.rule.effect] then
      best, several = { rule = found.rule, part = found }, true
    end
  end
  local shown = several and best.part.command and text_of(best.part.command) or nil
  return best.rule, best.part, { part = shown, note = note_of(line, best.rule, why) }
end

local function by_conversation(call, line, item, reason, action)
  if #call.conversation == 0 then return reason end
  local own = setmetatable({ rules = call.conversation, rows = false, answers = false },
    { __index = call })
  local rule, _, words = strictest(own, line, item, action)
  return rule and reasons.by_rule(reason.subject, rule, words) or reason
end

---Judges a command line.
---@param call table
---@param item table  requirement of the kind line
---@return efr.Reason
function M.judge(call, item)
  local line = call.line(item.text)
  local subject = "run `" .. reasons.shown(item.text) .. "`"
  local rule, part, words = strictest(call, line, item, "execute")
  if not rule then return reasons.because(subject, "deny", "no rule matched") end
  local reason = reasons.by_rule(subject, cited(rule, part), words)
  reason = by_conversation(call, line, item, reason, "execute")
  if call.contained then
    return reasons.stricter(reasons.held(call, reason), "contain", "no rule lifts the sandbox")
  end
  if not call.settles and line_of.is_privileged(line) then
    return reasons.stricter(reason, "ask", "a program runs as another user")
  end
  return reason
end

local NETWORK <const> = "network"

local function network_reason(rule, words)
  if not rule then return reasons.because(NETWORK, "deny", "no rule matched") end
  return reasons.by_rule(NETWORK, rule, words)
end

-- A command that only a built-in row lets run needs no network rule of its own.
local function is_skipped(call, command, place)
  local row = read_only.row(command, call.facts)
  if not row then return false end
  local rule = rules.decide(call.rules, subject_of({ command = command }, "execute", place),
    call.project)
  return not (rule and rule.user)
end

local function network_of(call, item)
  local line = call.line(item.text)
  local place = place_of(call, item)
  local best, part
  for _, command in ipairs(line.commands or {}) do
    if not is_skipped(call, command, place) then
      local rule = rules.decide(call.rules, subject_of({ command = command }, "network", place),
        call.project)
      if not rule then return network_reason(nil) end
      if not best or ORDER[rule.effect] > ORDER[best.effect] then best, part = rule, command end
    end
  end
  if not best then
    return network_reason(rules.decide(call.rules, { action = "network" }, call.project))
  end
  return network_reason(best, { part = #line.commands > 1 and text_of(part) or nil })
end

---Judges the network of a call.
---@param call table
---@param lines table[]  the line requirements of the call
---@return efr.Reason
function M.network(call, lines)
  local worst
  for _, item in ipairs(lines) do
    local reason = network_of(call, item)
    if not worst or ORDER[reason.effect] > ORDER[worst.effect] then worst = reason end
  end
  worst = worst
    or network_reason(rules.decide(call.rules, { action = "network" }, call.project))
  local reason = reasons.held(call, worst)
  if call.contained then return reasons.stricter(reason, "contain", "no rule lifts the sandbox") end
  return reason
end

return M
