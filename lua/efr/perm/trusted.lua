-- Owns: the words whose meaning a decision trusts: programs of command rules, zsh's reserved
-- words, and what zsh calls when there is no such program. In the hidden shell no alias and no
-- function may have one of these names.
-- Must not know: how the shell is told.
-- Runs in efrd. Pure.

local list = require "efr.util.list"
local names = require "efr.perm.data.shell_words"
local rows = require "efr.perm.data.read_only"

local M = {}

---@param rules table[]?  `permissions.rules` as the configuration gives them
---@return string[] words  sorted
function M.words(rules)
  local out = { command_not_found_handler = true }
  for name in pairs(names.reserved) do out[name] = true end
  for _, row in ipairs(rows) do out[row.program] = true end
  for _, rule in ipairs(rules or {}) do
    local command = rule.resource.command
    if command then out[command.program] = true end
  end
  return list.keys(out)
end

return M
