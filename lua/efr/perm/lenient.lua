-- Owns: the lenient reading of a line: every command that may run, for the prediction of exits.
-- Must not know: rules, exits, or what a program does.
-- Runs in efrd, on the loop thread. Pure, and linear in the line.
--
-- lenient.commands(ast) -> {command...}, in the order of the line, inner lines first
--   command
--     words      {word...} with the program first, assignments skipped; words as in
--                efr.perm.lenient_words: {text?, shape, fixed, glob?, home?, user?}; a word that
--                stands for what `find` found has places = {word...} (its start points)
--     program    base name of the first word; nil when that is not known
--     name       the first word's text, as written
--     opaque     true when the program is not known
--     privileged the program, or a wrapper before it, runs as another user
--     builtin    the shell runs a builtin or reserved word of this name, no file
--     wrappers   names of the wrappers before it, from outside in, with their words peeled off;
--                the wrapper itself is a command of its own before it in the list
--     assigns    {{name, op, value = word?}...}
--     redirs     {{op, fd?, target = word, write?, append?, heredoc?}...} of this command and of
--                the compound commands around it; only on the outermost of wrapped commands
--     unread     true where a part of the line, or a line of text that a shell gets, is not known.
--                Behind such a command a line that is too long gives every name in it as a command
--     cwd_lost   true behind a `cd`, `pushd`, `popd` or `chdir`, or behind a wrapper that moves
--     displaced  a wrapper starts it in another directory
--     piped      {from = command?, into = boolean}: its place in a pipeline; `from` is the command
--                before it
--     node       of the AST
-- lenient.programs(line) -> set of base names that stand anywhere in a line nobody can read.
--
-- Policy: a program too many rather than one too few. Nothing is refused: what is not known is
-- marked, wrappers are peeled, a line of text given to a shell is read as a line.

local list = require "efr.util.list"
local loops = require "efr.perm.loops"
local names = require "efr.perm.data.shell_words"
local peeling = require "efr.perm.lenient_peel"
local shell = require "efr.perm.shell"
local word_values = require "efr.perm.lenient_words"

local M = {}

local NOTHING <const>, WORK_MAX <const> = peeling.NOTHING, peeling.WORK_MAX
local directory_changers <const> = names.directory_changers
local peel <const>, make_command <const>, unread <const> =
  peeling.peel, peeling.make, peeling.unread

-- Words and redirections -----------------------------------------------------------------------

local function resolve_all(nodes, vars)
  local out, count = {}, 0
  for _, node in ipairs(nodes) do
    local plain = word_values.plain(node)
    if plain then
      count, out[count + 1] = count + 1, plain
    else
      for _, word in ipairs(word_values.resolve(node, vars)) do
        count, out[count + 1] = count + 1, word
      end
    end
  end
  return out
end

local WRITES <const> = {
  [">"] = true, [">>"] = true, [">|"] = true, [">!"] = true, [">>|"] = true, [">>!"] = true,
  ["&>"] = true, ["&>|"] = true, ["&>!"] = true, ["&>>"] = true, ["&>>|"] = true, ["&>>!"] = true,
  ["<>"] = true, [">&"] = true, [">&|"] = true, [">&!"] = true, [">>&"] = true, [">>&|"] = true,
  [">>&!"] = true,
}

local function is_descriptor(text)
  return text ~= nil and (text:find("^%d+$") ~= nil or text == "-" or text == "p")
end

local function redirection(redir, vars)
  local targets = word_values.resolve(redir.target, vars)
  local target = #targets == 1 and targets[1] or word_values.unknown()
  local write = WRITES[redir.op] or false
  if redir.op:find("&", 1, true) and is_descriptor(target.text) then write = false end
  return {
    op = redir.op, fd = redir.fd, target = target, write = write, heredoc = redir.heredoc,
    append = redir.op:find(">>", 1, true) ~= nil,
  }
end

-- Nodes -----------------------------------------------------------------------------------------

local read

local function inner_lists(state, word)
  word_values.inner(word, function(inner) read(state, inner) end)
end

local function inner_of_all(state, words)
  for _, word in ipairs(words or NOTHING) do
    if not word_values.is_plain(word) then inner_lists(state, word) end
  end
end

local function inner_of_redirs(state, redirs)
  for _, redir in ipairs(redirs or {}) do
    inner_lists(state, redir.target)
    if redir.heredoc then inner_lists(state, redir.heredoc.body) end
  end
end

local function redirections(redirs, vars)
  if #redirs == 0 then return NOTHING end
  local out = {}
  for i, redir in ipairs(redirs) do out[i] = redirection(redir, vars) end
  return out
end

local function read_assigns(state, assigns)
  if #assigns == 0 then return NOTHING end
  local out = {}
  for _, assign in ipairs(assigns) do
    inner_lists(state, assign.subscript)
    inner_lists(state, assign.value)
    inner_of_all(state, assign.values)
    out[#out + 1] = {
      name = assign.name, op = assign.op,
      value = assign.value and word_values.resolve(assign.value)[1],
    }
    state.values[assign.name] = nil
  end
  return out
end

local READERS = {}

-- One command for each combination of the values that loops give its variables.
local function of_values(state, node, piped)
  local assigns = read_assigns(state, node.assigns)
  inner_of_all(state, node.words)
  inner_of_redirs(state, node.redirs)
  local last
  for _, vars in ipairs(loops.bindings(loops.used(node, state.values), state.values) or { {} }) do
    local words = resolve_all(node.words, vars)
    local more = {
      wrappers = NOTHING, assigns = assigns, redirs = redirections(node.redirs, vars), node = node,
      piped = piped,
    }
    -- A command without words, too, makes files or sets variables.
    if #words > 0 then
      last = peel(state, words, more) or last
    else
      last = make_command(state, {}, more)
    end
  end
  return last
end

function READERS.simple(state, node, piped)
  if state.work > WORK_MAX then return nil end
  local out = state.out
  local last
  local first = #out + 1
  if node.plain then
    last = peel(state, node.words, { wrappers = NOTHING, node = node, piped = piped })
  else
    last = of_values(state, node, piped)
  end
  for i = first, #out do
    if directory_changers[out[i].program or ""] then state.moved = true end
  end
  return last
end

function READERS.pipeline(state, node)
  local before
  local commands = node.commands
  local count = #commands
  for i = 1, count do
    before = read(state, commands[i], { from = before, into = i < count })
  end
  return before
end

local function read_all(state, nodes)
  local last
  for i = 1, #nodes do last = read(state, nodes[i]) end
  return last
end

function READERS.list(state, node)
  return read_all(state, node.items)
end

function READERS.sublist(state, node)
  return read_all(state, node.parts)
end

READERS["if"] = function(state, node)
  for i, test in ipairs(node.tests) do
    read(state, test)
    if node.bodies[i] then read(state, node.bodies[i]) end
  end
  if node.otherwise then read(state, node.otherwise) end
end

-- In the body the variable stands for each word of the loop.
READERS["for"] = function(state, node)
  inner_of_all(state, node.words)
  local name = node.vars and #node.vars == 1 and node.vars[1]
  if name and node.words then
    local words = resolve_all(node.words, {})
    local outer = state.values[name]
    state.values[name] = words
    read(state, node.body)
    state.values[name] = outer
  else
    read(state, node.body)
  end
end
READERS["foreach"] = READERS["for"]

READERS["case"] = function(state, node)
  inner_lists(state, node.word)
  for _, arm in ipairs(node.arms) do
    inner_of_all(state, arm.patterns)
    if arm.body then read(state, arm.body) end
  end
end

local function read_expr(state, expr)
  if not expr then return end
  if expr.parts then return inner_lists(state, expr) end
  inner_of_all(state, expr.args)
  for _, item in ipairs(expr.items or {}) do read_expr(state, item) end
end

-- What the keys of the other compound commands hold, in the order in which it runs.
local KEYS <const> = {
  "words", "count", "init", "step", "test", "names", "expr", "parts", "body", "always",
  "anonymous_args",
}

local function read_key(state, key, value)
  if key == "expr" then return read_expr(state, value) end
  if type(value) ~= "table" then return nil end
  if value.kind == "list" or READERS[value.kind or ""] then return read(state, value) end
  if value.parts then return inner_lists(state, value) end
  if key == "parts" then return inner_lists(state, { parts = value }) end
  for _, word in ipairs(value) do
    if type(word) == "table" then
      if word.parts then inner_lists(state, word) else read(state, word) end
    end
  end
end

-- A compound command's own redirections are those of a command without words.
function read(state, node, piped)
  local own = READERS[node.kind]
  local last
  if own then
    last = own(state, node, piped)
  else
    for _, key in ipairs(KEYS) do read_key(state, key, node[key]) end
    if node.kind == "unknown" then unread(state) end
  end
  if node.kind ~= "simple" and node.redirs and #node.redirs > 0 then
    inner_of_redirs(state, node.redirs)
    make_command(state, {}, {
      wrappers = {}, redirs = redirections(node.redirs, {}), node = node, piped = piped,
    })
  end
  return last
end

local function read_line(state, text)
  local ast = shell.parse(text)
  if ast then return read(state, ast) end
  unread(state)
end

-- A line that is too long: each name in it, with words that are not known.
local function names_of(state, ast)
  unread(state)
  local more = { wrappers = {}, moved = true }
  for _, name in ipairs(list.keys(M.programs(ast.source))) do
    make_command(state, { word_values.literal(name), word_values.unknown() }, more)
  end
end

---Every command that may run in a line.
---@param ast table
---@return table[] commands
function M.commands(ast)
  local state = {
    out = {}, moved = false, deep = 0, values = {}, work = 0, read_line = read_line,
    budget = peeling.LINES_DEEP * (ast.stop or 0) + 64,
  }
  read(state, ast)
  if state.work > WORK_MAX then names_of(state, ast) end
  return state.out
end

-- Opaque lines ----------------------------------------------------------------------------------

---Every word that stands anywhere in a line, quotes or not, as the name of a program.
---@param line string
---@return table<string, boolean> programs
function M.programs(line)
  local out = {}
  for word in line:gmatch("[%w%-_./]+") do out[word:match("[^/]*$")] = true end
  return out
end

return M
