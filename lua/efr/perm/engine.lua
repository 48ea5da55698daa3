-- Owns: the decision on one tool call, from what it declared, the mode, the rules and facts of the
-- machine.
-- Must not know: disk, clock, environment, git, or what the tool does.
-- Runs in efrd, called from one place: the step `decide` of conv/turn; and in `efr explain`. Pure.
--
-- Policy: effects are ordered allow < contain < ask < deny. Each requirement gets one effect with a
-- reason in words, and the strictest decides. So one more requirement can never loosen a decision.
-- No reason at all, a declaration that is not well formed, and any error in here deny.
--
-- In auto the sandbox holds what a built-in rule would ask about a shell call; what the sandbox
-- cannot serve is an exit (perm.exits), with a reason of its own. Full mode lets exits through, but
-- for a guarded delete.

local exits = require "efr.perm.exits"
local full = require "efr.perm.full"
local judge_line = require "efr.perm.judge_line"
local judge_path = require "efr.perm.judge_path"
local line = require "efr.perm.line"
local modes = require "efr.perm.modes"
local paths = require "efr.perm.paths"
local reasons = require "efr.perm.reasons"
local requirements = require "efr.perm.requirements"
local rules = require "efr.perm.rules"

local M = {}

local ORDER <const> = rules.ORDER
local because <const>, held <const> = reasons.because, reasons.held

---@class efr.Decision
---@field effect string
---@field inside string  the effect without the exits: what holds while no exit can be opened
---@field reasons efr.Reason[]  paths, line, network, terminal, nested shell, settings, then exits
---@field exits efr.Exit[]
---@field launch string  "direct", "contained" or "unsandboxed"
---@field grants table[]
---@field views string[]  what of the host a contained line sees: "network", "mount", ...
---@field mode string  the mode that counted

-- One requirement each --------------------------------------------------------------------------

local JUDGES <const> = {
  read = judge_path.judge,
  write = judge_path.judge,
  line = judge_line.judge,
  network = function(call) return judge_line.network(call, call.lines) end,
  interactive = function(call)
    if call.settles then
      return because("terminal input", "allow", "full mode waits for you to type")
    end
    return held(call, because("terminal input", "ask",
      "the command can wait for somebody to type"))
  end,
  nested_shell = function(call)
    if call.mode == "auto" then
      return because("nested shell", "deny",
        "in auto a shell that stays is refused; run its commands one by one")
    end
    return because("nested shell", "ask", "the shell would stay open")
  end,
  settings = function(call, item)
    if call.remote then
      return because("settings", "deny", "another device changes no settings")
    end
    local loosens = item.loosens and ", and more would run without a question" or ""
    return because("settings", "ask", ("it changes efr's settings: %s%s"):format(
      reasons.shown(item.summary), loosens))
  end,
  destructive = function(call)
    if call.covered then
      return because("delete or move", "contain", "the snapshot of this call covers it")
    end
    return because("delete or move", "ask", "it takes files away")
  end,
}

local RANK <const> = {
  read = 1, write = 1, line = 2, network = 3, interactive = 4, nested_shell = 5, settings = 6,
  destructive = 7,
}

local function nothing_declared(call)
  if call.remote then
    return because("the call", "ask", "it comes from another device")
  end
  return because("the call", "allow", "it touches nothing that is judged")
end

local function judge(call, item, rank)
  local reason = JUDGES[item.kind](call, item)
  -- What has no path has no class, so it counts as outside $SCRATCH.
  if call.remote and rank > 1 then
    return reasons.stricter(reason, "ask", "it comes from another device")
  end
  return reason
end

local function reasons_of(call, items)
  local out, last = {}, 0
  for i = 1, #items do
    local rank = RANK[items[i].kind]
    if rank == 1 then out[#out + 1] = judge(call, items[i], 1) end
    if rank and rank > last then last = rank end
  end
  for rank = 2, last do
    for i = 1, #items do
      if RANK[items[i].kind] == rank then out[#out + 1] = judge(call, items[i], rank) end
    end
  end
  if last == 0 then out[1] = nothing_declared(call) end
  return out
end

-- The call ---------------------------------------------------------------------------------------

local function user_rules(call, input)
  local list = rules.of_user(input.rules or {}, { first = call.first, machine = call.machine,
    cite = function(rule, index)
      return ("permissions.rules[%d]"):format(rule.number or index)
    end })
  local more = input.lua and input.lua.rules or {}
  local own = rules.of_user(more, { first = call.first + #list, machine = call.machine,
    cite = function(rule) return rule.cite end })
  return table.move(own, 1, #own, #list + 1, list)
end

local function has_command_rules(list)
  for _, rule in ipairs(list) do
    local kind = rule.resource.kind
    if (kind == "command" or kind == "place") and rule.effect ~= "allow" then return true end
  end
  return false
end

local function conversation_rules(input, machine)
  local list = rules.of_user(input.conversation_rules or {}, { first = 0, machine = machine,
    cite = function() return nil end })
  for _, rule in ipairs(list) do rule.conversation = true end
  return list
end

local function call_of(input)
  local mode = modes.known(input.mode, input.origin)
  -- Prepared also for a call without a path, which must not be judged on a machine without sense.
  local machine = paths.prepare(input.machine)
  local base = modes.base(mode, input.tool)
  local call = {
    mode = mode, machine = machine, remote = not modes.is_local(input.origin), tool = input.tool,
    contained = base.contained, rows = base.rows, settles = base.settles, first = base.first,
    facts = input.facts or {}, cache = {}, lua = input.lua,
  }
  local own = user_rules(call, input)
  call.rules = table.move(own, 1, #own, #base.rules + 1,
    table.move(base.rules, 1, #base.rules, 1, {}))
  call.has_command_rules = has_command_rules(own)
  -- By what the base rules see of a command; kept only where the user has no rule.
  call.answers = #own == 0 and {}
  call.conversation = conversation_rules(input, machine)
  local scope = input.scope or {}
  if scope.kind == "project" then call.project = paths.project_root(scope.root, machine) end
  call.covered = mode == "auto" and call.facts.covered == true
  function call.line(text)
    local known = input.lines and input.lines[text] or call.cache[text]
    if not known then
      known = line.read(text)
      call.cache[text] = known
    end
    return known
  end
  call.lines = {}
  for _, item in ipairs(input.requirements) do
    if item.kind == "line" then call.lines[#call.lines + 1] = item end
  end
  return call
end

-- The answer of the user's Lua files: without one, every decision is at least a question.
local function lua_failure(input)
  local failure = input.lua and input.lua.failure
  if not failure then return nil end
  local reason = because("rules.lua", "ask", failure)
  reason.user = true
  return reason
end

local function strictest(list)
  local effect = "allow"
  for _, reason in ipairs(list) do
    if ORDER[reason.effect] > ORDER[effect] then effect = reason.effect end
  end
  return effect
end

local LAUNCHES <const> = { contain = "contained", allow = "direct", ask = "direct" }

local function decide(input)
  if type(input.requirements) ~= "table" then error("nothing was declared", 0) end
  local ok, err = requirements.check(input.requirements)
  if not ok then error(err, 0) end
  local call = call_of(input)
  local out = reasons_of(call, input.requirements)
  out[#out + 1] = lua_failure(input)
  local inside = strictest(out)
  local found = exits.of_call(call, input)
  if found.launch == "unsandboxed" then
    for i, reason in ipairs(out) do out[i] = reasons.let_out(reason) end
  end
  for _, reason in ipairs(found.reasons) do out[#out + 1] = reason end
  for _, reason in ipairs(call.settles and full.guard(call) or {}) do
    out[#out + 1] = reason
  end
  local effect = strictest(out)
  local launch = found.launch or (call.contained and "contained") or LAUNCHES[effect]
  return {
    effect = effect, inside = inside, reasons = out, exits = found.exits, grants = found.grants,
    views = found.views, launch = launch, mode = call.mode,
  }
end

---@class efr.Call
---@field requirements table[]  what the tool declared
---@field tool string
---@field mode string  of the turn; an unknown one counts as manual
---@field origin string  of the prompt; an unknown one counts as remote
---@field scope { kind: string, root: string? }?  "machine", "path" or "project"; only a project
---  gives a right
---@field machine efr.Machine
---@field rules table[]?  `permissions.rules` as the configuration gives them; number: the one to
---  cite, where it is not the place in the list
---@field conversation_rules table[]?  the same form
---@field lua { rules: table[]?, exits: table[]?, failure: string? }?  answer of the Lua files
---@field facts efr.Facts?  see perm.facts; a fact that is missing is the stricter case
---@field lines table<string, efr.perm.Line>?  lines that were read already, by their text

---Decides one tool call. Pure, and never raises.
---@param input efr.Call
---@return efr.Decision
function M.decide(input)
  local ok, decision = pcall(decide, input)
  if ok and #decision.reasons > 0 then return decision end
  local why = ok and "nothing gave a reason" or "the decision failed: " .. tostring(decision)
  return {
    effect = "deny", inside = "deny", reasons = { because("the call", "deny", why) }, exits = {},
    grants = {}, views = {}, launch = "none", mode = "manual",
  }
end

return M
