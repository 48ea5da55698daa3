-- Owns: which variables of the shell change what git does: where its repository or its settings
-- are, or what it runs.
-- Must not know: how the variables come here, repositories.
-- Runs in efrd and efr. Pure.
--
-- Policy: a variable of git's that is not known to be harmless counts. The hidden shell sets its
-- own pager for git; with another one, or with none, git would run what somebody else chose.

local list = require "efr.util.list"

local M = {}

-- Variables that say who, not where or what; and those that say which files of settings are read,
-- which are followed.
local HARMLESS <const> = {
  "^GIT_AUTHOR_", "^GIT_COMMITTER_", "^GIT_PS1_", "^GIT_EDITOR$", "^GIT_SEQUENCE_EDITOR$",
  "^GIT_SSL_", "^GIT_HTTP_", "^GIT_TERMINAL_PROMPT$", "^GIT_OPTIONAL_LOCKS$",
  "^GIT_MERGE_AUTOEDIT$", "^GIT_CONFIG_GLOBAL$", "^GIT_CONFIG_SYSTEM$", "^GIT_CONFIG_NOSYSTEM$",
}
local NO_PAGER <const> = "cat"

local function is_harmless(name, value)
  if not name:find("^GIT_") then return true end
  if name == "GIT_PAGER" then return value == NO_PAGER end
  for _, pattern in ipairs(HARMLESS) do
    if name:find(pattern) then return true end
  end
  return false
end

---The first variable, by name, that changes what git does; nil: none does.
---@param env table<string, string>
---@param shell_home string?  the home directory that is looked at, where `env` is a hidden shell's
---@return string? name
function M.changes(env, shell_home)
  if shell_home and env.GIT_PAGER == nil then return "GIT_PAGER" end
  if shell_home and env.HOME ~= shell_home then return "HOME" end
  for _, name in ipairs(list.keys(env)) do
    if not is_harmless(name, env[name]) then return name end
  end
  return nil
end

return M
