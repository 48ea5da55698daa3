-- The effective settings as the client sees them.
-- Owns: reading config.toml from the config root. Must not know: what a setting does.
-- Runs in `efr`.

local conn = require "efr.cli.conn"
local load = require "efr.config.load"
local schema = require "efr.config.schema"

local M = {}

local FILE_MAX <const> = 1024 * 1024

--- @return table? config, string? message, string? code
function M.load(env)
  local roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local path = roots.config.path .. "/config.toml"
  local text, err, kind = env.ports.fs.read_file(path, FILE_MAX)
  if not text and kind ~= "ENOENT" and kind ~= "ENOTDIR" then
    return nil, err, kind
  end
  return load.load({
    schema = schema.load(env.ports.modules.list),
    home = env.home,
    text = text,
    path = path,
    env = env.environ,
  })
end

return M
