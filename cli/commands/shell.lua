-- efr shell: what runs in the hidden shell of this terminal's conversation: look, attach, stop.

local conn = require "efr.cli.conn"
local failure = require "efr.cli.failure"

local M = { summary = "the command left running in the hidden shell" }

function M.add(parser)
  parser:flag("--attach", "join this terminal to the command's at once")
  parser:flag("--interrupt", "stop the command")
  parser:option("--conversation", "another conversation than this terminal's"):argname("ID")
  parser:flag("--json", "the state as one JSON object")
end

local function print_state(env, status)
  local words = "nothing runs in the hidden shell"
  if status.state == "exited" then
    words = "the hidden shell has ended; the next command starts a new one"
  end
  env:say(status.cwd and ("%s (in %s)"):format(words, status.cwd) or words)
end

local function interrupt(env, link, args)
  local before, message, code, data =
    link:call("shell.status", { conversation_id = args.conversation })
  if not before then
    return nil, message, code, data
  end
  local after
  after, message, code, data =
    link:call("shell.interrupt", { conversation_id = before.conversation_id })
  if not after then
    return nil, message, code, data
  end
  if after.state == "running" then
    return nil, "the command was interrupted and still runs: " .. (after.line or ""), "conflict"
  end
  env:say("stopped: " .. (before.line or ""))
  return failure.OK
end

function M.run(args, env)
  if args.attach and not (env:is_tty(0) and env:is_tty(1)) then
    return nil, "--attach needs a terminal", "EFR_USAGE"
  end
  local tty = env:is_tty(0) and env.ports.sys.ttyname(0) or nil
  local link, message, code, data = conn.open(env, { tty = tty })
  if not link then
    return nil, message, code, data
  end
  local _ <close> = setmetatable({}, { __close = function()
    link:close()
  end })
  if args.interrupt then
    return interrupt(env, link, args)
  end
  local status
  status, message, code, data = link:call("shell.status", { conversation_id = args.conversation })
  if not status then
    return nil, message, code, data
  elseif args.json then
    env:out(assert(env.ports.json.encode(status, { sort = true })) .. "\n")
    return failure.OK
  elseif status.state ~= "running" then
    print_state(env, status)
    return failure.OK
  end
  return require("efr.cli.looking").run(env, link, status, args)
end

return M
