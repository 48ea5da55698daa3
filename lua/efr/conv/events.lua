-- Owns: the kinds of events that conversations record, and how one is made.
-- Must not know: the store. Pure. Runs in efrd.
--
-- The fields of each kind stand in docs/protocol.md. A field with nil is left out.

local M = {}

local KINDS <const> = {
  "conversation_created", "prompt_queued", "prompt_withdrawn", "turn_started", "scope_changed",
  "assistant_message_updated", "assistant_message_completed", "tool_call_started",
  "tool_call_output_updated", "tool_call_completed", "approval_requested", "approval_resolved",
  "approval_expired", "exit_requested", "exit_judged",
  "turn_interrupt_requested", "turn_interrupted", "turn_completed",
  "turn_failed", "turn_cancelled", "shell_started", "shell_exited", "cwd_changed",
  "login_completed", "logout_completed", "sandbox_unavailable", "sandbox_surface_changed",
  "surface_question_requested", "surface_question_answered", "turn_surface_report",
  "shell_command_left", "shell_command_ended", "home_file_changed", "presence_changed",
  "tool_call_input_changed", "shell_command_input_changed",
}

local KNOWN = {}
for _, kind in ipairs(KINDS) do KNOWN[kind] = true end

---An event for store.log.
---@param kind string
---@param fields? table
---@return table
function M.make(kind, fields)
  assert(KNOWN[kind], "unknown event kind " .. tostring(kind))
  local event = { kind = kind }
  for name, value in pairs(fields or {}) do event[name] = value end
  return event
end

return M
