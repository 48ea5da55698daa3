-- admin.project_add: registers a directory as a project, and records its git directory when that
-- lies elsewhere. Again for a registered one: only the record is made anew.
-- Main thread of efrd.
local git_records = require "efr.sbx.git_records"
local status = require "efr.daemon.status"

-- A project that is registered already, when there is something to record for it.
local function registered(app, path)
  local root = app.ports.fs.realpath(path)
  local info = root and app.ports.fs.lstat(root .. "/.git")
  for _, project in ipairs(info and info.type == "file" and app.projects:list() or {}) do
    if app.ports.fs.realpath(project.root) == root then
      return project
    end
  end
  return nil
end

local function handler(app, _, params)
  local project, err, code = app.projects:add(params)
  if not project and code == "conflict" then
    project = registered(app, params.path)
  end
  if not project then
    return nil, err, code
  end
  local root = app.ports.fs.realpath(project.root) or project.root
  local record, why = git_records.make(
    { fs = app.ports.fs, json = app.ports.json, state = app.paths.state }, root)
  return {
    project = project, file = app.files.projects, reload = status.reload(app),
    git_dir = record and record.git_dir, git_note = why,
  }
end

return {
  method = "admin.project_add",
  scope = "admin",
  params = {
    path = { type = "string", min = 1, max = 4096 },
    name = { type = "string", min = 1, max = 256, optional = true },
    git_root = { type = "boolean", optional = true },
  },
  handler = handler,
}
