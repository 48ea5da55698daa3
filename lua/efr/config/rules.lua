-- Owns: the shape of the user's rules, `[[permissions.rules]]`: every refusal, and the plain data
-- that the engine gets.
-- Must not know: how a rule is matched, files.
-- Runs in efrd and efr. Pure.
--
-- cfg:get("permissions.rules") is a list of
--   { index = 0, action = "any|read|write|execute|network", effect = "allow|ask|deny",
--     resource = one of
--       { any = true }          every path, line and network access
--       { class = "scratch|user_config|user_data|system|secrets" }
--       { under = "/abs" }      that path and below; `~` is put in, `.` and `..` may stand in it
--       { project = true }      reads at or below the root of the turn's project, writes below it
--       { command = { program = "cargo",
--           args = { "test", "run|check", "l*" },    words that follow, in order; | parts
--                                                    alternatives, a * at the end of one: any tail
--           forbid = { "--config", "-C", "--index*", "@" },
--           min_operands=, max_operands=, max_options= integers from 0,
--           under = "/abs" | "project" | "scratch",  where the line starts
--           check = "sed_print_only" | "ref_names" } } }
-- args and forbid are always there; the other keys of a command are nil when the file has none.
-- The place in the list decides (the last match), and reasons cite the index: it counts from 0.

local list = require "efr.util.list"
local paths = require "efr.config.paths"
local toml = require "efr.config.toml"

local M = {}

local ACTIONS <const> = { "any", "read", "write", "execute", "network" }
local EFFECTS <const> = { "allow", "ask", "deny" }
local CLASSES <const> = { "scratch", "user_config", "user_data", "system", "secrets" }
local MAX_COUNT <const> = 10000

-- The actions that each form of a resource can meet.
local MEETS <const> = {
  any = ACTIONS,
  class = { "any", "read", "write" },
  under = { "any", "read", "write" },
  project = { "any", "read", "write" },
  command = { "any", "execute", "network" },
}

-- Which program each check reads the words of.
local CHECKS <const> = { sed_print_only = "sed", ref_names = "git" }

local PLAIN <const> = "^[%w%-_./:,+@%%=]+$"

-- A failure with the place of the value in the file.
local function bad(owner, key, fmt, ...)
  return nil, fmt:format(...), { owner, key }
end

local function one_of(choices, value)
  return type(value) == "string" and list.contains(choices, value)
end

local function words_of(choices)
  return table.concat(choices, ", ")
end

-- Without a leading dash that would be a word of its own, `-` or `--`.
local function plain(word)
  return word:find(PLAIN) ~= nil and word ~= "-" and word ~= "--"
end

local function check_program(command)
  local program = command.program
  if program == nil then return nil, "has a command without a program" end
  if type(program) ~= "string" or not program:find(PLAIN) or program:find("^[-=]") then
    return bad(command, "program", "has a program that is no plain word")
  end
  return program
end

local function arg_ok(arg)
  if arg == "" or arg:find("^|") or arg:find("|$") or arg:find("||", 1, true) then return false end
  for alternative in arg:gmatch("[^|]+") do
    if not plain((alternative:gsub("%*$", ""))) then return false end
  end
  return true
end

-- * stands for any tail, and only of an option.
local function forbid_ok(word)
  local head, star = word:match("^(.-)(%*?)$")
  return plain(head) and (star == "" or head:find("^%-") ~= nil)
end

local function check_words(command, key, fine, shape)
  local words = command[key]
  if words == nil then return {} end
  if not toml.is_array(words) then return bad(command, key, "has %s that is no list", key) end
  for i, word in ipairs(words) do
    if type(word) ~= "string" or not fine(word) then
      return bad(words, i, "has %s with an item %d that is no %s", key, i - 1, shape)
    end
  end
  return list.copy(words)
end

local function check_count(command, key)
  local value = command[key]
  if value == nil then return true end
  if math.type(value) ~= "integer" or value < 0 or value > MAX_COUNT then
    return bad(command, key, "has %s that is no integer between 0 and %d", key, MAX_COUNT)
  end
  return true
end

local function check_where(command, home)
  local under = command.under
  if under == nil or under == "project" or under == "scratch" then return true, under end
  local path, err
  if type(under) == "string" then path, err = paths.expand(under, home) end
  if not path then
    return bad(command, "under", "has a command with under that %s",
      err or "must be a directory, project or scratch")
  end
  return true, path
end

local function check_check(command, program)
  local check = command.check
  if check == nil then return true end
  local wanted = type(check) == "string" and CHECKS[check]
  if not wanted then
    return bad(command, "check", "has a check that is none of %s", words_of(list.keys(CHECKS)))
  end
  if program:match("[^/]*$") ~= wanted then
    return bad(command, "check", "has the check %s, which is for %s", check, wanted)
  end
  return true
end

local COMMAND_KEYS <const> = list.set {
  "program", "args", "forbid", "min_operands", "max_operands", "max_options", "under", "check",
}

local function unknown_key(t, known)
  for _, key in ipairs(list.keys(t)) do
    if not known[key] then return key end
  end
  return nil
end

local function check_counts(command)
  for _, key in ipairs { "min_operands", "max_operands", "max_options" } do
    local ok, err, at = check_count(command, key)
    if not ok then return nil, err, at end
  end
  if (command.min_operands or 0) > (command.max_operands or math.huge) then
    return bad(command, "min_operands", "has min_operands above max_operands")
  end
  return true
end

local RESOURCES = {}

function RESOURCES.command(resource, home)
  local command = resource.command
  if type(command) ~= "table" or toml.is_array(command) then
    return bad(resource, "command", "has a command that is no table")
  end
  local key = unknown_key(command, COMMAND_KEYS)
  if key then return bad(command, key, "has a command with an unknown key '%s'", key) end
  local program, err, at = check_program(command)
  if not program then return nil, err, at end
  local args, forbid, ok, where
  args, err, at = check_words(command, "args", arg_ok, "plain word")
  if not args then return nil, err, at end
  forbid, err, at = check_words(command, "forbid", forbid_ok, "plain word or option")
  if not forbid then return nil, err, at end
  ok, err, at = check_counts(command)
  if not ok then return nil, err, at end
  ok, where, at = check_where(command, home)
  if not ok then return nil, where, at end
  ok, err, at = check_check(command, program)
  if not ok then return nil, err, at end
  return { command = {
    program = program, args = args, forbid = forbid, min_operands = command.min_operands,
    max_operands = command.max_operands, max_options = command.max_options, under = where,
    check = command.check,
  } }
end

function RESOURCES.class(resource)
  if one_of(CLASSES, resource.class) then return { class = resource.class } end
  return bad(resource, "class", "has a class that is none of %s", words_of(CLASSES))
end

function RESOURCES.under(resource, home)
  local path, err
  if type(resource.under) == "string" then path, err = paths.expand(resource.under, home) end
  if not path then return bad(resource, "under", "has under that %s", err or "must be a path") end
  return { under = path }
end

local FORMS <const> = "any, project, {class = ...}, {under = ...} or {command = {...}}"

-- Returns the resource and the name of its form.
local function check_resource(rule, home)
  local resource = rule.resource
  if resource == nil then return nil, "has no resource" end
  if resource == "any" or resource == "project" then return { [resource] = true }, resource end
  if type(resource) ~= "table" or toml.is_array(resource) then
    return bad(rule, "resource", "has a resource that is none of %s", FORMS)
  end
  local names = list.keys(resource)
  if #names ~= 1 or not RESOURCES[names[1]] then
    return bad(rule, "resource", "has a resource that is none of %s", FORMS)
  end
  local out, err, at = RESOURCES[names[1]](resource, home)
  return out, out and names[1] or err, at
end

local RULE_KEYS <const> = list.set { "action", "resource", "effect" }

local function check_choice(rule, key, choices)
  if rule[key] == nil then return nil, "has no " .. key end
  if one_of(choices, rule[key]) then return true end
  return bad(rule, key, "has %s that is none of %s", key, words_of(choices))
end

local function check_rule(rule, home)
  if type(rule) ~= "table" or toml.is_array(rule) then return nil, "must be a table" end
  local key = unknown_key(rule, RULE_KEYS)
  if key then return bad(rule, key, "has an unknown key '%s'", key) end
  local ok, err, at = check_choice(rule, "action", ACTIONS)
  if not ok then return nil, err, at end
  ok, err, at = check_choice(rule, "effect", EFFECTS)
  if not ok then return nil, err, at end
  local resource, form
  resource, form, at = check_resource(rule, home)
  if not resource then return nil, form, at end
  if not list.contains(MEETS[form], rule.action) then
    return bad(rule, "action", "has the action %s, which its resource never meets; it takes %s",
      rule.action, words_of(MEETS[form]))
  end
  return { action = rule.action, resource = resource, effect = rule.effect }
end

---Checks the rules as the TOML reader returns them.
---@param value any
---@param home string
---@return table[]? rules  see above
---@return string? err  words that follow the key's name: `[0] has no effect`
---@return table? at  {table, key} of the reader: the value that is wrong
function M.check(value, home)
  if not toml.is_array(value) then return nil, "must be tables [[permissions.rules]]" end
  local out = {}
  for i, rule in ipairs(value) do
    local fine, err, at = check_rule(rule, home)
    if not fine then return nil, ("[%d] %s"):format(i - 1, err), at or { value, i } end
    fine.index = i - 1
    out[i] = fine
  end
  return out
end

local function string_list()
  return { type = "array", items = { type = "string" } }
end

local function count()
  return { type = "integer", minimum = 0, maximum = MAX_COUNT }
end

local function object(properties, required)
  return {
    type = "object", properties = properties, required = required, additionalProperties = false,
  }
end

---The JSON schema of the list; arrays in it are plain sequences.
---@return table
function M.json_schema()
  local command = object({
    program = { type = "string" }, args = string_list(), forbid = string_list(),
    min_operands = count(), max_operands = count(), max_options = count(),
    under = { type = "string" }, check = { enum = list.keys(CHECKS) },
  }, { "program" })
  local resource = { anyOf = {
    { enum = { "any", "project" } },
    object({ class = { enum = CLASSES } }, { "class" }),
    object({ under = { type = "string" } }, { "under" }),
    object({ command = command }, { "command" }),
  } }
  return {
    type = "array",
    items = object({
      action = { enum = ACTIONS }, effect = { enum = EFFECTS }, resource = resource,
    }, { "action", "effect", "resource" }),
  }
end

return M
