-- admin.logout: forgets the credential of a provider.
-- Main thread of efrd; waits for the commit.

local secrets = require "efr.model.secrets"

return {
  method = "admin.logout",
  scope = "admin",
  params = {
    provider = { type = "choice", choices = { "openai-compatible" } },
  },
  handler = function(app, _, params)
    local dir = app.paths.data .. "/secrets"
    local removed, message, code = secrets.remove(app.ports, dir, params.provider)
    if removed == nil then return nil, message, code end
    if removed then
      local ok
      ok, message, code = app.store:append({
        events = { { kind = "logout_completed", provider = params.provider } },
        durable = true,
      })
      if not ok then return nil, message, code end
    end
    return {
      provider = params.provider,
      logged_out = removed,
      active = app.config:get("model.provider") == params.provider or nil,
    }
  end,
}
