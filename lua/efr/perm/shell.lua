-- Owns: the grammar of zsh's command language as a whole, and parse: a line to its AST. The AST
-- below is the contract with everything that reads a line.
-- Must not know: what a command does, and any decision.
-- Runs in efrd, efr and the rules process. Pure, linear in the length of the line, never raises.
--
-- Every node has kind, pos (first byte) and stop (last byte):
--   list      items, async = { [i] = true } for &, &! and &|
--   sublist   parts, ops ("&&", "||"); only with more than one part
--   pipeline  commands, ops ("|", "|&"), negated, coproc, timed; only with more than one command or
--             a prefix (commands may then be empty)
--   simple    assigns, words, redirs; plain = true where there are only words, each of letters,
--             digits and -_./:,+@%= alone (these lists and words are not to be changed)
--   assign    name, subscript = word?, op ("=", "+="), value = word or values = words of ( )
--   redir     op as it stands, fd (number, "{name}" or nil), target = word,
--             heredoc = { delimiter, quoted, strip, text, body = word, closed }
--   if        tests, bodies (lists), otherwise = list?      while, until  test, body
--   for, foreach, select   vars (strings), words = words?, body
--   cfor      init, test, step (arith), body
--   repeat    count = word, body                           case  word, arms = { arm }
--   arm       patterns (words), body, last (";;", ";&", ";|" or nil)
--   subshell  body                                         group  body, always = list?
--   func      names (words), body = node, anonymous_args = words?
--   cond      expr = test                                  arith  text, parts
--   test      op and args (words), or op "and", "or", "not", "group" and items (tests)
--   word      text as it stands, parts; assign = true for an assignment behind typeset or the like;
--             where the text means only itself also shape and fixed = text, which makes it a
--             word of efr.perm.lenient_words as it stands; such a word is not to be changed
--   unknown   why
-- Compound commands, functions among them, have redirs.
-- A part of a word has t:
--   lit       s (decoded), quote (nil, "single", "double", "dollar", "backslash")
--   glob      s; parts and group for ( ), which may hold words in patterns (of case)
--   qual      text, parts: parentheses at the end that may be glob qualifiers
--   tilde     name      equals  name (=cmd)
--   param     see shell_expand; nested expansions stand in subscript, word, parts
--   command   body = list, form ("$(" or "`"), quote
--   process   dir ("<", ">", "="), body = list
--   arith     text, parts, quote                            array  values (words)
--   brace     items (words), or from, to, step (strings)
--   range     word: braces around .. that may be a range or stay as they are
--   escape    text: $'...' with an escape that has no sure bytes (NUL, beyond ASCII, \M, \C)
--   unknown   why, text, and what was read
-- Comments are dropped; the outermost list has source = the line and, with a comment, comments =
-- true. Aliases are only words.
--
-- zsh reads a line of the hidden shell by eval, so `#` begins a comment in it.
-- What a reading must not forget: a simple command with redirections and no words runs NULLCMD or
-- READNULLCMD (cat, a pager), but for $(<f); a first word that may become nothing ($x, *(N)) makes
-- the next word the command; qualifiers e and + of a `qual` run code.

local lpeg = require "lpeg"
require "efr.util.lpegx"
local commands = require "efr.perm.shell_commands"
local compound = require "efr.perm.shell_compound"
local expand = require "efr.perm.shell_expand"
local state = require "efr.perm.shell_state"
local words = require "efr.perm.words"

local M = {}

local C, Cmt, P, S, V = lpeg.C, lpeg.Cmt, lpeg.P, lpeg.S, lpeg.V

local getmetatable, pairs, pcall, sort = getmetatable, pairs, pcall, table.sort

local MAX_BYTES <const> = 64 * 1024

_ENV = nil

-- Grammar --------------------------------------------------------------------------------------

local reads_body = false

local function double(s) return { t = "lit", s = s, quote = "double" } end

local function make_rules()
  local made = {}
  words.add(made)
  expand.add(made)
  commands.add(made)
  compound.add(made)
  made.here_body = words.word_of((C((1 - S "\\$`") ^ 1) / double
    + "\\" * (C(S "$\\`") / double + P "\n" + P(true) / "\\" / double)
    + V "double_dollar" + V "backquote") ^ 0)
  made.line = V "list" * V "blanks" * commands.comment ^ -1 * state.bodies
  made.any = Cmt(P(true), function() return reads_body end) * V "here_body" + V "line"
  return made
end

-- Made for the first line: a start needs none, and they are 2 MiB of work.
local kept_rules, kept_grammar

local function rules()
  kept_rules = kept_rules or make_rules()
  return kept_rules
end

---The names of the rules, for specs.
---@return string[]
function M.rules()
  local names = {}
  for name in pairs(rules()) do
    names[#names + 1] = name
  end
  sort(names)
  return names
end

---The grammar with another start, or with something around each rule: for specs that test one rule
---or count.
---@param start string
---@param around (fun(pattern: any): any)?
---@return any pattern  anchored at both ends
function M.compile(start, around)
  local copy = { V(start) * -P(1) }
  for name, rule in pairs(rules()) do
    copy[name] = around and around(rule) or rule
  end
  return P(copy)
end

local function grammar()
  kept_grammar = kept_grammar or M.compile "any"
  return kept_grammar
end

-- Reading --------------------------------------------------------------------------------------

local inner_grammar

local function read(text, body, pattern)
  reads_body = body
  local made = (pattern or inner_grammar):match(text)
  if not made then
    state.fail("no match", "end of the text", 1)
  end
  return made
end

local readers <const> = {
  list = function(text) return read(text, false) end,
  body = function(text) return read(text, true) end,
  verbatim = function(text)
    return { kind = "word", pos = 1, stop = #text, text = text,
      parts = { { t = "lit", s = text, quote = "single" } } }
  end,
}

---Reads a line.
---@param line string
---@param pattern any?  for specs: what compile made, in place of the whole grammar
---@param inner any?  the same for the texts inside the line
---@return table? list  the AST; nil when the line is opaque
---@return string? why  "length", "depth", "steps", "no match" or "error"
---@return table? detail  { what, pos } of a failure
function M.parse(line, pattern, inner)
  if #line > MAX_BYTES then
    return nil, "length"
  end
  if line:find("\0", 1, true) then
    return nil, "no match", { what = "a line without NUL", pos = line:find("\0", 1, true) }
  end
  state.reset(readers)
  inner_grammar = inner or grammar()
  local ok, made = pcall(read, line, false, pattern or grammar())
  if ok then
    if not pattern then
      made.comments, made.source = state.has_comments(), line
    end
    return made
  end
  if getmetatable(made) == state.Failure then
    return nil, made.why, made
  end
  return nil, "error", { what = made, pos = 1 }
end

return M
