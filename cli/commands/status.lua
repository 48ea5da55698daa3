-- efr status: the daemon's health.

local conn = require "efr.cli.conn"
local when = require "efr.cli.when"

local M = { summary = "daemon health", bare = true }

function M.add(_) end

-- A server of one's own often asks for no key.
local KEY_OPTIONAL <const> = { ["openai-compatible"] = true }

local function provider_words(provider, now_us)
  local words = KEY_OPTIONAL[provider.provider] and "no key" or "not logged in"
  if provider.logged_in then
    words = "logged in"
    if provider.login == "none" then
      words = "no login needed"
    elseif provider.key_hint then
      words = "logged in, key " .. provider.key_hint
    end
  end
  if provider.key_refused_at then
    local ago = when.relative(provider.key_refused_at, now_us)
    words = ("%s refused at %s (%s)"):format(words, when.short(provider.key_refused_at), ago)
  end
  if provider.expires_at then
    local at = provider.expires_at
    words = ("%s, token expires %s (%s)"):format(words, when.short(at), when.relative(at, now_us))
  end
  return ("%s: %s%s"):format(provider.provider, words, provider.active and " (active)" or "")
end

local function sandbox_words(sandbox)
  if sandbox.checking and not sandbox.available then
    return "being checked"
  elseif not sandbox.available then
    local reason = sandbox.reason or "unknown reason"
    return ("unavailable: %s; auto runs as cautious"):format(reason), sandbox.fix
  end
  local parts = { sandbox.backend or "native" }
  if sandbox.bwrap_version then
    parts[1] = "bubblewrap " .. sandbox.bwrap_version
  end
  if sandbox.landlock_abi then
    parts[#parts + 1] = ("Landlock ABI %d"):format(sandbox.landlock_abi)
  end
  parts[#parts + 1] = "socket broker"
  if sandbox.cache_mode then
    parts[#parts + 1] = "caches " .. sandbox.cache_mode
  end
  if sandbox.network_mode == "none" then
    parts[#parts + 1] = "no network"
  end
  return ("ready (%s)"):format(table.concat(parts, ", "))
end

local function config_rows(row, config)
  local path = config.path
  if config.symlink_target then
    path = ("%s (a link to %s)"):format(path, config.symlink_target)
  end
  row("config", path .. (config.exists == false and "  (absent)" or ""))
  if config.reload_error then
    local err = config.reload_error
    row("config error", type(err) == "table" and err.message or err)
  end
  if config.restart_needed and #config.restart_needed > 0 then
    row("restart for", table.concat(config.restart_needed, ", "))
  end
  if config.held and #config.held > 0 then
    row("held", table.concat(config.held, ", ") .. " (until work in full mode has ended)")
  end
end

local function login_warning(env, providers)
  for _, provider in ipairs(providers) do
    local missing = not provider.logged_in and not KEY_OPTIONAL[provider.provider]
    if provider.active and (missing or provider.key_refused_at) then
      local what = provider.logged_in and "the key of %s was refused" or "%s has no login"
      env:warn((what .. "; run: efr login %s"):format(provider.provider, provider.provider))
    end
  end
end

function M.run(_, env)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  local status
  status, message, code, data = link:call("admin.status", {})
  link:close()
  if not status then
    return nil, message, code, data
  end
  local lines = {}
  local function row(key, value)
    lines[#lines + 1] = env.ports.text.printable(("%-14s %s"):format(key, value)) .. "\n"
  end
  local now = env.ports.sys.now_us()
  local words = "efrd %s, protocol %s, pid %s"
  row("daemon", words:format(status.version, status.protocol, status.pid))
  row("daemon id", status.daemon_id)
  local started = status.started_at
  row("started", ("%s (%s)"):format(when.short(started), when.relative(started, now)))
  row("socket", link.socket)
  row("conversations", status.conversations)
  row("shells", status.shells)
  for _, provider in ipairs(status.providers or {}) do
    row("provider", provider_words(provider, now))
  end
  if status.config then
    config_rows(row, status.config)
  end
  if status.sandbox then
    local ready, fix = sandbox_words(status.sandbox)
    row("sandbox", ready)
    if fix then
      row("", "fix: " .. fix)
    end
    if status.sandbox.warning then
      row("", "warning: " .. status.sandbox.warning)
    end
  end
  env:out(table.concat(lines))
  login_warning(env, status.providers or {})
  return 0
end

return M
