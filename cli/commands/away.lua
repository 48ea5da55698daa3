-- efr away: says that you are away, or there again.

local conn = require "efr.cli.conn"

local M = { summary = "questions wait only a few minutes while you are away" }

function M.add(parser)
  parser:argument("state", "on (the default) or off"):args("?"):choices({ "on", "off" })
end

function M.run(args, env)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  local result
  result, message, code, data = link:call("presence.set", { away = args.state ~= "off" })
  link:close()
  if not result then
    return nil, message, code, data
  end
  env:say(result.away and "away since " .. result.since .. "; your next prompt or answer ends it"
    or "not away")
  return 0
end

return M
