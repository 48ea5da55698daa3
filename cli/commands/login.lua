-- efr login: gives efrd the key of a provider. The key is never an argument.

local conn = require "efr.cli.conn"
local stdin = require "efr.cli.stdin"

local M = { summary = "store the key of a model provider" }

local KEY_MAX <const> = 4096
local VARIABLE <const> = { ["openai-compatible"] = "EFR_COMPATIBLE_API_KEY" }

function M.add(parser)
  parser:argument("provider"):choices({ "openai-compatible" })
  parser:flag("--from-env", "read the key from EFR_COMPATIBLE_API_KEY"):target("from_env")
  parser:flag("--no-check", "store the key without asking the server"):target("no_check")
end

-- Reads one line from the terminal without echo.
local function prompt(env, provider)
  local tty = env.ports.tty
  if not tty.foreground(0) then
    return nil, "the key can only be asked for in the foreground", "EFR_USAGE"
  end
  local ok, message, code = tty.save(0)
  if not ok then
    return nil, message, code
  end
  tty.flush_input(0)
  env:err(("key for %s (not shown): "):format(provider))
  tty.set_mode("quiet")
  local key, err, kind = tty.read(0)
  tty.restore(false)
  env:err("\n")
  return key, err, kind
end

local function read_key(args, env)
  local key, message, code
  if args.from_env then
    local name = VARIABLE[args.provider]
    key = env.environ[name] or ""
    if key == "" then
      return nil, name .. " is not set", "EFR_USAGE"
    end
  elseif env:is_tty(0) then
    key, message, code = prompt(env, args.provider)
  else
    key, message, code = stdin.read_all(env, KEY_MAX)
  end
  if not key then
    return nil, message, code
  end
  key = key:match("^%s*(.-)%s*$")
  if key == "" then
    return nil, "the key is empty", "EFR_USAGE"
  end
  if #key > KEY_MAX then
    return nil, ("the key is longer than %d bytes"):format(KEY_MAX), "EFR_USAGE"
  end
  return key
end

function M.run(args, env)
  local key, message, code = read_key(args, env)
  if not key then
    return nil, message, code
  end
  local link, data
  link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  if not args.no_check then
    env:err("checking the key...\n")
  end
  local result
  result, message, code, data = link:call("admin.login_api_key", {
    provider = args.provider,
    key = key,
    check = not args.no_check,
  })
  if not result then
    if code ~= "unauthorized" and code ~= "invalid" and not args.no_check then
      data = data or {}
      data.hint = "--no-check stores the key without asking the server"
    end
    return nil, message, code, data
  end
  local checked = result.checked and "" or " (not checked)"
  local words = "logged in to %s with key %s%s"
  env:say(words:format(result.provider, result.key_hint or "?", checked))
  if not result.active then
    env:say(("to use it, set provider = %q in [model] of config.toml and restart efrd"):format(
      result.provider))
  end
  return 0
end

return M
