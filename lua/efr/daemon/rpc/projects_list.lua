-- projects.list: the registered projects.
-- Main thread of efrd.
local function handler(app)
  local list = {}
  for i, project in ipairs(app.projects:list()) do
    list[i] = { id = project.id, root = project.root, name = project.name }
  end
  return { file = app.files.projects, projects = app.ports.json.array(list) }
end

return { method = "projects.list", scope = "read", params = {}, handler = handler }
