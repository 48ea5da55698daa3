-- shell.interrupt: stops the command that was left running in a conversation's hidden shell.
-- Main thread of efrd; waits some seconds at most.
--
-- A command whose call still waits for it is the turn's: turn.interrupt stops that.
local hidden_shells = require "efr.daemon.hidden_shells"

return {
  method = "shell.interrupt",
  scope = "operate",
  params = { conversation_id = { type = "uuid", optional = true } },
  handler = function(app, session, params)
    local row, message, code = hidden_shells.conversation(app, session, params.conversation_id)
    if not row then
      return nil, message, code
    end
    local shell = app.shells:of_conversation(row.id)
    local ok
    if shell then
      ok, message = shell:interrupt_left()
    else
      message = "no command was left running in the hidden shell"
    end
    if not ok then
      return nil, message, "conflict"
    end
    return hidden_shells.status(app, row)
  end,
}
