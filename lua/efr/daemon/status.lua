-- What admin.status and the reload methods show of the daemon's settings, roots and providers.
-- Main thread of efrd; sandbox may wait a moment for a probe that runs.
local always = require "efr.conv.always"
local async = require "efr.util.async"
local lua_rules = require "efr.daemon.lua_rules"
local secrets = require "efr.model.secrets"

local M = {}

local HOUR_US <const> = 3600 * 1000000
local PROBE_WAIT_MS <const> = 200
local KEY_PROVIDERS <const> = { ["openai-compatible"] = true }

-- Names of the protocol for where a root comes from.
local function source_name(name, source)
  if source == "EFR_HOME" then
    return "efr_home"
  elseif source:find("^EFR_") then
    return "dir_variable"
  elseif source:find("^/run/user/") then
    return "run_user"
  elseif source == "default" and name == "runtime" then
    return "state"
  end
  return "xdg"
end

--- {config, data, state, runtime}, each {path, source}.
function M.roots(app)
  local shown = {}
  for name, root in pairs(app.roots) do
    shown[name] = { path = root.path, source = source_name(name, root.source) }
  end
  return shown
end

-- The first error that keeps old settings or projects in force: {message, line?, column?, key?},
-- or nil.
local function reload_error(app)
  local message, place = app.config.reload_error, app.config.error_place
  if not message then
    message, place = app.projects.error, app.projects.error_place
  end
  if not message then
    return nil
  end
  place = place or {}
  return { message = message, line = place.line, column = place.column, key = place.key }
end

--- The state of the settings file.
function M.config(app)
  local array = app.ports.json.array
  local link = app.ports.fs.readlink(app.files.config)
  return {
    path = app.files.config,
    exists = app.ports.fs.stat(app.files.config) ~= nil,
    symlink_target = link or nil,
    reload_error = reload_error(app),
    restart_needed = array(app.config:restart_needed()),
    held = array(app.config:waiting()),
    rules = lua_rules.files(app),
  }
end

-- The words of a notice: the name of the file instead of its path.
local function error_line(app)
  local message, path = app.config.reload_error, app.files.config
  if not message then
    message, path = app.projects.error, app.files.projects
  end
  if not message then
    return nil
  end
  if message:sub(1, #path) == path then
    message = message:sub(#path + 1):gsub("^:? ", "")
  end
  return ("%s has an error; the old settings stay: %s"):format(path:match("[^/]*$"), message)
end

-- Nobody hears of a change before the terminals are known.
local function tell_terminals(app)
  if app.notices then
    local hours = app.config:get("conversation.tty_idle_hours")
    app.notices:settings(error_line(app), app.config:restart_needed(),
      hours > 0 and app.ports.sys.now_us() - hours * HOUR_US or 0)
  end
end

--- Reads settings, projects and Lua rules again and tells how it went, as admin.config_reload
--- answers. The one place where this is done, on any trigger: reloads follow each other.
function M.reload(app)
  app.config:reload()
  app.projects:reload()
  lua_rules.reload(app)
  if app.sandbox then
    always.look(app)
    app.sandbox:settings_read()
  end
  tell_terminals(app)
  local err = reload_error(app)
  return {
    applied = err == nil,
    error = err,
    restart_needed = app.ports.json.array(app.config:restart_needed()),
    rules = lua_rules.files(app),
  }
end

--- The sandbox as admin.status shows it. A probe that runs is given a moment, no more: whoever asks
--- for the daemon's health must not wait for a launch that hangs.
function M.sandbox(app)
  local report, checking = app.sandbox:known()
  if checking then
    async.with_timeout(PROBE_WAIT_MS, function()
      app.sandbox:status()
    end)
    report, checking = app.sandbox:known()
  end
  report = report or { available = false, reason = "it is being checked" }
  local launcher = app.sandbox.launcher:describe()
  return {
    available = report.available, reason = report.reason, fix = report.fix,
    backend = report.backend, bwrap = report.bwrap, bwrap_version = report.bwrap_version,
    landlock_abi = report.landlock_abi, checking = checking or nil,
    memory_limit = app.cgroup and not app.cgroup.reason or false,
    memory_limit_reason = app.cgroup and app.cgroup.reason,
    cache_mode = report.available and app.config:get("sandbox.cache_mode") or nil,
    launcher = launcher.copy, launcher_source = launcher.source, warning = launcher.warning,
  }
end

local function provider(app, id, active)
  local entry = { provider = id, active = id == active, login = "none", logged_in = true }
  if KEY_PROVIDERS[id] then
    local secret, err, code = secrets.read(app.ports, app.paths.data .. "/secrets", id)
    entry.login = secret and "api_key" or "none"
    entry.key_hint = secret and secrets.hint(secret.key) or nil
    -- A key is optional where the user names the server.
    entry.logged_in = secret ~= nil or (app.config:get("openai_compatible.base_url") ~= nil)
    if err and code ~= "ENOENT" then
      app.log:warn("the key of %s: %s", id, err)
    end
  end
  return entry
end

--- The model providers and whether they can be used.
function M.providers(app)
  local list, active = {}, app.config:get("model.provider")
  for i, id in ipairs(app.providers.ids()) do
    list[i] = provider(app, id, active)
  end
  return app.ports.json.array(list)
end

return M
