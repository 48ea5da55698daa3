-- efr project: the registered projects, which the agent may write.

local conn = require "efr.cli.conn"

local M = { summary = "list, add or remove projects" }

function M.add(parser)
  parser:command_target("action")
  parser:command("list", "the registered projects"):add_help(false)
  local add = parser:command("add", "register a directory"):add_help(false)
  add:argument("path", "default: the git work tree of the current directory, else it"):args("?")
  add:option("--name", "a name for it"):argname("NAME")
  local remove = parser:command("remove", "forget a project"):add_help(false)
  remove:argument("path")
end

--- An absolute path of a user's word, links resolved where it exists.
local function absolute(env, word)
  local uv, fs = env.ports.uv, env.ports.fs
  local home = env.home
  if home and (word == "~" or word:sub(1, 2) == "~/") then
    word = home .. word:sub(2)
  end
  if word:sub(1, 1) ~= "/" then
    word = assert(uv.cwd()) .. "/" .. word
  end
  return fs.realpath(word) or word
end

local function list(env, link)
  local result, message, code, data = link:call("projects.list", {})
  if not result then
    return nil, message, code, data
  end
  local projects = result.projects or {}
  if #projects == 0 then
    env:say("no projects in " .. tostring(result.file))
    env:out("add one with: efr project add [PATH]\n")
    return 0
  end
  local width = 1
  for _, project in ipairs(projects) do
    width = math.max(width, env.ports.text.width(project.name or "-"))
  end
  for _, project in ipairs(projects) do
    local name = project.name or "-"
    env:say(name .. (" "):rep(width - env.ports.text.width(name)) .. "  " .. project.root)
  end
  return 0
end

local function warn_reload(env, result)
  local err = type(result.reload) == "table" and result.reload.error
  if err then
    env:warn("warning: " .. (type(err) == "table" and err.message or tostring(err)))
  end
end

local function add(env, link, args)
  local result, message, code, data = link:call("admin.project_add", {
    path = absolute(env, args.path or "."),
    name = args.name,
    git_root = args.path == nil,
  })
  if not result then
    return nil, message, code, data
  end
  local project = result.project or {}
  env:say(("added %s to %s"):format(project.root or args.path, result.file or "projects.toml"))
  if result.git_dir then
    env:say("its git directory is " .. result.git_dir)
  elseif result.git_note then
    env:warn("git will not write in contained calls: " .. result.git_note)
  end
  warn_reload(env, result)
  return 0
end

local function remove(env, link, args)
  local path = absolute(env, args.path)
  local result, message, code, data = link:call("admin.project_remove", { path = path })
  if not result then
    return nil, message, code, data
  end
  env:say("removed " .. path)
  warn_reload(env, result)
  return 0
end

local ACTIONS <const> = { list = list, add = add, remove = remove }

function M.run(args, env)
  local link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  return ACTIONS[args.action](env, link, args)
end

return M
