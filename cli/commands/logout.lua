-- efr logout: makes efrd forget the key of a provider.

local conn = require "efr.cli.conn"

local M = { summary = "forget the key of a model provider" }

function M.add(parser)
  parser:argument("provider"):choices({ "openai-compatible" })
end

function M.run(args, env)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  local result
  result, message, code, data = link:call("admin.logout", { provider = args.provider })
  if not result then
    return nil, message, code, data
  end
  if not result.logged_out then
    env:say(args.provider .. " was not logged in")
    return 0
  end
  env:say(("forgot the key of %s; it stays valid until you revoke it there"):format(args.provider))
  if result.active then
    env:warn(("warning: %s is the provider of new conversations"):format(args.provider))
  end
  return 0
end

return M
