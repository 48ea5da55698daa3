-- Owns: what `efr` needs to do a part of efrd's work itself, where no daemon is asked: the
-- settings, the roots and the registered projects, read as efrd reads them.
-- Must not know: what is done with them. Runs in `efr`.

local conn = require "efr.cli.conn"
local projects = require "efr.config.projects"
local reach = require "efr.sbx.reach"

local M = {}

local FILE_MAX <const> = 1024 * 1024

local function registered(env, roots)
  local path = roots.config.path .. "/projects.toml"
  local text, err, code = env.ports.fs.read_file(path, FILE_MAX)
  if not text and code ~= "ENOENT" and code ~= "ENOTDIR" then
    return nil, err, code
  end
  return projects.load(text, path)
end

--- Reads it all. The fields are named as those of efrd's `app`, so that its parts take them.
--- @param env table
--- @return table? app  ports, env, config, paths, projects
--- @return string? message
--- @return string? code
function M.read(env)
  local config, message, code = env:config()
  if not config then
    return nil, message, code
  end
  local roots
  roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local known
  known, message, code = registered(env, roots)
  if not known then
    return nil, message, code
  end
  local paths = {}
  for name, root in pairs(roots) do
    paths[name] = root.path
  end
  local app = {
    ports = env.ports, env = env.environ, config = config, paths = paths,
    projects = {
      list = function()
        return known
      end,
    },
  }
  reach.install(app)
  return app
end

return M
