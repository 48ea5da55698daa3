-- presence.set: the user says that they are away, or there again.
-- Main thread of efrd.
local time = require "efr.util.time"

return {
  method = "presence.set",
  scope = "operate",
  params = { away = { type = "boolean" } },
  handler = function(app, _, params)
    app.presence:set(params.away)
    return { away = app.presence.away, since = time.rfc3339(app.presence.since_us) }
  end,
}
