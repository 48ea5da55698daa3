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

---The floors below a home directory.
---@param home string
---@return {path: string, group: string}[]
function M.personal(home)
  local out = {}
  local function add(names, group)
    for _, name in ipairs(names) do
      out[#out + 1] = { path = home .. "/" .. name, group = group }
    end
  end
  add(M.STARTUP, "startup")
  add(M.AUTOSTART, "autostart")
  add(M.TOOLS, "tool")
  return out
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
---@param places {path: string, group: string}[]  in normal form: personal() and the machine's own
---@param projects string[]  roots of the registered projects
---@return string? group  nil when no floor is there
function M.group(path, places, projects)
  for _, floor in ipairs(places) do
    if paths.within(path, floor.path) then return floor.group end
  end
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
