-- The hidden shell that a client means, and what it may see of it.
-- Knows nothing of how a shell is steered. Main thread of efrd.
local time = require "efr.util.time"

local M = {}

--- The conversation of a request: the one that it names, else the active one of its terminal.
--- @param app table
--- @param session table
--- @param id string|nil
--- @return table|nil row, string|nil message, string|nil code
function M.conversation(app, session, id)
  local row, message, code
  if id then
    row, message, code = app.query:conversation(id)
  elseif session.tty then
    row, message, code = app.query:conversation_of_tty(session.tty)
  end
  if row then
    return row
  elseif message then
    return nil, message, code
  end
  return nil, id and "unknown conversation" or "this terminal has no conversation", "not_found"
end

--- shell.status of a conversation.
--- @param app table
--- @param row table  the conversation
--- @return table
function M.status(app, row)
  local shell = app.shells:of_conversation(row.id)
  local status = shell and shell:status()
  if not status then
    local had = app.query:had_shell(row.id)
    status = { state = had and "exited" or "idle", cwd = row.cwd, input = "none" }
  end
  status.conversation_id = row.id
  if status.since_us then
    status.since, status.since_us = time.rfc3339(status.since_us), nil
  end
  return status
end

--- The running shell of a terminal.
--- @param app table
--- @param pty_id string
--- @return table|nil shell, string|nil message, string|nil code
function M.of_pty(app, pty_id)
  local shell = app.shells:of_pty(pty_id)
  if not shell then
    return nil, "no shell with this terminal runs", "not_found"
  end
  return shell
end

return M
