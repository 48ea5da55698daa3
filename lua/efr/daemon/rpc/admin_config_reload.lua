-- admin.config_reload: reads config.toml and the projects again.
-- Main thread of efrd.
local status = require "efr.daemon.status"

return {
  method = "admin.config_reload",
  scope = "admin",
  params = {},
  handler = function(app)
    return status.reload(app)
  end,
}
