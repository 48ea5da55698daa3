-- The settings as the client sees them.
-- Owns: where config.toml is, reading, checking and changing it, telling efrd to read it again.
-- Must not know: what a setting does, how it is shown.
-- Runs in `efr`; reload waits, and change may for another writer.

local conn = require "efr.cli.conn"
local file = require "efr.config.file"
local load = require "efr.config.load"
local schema = require "efr.config.schema"

local M = {}

local TRIES <const> = 3
local LOCK_MS <const> = 2000
local STATE_MODE <const> = 448 -- 0700

--- The path of config.toml.
--- @return string? path, string? message, string? code
function M.path(env)
  local roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  return roots.config.path .. "/config.toml"
end

--- All keys that exist.
function M.schema(env)
  return schema.load(env.ports.modules.list)
end

--- The effective settings.
--- @return table? config, string? message, string? code
function M.load(env)
  local path, message, code = M.path(env)
  if not path then
    return nil, message, code
  end
  local text
  text, message, code = file.read(env.ports.fs, path)
  if message then
    return nil, message, code
  end
  return load.load({
    schema = M.schema(env), home = env.home, text = text, path = path, env = env.environ,
  })
end

--- Checks the text of a config.toml alone, without the environment.
--- @return table? config, string? message  names file, line, column and key
--- @return string? code
function M.check(env, text, path)
  return load.load({ schema = M.schema(env), home = env.home, text = text, path = path })
end

--- Tells a running efrd to read its settings again, and says what came of it. A daemon that does
--- not run reads them when it starts.
--- @return boolean? applied, string? message, string? code
function M.reload(env)
  local link, message, code, data = conn.open(env, { start = false })
  if not link then
    return nil, message, code, data
  end
  local result
  result, message, code, data = link:call("admin.config_reload", {})
  link:close()
  if not result then
    return nil, message, code, data
  end
  for _, rules in ipairs(result.rules or {}) do
    if rules.error then
      local line = rules.error.line and " line " .. rules.error.line or ""
      env:warn(("%s%s: %s"):format(rules.path, line, rules.error.message))
    end
  end
  if #(result.restart_needed or {}) > 0 then
    env:say("restart efrd to apply: " .. table.concat(result.restart_needed, ", "))
  end
  if not result.applied then
    local err = result.error or {}
    return nil, (err.message or "efrd refused the file") .. "; the old settings stay", "EFR_CONFIG"
  end
  return true
end

--- The same after a change of the file. The change is there, whatever efrd says.
--- @return integer? exit, string? message, string? code
function M.reload_after(env)
  local applied, message, code = M.reload(env)
  if applied then
    return 0
  elseif code == "EFR_NOT_RUNNING" then
    env:say("efrd does not run; it reads the file when it starts")
    return 0
  end
  return nil, message, code
end

-- Those who change the file for the user, efrd among them, do so one after another.
local function take_lock(env)
  local roots, message, code = conn.roots(env.ports, env.environ)
  local ok = roots
  if ok then
    ok, message, code = env.ports.fs.mkdirs(roots.state.path, STATE_MODE)
  end
  if not ok then
    return nil, message, code
  end
  local lock
  lock, message, code = env.ports.sys.lock_wait(roots.state.path .. "/config.lock", LOCK_MS)
  if code == "EWOULDBLOCK" or code == "EAGAIN" or code == "ETIMEDOUT" then
    message = "another program of efr changes the settings; try again"
  end
  return lock, message, code
end

--- Changes the file; what efrd would refuse is never written.
--- @param make fun(text: string?): string?, any, any the new text
--- @return string? path, string? message, string? code
function M.change(env, make)
  local path, message, code = M.path(env)
  local lock
  if path then
    lock, message, code = take_lock(env)
  end
  if not lock then
    return nil, message, code
  end
  local ok
  for _ = 1, TRIES do
    ok, message, code = file.change(env.ports.fs, path, function(text)
      local fresh, why, which = make(text)
      if not fresh or fresh == text then
        return fresh, why, which
      end
      local config
      config, why, which = M.check(env, fresh, path)
      return config and fresh, why, which
    end)
    if ok or code ~= "conflict" then
      break
    end
  end
  lock:close()
  if not ok then
    return nil, message, code
  end
  return path
end

return M
