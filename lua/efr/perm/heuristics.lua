-- Owns: whether a line may use the network, wait at the terminal, or ask for a password.
-- Must not know: paths, rules, exits.
-- Runs in efrd, on the loop thread. Pure, and linear in the line.
--
-- heuristics.flags(commands) -> {network?, interactive?, may_prompt?} of lenient commands
-- heuristics.uses_network(command) -> boolean, for one of them
-- heuristics.opaque(line) -> the same flags for a line that nobody can read

local list = require "efr.util.list"
local programs = require "efr.perm.programs"
local text = require "efr.util.text"

local M = {}

local function set(words)
  return list.set(text.split(words, " "))
end

local GIT_VERBS <const> = set "clone fetch pull push ls-remote submodule"
local GIT_VALUES <const> = set ("-C -c --git-dir --work-tree --namespace --exec-path --config-env "
  .. "--super-prefix --attr-source")
local NODE_OFFLINE <const> = set "run run-script test build lint start"
local GIT_VARIABLES <const> = set "GIT_SSH_COMMAND GIT_SSH"

local function first_operand(words)
  for i = 2, #words do
    if words[i].shape:sub(1, 1) ~= "-" then return words[i].text end
  end
  return nil
end

---The place of git's subcommand.
---@param words table[]
---@return integer? index
function M.git_verb(words)
  local i = 2
  while words[i] do
    local shape = words[i].shape
    if GIT_VALUES[shape] then
      i = i + 2
    elseif shape:sub(1, 1) == "-" then
      i = i + 1
    else
      return i
    end
  end
  return nil
end

-- The letters and long names of pacman's operation and its options.
local function pacman_options(words)
  local short, long = "", {}
  for i = 2, #words do
    local shape = words[i].shape
    local name = shape:match("^%-%-([^=]+)")
    if name then
      long[name] = true
    elseif shape:find("^%-%a") then
      short = short .. shape:sub(2)
    end
  end
  return short, long
end

local function any(options, names)
  for _, name in ipairs(names) do
    if options[name] then return true end
  end
  return false
end

local function pacman(words)
  local short, long = pacman_options(words)
  local refresh = short:find("[yuw]") ~= nil
    or any(long, { "refresh", "sysupgrade", "downloadonly" })
  if short:find("S", 1, true) or long.sync then
    return refresh or not (short:find("[silgpc]")
      or any(long, { "search", "info", "list", "groups", "print", "clean" }))
  end
  if short:find("F", 1, true) or long.files then return refresh end
  if short:find("U", 1, true) or long.upgrade then return true end
  return not (short:find("[QRTDVh]")
    or any(long, { "query", "remove", "deptest", "database", "version", "help" }))
end

local RULES <const> = {
  always = function() return true end,
  remote = function() return true end,
  git = function(words)
    local at = M.git_verb(words)
    return at ~= nil and (not words[at].text or GIT_VERBS[words[at].text] == true)
  end,
  node = function(words)
    local verb = first_operand(words)
    return not (verb and NODE_OFFLINE[verb])
  end,
  pacman = pacman,
}

local function uses_network(record, words)
  local rule = record.network
  return rule ~= nil and RULES[rule](words)
end

---Whether a command may use the network.
---@param command table  of efr.perm.lenient
---@return boolean
function M.uses_network(command)
  return uses_network(programs.get(command.program), command.words)
end

-- Passwords -------------------------------------------------------------------------------------

local function has_word(words, pattern)
  for i = 2, #words do
    if words[i].shape:find(pattern) then return true end
  end
  return false
end

local function sets(command, wanted)
  for _, assign in ipairs(command.assigns) do
    if wanted[assign.name] then return true end
  end
  return false
end

local RSYNC_VARIABLES <const> = set "RSYNC_RSH"
-- Whether these ask depends on their words.
local ASKS <const> = set "git rsync"

local function may_prompt(command, record)
  local program, words = command.program, command.words
  if program == "rsync" then
    return has_word(words, "^[^/-][^/]*:") or has_word(words, "^%-[^-]*e")
      or has_word(words, "^%-%-rs") or sets(command, RSYNC_VARIABLES)
  end
  if program == "git" then
    return M.uses_network(command) or sets(command, GIT_VARIABLES)
      or has_word(words, "[Cc]ore%.[Ss][Ss][Hh][Cc]ommand")
  end
  local rule = record.prompts
  if rule == "keygen" then return not has_word(words, "^%-[^-]*N") end
  return rule == true
end

---What the commands of a line may do besides reading and writing.
---@param commands table[]  of efr.perm.lenient
---@return { network: boolean?, interactive: boolean?, may_prompt: boolean? }
function M.flags(commands)
  local out = {}
  for i = 1, #commands do
    local command = commands[i]
    local record = programs.get(command.program)
    if record.network and uses_network(record, command.words) then out.network = true end
    if (record.prompts or ASKS[command.program]) and may_prompt(command, record) then
      out.may_prompt = true
    end
    if record.interactive or command.privileged then out.interactive = true end
  end
  return out
end

---The same for a line that nobody can read: every name anywhere counts.
---@param names table<string, boolean>  as efr.perm.lenient.programs gives them
---@return { network: boolean?, interactive: boolean?, may_prompt: boolean? }
function M.opaque(names)
  local out = {}
  for name in pairs(names) do
    local record = programs.get(name)
    if record.network and record.network ~= "git" then out.network = true end
    if record.interactive then out.interactive = true end
    if record.prompts then out.may_prompt = true end
  end
  if names.git then
    for verb in pairs(GIT_VERBS) do
      if names[verb] then out.network, out.may_prompt = true, true end
    end
  end
  return out
end

return M
