-- Owns: the form of a reason, and its words.
-- Must not know: how anything is judged.
-- Runs in efrd and efr. Pure.

local ORDER <const> = require("efr.perm.rules").ORDER

local M = {}

local SHOWN_BYTES <const> = 200

---@class efr.Reason
---@field subject string  what was judged, in words
---@field effect string  "allow", "contain", "ask" or "deny"
---@field text string  the whole reason in one sentence
---@field rule string?  number of the rule of the machine policy, when one decided
---@field cite string?  where the user wrote that rule
---@field held boolean?  the sandbox makes it "contain"
---@field part string?  the command of the line that decided, when the line has several

-- Rules of the conversation have no number in the machine policy.
local function rule_words(rule)
  if rule.conversation then return "a rule of the conversation policy" end
  local cite = rule.cite and (" (%s)"):format(rule.cite) or ""
  return ("rule %s of the machine policy%s"):format(rule.id, cite)
end

---A reason that a rule gave.
---@param subject string
---@param rule table
---@param opts { part: string?, note: string? }?
---@return efr.Reason
function M.by_rule(subject, rule, opts)
  opts = opts or {}
  local part = opts.part and (' for "%s"'):format(opts.part) or ""
  local note = opts.note and ("; %s"):format(opts.note) or ""
  return {
    subject = subject, effect = rule.effect, rule = rule.id, cite = rule.cite, part = opts.part,
    user = rule.user,
    text = ("%s: %s, by %s%s: %s%s"):format(subject, rule.effect, rule_words(rule), part,
      rule.because, note),
  }
end

---A reason that no rule gave.
---@param subject string
---@param effect string
---@param why string
---@return efr.Reason
function M.because(subject, effect, why)
  return {
    subject = subject, effect = effect, text = ("%s: %s, because %s"):format(subject, effect, why),
  }
end

---The reason, or a stricter one.
---@param reason efr.Reason
---@param effect string
---@param why string
---@return efr.Reason
function M.stricter(reason, effect, why)
  if ORDER[reason.effect] >= ORDER[effect] then return reason end
  return M.because(reason.subject, effect, why)
end

---In auto the sandbox holds what a built-in rule would ask. The user's own ask stays.
---@param call table
---@param reason efr.Reason
---@return efr.Reason
function M.held(call, reason)
  if not call.contained or reason.effect ~= "ask" or reason.user then return reason end
  return {
    subject = reason.subject, effect = "contain", rule = reason.rule, part = reason.part,
    held = true, text = reason.subject .. ": contain, because the sandbox holds it",
  }
end

---The same for a call that leaves the sandbox, where its exits decide.
---@param reason efr.Reason
---@return efr.Reason
function M.let_out(reason)
  if not reason.held then return reason end
  return M.because(reason.subject, "contain", "the exits of the call decide")
end

---A text that fits into a sentence: no control characters, and a long one is cut.
---@param text string
---@return string
function M.shown(text)
  text = text:gsub("%c", " ")
  if #text <= SHOWN_BYTES then return text end
  local cut = SHOWN_BYTES
  while cut > 0 and (text:byte(cut + 1) & 0xC0) == 0x80 do cut = cut - 1 end
  return text:sub(1, cut) .. "..."
end

return M
