-- sandbox.surface_respond: whether what a command planted in git settings stays. The question of a
-- run (`efr run`) has no conversation; its id is that of the run.
-- Main thread of efrd; waits for the commit.

local run_surface = require "efr.daemon.run_surface"

return {
  method = "sandbox.surface_respond",
  scope = "approve",
  command = true,
  params = {
    conversation_id = { type = "uuid", optional = true },
    question_id = { type = "uuid" },
    keep = { type = "boolean", optional = true },
  },
  handler = function(app, session, params)
    if session.origin == "phone" or session.peer and session.peer.model_side then
      return nil, "this question is answered at a terminal of this machine", "forbidden"
    end
    if not params.conversation_id then
      return run_surface.answer(app, params)
    end
    return app.conversations:surface_respond(params, session)
  end,
}
