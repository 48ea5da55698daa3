-- Owns: the rules of the shell grammar for commands: simple and compound ones, pipelines, lists,
-- redirections, functions.
-- Must not know: the inside of words; what a command means for a decision.
-- Runs in efrd, efr and the rules process. Pure.
--
-- Reserved words count only where a command may begin. After one the rest of its form must follow,
-- or the run ends (shell_state).

local lpeg = require "lpeg"
local state = require "efr.perm.shell_state"
local words = require "efr.perm.words"

local M = {}

local C, Cc, Cmt, Cp, Ct = lpeg.C, lpeg.Cc, lpeg.Cmt, lpeg.Cp, lpeg.Ct
local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V

local ipairs, tonumber = ipairs, tonumber

_ENV = nil

local missing, close, enter, leave = state.missing, state.close, state.enter, state.leave
-- What most commands have none of; not to be changed.
local NONE <const> = {}
local ident, word_end = words.ident, words.word_end
local plain_word <const> = words.plain_word

local blanks = S " \t" ^ 0 * ("\\\n" * S " \t" ^ 0) ^ 0
local comment = state.comment
local newline = P "\n" * state.bodies
local semicolon = ";" * -S ";&|"
-- Any number of newlines, `;` and comments.
local separators = (S " \t" ^ 1 + "\\\n" + newline + semicolon + comment) ^ 0
local newlines = (S " \t" ^ 1 + "\\\n" + newline + comment) ^ 0
M.newlines = newlines

local function keyword(text)
  return P(text) * word_end
end
M.keyword = keyword

local function need(pattern, what)
  return pattern + missing(what)
end

local reserved = keyword "!"
for name in ([=[[[ { } case coproc do done elif else end esac fi for foreach function if repeat
  select then until while]=]):gmatch "%S+" do
  reserved = reserved + keyword(name)
end

-- Nodes ----------------------------------------------------------------------------------------

local function node(kind, ...)
  local names <const> = { ... }
  return function(pos, ...)
    local made, values = { kind = kind, pos = pos }, { ... }
    for i, name in ipairs(names) do
      made[name] = values[i] ~= false and values[i] or nil
    end
    made.stop = values[#names + 1] - 1
    return made
  end
end

-- A pattern that makes a node of its captures; the names follow their order, false means none.
local function as(kind, pattern, ...)
  return Cp() * pattern * Cp() / node(kind, ...)
end
M.as = as

-- Redirections ---------------------------------------------------------------------------------

---@class efr.ShellRedir
---@field kind string  "redir"
---@field op string  as it stands: < <> > >| >! >> >>| >>! >& >&| >>& &> &>| &>> <& << <<- <<< ...
---@field fd (integer|string)?  a number, or "{name}"; nil = the operator's own
---@field target efr.ShellWord
---@field heredoc table?  { delimiter, quoted, strip, text, closed, body = word }

local force = S "|!" ^ -1
local operator = P "<<<" + "<>" + "<&" + -words.number_range * "<" * -S "(<" + "<" * #P "<("
  + "&>>" * force + "&>" * force
  + (P ">>&" + ">&" + ">>") * -P "(" * force + ">" * #P ">(" + ">" * -P "(" * force
local here_operator = P "<<-" + "<<"

local function make_redir(pos, fd, op, target)
  return { kind = "redir", pos = pos, stop = target.stop, fd = fd or nil, op = op, target = target }
end

-- The delimiter is the text without its quotes; an expansion in it would be text too, so it is
-- better not guessed.
local function make_heredoc(_, stop, pos, fd, op, target)
  local delimiter, quoted = "", false
  for _, part in ipairs(target.parts) do
    if part.t ~= "lit" then
      state.fail("no match", "plain delimiter of a here-document", pos)
    end
    delimiter, quoted = delimiter .. part.s, quoted or part.quote ~= nil
  end
  if delimiter:find "\n" then
    state.fail("no match", "plain delimiter of a here-document", pos)
  end
  local redir = make_redir(pos, fd, op, target)
  redir.heredoc = { delimiter = delimiter, quoted = quoted, strip = op == "<<-" }
  state.wait(redir)
  return stop, redir
end

local digit = R "09" / tonumber
local variable = C("{" * ident * "}")
local target = blanks * need(-P "#" * V "argument", "target of a redirection")
local fd = digit * #(S "<>" + "&>") + Cc(false)
local any_operator = #(operator + here_operator)

local function redir_rules(rules)
  -- zsh takes {name} also where blanks follow it.
  local opener = variable * blanks * any_operator + fd
  rules.redir = Cp() * fd * C(operator) * target / make_redir
    + Cmt(Cp() * fd * C(here_operator) * target, make_heredoc)
  rules.argument_redir = Cp() * opener * C(operator) * target / make_redir
    + Cmt(Cp() * opener * C(here_operator) * target, make_heredoc)
end

-- Simple commands ------------------------------------------------------------------------------

---@class efr.ShellAssign
---@field kind string  "assign"
---@field name string
---@field subscript efr.ShellWord?
---@field op string  "=" or "+="
---@field value efr.ShellWord?
---@field values efr.ShellWord[]?  of name=( ... )

local array = "(" * enter * Ct((newlines * -P "#" * V "argument") ^ 0) * newlines
  * close(")", "closing )")

local function make_assign(pos, name, subscript, op, value, stop)
  local made = { kind = "assign", pos = pos, stop = stop - 1, name = name, op = op }
  made.subscript = subscript or nil
  if value.kind then
    made.value = value
  else
    made.values = value
  end
  return made
end

local function make_simple(pos, nodes)
  state.made(2, pos)
  local count = #nodes
  local made = { kind = "simple", pos = pos, stop = nodes[count].stop, assigns = NONE,
    words = nodes, redirs = NONE }
  local i = 1
  while i <= count and nodes[i].kind == "word" do
    i = i + 1
  end
  if i > count then
    return made
  end
  made.words, made.assigns, made.redirs = {}, {}, {}
  for _, item in ipairs(nodes) do
    local into = item.kind == "word" and made.words or item.kind == "assign" and made.assigns
      or made.redirs
    into[#into + 1] = item
  end
  return made
end

-- `name[...]` that no `=` follows is the start of a word.
local function bracket_word(pos, text, name, parts, rest)
  local all = { { t = "lit", s = name }, { t = "glob", s = "[" } }
  for _, part in ipairs(parts) do
    all[#all + 1] = part
  end
  for _, part in ipairs(rest) do
    all[#all + 1] = part
  end
  return words.make_word(pos, text, all)
end

-- Only the end of `name[...]` tells an assignment from a word, so what was read is kept for the
-- rule of a word.
local function make_subscripted(subject, stop, pos, name, from, text, parts, ...)
  local op_or_rest, value, is_assign = ...
  if is_assign then
    return stop, make_assign(pos, name, words.make_word(from, text, parts), op_or_rest, value, stop)
  end
  local word = bracket_word(pos, subject:sub(pos, stop - 1), name, parts, op_or_rest)
  state.keep(pos, { stop, word })
  return false
end

local kept_word = #(ident * "[") * Cmt(P(true), function(_, pos)
  local kept = state.kept(pos)
  if kept then
    return kept[1], kept[2]
  end
  return false
end)

local function assign_rules(rules)
  local value = array + V "value"
  local op = C(P "+=" + "=")
  local subscripted = Cmt(Cp() * C(ident) * "[" * enter * Cp() * C(Ct(V "bracket_part" ^ 0))
    * leave * (P "]" * op * value * Cp() / function(o, v) return o, v end * Cc(true)
      + Ct(V "command_part" ^ 0) * Cc(false) * Cc(false)), make_subscripted)
  rules.assign = Cp() * C(ident + R "09" ^ 1) * Cc(false) * op * value * Cp() / make_assign
    + #(ident * "[") * -state.is_kept * subscripted
end

-- After one of these names an argument may be an assignment, also of an array.
local declares = P(false)
for name in ("typeset declare local export readonly integer float"):gmatch "%S+" do
  declares = declares + keyword(name)
end

local function declared(pos, text, name, op, values)
  local part = { t = "array", values = values }
  if values.kind then
    local all = { { t = "lit", s = name .. op } }
    for _, inner in ipairs(values.parts) do
      all[#all + 1] = inner
    end
    local made = words.make_word(pos, text, all)
    made.assign = true
    return made
  end
  local made = words.make_word(pos, text, { { t = "lit", s = name .. op }, part })
  made.assign = true
  return made
end

-- Most commands are plain: words of characters that mean only themselves, with blanks between
-- them.
local function make_plain(pos, found)
  local count = #found
  state.made(2 + count, pos)
  return { kind = "simple", pos = pos, stop = found[count].stop, assigns = NONE, words = found,
    redirs = NONE, plain = true }
end

local function plain_command()
  local char = R("az", "AZ", "09") + S "-_./:,+@%"
  local word = Cp() * C(char * (char + "=") ^ 0) / plain_word
  local not_first = reserved + keyword "nocorrect" + declares
  return Cp() * -(#S "cdefilnrstuw" * not_first)
    * Ct(Cp() * C(char ^ 1) / plain_word * (S " \t" ^ 1 * word) ^ 0)
    * #(S " \t" ^ 0 * (S "\n;|)" + "&" * -P ">" + "()" + -P(1))) / make_plain
end

local function simple_rules(rules)
  local word = -P "#" * V "argument"
  local first = kept_word + -(#S "![}cdefirstuw" * reserved) * -S "#{" * V "command_word"
  rules.declared = Cp() * C(C(ident) * C(P "+=" + "=") * (array + V "value")) / declared
  local arguments = (blanks * (V "argument_redir" + word)) ^ 0
  local declarations = (blanks * (V "argument_redir" + V "declared" + word)) ^ 0
  local prefix = V "assign" + V "redir" + #keyword "nocorrect" * V "command_word"
  local body = #declares * V "command_word" * declarations + first * arguments
  rules.simple = plain_command()
    + Cp() * Ct(prefix * (blanks * prefix) ^ 0 * (blanks * body) ^ -1 + body) / make_simple
end

---Adds the rules of commands to a grammar table.
---@param rules table
function M.add(rules)
  rules.blanks = blanks
  redir_rules(rules)
  assign_rules(rules)
  simple_rules(rules)
end

M.blanks, M.separators, M.newline, M.semicolon = blanks, separators, newline, semicolon
M.comment, M.need = comment, need

return M
