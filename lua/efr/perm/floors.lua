-- Owns: the places that stay read-only although they lie in a write root: who a write there would
-- work for later.
-- Must not know: the disk, how a floor is mounted (sbx.roots), what a write there needs.
-- Runs in efrd and efr. Pure.
--
-- Groups: startup, autostart, path, tool, dotfile, efr, git, agent, protect. Names of the group
-- agent count only as the first component below a project; the git names count anywhere.

local paths = require "efr.perm.paths"

local M = {}

-- Below the home directory.
M.STARTUP = {
  ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".bashrc", ".bash_profile",
  ".bash_login", ".bash_logout", ".profile", ".config/fish", ".config/environment.d",
  ".pam_environment", ".xprofile", ".xinitrc",
}
M.AUTOSTART = {
  ".config/systemd", ".config/autostart", ".local/share/systemd", ".local/share/applications",
  ".config/hypr", ".config/sway", ".config/i3", ".local/share/dbus-1",
}
M.TOOLS = {
  ".gitconfig", ".config/git", ".cargo/config.toml", ".cargo/config", ".cargo/bin", ".local/bin",
  ".config/nvim", ".vimrc", ".config/direnv",
}
M.AGENTS = {
  ".mcp.json", ".claude", ".codex", ".agents", ".cursor", ".opencode", "opencode.json",
  "opencode.jsonc", ".vscode", ".envrc", ".direnv", ".efr",
}

local GIT_NAMES <const> = { config = true, ["config.worktree"] = true, hooks = true }

local PLACES <const> = setmetatable({}, { __mode = "k" })

---The groups of all floors with a fixed place, by their paths.
---@param machine table  prepared
---@return table<string, string> places  not to be changed
function M.places(machine)
  if PLACES[machine] then return PLACES[machine] end
  local out = {}
  local function add(names, group)
    for _, name in ipairs(names) do out[machine.home .. "/" .. name] = group end
  end
  add(M.STARTUP, "startup")
  add(M.AUTOSTART, "autostart")
  add(M.TOOLS, "tool")
  for _, floor in ipairs(machine.floors) do out[floor.path] = floor.group end
  PLACES[machine] = out
  return out
end

-- The group of the floor at or above a path.
local function fixed_group(path, places)
  local slash = path:find("/", 2, true)
  while slash do
    local group = places[path:sub(1, slash - 1)]
    if group then return group end
    slash = path:find("/", slash + 1, true)
  end
  return places[path]
end

-- `.git` itself, and what is git's settings and hooks below it.
local function is_git_surface(path)
  local rest = (path .. "/"):match("/%.git/(.*)$")
  if not rest then return false end
  return rest == "" or GIT_NAMES[rest:match("^[^/]+")] == true
end

local function agent_name(path, projects)
  for _, root in ipairs(projects) do
    if paths.below(path, root) then
      local first = path:sub(#root + 2):match("^[^/]+")
      for _, name in ipairs(M.AGENTS) do
        if first == name then return true end
      end
    end
  end
  return false
end

---The group of the floor at or above a path.
---@param path string  in normal form
---@param places table<string, string>  what places() returned
---@param projects string[]  roots of the registered projects
---@return string? group  nil when no floor is there
function M.group(path, places, projects)
  local group = fixed_group(path, places)
  if group then return group end
  if is_git_surface(path) then return "git" end
  if agent_name(path, projects) then return "agent" end
  return nil
end

---Whether the floor that covers the path is one file, so that it can be named and copied.
---@param group string
---@return boolean
function M.can_be_named(group)
  return group ~= "git" and group ~= "protect" and group ~= "efr"
end

return M
