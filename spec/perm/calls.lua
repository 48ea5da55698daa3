-- Decides a command line on the machine of the corpus: home /home/u, project ~/p/efr, two more
-- projects, ~/Dropbox synced. Test help only.
local engine = require "efr.perm.engine"
local facts = require "efr.perm.facts"
local list = require "efr.util.list"

local M = {}

M.HOME = "/home/u"
M.CWD = "/home/u/p/efr"

M.DIRS = list.set {
  "/", "/etc", "/home", "/home/u", "/home/u/Documents", "/home/u/Dropbox", "/home/u/.config",
  "/home/u/.config/autostart", "/home/u/.config/efr", "/home/u/notes", "/home/u/p", "/home/u/p/app",
  "/home/u/p/efr", "/home/u/p/efr/.git",
  "/home/u/p/project-x/.git", "/home/u/p/efr/src", "/home/u/p/project-x", "/home/u/p/efr/target", "/tmp",
}
M.FILES = list.set {
  "/etc/hosts", "/home/u/.zshrc", "/home/u/.bash_history", "/home/u/notes/a.md",
  "/home/u/p/app/db.sqlite", "/home/u/p/app/.env", "/home/u/p/efr/a.txt", "/home/u/p/efr/i.log",
}

function M.machine(changes)
  local machine = {
    home = M.HOME, aliases = { "/var/home/u" },
    scratch = "/home/u/.local/share/efr/scratch/2026-01-01-x-abc",
    config_roots = { "/home/u/.config/efr" }, secrets_dir = "/home/u/.local/share/efr/secrets",
    secret_paths = {}, write_sealed = { "/home/u/.config/efr" },
    masks = { "/home/u/.bash_history", "/home/u/.aws" }, mask_globs = { ".env" },
    project_roots = { "/home/u/p/efr", "/home/u/p/app", "/home/u/p/project-x" },
    caches = { "/home/u/.cache" }, synced = { "/home/u/Dropbox" },
    own = { "/home/u/.local/share/efr" },
  }
  for key, value in pairs(changes or {}) do machine[key] = value end
  return machine
end

-- Every name leads to a program of the system.
M.FOUND = setmetatable({}, { __index = function() return true end })

M.ports = {
  stat = function(path)
    return M.DIRS[path] and "dir" or M.FILES[path] and "file" or "missing"
  end,
  rebuildable = { target = true },
}

---@param line string
---@param changes { mode: string?, facts: table?, ports: table?, machine: table?, more: table[]? }?
---@return efr.Decision
---@return efr.Call input
function M.decide(line, changes)
  changes = changes or {}
  local items = { { kind = "line", text = line, cwd = changes.cwd or M.CWD } }
  list.extend(items, changes.more or {})
  local requirements, known, lines = facts.collect(changes.ports or M.ports, items, M.HOME)
  known.git_code, known.found = { state = "clean" }, M.FOUND
  for name, value in pairs(changes.facts or {}) do known[name] = value end
  local input = {
    requirements = requirements, facts = known, lines = lines,
    tool = changes.tool or "shell",
    mode = changes.mode or "auto", origin = changes.origin or "shell",
    scope = { kind = "project", root = M.CWD }, machine = M.machine(changes.machine),
    rules = changes.rules, conversation_rules = changes.conversation_rules, lua = changes.lua,
  }
  return engine.decide(input), input
end

---The exits of a line as words: `kind:approver`, sorted.
---@return string words
---@return efr.Decision
function M.exits(line, changes)
  local decision = M.decide(line, changes)
  local out = {}
  for i, exit in ipairs(decision.exits) do out[i] = exit.kind .. ":" .. exit.approver end
  table.sort(out)
  return table.concat(out, " "), decision
end

return M
