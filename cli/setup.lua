-- What of efr is set up on this account, and what is missing.
-- Owns: the list of parts and the next step for each. Must not know: how it is shown or mended.
-- Runs in `efr`; starts no daemon.

local alone = require "efr.cli.alone"
local calls_of = require "efr.sbx.calls"
local probe = require "efr.sbx.probe"
local projects = require "efr.config.projects"

local M = {}

local RC_MAX <const> = 1024 * 1024
local PLUGIN <const> = "efr.plugin.zsh"

--- @class efr.cli.setup_part
--- @field name string
--- @field ok boolean
--- @field words string
--- @field step string? what mends it, as a command or in words

--- The start-up file of the user's zsh.
--- @return string
function M.zshrc(env)
  local dir = env.environ.ZDOTDIR or ""
  return (dir ~= "" and dir or env.home) .. "/.zshrc"
end

--- The plugin that belongs to this program: of a checkout or of an installation.
--- @return string?  nil: none is found
function M.plugin(env)
  local exe = env.ports.fs.realpath(env.ports.sys.exe_path()) or ""
  local bin = exe:match("^(.*)/[^/]*$") or ""
  for _, path in ipairs({
    bin .. "/../share/zsh/plugins/efr/" .. PLUGIN, -- ~/.local/bin, /usr/bin
    bin .. "/../../zsh/" .. PLUGIN, -- build/bin
  }) do
    local real = env.ports.fs.realpath(path)
    if real then
      return real
    end
  end
  return nil
end

local function plugin_part(env)
  local path = M.zshrc(env)
  local text = env.ports.fs.read_file(path, RC_MAX) or ""
  for line in text:gmatch("[^\n]+") do
    if line:find(PLUGIN, 1, true) and not line:find("^%s*#") then
      return { name = "plugin", ok = true, words = path .. " sources " .. PLUGIN }
    end
  end
  return {
    name = "plugin", ok = false, step = "efr setup",
    words = ("%s does not source %s: lines with a comma are plain shell"):format(path, PLUGIN),
  }
end

local function model_part(app)
  local config = app.config
  local provider, name = config:get("model.provider"), config:get("model.name")
  if provider ~= "openai-compatible" then
    return { name = "model", ok = true, words = "provider " .. provider }
  end
  local url = config:get("openai_compatible.base_url")
  if not url then
    local words = "openai_compatible.base_url is not set"
    return { name = "model", ok = false, words = words, step = "efr setup" }
  end
  name = name or "the first model"
  local secret = app.ports.fs.stat(app.paths.data .. "/secrets/" .. provider .. ".json")
  local key = secret and "with a key" or "with no key (efr login " .. provider .. " keeps one)"
  return { name = "model", ok = true, words = ("%s at %s, %s"):format(name, url, key) }
end

local function sandbox_part(app)
  if app.config:get("sandbox.enabled") == false then
    return {
      name = "sandbox", ok = false, words = "it is off: auto runs as cautious",
      step = "efr config unset sandbox.enabled",
    }
  end
  local calls = calls_of.new(app, { in_place = true })
  local report = probe.run(calls, {})
  if report.available then
    return { name = "sandbox", ok = true, words = "works" }
  end
  return {
    name = "sandbox", ok = false, step = "efr sandbox check",
    words = tostring(report.reason) .. ": auto runs as cautious",
  }
end

local function project_part(app, cwd)
  local project = projects.containing(app.projects.list(), cwd)
  if project then
    return { name = "project", ok = true, words = project.root or project.path or cwd }
  end
  return {
    name = "project", ok = false, step = "efr project add",
    words = cwd .. " is in no project: the agent asks before it writes here",
  }
end

--- All parts, in the order in which a new user meets them.
--- @param env table
--- @return efr.cli.setup_part[]
function M.parts(env)
  local app, message = alone.read(env)
  if not app then
    local broken = { name = "settings", ok = false, words = message, step = "efr config edit" }
    return { broken, plugin_part(env) }
  end
  local out = { model_part(app), plugin_part(env), sandbox_part(app) }
  local cwd = env.ports.uv.cwd()
  if cwd and cwd ~= env.home then
    out[#out + 1] = project_part(app, cwd)
  end
  return out
end

return M
