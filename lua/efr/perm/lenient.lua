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
--     cwd_known  false behind a `cd`, `pushd`, `popd` or `chdir`, or behind a wrapper that moves
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
local shell = require "efr.perm.shell"
local word_values = require "efr.perm.lenient_words"
local wrappers = require "efr.perm.wrappers"

local M = {}

-- Lines inside lines (`sh -c "sh -c ..."`), and wrappers before wrappers.
local LINES_DEEP <const> = 4
local WRAPPERS_DEEP <const> = 16
-- Words of all commands together. Behind them the line is only searched for names.
local WORK_MAX <const> = 8192

-- Of a command without wrappers, assignments or redirections; not to be changed.
local NOTHING <const> = {}

local function base_name(text)
  return text:match("[^/]*$")
end

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

-- Peeling ---------------------------------------------------------------------------------------

local read, read_line

-- A part of the line that is not known.
local function unread(state)
  state.out[#state.out + 1] = {
    words = {}, wrappers = {}, assigns = {}, redirs = {}, piped = {}, cwd_known = not state.moved,
    unread = true,
  }
end

local function is_builtin(name)
  return names.builtins[name or ""] or names.reserved[name or ""] or nil
end

local function make_command(state, words, more)
  local first = words[1]
  local name = first and not first.glob and first.text or nil
  local command = {
    words = words, name = name, program = name and base_name(name), opaque = not name or nil,
    wrappers = more.wrappers, assigns = more.assigns or NOTHING, redirs = more.redirs or NOTHING,
    cwd_known = not state.moved and not more.moved, displaced = more.moved,
    piped = more.piped or NOTHING, node = more.node,
  }
  command.privileged = names.privileged[command.program or ""] or more.privileged
    or state.as_other
  if #more.wrappers == 0 or more.in_shell then command.builtin = is_builtin(name) end
  state.work = state.work + #words + 1
  state.out[#state.out + 1] = command
  return command
end

local IN_SHELL <const> = {
  builtin = true, noglob = true, nocorrect = true, time = true, ["-"] = true, command = true,
  exec = true,
}

local peel

-- The command behind a wrapper, with the state that the wrapper adds.
local function peel_inner(state, outer, words, more, moved)
  local chain = table.move(more.wrappers, 1, #more.wrappers, 1, {})
  chain[#chain + 1] = outer.program
  if #chain > WRAPPERS_DEEP then return end
  peel(state, words, {
    wrappers = chain, node = more.node, privileged = outer.privileged, piped = more.piped,
    moved = more.moved or moved, in_shell = (more.in_shell or #more.wrappers == 0)
      and IN_SHELL[outer.program],
  })
end

local function tail(words, from)
  return table.move(words, from, #words, 1, {})
end

-- A line of text that a program runs: read when it is known.
local function inner_text(state, text, outer)
  if text == "" then return end
  if not text or state.deep >= LINES_DEEP or #text > state.budget then
    unread(state)
    return
  end
  local as_other = state.as_other
  state.deep, state.budget = state.deep + 1, state.budget - #text
  state.as_other = as_other or outer.privileged
  read_line(state, text)
  state.deep, state.as_other = state.deep - 1, as_other
end

local function joined_text(words, from)
  local texts = {}
  for i = from, #words do
    if not words[i].text then return nil end
    texts[#texts + 1] = words[i].text
  end
  return table.concat(texts, " ")
end

-- What xargs adds to its words: those of an `echo` before it, or some that are not known.
local function xargs_words(words, more)
  local out = table.move(words, 1, #words, 1, {})
  local from = more.piped and more.piped.from
  if from and from.program == "echo" then
    for i = 2, #from.words do
      if from.words[i].shape:sub(1, 1) ~= "-" then out[#out + 1] = from.words[i] end
    end
  else
    out[#out + 1] = word_values.unknown()
  end
  return out
end

local function peel_wrapper(state, command, words, more)
  local peeled = wrappers.peel(command.program, words)
  local line = peeled.line and words[peeled.line]
  if peeled.attached then
    inner_text(state, not peeled.attached:find("\0", 1, true) and peeled.attached or nil,
      command)
  end
  if line then inner_text(state, line.text, command) end
  if peeled.joined then inner_text(state, joined_text(words, peeled.joined), command) end
  if peeled.start then
    local inner = tail(words, peeled.start)
    if command.program == "xargs" then inner = xargs_words(inner, more) end
    peel_inner(state, command, inner, more, peeled.moved)
  end
end

-- find ------------------------------------------------------------------------------------------

local EXEC <const> = { ["-exec"] = true, ["-execdir"] = true, ["-ok"] = true, ["-okdir"] = true }
local FD_EXEC <const> = { ["-x"] = true, ["-X"] = true, ["--exec"] = true,
  ["--exec-batch"] = true }
local FIND_OPTION <const> = { ["-H"] = true, ["-L"] = true, ["-P"] = true }

---The start points of find: its words up to the first test.
---@param words table[]
---@return table[] points  empty: the directory it runs in
function M.start_points(words)
  local out, i = {}, 2
  while words[i] do
    local shape = words[i].shape
    if FIND_OPTION[shape] or shape:find("^%-O%d*$") then
      i = i + 1
    elseif shape == "-D" then
      i = i + 2
    elseif shape:find("^[-(!,]") then
      return out
    else
      out[#out + 1] = words[i]
      i = i + 1
    end
  end
  return out
end

-- `{}` stands for what lies below the start points.
local function found_words(words, points)
  for i, word in ipairs(words) do
    if word.shape:find("{}", 1, true) then
      local one = word_values.unknown()
      one.shape, one.places = word.shape, points
      words[i] = one
    end
  end
  return words
end

local function peel_find(state, command, words, more, options)
  local points = M.start_points(words)
  local i = 2
  while i <= #words do
    if options[words[i].text or ""] then
      local last = i + 1
      while words[last] and words[last].text ~= ";" and words[last].text ~= "+" do
        last = last + 1
      end
      local inner = table.move(words, i + 1, last - 1, 1, {})
      if #inner > 0 then
        peel_inner(state, command, found_words(inner, points), more,
          words[i].text:find("dir", 1, true) ~= nil)
      end
      i = last
    end
    i = i + 1
  end
end

local function trap_text(words)
  local first = words[2]
  return first and first.text ~= "-" and first.text ~= "--" and first.text
    or words[3] and words[3].text
end

function peel(state, words, more)
  if #words == 0 or state.work > WORK_MAX then return nil end
  local command = make_command(state, words, more)
  local program = command.program
  if program == "find" then
    peel_find(state, command, words, more, EXEC)
  elseif program == "fd" or program == "fdfind" then
    peel_find(state, command, words, more, FD_EXEC)
  elseif program == "eval" and words[2] then
    inner_text(state, joined_text(words, 2), command)
  elseif program == "trap" and words[2] then
    inner_text(state, trap_text(words), command)
  elseif wrappers.is_wrapper(program) then
    peel_wrapper(state, command, words, more)
  elseif command.opaque and words[1].fixed == "" then
    -- `$x rm y`, `*(N) rm y`: a first word that comes to nothing makes the next one the command.
    peel(state, table.move(words, 2, #words, 1, {}), more)
  end
  return command
end

-- Nodes -----------------------------------------------------------------------------------------

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
function READERS.simple(state, node, piped)
  if state.work > WORK_MAX then return nil end
  local assigns = read_assigns(state, node.assigns)
  inner_of_all(state, node.words)
  inner_of_redirs(state, node.redirs)
  local last
  local first = #state.out + 1
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
  for i = first, #state.out do
    if names.directory_changers[state.out[i].program or ""] then state.moved = true end
  end
  return last
end

function READERS.pipeline(state, node)
  local before
  for i, one in ipairs(node.commands) do
    local piped = { from = before, into = i < #node.commands }
    before = read(state, one, piped)
  end
  return before
end

local function read_all(state, nodes)
  local last
  for _, node in ipairs(nodes or {}) do last = read(state, node) end
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

function read_line(state, text)
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
    out = {}, moved = false, deep = 0, values = {}, work = 0,
    budget = LINES_DEEP * (ast.stop or 0) + 64,
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
  for word in line:gmatch("[%w%-_./]+") do out[base_name(word)] = true end
  return out
end

return M
