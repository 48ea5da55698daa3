-- Owns: what the prompt says of git: the work tree and the branch of a directory.
-- Must not know: how git is run (a port), what the prompt makes of it.
-- Runs in efrd, in the turn's task; waits for git, 200 ms at most.
--
-- Policy: others may write in the tree at this moment, so git reads it in its own domain. What
-- cannot be read, or not in time, is simply not known.

local git_code = require "efr.perm.git_code"

local M = {}

local BUDGET_MS <const> = 200

---The work tree that `cwd` lies in.
---@param fs table
---@param git efr.perm.GitPort
---@param cwd string  absolute
---@return string? root  its real path
---@return string? branch  or the first 12 digits of a detached head
function M.find(fs, git, cwd)
  local repository = git_code.repository(fs, cwd)
  if not repository then return nil end
  local run = git:within(BUDGET_MS)
  local function line(...)
    local got = run { root = repository.root, git_dirs = repository.git_dirs, args = { ... },
      max_bytes = 4096 }
    local text = got and got.code == 0 and got.out:match("^([^\n]+)\n$")
    return text or nil
  end
  return repository.root, line("branch", "--show-current")
    or line("rev-parse", "--short=12", "HEAD")
end

return M
