-- The registered projects that are in force: read at the start, read again with the settings, and
-- changed by admin.project_add and admin.project_remove.
-- Knows nothing of what a project is for. Main thread of efrd; nothing here waits.
local file = require "efr.config.file"
local projects = require "efr.config.projects"

local M = {}

local Registry = {}
Registry.__index = Registry

--- Reads the file again. A broken one keeps the old list and is told in `error`.
function Registry:reload()
  local text, err = file.read(self.fs, self.path)
  local list, _, place
  if err then
    err = ("%s: %s"):format(self.path, err)
  else
    list, err, _, place = projects.load(text, self.path)
  end
  self.error, self.error_place = nil, nil
  if list then
    self.current = list
  else
    self.error, self.error_place = err, place
    self.log:error("projects: %s; the old list stays", err)
  end
  return list and true or nil, err
end

--- The projects: {id, root, name?}.
function Registry:list()
  return self.current
end

--- The project that holds a directory (absolute, resolved), or nil.
function Registry:containing(dir)
  return projects.containing(self.current, dir)
end

--- The project of an id, or nil.
function Registry:by_id(id)
  for _, project in ipairs(self.current) do
    if project.id == id then
      return project
    end
  end
  return nil
end

-- Writes what `change` makes of the file, unless somebody else changed it meanwhile.
local function rewrite(self, change)
  local ok, result, code = file.change(self.fs, self.path, function(text)
    return change(text or "")
  end)
  if not ok then
    return nil, result, code and code:find("^EFR_") and "invalid" or code
  end
  self:reload()
  return result or true
end

-- The directory that a project is: resolved, existing, too wide only when it was named.
local function resolve(self, path, git_root)
  if path:sub(1, 1) ~= "/" then
    return nil, "path must be absolute", "invalid"
  end
  local root, err = self.fs.realpath(path)
  local stat = root and self.fs.stat(root)
  if not stat or stat.type ~= "dir" then
    return nil, ("%s: %s"):format(path, err or "is no directory"), "invalid"
  end
  local top = root
  while git_root and top ~= "/" do
    if self.fs.lstat(top .. "/.git") then
      root = top
      break
    end
    top = top:match("^(.+)/[^/]+$") or "/"
  end
  local ok, why, code = projects.check_root(root, self.home, not git_root)
  if not ok then
    return nil, why, code
  end
  return root
end

--- Registers a directory.
--- @param opts {path: string, name: string|nil, git_root: boolean|nil}
--- @return table|nil project, string|nil message, string|nil code
function Registry:add(opts)
  local root, err, code = resolve(self, opts.path, opts.git_root)
  if not root then
    return nil, err, code
  end
  local project = { id = self.uuid7(), root = root, name = opts.name }
  return rewrite(self, function(text)
    local fresh, why, name = projects.add(text, project, self.path)
    return fresh, fresh and project or why, name
  end)
end

--- Removes the project of a directory, which may be gone.
--- @return table|nil project, string|nil message, string|nil code
function Registry:remove(path)
  local root = self.fs.realpath(path) or path
  return rewrite(self, function(text)
    return projects.remove(text, root, self.path)
  end)
end

--- @param deps {fs: table, log: table, path: string, home: string, uuid7: fun(): string}
function M.new(deps)
  local self = setmetatable({
    fs = deps.fs, log = deps.log, path = deps.path, home = deps.home, uuid7 = deps.uuid7,
    current = {},
  }, Registry)
  self:reload()
  return self
end

return M
