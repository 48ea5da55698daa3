-- sandbox.surface_respond: whether what a command planted in git settings stays.
-- Main thread of efrd; waits for the commit.

return {
  method = "sandbox.surface_respond",
  scope = "approve",
  command = true,
  params = {
    conversation_id = { type = "uuid" },
    question_id = { type = "uuid" },
    keep = { type = "boolean", optional = true },
  },
  handler = function(app, session, params)
    if session.origin == "phone" or session.peer and session.peer.model_side then
      return nil, "this question is answered at a terminal of this machine", "forbidden"
    end
    return app.conversations:surface_respond(params, session)
  end,
}
