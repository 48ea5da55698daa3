-- Owns: the effect and the reason of one path that a call reads or writes.
-- Must not know: lines, exits, where rules come from.
-- Runs in efrd and efr. Pure.
--
-- Order: sealed places, the rules of the mode and the user's, the conversation's, what lies below,
-- what the sandbox holds, and last that the call comes from another device.

local paths = require "efr.perm.paths"
local reasons = require "efr.perm.reasons"
local rules = require "efr.perm.rules"

local M = {}

local ORDER <const> = rules.ORDER

local function subject_of(call, path, action)
  return {
    action = action, path = path, class = paths.class(path, call.machine),
    masked = paths.is_masked(path, call.machine),
    enveloped = call.contained and paths.is_enveloped(path, call.machine) or nil,
  }
end

---The rule of the machine policy for a path.
---@param call table
---@param path string  in normal form
---@param action string  "read" or "write"
---@return table? rule
function M.rule(call, path, action)
  return rules.decide(call.rules, subject_of(call, path, action), call.project, call.machine)
end

-- Whether a rule of the user opens every secret below the path.
local function is_open(call, path, action)
  local below, proc = paths.secrets_below(path, call.machine)
  if proc then return false end
  for _, secret in ipairs(below) do
    local rule = not paths.is_sealed(secret, call.machine) and M.rule(call, secret, action)
    if not rule or rule.effect ~= "allow" then return false end
  end
  return true
end

-- What lies below an allowed path can still make it ask.
local function follow_up(call, item, path, reason)
  if reason.effect ~= "allow" then return reason end
  if item.kind == "write" and paths.holds_write_sealed(path, call.machine) then
    return reasons.stricter(reason, "ask", "efr's configuration lies below it")
  end
  local reaches = item.kind == "write" or item.tree
  if reaches and paths.holds_secret(path, call.machine) and not is_open(call, path, item.kind) then
    return reasons.stricter(reason, "ask", "a secret lies below it")
  end
  -- What is printed goes to the model's provider.
  if item.contents and paths.holds_masked(path, call.machine) then
    return reasons.stricter(reason, "ask", "something that the sandbox hides lies below it")
  end
  return reason
end

local TIGHTEN_ONLY <const> = { secrets = true, system = true }

-- Rules of the conversation replace the result; for secrets and the system they only tighten it.
local function by_conversation(call, subject, reason, words)
  local rule = rules.decide(call.conversation, subject, call.project, call.machine)
  if not rule then return reason end
  local stricter = ORDER[rule.effect] > ORDER[reason.effect]
  if TIGHTEN_ONLY[subject.class] and not stricter then return reason end
  return reasons.by_rule(words, rule)
end

local function sealed(item, path, machine, words)
  if paths.is_sealed(path, machine) then
    return reasons.because(words, "deny", "efr's credentials are sealed")
  end
  if item.kind == "write" and paths.is_write_sealed(path, machine) then
    return reasons.because(words, "deny", "no tool writes efr's configuration")
  end
  return nil
end

---Judges a path.
---@param call table
---@param item table  requirement of the kind read or write
---@return efr.Reason
function M.judge(call, item)
  local words = (item.tree and "read tree" or item.kind) .. " " .. item.path
  local path = paths.normalise(item.path, call.machine)
  if not path then return reasons.because(words, "deny", "the path is not absolute") end
  local reason = sealed(item, path, call.machine, words)
  if reason then return reason end
  local subject = subject_of(call, path, item.kind)
  local rule = rules.decide(call.rules, subject, call.project, call.machine)
  if not rule then return reasons.because(words, "deny", "no rule matched") end
  reason = by_conversation(call, subject, reasons.by_rule(words, rule), words)
  reason = reasons.held(call, follow_up(call, item, path, reason))
  if call.remote and subject.class ~= "scratch" then
    reason = reasons.stricter(reason, "ask", "it comes from another device")
  end
  return reason
end

---Whether a rule of the user opened a secret for reading.
---@param call table
---@param path string  in normal form
---@return boolean
function M.opened(call, path)
  if paths.is_sealed(path, call.machine) then return false end
  local rule = M.rule(call, path, "read")
  return rule ~= nil and rule.effect ~= "deny" and rule.user == true
end

return M
