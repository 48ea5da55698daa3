-- call.allow_last: a turn in which the model may call once what was refused last.
-- Main thread of efrd; waits for the commit.

return {
  method = "call.allow_last",
  scope = "approve",
  command = true,
  params = { conversation_id = { type = "uuid" }, call_id = { type = "uuid" } },
  handler = function(app, session, params)
    if session.origin == "phone" or session.peer and session.peer.model_side then
      return nil, "a refused call is allowed from a local terminal only", "forbidden"
    end
    return app.conversations:allow_last(params, session)
  end,
}
