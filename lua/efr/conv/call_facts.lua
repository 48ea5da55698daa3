-- Owns: taking the facts about a call from this machine: once before the decision, and once more
-- right before the start.
-- Must not know: what is decided with them. Runs in efrd, in the turn's task; waits for git.

local always = require "efr.conv.always"
local coverage = require "efr.conv.coverage"
local exit_grants = require "efr.conv.exit_grants"
local facts = require "efr.perm.facts"
local line_of = require "efr.perm.line"

local M = {}

-- The user's git as the facts ask it; with the turn, the asking ends.
local function git_of(turn)
  local git = turn.app.git
  return git and { env = git.env, kept = git.kept, within = function(_, ms)
    return git:within(ms, turn.token)
  end }
end

---Takes the facts about a call: call.requirements, call.facts, call.lines.
---@param turn efr.Turn
---@param call table  with machine, search_path, git_env and other_shell
---@param requirements table[]  what the tool declared, and what the user's rules add
function M.collect(turn, call, requirements)
  local ports = facts.ports(turn.app.ports.fs, call.search_path, call.machine, git_of(turn),
    call.git_env and call.git_env.values or false)
  function ports.changed(file)
    local info = turn.app.ports.fs.stat(file)
    return not info or not turn.began_us or info.mtime_us >= turn.began_us
  end
  local found
  call.requirements, found, call.lines = facts.collect(ports, requirements, turn.home)
  for _, line in pairs(call.other_shell and call.lines or {}) do
    line_of.close(line, "the hidden shell runs without efr's integration")
  end
  found.session_bus = exit_grants.session_buses(turn.app)
  if turn.settings.mode == "full" then found.mounts = ports.mounts() end
  found.covered_paths = coverage.paths(turn, call, requirements)
  always.add_facts(turn, call, found)
  call.facts = found
end

return M
