-- admin.status: the daemon, its parts and where its files are.
-- Main thread of efrd; waits a moment for a probe of the sandbox that runs.
local status = require "efr.daemon.status"
local time = require "efr.util.time"
local wire = require "efr.daemon.wire"

local function handler(app)
  local counts, err, code = app.query:counts()
  if not counts then
    return nil, err, code
  end
  return {
    daemon_id = app.daemon_id,
    version = app.version,
    protocol = wire.PROTOCOL,
    pid = app.ports.sys.getpid(),
    started_at = time.rfc3339(app.started_at),
    conversations = counts.conversations,
    shells = app.shells:count(),
    providers = status.providers(app),
    roots = status.roots(app),
    config = status.config(app),
    sandbox = status.sandbox(app),
  }
end

return { method = "admin.status", scope = "admin", params = {}, handler = handler }
