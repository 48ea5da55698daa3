-- Owns: the form of a rule, and which rule of a list decides: the last one that matches.
-- Must not know: modes, floors or where rules come from.
-- Runs in efrd, on the loop thread. Pure.
--
-- A rule is {id, action, resource, effect, because}:
--   id        its number in the machine policy, as reasons cite it
--   action    any | read | write | execute | network
--   resource  {kind = "any"}; {kind = "class", class = ...}; {kind = "project"}; {kind = "mask"}
--   effect    allow | contain | ask | deny
--   because   the rule in words
-- A subject is what is judged: {action, path, class, masked} for a path (in normal form), or
-- {action} for a line and for the network.

local paths = require "efr.perm.paths"

local M = {}

local RESOURCES = {
  any = function() return true end,
  class = function(resource, subject) return subject.class == resource.class end,
  mask = function(_, subject) return subject.masked == true end,
}

-- Reads at or below the root of the turn's project, writes strictly below it.
function RESOURCES.project(_, subject, project)
  if not subject.path or not project then return false end
  if subject.action == "read" then return paths.within(subject.path, project) end
  return paths.below(subject.path, project)
end

local function matches(rule, subject, project)
  if rule.action ~= "any" and rule.action ~= subject.action then return false end
  return RESOURCES[rule.resource.kind](rule.resource, subject, project)
end

---The rule that decides.
---@param list table[]
---@param subject table
---@param project string?  root of the turn's project, in normal form
---@return table? rule  nil when none matches
function M.decide(list, subject, project)
  for i = #list, 1, -1 do
    if matches(list[i], subject, project) then return list[i] end
  end
  return nil
end

return M
