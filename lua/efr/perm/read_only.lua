-- Owns: whether a line only reads, judged node by node over the rows of read-only commands.
-- Must not know: modes, rules of the user, the disk.
-- Runs in efrd, on the loop thread. Pure; work is linear in the line, loops have a limit.
--
-- read_only.judge(ast, facts) -> true, parts | false, why, part
--   facts  {git_code = {state = "clean"|"dirty"|"unknown", file?, key?}?, found = {[name] = true |
--          why the file of that name is not trusted}?}
--   parts  {{row, command, rough?}...}: each simple command (one for each value of a loop) with
--          its row of efr.perm.data.read_only; `command` as efr.perm.matching takes it; rough: the
--          command gets more words than efr knows (behind xargs)
--   why    in words; part: the node that is not known to only read
-- read_only.row(command, facts) -> row | nil, why: one command of the strict reading.
-- read_only.uses_git(ast) -> boolean: whether the fact `git_code` can matter.
--
-- Policy: an allow list over every node. Lists, pipelines, `if`, `for` over literal words, `[[ ]]`
-- with tests of files and texts; `$(...)`, `<(...)` whose inside passes; here-documents; numbers;
-- braces of literals. A program's words must match a row. What is not named here is not read-only.

local fields = require "efr.perm.fields"
local loops = require "efr.perm.loops"
local matching = require "efr.perm.matching"
local names = require "efr.perm.data.shell_words"
local rows = require "efr.perm.data.read_only"
local strict = require "efr.perm.strict"

local M = {}

-- Words judged in one line, each as often as a loop turns.
local WORK_MAX <const> = 8192

local BY_PROGRAM <const> = {}
local XARGS_ROW
for _, row in ipairs(rows) do
  if row.input then
    XARGS_ROW = row
  else
    BY_PROGRAM[row.program] = BY_PROGRAM[row.program] or {}
    table.insert(BY_PROGRAM[row.program], row)
  end
end

-- Rows ------------------------------------------------------------------------------------------

local function git_problem(facts)
  local code = facts and facts.git_code
  if code and code.state == "clean" then return nil end
  if code and code.state == "dirty" then
    return ("git would run code: %s of %s"):format(code.key or "a key", code.file or "a file")
  end
  if code and code.variable then
    return ("the shell's variable %s changes what git does"):format(code.variable)
  end
  return "efr does not know whether git's configuration here runs code"
end

-- Signatures: git asks gpg or ssh-keygen, which reads what the commit's author wrote, makes files
-- in the user's keyring and may ask a key server.
local SIGNATURES <const> = { "%%[-+ ]?G", "%(%*?signature", "^%-%-sort=.*signature" }

local function checks_signatures(command)
  for _, word in ipairs(command.words) do
    for _, pattern in ipairs(SIGNATURES) do
      if word.text and word.text:find(pattern) then return true end
    end
  end
  return false
end

-- Why a git line of a row may run a program.
local function git_runs(command, facts)
  if checks_signatures(command) then return "git would check signatures with gpg" end
  return git_problem(facts)
end

-- An old option that begins with +. A pattern may become one, as the name of a file.
local function has_plus(row, command)
  for i = 2, #command.words do
    local text = command.words[i].text
    if text and text:find("^%+") and (command.words[i].glob or text:sub(-1) == row.plus_ends) then
      return true
    end
  end
  return false
end

---Why the shell may run something else than the program of that name; nil: it does not.
---@param command table
---@param facts table?
---@return string? why
function M.untrusted(command, facts)
  local name = command.words[1] and command.words[1].text
  local found = name and facts and facts.found and facts.found[name]
  if found == true then return nil end
  if not name or name:find("/", 1, true) then return nil end
  if not command.external and (names.builtins[name] or names.reserved[name]) then return nil end
  return found or ("efr does not know which file %s is"):format(name)
end

---The row that lets a command run.
---@param command table  as efr.perm.matching takes it
---@param facts table?
---@return table? row
---@return string? why
function M.row(command, facts)
  local first = command.words[1]
  local known = first and first.text and BY_PROGRAM[first.text]
  if not known then
    return nil, ("%s is not known to only read"):format(first and first.text or "the program")
  end
  for _, row in ipairs(known) do
    if matching.command(row, command) and not (row.plus_ends and has_plus(row, command)) then
      local problem = row.git and git_runs(command, facts) or M.untrusted(command, facts)
      if problem then return nil, problem end
      return row
    end
  end
  return nil, first.text .. " is not known to only read with these arguments"
end

-- Simple commands -------------------------------------------------------------------------------

local judge

local function refuse(state, why, node)
  if not state.why then state.why, state.part = why, node end
  return false
end

local function is_plain_name(name)
  if names.special_names[name] or name:find("^dis_") then return false end
  -- A user may have tied one to a search path: `typeset -T LD_LIBRARY_PATH ld_library_path`.
  if name:find("path", 1, true) or name:find("lib", 1, true) then return false end
  return name:find("^%l[%l%d_]*$") ~= nil or name:find("^%u$") ~= nil
end

-- The scope of a word: the values of loop variables, and how an inner line is judged. An inner
-- line is judged once, however often its word is read.
local function scope_of(state, vars)
  return { vars = vars, inner = state.inner }
end

local function inner_of(state)
  return function(body)
    if state.judged[body] == nil then state.judged[body] = judge(state, body, true) end
    if state.judged[body] then return true end
    return nil, "command substitution"
  end
end

local function wide_redirection(state, redir, scope, node)
  local ok, construct
  if redir.heredoc then
    ok, construct = fields.data(redir.heredoc.body, scope)
  elseif redir.op == "<<<" then
    ok, construct = fields.data(redir.target, scope)
  elseif redir.target then
    local list
    list, construct = fields.wide(redir.target, scope)
    if list then
      local one = list[1]
      local text = #list == 1 and not one.glob and one.text or nil
      ok, construct = strict.redirection(redir, text)
    end
  end
  return ok or refuse(state, construct or "redirection", node)
end

local function command_of(state, node, scope)
  local words = {}
  for _, word in ipairs(node.words) do
    local list, construct = fields.wide(word, scope)
    if not list then return nil, construct end
    for _, field in ipairs(list) do words[#words + 1] = field end
  end
  state.work = state.work + #words
  if state.work > WORK_MAX then return nil, "the line is too long" end
  return {
    words = words, node = node, moved = state.moved, privileged = strict.is_privileged(words),
  }
end

local function judge_one(state, node, vars, find_row)
  local scope = scope_of(state, vars)
  for _, redir in ipairs(node.redirs) do
    if not wide_redirection(state, redir, scope, node) then return false end
  end
  local command, construct = command_of(state, node, scope)
  if not command then return refuse(state, construct, node) end
  local row, why = find_row(command)
  if not row then return refuse(state, why, node) end
  state.parts[#state.parts + 1] = { row = row, command = command }
  local first = command.words[1].text
  if names.directory_changers[first] then state.moved = true end
  return true
end

local function judge_simple(state, node, find_row)
  for _, assign in ipairs(node.assigns) do
    if not strict.is_harmless_assignment(assign) then return refuse(state, "assignment", node) end
  end
  if #node.words == 0 then return refuse(state, "nothing to run", node) end
  local all = loops.bindings(loops.used(node, state.values), state.values)
  if not all then return refuse(state, "too many values of a loop", node) end
  find_row = find_row or function(command) return M.row(command, state.facts) end
  for _, vars in ipairs(all) do
    if not judge_one(state, node, vars, find_row) then return false end
  end
  return true
end

-- `$(< file)` reads a file and runs nothing.
local function is_file_read(node)
  local one = #node.items == 1 and node.items[1]
  return one and one.kind == "simple" and #one.words == 0 and #one.assigns == 0
    and #one.redirs == 1 and one.redirs[1].op == "<" and not one.redirs[1].fd
end

-- xargs -----------------------------------------------------------------------------------------

local function literal_echo(node)
  if not node or node.kind ~= "simple" or #node.assigns > 0 or #node.redirs > 0 then return nil end
  for i, word in ipairs(node.words) do
    local field = fields.strict(word)
    if not field or field.glob or not field.text:find("^[%w_./:,+@%%=][%w%-_./:,+@%%=]*$") then
      return nil
    end
    if i == 1 and field.text ~= "echo" then return nil end
  end
  return #node.words > 0
end

-- The place of xargs' program, behind options that only say how its input is cut.
local function xargs_program(words)
  local i = 2
  while words[i] and words[i].text do
    local text = words[i].text
    if text == "-n" then
      local number = words[i + 1] and words[i + 1].text
      if not number or not number:find("^%d+$") then return nil end
      i = i + 2
    elseif text == "-0" or text == "-r" or text:find("^%-n%d+$") then
      i = i + 1
    else
      return text:sub(1, 1) ~= "-" and i or nil
    end
  end
  return nil
end

local function xargs_row(state, input)
  return function(command)
    local at = xargs_program(command.words)
    if not literal_echo(input) or not at then
      return nil, "xargs takes words that efr cannot know"
    end
    local inner = { node = command.node, external = true,
      words = table.move(command.words, at, #command.words, 1, {}) }
    local row, why = M.row(inner, state.facts)
    if not row then return nil, why end
    if row.forbid or row.check or row.min_operands or row.max_operands or row.max_options then
      return nil, "xargs adds words to a program that may not take all"
    end
    -- The words that xargs adds.
    table.insert(inner.words, {})
    state.parts[#state.parts + 1] = { row = row, command = inner, rough = true }
    return XARGS_ROW
  end
end

local function is_xargs(node)
  local field = node.kind == "simple" and node.words[1] and fields.strict(node.words[1])
  return field and field.text == "xargs"
end

local function judge_xargs(state, node, input)
  if #node.redirs > 0 then return refuse(state, "xargs reads something else", node) end
  return judge_simple(state, node, xargs_row(state, input))
end

-- Compound commands -----------------------------------------------------------------------------

local JUDGES = { simple = judge_simple }

local function judge_all(state, nodes)
  for _, node in ipairs(nodes) do
    if not judge(state, node) then return false end
  end
  return true
end

function JUDGES.list(state, node)
  if next(node.async or {}) then return refuse(state, "background", node) end
  return judge_all(state, node.items)
end

function JUDGES.sublist(state, node)
  return judge_all(state, node.parts)
end

function JUDGES.pipeline(state, node)
  if node.coproc or node.timed then return refuse(state, "builtin", node) end
  for i, one in ipairs(node.commands) do
    local ok
    if is_xargs(one) then
      ok = judge_xargs(state, one, node.ops[i - 1] == "|" and node.commands[i - 1] or nil)
    else
      ok = judge(state, one)
    end
    if not ok then return false end
  end
  return true
end

local function judge_redirs(state, node)
  for _, redir in ipairs(node.redirs or {}) do
    if not wide_redirection(state, redir, scope_of(state, {}), node) then return false end
  end
  return true
end

JUDGES["if"] = function(state, node)
  return judge_redirs(state, node) and judge_all(state, node.tests)
    and judge_all(state, node.bodies)
    and (not node.otherwise or judge(state, node.otherwise))
end

-- Values of a loop: literal, and the same text also where an option of the user's shell splits
-- them or reads them as patterns, or a variable counts as a number.
local PLAIN_VALUE <const> = "^~?[%w%-_./:,+@%%=]+$"

local function loop_values(node)
  local values = {}
  for _, word in ipairs(node.words or {}) do
    local list, construct = fields.wide(word, { vars = {}, inner = function()
      return nil, "command substitution"
    end })
    if not list then return nil, construct end
    for _, field in ipairs(list) do
      local text = field.text
      if not text or field.glob or text == "" or not text:find(PLAIN_VALUE) then
        return nil, "the values of the loop are not known"
      end
      values[#values + 1] = text
    end
  end
  if not node.words or #values == 0 then return nil, "the values of the loop are not known" end
  if #values > loops.VALUES_MAX then return nil, "too many values of a loop" end
  return values
end

JUDGES["for"] = function(state, node)
  local name = #node.vars == 1 and node.vars[1]
  if not name or not is_plain_name(name) then
    return refuse(state, "the variable of the loop is special", node)
  end
  local values, why = loop_values(node)
  if not values then return refuse(state, why, node) end
  if not judge_redirs(state, node) then return false end
  local outer = state.values[name]
  state.values[name] = values
  local ok = judge(state, node.body)
  state.values[name] = outer
  return ok
end

-- [[ ]] -----------------------------------------------------------------------------------------

local UNARY <const> = {}
for letter in ("abcdefghknprsuwxzGLNOS"):gmatch(".") do UNARY["-" .. letter] = true end
local BINARY <const> = {
  ["="] = true, ["=="] = true, ["!="] = true, ["<"] = true, [">"] = true, ["-nt"] = true,
  ["-ot"] = true, ["-ef"] = true,
}

local function is_literal(state, word)
  local vars = {}
  for _, name in ipairs(loops.used_by(word)) do
    local values = state.values[name]
    if not values then return false end
    vars[name] = values[1]
  end
  for _, part in ipairs(word.parts) do
    if part.t ~= "lit" and part.t ~= "param" and part.t ~= "tilde" then return false end
  end
  return fields.wide(word, { vars = vars, inner = function() return nil end }) ~= nil
end

local JOINS <const> = { ["and"] = true, ["or"] = true, ["not"] = true, ["group"] = true }

local function judge_leaf(state, op, args)
  local known = (#args == 1 and UNARY[op]) or (#args == 2 and BINARY[op])
  if not known then return false end
  for _, word in ipairs(args) do
    if not word.parts or not is_literal(state, word) then return false end
  end
  return true
end

local function judge_test(state, test)
  if not JOINS[test.op] then return judge_leaf(state, test.op, test.args or {}) end
  for _, item in ipairs(test.items) do
    if not judge_test(state, item) then return false end
  end
  return true
end

function JUDGES.cond(state, node)
  if not judge_redirs(state, node) then return false end
  return judge_test(state, node.expr) or refuse(state, "a test that may run code", node)
end

-- The line --------------------------------------------------------------------------------------

local WORDS <const> = {
  subshell = "grouping", group = "grouping", func = "function", arith = "arithmetic",
  unknown = "efr cannot read this part",
}

function judge(state, node, is_substitution)
  if is_substitution and is_file_read(node) then
    return wide_redirection(state, node.items[1].redirs[1], scope_of(state, {}), node)
  end
  local one = JUDGES[node.kind]
  if not one then return refuse(state, WORDS[node.kind] or node.kind, node) end
  return one(state, node)
end

local EVERY <const> = setmetatable({}, { __index = function() return true end })

---Whether the fact `git_code` decides about a line.
---@param ast table
---@return boolean
function M.uses_git(ast)
  local ok, parts = M.judge(ast, { git_code = { state = "clean" }, found = EVERY })
  if not ok then return false end
  for _, part in ipairs(parts) do
    if part.row.git then return true end
  end
  return false
end

---Whether a line only reads.
---@param ast table
---@param facts table?
---@return boolean ok
---@return table|string parts  or why not
---@return table? part  the node that is not known to only read
function M.judge(ast, facts)
  if ast.comments then
    return false, "a comment, which zsh may run", ast
  end
  local state = { facts = facts, parts = {}, values = {}, judged = {}, work = 0 }
  state.inner = inner_of(state)
  if not judge(state, ast) then return false, state.why, state.part end
  if #state.parts == 0 and #ast.items == 0 then return false, "nothing to run", ast end
  return true, state.parts
end

return M
