-- Owns: the permission modes, their base rules, and which mode a turn really has.
-- Must not know: requirements or how a decision is put together.
-- Runs in efrd, on the loop thread. Pure.
--
-- Policy: what is not known is strict. An unknown mode is manual, an unknown origin is remote.

local list = require "efr.util.list"
local paths = require "efr.perm.paths"

local M = {}

local LOCAL_ORIGINS <const> = { shell = true, cli = true, proxy = true }

local function rule(id, action, resource, effect, because)
  if type(resource) == "string" then resource = { kind = resource } end
  return { id = id, action = action, resource = resource, effect = effect, because = because }
end

local function class(name)
  return { kind = "class", class = name }
end

local ASK_ALL <const> = rule("0", "any", "any", "ask", "everything asks first")

local MANUAL <const> = {
  ASK_ALL,
  rule("1", "any", class "secrets", "deny", "secrets stay closed"),
}

local CAUTIOUS <const> = {
  rule("0", "any", "any", "ask", "what no other rule knows asks first"),
  rule("1", "read", "any", "allow", "reading is free"),
  rule("1a", "read", "mask", "ask",
    "the sandbox hides this, and its content would go to the model's provider"),
  rule("2", "write", class "user_data", "ask", "writes of your files ask first"),
  rule("3", "write", "project", "allow", "writes below the project are free"),
  rule("4", "write", class "user_config", "ask", "writes of configuration ask first"),
  rule("5", "write", class "system", "ask", "writes outside your home directory ask first"),
  rule("6", "write", class "scratch", "allow", "writes in $SCRATCH are free"),
  rule("7", "any", class "secrets", "deny", "secrets stay closed"),
  -- Stands for the rows 8 to 87; a reason cites the row.
  rule("8", "execute", "read_only", "allow", "it only reads"),
}

-- For shell calls.
local AUTO <const> = {
  rule("0", "any", "any", "ask", "what no other rule knows asks first"),
  rule("1", "read", "any", "allow", "reading is free"),
  rule("2", "write", "project", "allow", "writes below the project are free"),
  rule("3", "write", class "scratch", "allow", "writes in $SCRATCH are free"),
  rule("4", "write", "envelope", "allow", "the sandbox holds these directories"),
  rule("5", "any", class "secrets", "deny", "secrets stay closed"),
  rule("6", "execute", "any", "contain", "commands run in the sandbox"),
}

local FULL <const> = {
  rule("0", "any", "any", "allow", "full mode asks only about critical deletes"),
  rule("1", "any", class "secrets", "deny", "secrets stay closed"),
}

---The names of the modes, from strict to free.
M.NAMES = { "manual", "cautious", "auto", "full" }

---@class efr.perm.Base
---@field rules table[]
---@field first integer  number of the first rule of the user
---@field contained boolean  whether the sandbox holds what the rules would ask about
---@field rows boolean  whether the rows of read-only commands let a line run
---@field settles boolean  whether exits are let through

local function base(rules, first, flags)
  return { rules = rules, first = first, contained = flags.contained or false,
    rows = flags.rows or false, settles = flags.settles or false }
end

local BASES <const> = {
  manual = base(MANUAL, 2, {}),
  cautious = base(CAUTIOUS, 88, { rows = true }),
  auto = base(AUTO, 7, { contained = true }),
  full = base(FULL, 2, { settles = true }),
}

-- Modes in which a prompt from another device never runs.
local LOCAL_ONLY <const> = { auto = true, full = true }

---Whether prompts of this origin come from this machine.
---@param origin string?
---@return boolean
function M.is_local(origin)
  return LOCAL_ORIGINS[origin] == true
end

---The mode that counts for a call: unknown is manual, and a remote origin gets at most cautious.
---@param mode string?
---@param origin string?
---@return string mode
function M.known(mode, origin)
  if not list.contains(M.NAMES, mode) then return "manual" end
  if LOCAL_ONLY[mode] and not M.is_local(origin) then return "cautious" end
  return mode
end

---The base rules of a call. File tools run in the daemon, not in the sandbox, so in auto they
---follow the rules of cautious.
---@param mode string  as known() returns it
---@param tool string
---@return efr.perm.Base
function M.base(mode, tool)
  if mode == "auto" and tool ~= "shell" then return BASES.cautious end
  return BASES[mode]
end

---Why full mode cannot be used. Asked when the settings are read, when a turn gets its mode, and
---before each call.
---@param facts { allow_full: boolean?, uid: integer?, undo: boolean?, zsh: boolean? }
---@return string? why  nil when it can; a fact that is missing refuses
function M.full_refusal(facts)
  if not facts.allow_full then return "permissions.allow_full is not true" end
  if not facts.uid or facts.uid == 0 then return "full is not for root" end
  if not facts.undo then return "full needs undo, which is off" end
  if not facts.zsh then return "full needs zsh" end
  return nil
end

---The mode of a turn: auto needs a sandbox and a project that is not the home directory.
---@param asked string  the mode of the setting or of the prompt
---@param facts { origin: string, machine: efr.Machine, scope: table?, sandbox: table }
---  sandbox: {available = boolean, reason = string?}
---@return string mode
---@return { asked: string, reason: string }? fallback
function M.of_turn(asked, facts)
  local mode = M.known(asked, facts.origin)
  if mode ~= "auto" then return mode end
  local reason
  local scope = facts.scope or {}
  if not facts.sandbox.available then
    reason = "the sandbox is not available"
    if facts.sandbox.reason then reason = reason .. ": " .. facts.sandbox.reason end
  elseif scope.kind == "project" and not paths.project_root(scope.root, facts.machine) then
    reason = "auto cannot use your home directory as a project"
  end
  if reason then return "cautious", { asked = "auto", reason = reason } end
  return mode
end

return M
