-- input.respond: a person's answer to a command that waits at its terminal. No command and no
-- receipt: a repeat must never type a password twice, and nothing about it is kept.
-- Main thread of efrd.

local TEXT_MAX <const> = 1024

return {
  method = "input.respond",
  scope = "terminal",
  params = {
    conversation_id = { type = "uuid" },
    call_id = { type = "uuid" },
    text = {
      type = "string", max = TEXT_MAX, pattern = "^[^\0-\31\127]*$",
      shape = "one line without control characters",
    },
    hidden = { type = "boolean" },
    manual = { type = "boolean", optional = true },
  },
  handler = function(app, session, params)
    if session.origin == "phone" or session.peer and session.peer.model_side then
      return nil, "input is typed at a terminal of this machine", "forbidden"
    end
    return app.conversations:respond(params)
  end,
}
