-- The snapshots of the daemon: the store with its ports, and what the project's own repository says
-- of ignored files.
-- Knows nothing of turns. Main thread of efrd.
local git_code = require "efr.perm.git_code"
local list = require "efr.util.list"
local machine = require "efr.conv.machine"
local perm_paths = require "efr.perm.paths"
local snapshot = require "efr.store.snapshot"

local M = {}

local IGNORE_MS <const> = 10000

-- Which paths the repository of a root ignores; nil: there is none that can be asked. Tracked files
-- are never ignored. A `.git` file in a root is not followed.
local function ignored(app, root, paths)
  local repository = git_code.repository(app.ports.fs, root)
  if not repository or repository.root ~= root or #repository.git_dirs > 0 then
    return nil
  end
  local found = app.git:run {
    root = root, args = { "check-ignore", "-z", "--stdin" },
    stdin = table.concat(paths, "\0") .. "\0", timeout_ms = IGNORE_MS,
  }
  if not found or found.code > 1 then
    return nil
  end
  local out = {}
  for path in found.out:gmatch("([^%z]+)%z") do
    out[path] = true
  end
  return out
end

-- What of the home directory is never copied.
local function hidden(app)
  local here = machine.facts(app, { project_roots = list.map(app.projects:list(), function(project)
    return project.root
  end) })
  return function(path)
    local normal = perm_paths.normalise(path, here)
    return perm_paths.is_masked(normal, here) or perm_paths.is_secret(normal, here)
  end
end

--- @param app table
--- @return efr.Snapshots|nil, string|nil message, string|nil code
function M.new(app)
  return snapshot.new {
    ports = app.ports, git = app.git, db = app.db, config = app.config,
    log = app.log:part("snapshot"), paths = app.paths,
    ignored = function(root, paths)
      return ignored(app, root, paths)
    end,
    home = app.ports.fs.realpath(app.env.HOME), hidden = function()
      return hidden(app)
    end,
  }
end

return M
