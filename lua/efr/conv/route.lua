-- Owns: whether a terminal's conversation is still the one that its next prompt goes to.
-- Must not know: prompts. Runs in efrd.
--
-- Policy: it ends when it was idle for conversation.tty_idle_hours, and when another shell uses the
-- terminal and the shell that took it has ended (a terminal name is used again).

local M = {}

local HOUR_US <const> = 3600 * 1000000

-- A process that belongs to somebody else is alive too.
local function is_alive(sys, pid)
  local ok, _, code = sys.kill(pid, 0)
  return (ok or code ~= "ESRCH") and true or false
end

---@param app table
---@param row table  of `conversations`, with shell_pid
---@param context? table  of the prompt
---@param busy? boolean  a turn of it runs or waits
---@return boolean
function M.is_active(app, row, context, busy)
  if busy then return true end
  local hours = app.config:get("conversation.tty_idle_hours")
  local idle = app.ports.sys.now_us() - row.updated_at
  if hours and hours > 0 and idle > hours * HOUR_US then return false end
  local pid = context and context.shell_pid
  if pid and row.shell_pid and pid ~= row.shell_pid then
    return is_alive(app.ports.sys, row.shell_pid)
  end
  return true
end

return M
