-- Owns: what of a call leaves the sandbox: each exit with its grants, who decides it and how the
-- call would be launched.
-- Must not know: what a program's words mean (exit_programs), what a path is (exit_paths).
-- Runs in efrd and efr. Pure.
--
-- Policy: floors (secret, config) refuse with no question. Then the user's rules for exits, then
-- the reviewer or the user. A call with one exit that no sandbox can serve runs outside as a whole,
-- and then the line may hold no other command than readers. Inside, files of a tree are hidden one
-- by one; outside nothing is, so there the user decides about a tree with something to hide. Only
-- auto and full have exits.

local always = require "efr.perm.always"
local exit_commands = require "efr.perm.exit_commands"
local exit_needs = require "efr.perm.exit_needs"
local exit_paths = require "efr.perm.exit_paths"
local exit_programs = require "efr.perm.exit_programs"
local exit_views = require "efr.perm.exit_views"
local exit_who = require "efr.perm.exit_who"
local floors = require "efr.perm.floors"
local heuristics = require "efr.perm.heuristics"
local judge_path = require "efr.perm.judge_path"
local line_of = require "efr.perm.line"
local list = require "efr.util.list"
local one_command = require "efr.perm.one_command"
local paths = require "efr.perm.paths"
local reasons = require "efr.perm.reasons"

local M = {}

---@class efr.Exit
---@field kind string
---@field target string  path, host, program or what the kind is about
---@field source string  "predicted" or "needs"
---@field why string  in words
---@field approver string  "denied", "user", "reviewer" (else the user), "rule" or "full"
---@field launch string  "contained", "unsandboxed" or "none"
---@field grants table[]
---@field cite string?  the rule of the user that decided

-- Where a call may write without an exit --------------------------------------------------------

local function write_roots(call)
  local out = {}
  if call.tool == "shell" then list.extend(out, call.machine.envelope) end
  if call.project then out[#out + 1] = call.project end
  return list.extend(out, call.machine.scratch)
end

local function target_of(call)
  local known = call.facts.targets or {}
  return function(path)
    local what = known[path]
    if what == nil then return nil end
    return what
  end
end

local function prepare(call)
  call.write_roots = write_roots(call)
  call.floors = floors.places(call.machine)
  call.target = target_of(call)
  function call.opened(path) return judge_path.opened(call, path) end
end

-- Collecting ------------------------------------------------------------------------------------

local function collector(call)
  local out, seen, views = {}, {}, {}
  local function add(found, source)
    local key = found.kind .. "\0" .. tostring(found.target)
    local known = seen[key]
    if known then
      known.user_only = known.user_only or found.user_only
      return
    end
    found.source, found.grants = source or "predicted", found.grants or {}
    seen[key], out[#out + 1] = found, found
  end
  local function emit(kind, detail)
    local found = {}
    for name, value in pairs(detail) do found[name] = value end
    found.kind = kind
    if exit_who.is_served(call, found) then return exit_views.of_exit(found, views) end
    add(found)
  end
  return out, add, emit, views
end

-- What is written: a root that files are copied into is not written itself.
local function written(call, item, path, makers)
  local into = item.below or makers[path] == "into" and list.contains(call.write_roots, path)
  return into and (path == "/" and "/*" or path .. "/*") or path
end

local function of_paths(call, items, makers, add)
  for _, item in ipairs(items) do
    local named = (item.kind == "read" or item.kind == "write") and not item.unknown
    local path = named and paths.normalise(item.path, call.machine)
    if path then
      local found
      if item.kind == "write" then
        found = exit_paths.write(written(call, item, path, makers), makers[path], call)
      elseif not item.found then
        found = exit_paths.read(path, call)
      end
      if found then add(found) end
    end
  end
end

local function of_lines(call, emit, views)
  local makers = {}
  for _, item in ipairs(call.lines) do
    local commands = exit_commands.of_line(call, item)
    exit_views.of_line(call, commands, emit, views)
    for _, cmd in ipairs(commands) do
      exit_programs.exits(cmd, emit)
      exit_commands.exits(call, cmd, emit)
    end
    exit_commands.makers(call, commands, makers)
  end
  -- The place behind a name is made by what makes the name.
  for path, real in pairs(call.facts.reals or {}) do makers[real] = makers[real] or makers[path] end
  return makers
end

-- The network view joins only grants of paths.
local BESIDE_VIEW <const> = { write = true, masked_read = true }

local function without_network(views, found)
  for _, exit in ipairs(found) do
    if not BESIDE_VIEW[exit.kind] then
      return list.filter(views, function(view) return view.name ~= "network" end)
    end
  end
  return views
end

-- A network that was declared, and that no program explains: neither one that has an exit for it,
-- nor one that is known to stay here with these words.
local function of_network(call, items, found, emit)
  local wanted = false
  for _, item in ipairs(items) do wanted = wanted or item.kind == "network" end
  if not wanted then return end
  for _, exit in ipairs(found) do
    if exit_who.opens_network(exit) then return end
  end
  local explained = #call.lines > 0
  for _, item in ipairs(call.lines) do
    for _, command in ipairs(line_of.found(call.line(item.text))) do
      local known = exit_programs.knows(command.program)
      if not known and heuristics.uses_network(command) then explained = false end
    end
  end
  if explained then return end
  emit("host", { target = "the network", why = "a program of the line uses the network" })
end

-- Settling --------------------------------------------------------------------------------------

local function reason_of(exit)
  local subject = ("exit %s %s"):format(exit.kind, reasons.shown(exit.target))
  local effect, words = exit_who.effect(exit)
  local reason = reasons.because(subject, effect, exit.why .. "; " .. words)
  reason.exit, reason.cite = true, exit.cite
  return reason
end

local function union(found)
  local grants, seen = {}, {}
  for _, exit in ipairs(found) do
    for _, grant in ipairs(exit.grants) do
      local key = exit_who.grant_text(grant)
      if not seen[key] then grants[#grants + 1], seen[key] = grant, true end
    end
  end
  return grants
end

local function launch_of(found)
  local launch
  for _, exit in ipairs(found) do
    if exit.launch == "unsandboxed" then return "unsandboxed" end
    launch = launch or exit.launch
  end
  return launch
end

-- Whether a tree holds something that the sandbox would hide.
local function holds_hidden(call, item)
  local path = not item.unknown and paths.normalise(item.path, call.machine)
  if not path or paths.holds_masked(path, call.machine) then return true end
  local secrets, proc = paths.secrets_below(path, call.machine)
  for _, secret in ipairs(secrets) do
    if not call.opened(secret) then return true end
  end
  return proc
end

-- What the line reads where nothing is hidden: the files that were found in its trees are exits of
-- their own, and a tree with something else to hide leaves every exit to the user.
local function in_the_open(call, items, exits, add)
  if not call.settles and launch_of(exits) ~= "unsandboxed" then return end
  local settled, tree = #exits, nil
  for _, item in ipairs(items) do
    local path = item.kind == "read" and item.found and paths.normalise(item.path, call.machine)
    local found = path and exit_paths.read(path, call)
    if found then add(found) end
    local bare = item.kind == "read" and item.tree and not tree and holds_hidden(call, item)
    if bare then tree = item end
  end
  for i = settled + 1, #exits do exit_who.settle(call, exits[i]) end
  if tree and not call.settles then exit_who.leave_to_user(exits, reasons.shown(tree.path)) end
end

local function alone(call, launch)
  if launch ~= "unsandboxed" or call.mode ~= "auto" then return nil end
  for _, item in ipairs(call.lines) do
    local ok, why = one_command.check(call.line(item.text), call.facts)
    if not ok then
      local reason = reasons.because("the line", "deny",
        "a command that must run outside the sandbox must run alone: " .. why)
      reason.exit, reason.alone = true, true
      return reason
    end
  end
  return nil
end

local NONE <const> = { exits = {}, reasons = {}, grants = {}, views = {} }

---The exits of a call.
---@param call table  the engine's
---@param input efr.Call
---@return { exits: efr.Exit[], reasons: efr.Reason[], grants: table[], views: string[],
---  launch: string? }
function M.of_call(call, input)
  if call.mode ~= "auto" and call.mode ~= "full" then return NONE end
  prepare(call)
  local found, add, emit, views = collector(call)
  local makers = of_lines(call, emit, views)
  of_paths(call, input.requirements, makers, add)
  of_network(call, input.requirements, found, emit)
  for _, item in ipairs(input.requirements) do
    if item.kind == "needs" then exit_needs.exits(call, item.needs, add) end
  end
  for _, exit in ipairs(found) do exit_who.settle(call, exit) end
  in_the_open(call, input.requirements, found, add)
  always.all_or_none(found)
  local out = list.map(found, reason_of)
  local launch = launch_of(found)
  out[#out + 1] = alone(call, launch)
  views = without_network(views, found)
  for _, view in ipairs(views) do
    out[#out + 1] = reasons.because(view.name .. " view", call.settles and "allow" or "contain",
      view.why)
  end
  if call.settles then launch = "direct" end
  return { exits = found, reasons = out, grants = union(found), launch = launch,
    views = list.map(views, function(view) return view.name end) }
end

return M
