-- call.refused: the call of a conversation that was refused last and could be allowed once.
-- Main thread of efrd.
local allow_last = require "efr.conv.allow_last"
local hidden_shells = require "efr.daemon.hidden_shells"

return {
  method = "call.refused",
  scope = "read",
  params = { conversation_id = { type = "uuid", optional = true } },
  handler = function(app, session, params)
    local row, message, code = hidden_shells.conversation(app, session, params.conversation_id)
    if not row then
      return nil, message, code
    end
    local refused
    refused, message, code = allow_last.find(app, row.id)
    if not refused then
      return nil, message, code
    end
    return {
      conversation_id = row.id, call_id = refused.call_id, tool = refused.tool,
      input = refused.input, reason = refused.reason,
    }
  end,
}
