-- efr allow-last: lets the call that was refused last run once, in a turn of its own.

local ask = require "efr.cli.ask"
local conn = require "efr.cli.conn"
local failure = require "efr.cli.failure"
local follow = require "efr.cli.follow"

local M = { summary = "let the call that was refused last run once" }

function M.add(parser)
  parser:option("--conversation", "another conversation than this terminal's"):argname("ID")
  parser:flag("--yes", "without a question")
end

-- What would run, as its line or as tool and arguments.
local function words(env, refused)
  local input = type(refused.input) == "table" and refused.input or {}
  if type(input.command) == "string" then
    return input.command
  end
  return ("%s %s"):format(refused.tool, env.ports.json.encode(input, { sort = true }) or "?")
end

local function is_wanted(args, env, refused)
  env:say("refused: " .. tostring(refused.reason))
  for line in (words(env, refused) .. "\n"):gmatch("([^\n]*)\n") do
    env:say("  " .. line)
  end
  if args.yes then
    return true
  elseif not ask.possible(env) then
    return nil, "give --yes to let it run", "EFR_USAGE"
  end
  return ask.only_yes(env, "let it run once?")
end

function M.run(args, env)
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  local link, message, code, data = conn.open(env, { tty = tty })
  if not link then
    return nil, message, code, data
  end
  local refused, sent
  refused, message, code, data =
    link:call("call.refused", { conversation_id = args.conversation })
  local wanted
  if refused then
    wanted, message, code = is_wanted(args, env, refused)
  end
  if wanted then
    sent, message, code, data = link:call("call.allow_last", {
      command_id = env.ports.sys.uuid7(), conversation_id = refused.conversation_id,
      call_id = refused.call_id,
    })
  end
  if sent then
    return follow.run(env, link, sent)
  end
  link:close()
  if wanted == false then
    return failure.OK
  end
  return nil, message, code, data
end

return M
