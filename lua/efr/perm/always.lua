-- Owns: what the user's always rules, `[[sandbox.allow]]`, cover, and which one an exit could get.
-- Must not know: how a rule is written in the file, the disk.
-- Runs in efrd and efr. Pure.
--
-- Policy: a rule covers an exit that a reviewer could decide and that one narrow grant serves in
-- the sandbox, at a place that is reached through no link. Nothing of what a grant opens may be a
-- floor, a synced directory, a project, git's own, or under a rule of the user that asks or
-- refuses. A rule that itself opens such a place covers nothing at all. A fact that is missing is
-- no cover. That every other exit of the call is covered too is seen to by perm.exits.

local floors = require "efr.perm.floors"
local list = require "efr.util.list"
local paths = require "efr.perm.paths"
local rules = require "efr.perm.rules"

local M = {}

local HTTPS_PORT <const> = 443

local function overlap(a, b)
  return paths.within(a, b) or paths.within(b, a)
end

-- What may not be opened -------------------------------------------------------------------------

local function floor_at(call, dir)
  for path in pairs(call.floors) do
    if overlap(path, dir) then return path end
  end
  for _, path in ipairs(call.facts.more_floors or {}) do
    if overlap(path, dir) then return path end
  end
  return nil
end

local MEETS <const> = {
  any = function() return true end,
  under = function(resource, dir) return overlap(resource.under, dir) end,
  exact = function(resource, dir) return overlap(resource.path, dir) end,
  class = function(resource, dir, machine) return resource.class == paths.class(dir, machine) end,
}

-- A rule of the user that asks or refuses on the directory, below it or around it.
local function rule_at(call, dir)
  for _, rule in ipairs(call.rules) do
    local meets = rule.user and rule.effect ~= "allow" and rule.action ~= "execute"
      and rule.action ~= "network" and MEETS[rule.resource.kind]
    if meets and meets(rule.resource, dir, call.machine) then return rule end
  end
  return nil
end

local CLOSED <const> = {
  function(call, dir)
    local floor = floor_at(call, dir)
    return floor and ("%s is protected"):format(floor)
  end,
  function(_, dir)
    return (dir .. "/"):find("/.git/", 1, true) and "it lies in a git directory" or nil
  end,
  function(call, dir)
    for _, synced in ipairs(call.machine.synced) do
      if overlap(synced, dir) then return ("other machines get %s"):format(synced) end
    end
    return nil
  end,
  function(call, dir)
    for _, root in ipairs(call.machine.project_roots) do
      if paths.within(root, dir) then return ("the project %s lies there"):format(root) end
    end
    return nil
  end,
  function(call, dir)
    local own = paths.is_write_sealed(dir, call.machine)
      or paths.holds_write_sealed(dir, call.machine)
    return own and "efr's configuration lies there" or nil
  end,
  function(call, dir)
    local secret = paths.is_secret(dir, call.machine) or paths.holds_secret(dir, call.machine)
    return secret and "a secret lies there" or nil
  end,
  function(call, dir)
    local rule = rule_at(call, dir)
    return rule and ("your rule %s says %s there"):format(rule.cite or "of this conversation",
      rule.effect) or nil
  end,
}

---Why no rule may open a directory or a file for writing.
---@param call table  the engine's, with `floors`
---@param dir string  in normal form
---@return string? reason
function M.closed(call, dir)
  for _, look in ipairs(CLOSED) do
    local reason = look(call, dir)
    if reason then return reason end
  end
  return nil
end

-- Cover ------------------------------------------------------------------------------------------

local function in_project(call, rule)
  if not rule.project then return true end
  return call.project == paths.normalise(rule.project, call.machine)
end

-- The name is known, and it leads nowhere else.
local function is_real(call, path)
  local targets, reals, dangling = call.facts.targets, call.facts.reals, call.facts.dangling
  if not targets or not reals or not dangling then return false end
  return targets[path] ~= nil and reals[path] == nil and not dangling[path]
end

local COVERS <const> = {}

function COVERS.write(call, rule, exit)
  local grant = exit.grants[1].write
  local under = rule.under and paths.normalise(rule.under, call.machine)
  if not grant or not under or not paths.within(grant, under) then return false end
  return is_real(call, exit.target) and not M.closed(call, under)
    and not M.closed(call, grant) and not M.closed(call, exit.target)
end

function COVERS.socket(call, rule, exit)
  local grant = exit.grants[1].socket
  return grant ~= nil and rule.socket ~= nil
    and grant == paths.normalise(rule.socket, call.machine) and is_real(call, grant)
end

local function is_refused(call, host)
  local network = call.facts.network
  for _, name in ipairs(network and network.deny or {}) do
    local suffix = name:match("^%*(%..+)$")
    if name == host or suffix and host:sub(-#suffix) == suffix then return true end
  end
  return false
end

function COVERS.host(call, rule, exit)
  local grant = exit.grants[1]
  return grant.host ~= nil and rule.host == grant.host
    and (rule.port or HTTPS_PORT) == grant.port and not is_refused(call, grant.host)
end

---What a rule is checked against apart from any call.
---@param opts { machine: efr.Machine, rules: table[]?, more_floors: string[] }
---@return table setting
function M.setting(opts)
  local machine = paths.prepare(opts.machine)
  return {
    machine = machine, floors = floors.places(machine), facts = { more_floors = opts.more_floors },
    rules = rules.of_user(opts.rules or {}, { first = 0, machine = machine,
      cite = function(_, index) return ("permissions.rules[%d]"):format(index) end }),
  }
end

---Why a rule covers nothing, as far as no disk is asked.
---@param setting table
---@param rule table
---@return string? reason
function M.problem(setting, rule)
  local under = rule.under and paths.normalise(rule.under, setting.machine)
  return under and M.closed(setting, under) or nil
end

-- Whether a rule could cover the exit at all: one narrow grant, of a shell call in auto.
local function can_be_covered(call, exit)
  return COVERS[exit.kind] ~= nil and not exit.user_only and exit.launch == "contained"
    and call.tool == "shell" and call.mode == "auto" and #exit.grants == 1
end

---The rule that covers an exit.
---@param call table  the engine's
---@param exit efr.Exit  with launch and grants
---@return table? rule
function M.covering(call, exit)
  if not can_be_covered(call, exit) then return nil end
  for _, rule in ipairs(call.facts.always or {}) do
    if not rule.problem and in_project(call, rule) and COVERS[exit.kind](call, rule, exit) then
      return rule
    end
  end
  return nil
end

---Takes the cover away from a call that rules do not cover as a whole.
---@param found efr.Exit[]  settled
function M.all_or_none(found)
  for _, exit in ipairs(found) do
    if exit.approver ~= "rule" then
      for _, other in ipairs(found) do
        if other.approver == "rule" then
          other.approver, other.cite, other.covered = "reviewer", nil, true
        end
      end
      return
    end
  end
end

-- Proposals --------------------------------------------------------------------------------------

local PROPOSE <const> = {
  -- What the call makes gets no rule: a later write would open its directory.
  write = function(exit)
    local grant = not exit.make and exit.grants[1].write
    return grant and { kind = "write", under = grant }
  end,
  socket = function(exit)
    local grant = exit.grants[1].socket
    return grant and { kind = "socket", socket = grant }
  end,
  host = function(exit)
    local grant = exit.grants[1]
    return grant.host and { kind = "host", host = grant.host, port = grant.port }
  end,
}

---The one rule that the reviewer's exits of a decision could get; nil: they would need more than
---one, or cannot have any.
---@param decision efr.Decision
---@return table? rule  without a place in the file
function M.proposal(decision)
  local rule
  for _, exit in ipairs(list.filter(decision.exits, function(one) return not one.covered end)) do
    local make = exit.approver == "reviewer" and PROPOSE[exit.kind]
    local one = make and #exit.grants == 1 and make(exit)
    if not one or rule and not list.same(rule, one) then return nil end
    rule = one
  end
  return rule or nil
end

return M
