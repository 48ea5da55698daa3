-- shell.status: whether a command runs in a conversation's hidden shell, also one whose call has
-- answered.
-- Main thread of efrd.
local hidden_shells = require "efr.daemon.hidden_shells"

return {
  method = "shell.status",
  scope = "read",
  params = { conversation_id = { type = "uuid", optional = true } },
  handler = function(app, session, params)
    local row, message, code = hidden_shells.conversation(app, session, params.conversation_id)
    if not row then
      return nil, message, code
    end
    return hidden_shells.status(app, row)
  end,
}
