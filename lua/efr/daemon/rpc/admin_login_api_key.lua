-- admin.login_api_key: checks a key at the server that uses it and keeps it.
-- Main thread of efrd; waits for the server. The key stands in no event, log or error.

local secrets = require "efr.model.secrets"

-- One GET of the model list with the key. Only a refused key is a refusal; a server that cannot be
-- asked is an error that names why.
local function check(app, id, key)
  local provider = app.providers:get(id)
  local ids, err = provider:fetch_models(key)
  if ids then return true end
  if err.class == "Unauthorized" then
    return nil, "the server refused the key: " .. err.message, "unauthorized"
  end
  return nil, "the key could not be checked: " .. err.message, "internal"
end

return {
  method = "admin.login_api_key",
  scope = "admin",
  params = {
    provider = { type = "choice", choices = { "openai-compatible" } },
    key = { type = "string", max = 8192 },
    check = { type = "boolean", optional = true },
  },
  handler = function(app, _, params)
    local ok, message = secrets.check_key(params.key)
    if not ok then return nil, message, "invalid" end
    local code
    local checked = params.check ~= false
    if checked then
      ok, message, code = check(app, params.provider, params.key)
      if not ok then return nil, message, code end
    end
    local dir = app.paths.data .. "/secrets"
    ok, message, code = secrets.write(app.ports, dir, params.provider, {
      kind = "api_key",
      key = params.key,
    })
    if not ok then return nil, "keep the key: " .. tostring(message), code end
    ok, message, code = app.store:append({
      events = { { kind = "login_completed", provider = params.provider } },
      durable = true,
    })
    if not ok then return nil, message, code end
    return {
      provider = params.provider,
      key_hint = secrets.hint(params.key),
      checked = checked or nil,
      active = app.config:get("model.provider") == params.provider or nil,
    }
  end,
}
