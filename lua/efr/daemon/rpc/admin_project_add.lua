-- admin.project_add: registers a directory as a project.
-- Main thread of efrd.
local status = require "efr.daemon.status"

local function handler(app, _, params)
  local project, err, code = app.projects:add(params)
  if not project then
    return nil, err, code
  end
  return { project = project, file = app.files.projects, reload = status.reload(app) }
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
