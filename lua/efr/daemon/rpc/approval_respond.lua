-- approval.respond: the answer to a question of the running turn.
-- Main thread of efrd; waits for the commit, and for the writing of a rule.

return {
  method = "approval.respond",
  scope = "approve",
  command = true,
  params = {
    conversation_id = { type = "uuid" },
    call_id = { type = "uuid" },
    decision = { type = "choice", choices = { "allow", "deny" } },
    always = { type = "boolean", optional = true },
  },
  handler = function(app, session, params)
    return app.conversations:approve(params, session)
  end,
}
