-- Owns: the decision on one tool call, from what it declared, the mode and facts of the machine.
-- Must not know: disk, clock, environment, git, or what the tool does.
-- Runs in efrd, on the loop thread, called from one place: the step `decide` of conv/turn. Pure.
--
-- Policy: effects are ordered allow < contain < ask < deny. Each requirement gets one effect with a
-- reason in words, and the strictest decides. So one more requirement can never loosen a decision.
-- No reason at all, a declaration that is not well formed, and any error in here deny.
--
-- Per path: sealed places first, then the rules of the mode (the last match decides, no match
-- denies), then what lies below the path. In auto the sandbox holds what a built-in rule would ask
-- about a shell call. For a remote origin an allow outside $SCRATCH becomes an ask.

local modes = require "efr.perm.modes"
local paths = require "efr.perm.paths"
local requirements = require "efr.perm.requirements"
local rules = require "efr.perm.rules"

local M = {}

local ORDER <const> = { allow = 1, contain = 2, ask = 3, deny = 4 }
local SHOWN_BYTES <const> = 200

---@class efr.Reason
---@field subject string  what was judged, in words
---@field effect string  "allow", "contain", "ask" or "deny"
---@field text string  the whole reason in one sentence
---@field rule string?  number of the rule of the machine policy, when one decided

---@class efr.Decision
---@field effect string
---@field reasons efr.Reason[]  first paths, then line, network, interactive, nested shell, others

local function by_rule(subject, rule)
  return {
    subject = subject, effect = rule.effect, rule = rule.id,
    text = ("%s: %s, by rule %s of the machine policy: %s"):format(subject, rule.effect, rule.id,
      rule.because),
  }
end

local function because(subject, effect, why)
  return {
    subject = subject, effect = effect, text = ("%s: %s, because %s"):format(subject, effect, why),
  }
end

local function stricter(reason, effect, why)
  if ORDER[reason.effect] >= ORDER[effect] then return reason end
  return because(reason.subject, effect, why)
end

-- What lies below an allowed path can still make it ask.
local function follow_up(call, item, path, reason)
  if reason.effect ~= "allow" then return reason end
  if item.kind == "write" and paths.holds_write_sealed(path, call.machine) then
    return stricter(reason, "ask", "efr's configuration lies below it")
  end
  if (item.kind == "write" or item.tree) and paths.holds_secret(path, call.machine) then
    return stricter(reason, "ask", "a secret lies below it")
  end
  return reason
end

local function contained(call, reason)
  if call.contained and reason.effect == "ask" then
    return {
      subject = reason.subject, effect = "contain", rule = reason.rule,
      text = reason.subject .. ": contain, because the sandbox holds it",
    }
  end
  return reason
end

local function judge_path(call, item)
  local verb = item.tree and "read tree" or item.kind
  local subject = verb .. " " .. item.path
  local path = paths.normalise(item.path, call.machine)
  if not path then return because(subject, "deny", "the path is not absolute") end
  if paths.is_sealed(path, call.machine) then
    return because(subject, "deny", "efr's credentials are sealed")
  end
  if item.kind == "write" and paths.is_write_sealed(path, call.machine) then
    return because(subject, "deny", "no tool writes efr's configuration")
  end
  local class = paths.class(path, call.machine)
  local rule = rules.decide(call.rules, {
    action = item.kind, path = path, class = class, masked = paths.is_masked(path, call.machine),
  }, call.project)
  if not rule then return because(subject, "deny", "no rule matched") end
  local reason = contained(call, follow_up(call, item, path, by_rule(subject, rule)))
  if call.remote and class ~= "scratch" then
    reason = stricter(reason, "ask", "it comes from another device")
  end
  return reason
end

-- Long lines are cut: the question shows the whole line, the reason only names it.
local function shown(line)
  line = line:gsub("%c", " ")
  if #line <= SHOWN_BYTES then return line end
  local cut = utf8.offset(line, 0, SHOWN_BYTES + 1) or SHOWN_BYTES + 1
  return line:sub(1, cut - 1) .. "..."
end

local function judge_rule(call, subject, action)
  local rule = rules.decide(call.rules, { action = action }, call.project)
  if not rule then return because(subject, "deny", "no rule matched") end
  return contained(call, by_rule(subject, rule))
end

local JUDGES <const> = {
  read = judge_path,
  write = judge_path,
  line = function(call, item)
    local reason = judge_rule(call, "run `" .. shown(item.text) .. "`", "execute")
    if call.contained then
      return stricter(reason, "contain", "no rule lifts the sandbox")
    end
    return reason
  end,
  network = function(call)
    return judge_rule(call, "network", "network")
  end,
  interactive = function(call)
    local reason = because("terminal input", "ask", "the command can wait for somebody to type")
    return contained(call, reason)
  end,
  nested_shell = function(call)
    if call.mode == "auto" then
      return because("nested shell", "deny",
        "in auto a shell that stays is refused; run its commands one by one")
    end
    return because("nested shell", "ask", "the shell would stay open")
  end,
  destructive = function()
    return because("delete or move", "ask", "it takes files away")
  end,
}

local RANK <const> = {
  read = 1, write = 1, line = 2, network = 3, interactive = 4, nested_shell = 5, destructive = 6,
}

local function nothing_declared(call)
  if call.remote then
    return because("the call", "ask", "it comes from another device")
  end
  return because("the call", "allow", "it touches nothing that is judged")
end

local function reasons_of(call, items)
  local out = {}
  for rank = 1, 6 do
    for _, item in ipairs(items) do
      if RANK[item.kind] == rank then
        local reason = JUDGES[item.kind](call, item)
        -- What has no path has no class, so it counts as outside $SCRATCH.
        if call.remote and rank > 1 then
          reason = stricter(reason, "ask", "it comes from another device")
        end
        out[#out + 1] = reason
      end
    end
  end
  if #items == 0 then out[1] = nothing_declared(call) end
  return out
end

local function decide(input)
  local ok, err = requirements.check(input.requirements)
  if not ok then error(err, 0) end
  local mode = modes.known(input.mode, input.origin)
  -- Prepared also for a call without a path, which must not be judged on a machine without sense.
  local machine = paths.prepare(input.machine)
  local call = { mode = mode, machine = machine, remote = not modes.is_local(input.origin) }
  call.rules, call.contained = modes.base(mode, input.tool)
  local scope = input.scope or {}
  if scope.kind == "project" then
    call.project = paths.project_root(scope.root, machine)
  end
  return reasons_of(call, input.requirements)
end

---@class efr.Call
---@field requirements table[]  what the tool declared
---@field tool string
---@field mode string  of the turn; an unknown one counts as manual
---@field origin string  of the prompt; an unknown one counts as remote
---@field scope { kind: string, root: string? }?  "machine", "path" or "project"; only a project
---  gives a right
---@field machine efr.Machine

---Decides one tool call. Pure, and never raises.
---@param input efr.Call
---@return efr.Decision
function M.decide(input)
  local ok, reasons = pcall(decide, input)
  if not ok then
    reasons = { because("the call", "deny", "the decision failed: " .. tostring(reasons)) }
  elseif #reasons == 0 then
    reasons = { because("the call", "deny", "nothing gave a reason") }
  end
  local effect = "allow"
  for _, reason in ipairs(reasons) do
    if ORDER[reason.effect] > ORDER[effect] then effect = reason.effect end
  end
  return { effect = effect, reasons = reasons }
end

return M
