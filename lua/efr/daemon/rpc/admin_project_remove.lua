-- admin.project_remove: takes a project out of the registry. The directory stays as it is.
-- Main thread of efrd.
local git_records = require "efr.sbx.git_records"
local status = require "efr.daemon.status"

local function handler(app, _, params)
  local root = app.ports.fs.realpath(params.path) or params.path
  local project, err, code = app.projects:remove(params.path)
  if not project then
    return nil, err, code
  end
  git_records.remove({ fs = app.ports.fs, state = app.paths.state }, root)
  return { project = project, file = app.files.projects, reload = status.reload(app) }
end

return {
  method = "admin.project_remove",
  scope = "admin",
  params = { path = { type = "string", min = 1, max = 4096 } },
  handler = handler,
}
