-- turn.interrupt: stops the running turn and takes back waiting prompts, in one batch.
-- Main thread of efrd; waits for the commit.

-- Fields of steering: refused as long as there is no steering, so that nothing of them is lost
-- without a word.
local LATER <const> = { "resend_steers", "resend_as", "withdraw_steers" }

return {
  method = "turn.interrupt",
  scope = "operate",
  command = true,
  params = {
    conversation_id = { type = "uuid" },
    turn_id = { type = "uuid", optional = true },
    withdraw = { type = "list", items = { type = "uuid" }, max = 1024, optional = true },
    resend_steers = { type = "any", optional = true },
    resend_as = { type = "any", optional = true },
    withdraw_steers = { type = "any", optional = true },
  },
  handler = function(app, session, params)
    for _, name in ipairs(LATER) do
      local value = params[name]
      if value ~= nil and not (type(value) == "table" and next(value) == nil) then
        return nil, name .. " is not supported: this efr has no steering", "invalid"
      end
    end
    return app.conversations:interrupt(params, session)
  end,
}
