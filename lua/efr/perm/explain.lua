-- Owns: a decision as data for a program and as text for a person: how the line was read, what it
-- declares, each reason, the exits and who decides them, and which rule would change it.
-- Must not know: how anything is judged, the terminal.
-- Runs in efrd and efr. Pure.

local exit_who = require "efr.perm.exit_who"
local reasons = require "efr.perm.reasons"

local M = {}

-- The line --------------------------------------------------------------------------------------

local function words_of(command)
  local words = {}
  for i, word in ipairs(command.words) do words[i] = word.text or "?" end
  return table.concat(words, " ")
end

---How a line was read.
---@param line efr.perm.Line
---@return table parse  {ok, commands?, construct?, why?}
function M.parse(line)
  local out = { ok = line.ast ~= nil, why = line.why }
  if line.commands then
    out.commands = {}
    for i, command in ipairs(line.commands) do out.commands[i] = words_of(command) end
  else
    out.construct = line.construct
  end
  return out
end

-- What would change it --------------------------------------------------------------------------

local PLAIN <const> = "^[%w%-_./:,+@%%=]+$"

local RULE <const> = "[[permissions.rules]] "

local function quoted(word)
  return '"' .. word .. '"'
end

local function command_rule(command, action)
  local program = command.words[1] and command.words[1].text
  if not program or not program:find(PLAIN) or program:find("^[-=]") then return nil end
  local arg = command.words[2] and command.words[2].text
  local args = arg and arg:find("^%a[%w-]*$") and (", args = [%s]"):format(quoted(arg)) or ""
  return ('action = "%s", resource = { command = { program = %s%s } }, effect = "allow"'):format(
    action, quoted(program), args)
end

local function path_rule(item)
  local path = item.path
  if path:find('["\\%c]') then return nil end
  return RULE .. ('action = "%s", resource = { under = %s }, effect = "allow"'):format(
    item.kind, quoted(path))
end

local FIXED <const> = "no rule changes this"

local function line_hint(line, action)
  if not line or not line.commands then
    return "no rule for a command sees a line like this; only one for \"any\" does"
  end
  for _, command in ipairs(line.commands) do
    local rule = not command.privileged and command_rule(command, action)
    if rule then return RULE .. rule end
  end
  return nil
end

-- The rule that would let a requirement run, for one that a rule decided.
local function hint(reason, item, line)
  if reason.effect ~= "ask" and reason.effect ~= "deny" then return nil end
  if not reason.rule then return FIXED end
  if reason.cite then return "it is your rule " .. reason.cite end
  if item.kind == "line" then return line_hint(line, "execute") end
  if item.kind == "network" then return line_hint(line, "network") end
  return item.path and path_rule(item) or nil
end

-- The decision ----------------------------------------------------------------------------------

local RANK <const> = { read = 1, write = 1, line = 2, network = 3, interactive = 4,
  nested_shell = 5, settings = 6, destructive = 7 }

-- The requirements in the order of their reasons.
local function ordered(requirements)
  local out = {}
  for rank = 1, 7 do
    for _, item in ipairs(requirements) do
      if RANK[item.kind] == rank then out[#out + 1] = item end
    end
  end
  return out
end

local function requirement(reason, item, line)
  return {
    kind = item and item.kind or "call", subject = reason.subject, effect = reason.effect,
    reason = reason.text, rule = reason.rule, cite = reason.cite,
    change = item and hint(reason, item, line) or nil,
  }
end

local function exit_of(exit, reason)
  local grants = {}
  for i, grant in ipairs(exit.grants) do grants[i] = exit_who.grant_text(grant) end
  return {
    kind = exit.kind, target = (exit.target:gsub("%z", "?")), source = exit.source,
    approver = exit.approver, launch = exit.launch, grants = grants, reason = reason,
  }
end

local ASKED <const> = { user = "you", reviewer = "the reviewer, else you" }

-- Who would be asked: the user as soon as one reason is only theirs.
local function who(decision)
  if decision.effect ~= "ask" then return nil end
  local asked
  for _, exit in ipairs(decision.exits) do
    if exit.approver == "user" then return ASKED.user end
    if exit.approver == "reviewer" then asked = ASKED.reviewer end
  end
  if decision.inside == "ask" then return ASKED.user end
  return asked or ASKED.user
end

-- Whether a reason is of an exit; those come behind the requirements, in the order of the exits.
local function split(decision)
  local own, left = {}, {}
  for _, reason in ipairs(decision.reasons) do
    local list = reason.exit and left or own
    list[#list + 1] = reason
  end
  return own, left
end

---A decision as plain data.
---@param decision efr.Decision
---@param input efr.Call  what was decided
---@param text string?  the line, when the call is one
---@return table data
function M.data(decision, input, text)
  local line = text and input.lines and input.lines[text]
  local own, left = split(decision)
  local items = ordered(input.requirements)
  local out = {
    line = text, tool = input.tool, mode = decision.mode, decision = decision.effect,
    launch = decision.launch,
    parse = line and M.parse(line) or nil, reasons = {}, requirements = {}, exits = {},
    views = decision.views, asked = who(decision), programs = input.facts and input.facts.programs,
  }
  for i, reason in ipairs(decision.reasons) do out.reasons[i] = reason.text end
  for i, reason in ipairs(own) do
    out.requirements[i] = requirement(reason, items[i], line)
  end
  for i, exit in ipairs(decision.exits) do
    out.exits[i] = exit_of(exit, left[i] and left[i].text)
  end
  return out
end

---Calls fn for every list in what data() returned, so that an empty one stays a list in JSON.
---@param data table
---@param fn fun(list: table)
function M.each_list(data, fn)
  for _, name in ipairs({ "reasons", "requirements", "exits", "views", "programs" }) do
    if data[name] then fn(data[name]) end
  end
  if data.parse and data.parse.commands then fn(data.parse.commands) end
  for _, exit in ipairs(data.exits) do fn(exit.grants) end
end

-- Text ------------------------------------------------------------------------------------------

local function parse_words(parse)
  if parse.commands then
    local quoted_words = {}
    for i, command in ipairs(parse.commands) do
      quoted_words[i] = "`" .. reasons.shown(command) .. "`"
    end
    return ("%d command%s: %s"):format(#quoted_words, #quoted_words == 1 and "" or "s",
      table.concat(quoted_words, "  "))
  end
  if not parse.ok then return "not readable: " .. tostring(parse.why) end
  return ("read node by node; for command rules it is opaque: %s"):format(parse.construct)
end

local function rows(out, title, list, text_of)
  if #list == 0 then return end
  out[#out + 1] = title
  for _, item in ipairs(list) do
    for _, text in ipairs({ text_of(item) }) do out[#out + 1] = "  " .. text end
  end
end

---The same as lines of text for a person.
---@param data table  what data() returned
---@return string[]
function M.text(data)
  local out = {}
  local function row(name, value)
    if value then out[#out + 1] = ("%-9s %s"):format(name, value) end
  end
  row("line", data.line and reasons.shown(data.line))
  row("mode", data.mode)
  row("parse", data.parse and parse_words(data.parse))
  row("decision", data.decision .. (data.asked and (" (" .. data.asked .. ")") or ""))
  row("launch", data.decision ~= "deny" and data.launch or "none")
  rows(out, "why", data.reasons, function(reason) return reason end)
  rows(out, "exits", data.exits, function(exit)
    local grants = #exit.grants > 0 and ("; grants " .. table.concat(exit.grants, ", ")) or ""
    local only = exit.approver == "user" and ", user only" or ", " .. exit.approver
    return ("%s %s%s; %s%s"):format(exit.kind, exit.target, only, exit.launch, grants)
  end)
  local changes, seen = {}, {}
  for _, item in ipairs(data.requirements) do
    if item.change and not seen[item.change] then
      seen[item.change], changes[#changes + 1] = true, item.change
    end
  end
  rows(out, "change", changes, function(change) return change end)
  row("rules", data.rules and data.rules.note)
  row("note", data.note)
  return out
end

return M
