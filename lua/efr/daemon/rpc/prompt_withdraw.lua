-- prompt.withdraw: takes back a prompt that waits.
-- Main thread of efrd; waits for the commit.

local function check_target(target)
  if target.kind == "turn" then
    return target.turn_id ~= nil or nil, "target.turn_id is missing"
  end
  return target.tty ~= nil or nil, "target.tty is missing"
end

return {
  method = "prompt.withdraw",
  scope = "operate",
  command = true,
  params = {
    conversation_id = { type = "uuid" },
    target = {
      type = "table",
      fields = {
        kind = { type = "choice", choices = { "turn", "newest_from_tty" } },
        turn_id = { type = "uuid", optional = true },
        tty = { type = "string", max = 256, optional = true },
      },
    },
  },
  handler = function(app, session, params)
    local ok, message = check_target(params.target)
    if not ok then return nil, message, "invalid" end
    return app.conversations:withdraw(params, session)
  end,
}
