-- The user's Lua rules in the daemon: the client of the rules process with the daemon's places, log
-- and notices, and what admin.status shows of it. Main thread of efrd.
local async = require "efr.util.async"
local client = require "efr.rules.client"

local M = {}

local HOUR_US <const> = 3600 * 1000000

-- The program that runs now, also after an update replaced its file.
local SELF <const> = "/proc/self/exe"

--- Makes the client and starts to read the files.
--- @param app table
--- @return table rules a client of efr.rules.client
function M.new(app)
  local rules = client.new {
    ports = app.ports, efrd = SELF, dir = app.paths.config,
    good = app.paths.state .. "/rules/good", log = app.log:part("rules"),
    on_notice = function(text)
      local hours = app.config:get("conversation.tty_idle_hours")
      app.notices:tell("efr: " .. text,
        hours > 0 and app.ports.sys.now_us() - hours * HOUR_US or 0)
    end,
  }
  async.spawn(rules.reload, rules)
  return rules
end

--- Reads the files again; in a task it waits for the outcome.
function M.reload(app)
  if not app.rules then
    return
  elseif coroutine.isyieldable() then
    app.rules:reload()
  else
    async.spawn(app.rules.reload, app.rules)
  end
end

--- The files as admin.status shows them: {path, active, error = {message, line}}.
function M.files(app)
  local out = app.ports.json.array {}
  for i, file in ipairs(app.rules and app.rules:file_states() or {}) do
    out[i] = file
  end
  return out
end

return M
