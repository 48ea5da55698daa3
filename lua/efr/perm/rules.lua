-- Owns: the form of a rule, the user's rules in that form, and which rule of a list decides.
-- Must not know: modes, floors or where rules come from.
-- Runs in efrd and efr. Pure.
--
-- A rule is {id, action, resource, effect, because, cite, user}:
--   id        its number in the machine policy, as reasons cite it
--   action    any | read | write | execute | network
--   resource  {kind = "any"}; {kind = "class", class}; {kind = "under", under};
--             {kind = "project"}; {kind = "mask"}; {kind = "envelope"}; {kind = "read_only"};
--             {kind = "command", command}; {kind = "place", pos, stop, opens}, the commands that
--             stand there in the line, and with opens none that runs as another user;
--             {kind = "exact", path}. The last two come from the answers of Lua rules
--   effect    allow | contain | ask | deny
--   because   the rule in words
--   cite      where the user wrote it: `permissions.rules[0]`, or file and line of a Lua rule
--   user      true: it is the user's, not built in
-- A subject is what is judged. For a path (in normal form): {action, path, class, masked,
-- enveloped}. For one simple command of a line: {action, command, place, row}; without `command`
-- for a line that could not be read.
--
-- Policy: the last rule that matches decides. A secret is decided by the rules that name secrets;
-- every later rule that matches may only be stricter.

local matching = require "efr.perm.matching"
local paths = require "efr.perm.paths"

local M = {}

local ORDER <const> = { allow = 1, contain = 2, ask = 3, deny = 4 }

---The order of the effects, from free to strict.
M.ORDER = ORDER

local RESOURCES = {
  any = function() return true end,
  class = function(resource, subject) return subject.class == resource.class end,
  mask = function(_, subject) return subject.masked == true end,
  envelope = function(_, subject) return subject.enveloped == true end,
  read_only = function(_, subject) return subject.row ~= nil end,
}

-- Reads at or below the root of the turn's project, writes strictly below it.
function RESOURCES.project(_, subject, project)
  if not subject.path or not project then return false end
  if subject.action == "read" then return paths.within(subject.path, project) end
  return paths.below(subject.path, project)
end

function RESOURCES.under(resource, subject)
  return subject.path ~= nil and paths.within(subject.path, resource.under)
end

-- Only what opens leaves out a program that runs as another user, and a place that is not known.
function RESOURCES.command(resource, subject, _, effect)
  local command = subject.command
  if not command then return false end
  if effect ~= "allow" then
    return matching.stricter(resource.command, command, subject.place)
  end
  return matching.command(resource.command, command, subject.place)
end

function RESOURCES.exact(resource, subject)
  return subject.path == resource.path
end

---Whether a command stands where a resource of the kind place says.
---@param resource table
---@param command table
---@return boolean
function M.at_place(resource, command)
  local node = command.node
  if not node or resource.opens and command.privileged then return false end
  return node.pos >= resource.pos and node.stop <= resource.stop
end

function RESOURCES.place(resource, subject)
  return subject.command ~= nil and M.at_place(resource, subject.command)
end

local function matches(rule, subject, project)
  local action, resource = subject.action, rule.resource
  local kind = resource.kind
  if rule.action ~= action then
    if rule.action ~= "any" then return false end
    -- A line may be opened for a command and its network must still be closed.
    if action == "network" and kind == "command" then return false end
  end
  return RESOURCES[kind](resource, subject, project, rule.effect)
end

-- Whether a rule is about secrets by name, so that it may open one.
local function names_secrets(rule, machine)
  local resource = rule.resource
  if resource.kind == "class" then return resource.class == "secrets" end
  return resource.kind == "under" and paths.is_secret(resource.under, machine)
end

local function decide_secret(list, subject, project, machine)
  local current
  for _, rule in ipairs(list) do
    if matches(rule, subject, project) then
      local decides = not current or names_secrets(rule, machine)
      if decides or ORDER[rule.effect] > ORDER[current.effect] then current = rule end
    end
  end
  return current
end

---The rule that decides.
---@param list table[]
---@param subject table
---@param project string?  root of the turn's project, in normal form
---@param machine table?  prepared; needed for a path
---@return table? rule  nil when none matches
function M.decide(list, subject, project, machine)
  if subject.class == "secrets" then return decide_secret(list, subject, project, machine) end
  local action = subject.action
  for i = #list, 1, -1 do
    local rule = list[i]
    local of = rule.action
    -- Most rules are for another action.
    if (of == action or of == "any") and matches(rule, subject, project) then return rule end
  end
  return nil
end

-- The user's rules ------------------------------------------------------------------------------

local FORMS = {
  any = function() return { kind = "any" } end,
  project = function() return { kind = "project" } end,
  class = function(resource) return { kind = "class", class = resource.class } end,
  command = function(resource) return { kind = "command", command = resource.command } end,
  place = function(resource)
    local place = resource.place
    return { kind = "place", pos = place.pos, stop = place.stop, opens = place.opens }
  end,
}

function FORMS.exact(resource, machine)
  return { kind = "exact", path = paths.normalise(resource.exact, machine) }
end

function FORMS.under(resource, machine)
  local normal = paths.normalise(resource.under, machine)
  assert(normal, "a rule with a path that is not absolute")
  return { kind = "under", under = normal }
end

local WORDS <const> = {
  any = function() return "anything" end,
  project = function() return "the project" end,
  class = function(resource) return "class " .. resource.class end,
  under = function(resource) return resource.under end,
  place = function() return "this command" end,
  exact = function(resource) return resource.exact end,
  command = function(resource)
    local words = { resource.command.program }
    for _, arg in ipairs(resource.command.args or {}) do words[#words + 1] = arg end
    return "`" .. table.concat(words, " ") .. "`"
  end,
}

local function form_of(resource)
  for name in pairs(FORMS) do
    if resource[name] then return name end
  end
  return error("a rule without a resource", 0)
end

---The user's rules as rules of the machine policy.
---@param list table[]  as config's `permissions.rules` gives them
---@param opts { first: integer, machine: table, cite: fun(rule: table, index: integer): string }
---  first: number of the first rule in the machine policy
---@return table[] rules
function M.of_user(list, opts)
  local out = {}
  for i, item in ipairs(list) do
    assert(ORDER[item.effect] and item.effect ~= "contain", "a rule without a known effect")
    local form = form_of(item.resource)
    local resource = FORMS[form](item.resource, opts.machine)
    out[i] = {
      id = tostring(opts.first + i - 1), action = item.action, resource = resource,
      effect = item.effect, cite = opts.cite(item, i - 1), user = true,
      because = item.because or ("your rule for %s %s"):format(
        item.action == "any" and "every action on" or item.action, WORDS[form](item.resource)),
    }
  end
  return out
end

return M
