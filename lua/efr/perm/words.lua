-- Owns: the rules of the shell grammar for words: quoting, globs, braces, what starts a word.
-- Must not know: commands, and what a word means for a decision.
-- Runs in efrd, efr and the rules process. Pure.
--
-- A word is a sequence of parts. Which characters are plain depends on where it stands, so parts
-- exist in several forms: of an argument, of the first word of a command, of a value after `=`,
-- inside the ( ) of a glob, the { } of a brace expansion and the [ ] of a subscript.

local lpeg = require "lpeg"
local state = require "efr.perm.shell_state"

local M = {}

local B, C, Cc, Cmt, Cp, Ct = lpeg.B, lpeg.C, lpeg.Cc, lpeg.Cmt, lpeg.Cp, lpeg.Ct
local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V

local char, concat, tonumber, unpack = string.char, table.concat, tonumber, table.unpack

_ENV = nil

local missing, close, enter, leave = state.missing, state.close, state.enter, state.leave
local made = state.made

local alpha = R("az", "AZ", "\128\255") + "_"
local digit = R "09"
M.ident = alpha * (alpha + digit) ^ 0

-- A word ends before one of these; ( goes on with it, as a glob. The last forms of word_end are a
-- backslash-newline, which zsh drops, and the `}` that zsh takes off the end of a word.
local stop_char = S " \t\n;&|<>)" + P "()" + -P(1)
local joint = P "\\\n" ^ 1
M.word_end = #stop_char + #(joint * stop_char) + #("}" * stop_char)

-- Captures -------------------------------------------------------------------------------------

local function lit(quote)
  return function(s) return { t = "lit", s = s, quote = quote } end
end
local plain, single, double, escaped = lit(nil), lit "single", lit "double", lit "backslash"

local function glob(s) return { t = "glob", s = s } end

local function unknown(why, pos, text)
  return { t = "unknown", why = why, pos = pos, stop = pos + #text - 1, text = text }
end
M.unknown = unknown

-- Groups at the end of a word may be glob qualifiers, which can run code: those that hold neither
-- `|` nor `(`, or that begin with #q.
local function mark_qualifiers(parts)
  for i = #parts, 1, -1 do
    local part = parts[i]
    if not part.group then
      return
    end
    if part.s:find("^%(#q") or not part.alternatives and not part.s:find("^%(#") then
      part.t, part.text = "qual", part.s:sub(2, -2)
    end
  end
end

local function make_word(pos, text, parts)
  made(1 + #parts, pos)
  local last = parts[#parts]
  if last and last.group then
    mark_qualifiers(parts)
  end
  return { kind = "word", pos = pos, stop = pos + #text - 1, text = text, parts = parts }
end

M.make_word = make_word

---Makes a plain word, which most words are.
---@param pos integer
---@param text string
---@return table word
function M.plain_word(pos, text)
  return { kind = "word", pos = pos, stop = pos + #text - 1, text = text, shape = text,
    fixed = text, parts = { { t = "lit", s = text } } }
end
local plain_word <const> = M.plain_word

local function make_plain(pos, text)
  made(1, pos)
  return plain_word(pos, text)
end

---A pattern of parts, as one word.
---@param parts any pattern
---@return any pattern
function M.word_of(parts)
  return Cp() * C(Ct(parts)) / make_word
end
local word_of = M.word_of

-- Quoting --------------------------------------------------------------------------------------

local single_quoted = "'" * (C((1 - P "'") ^ 0) / single) * (P "'" + missing "closing '")

local SIMPLE <const> = { a = "\a", b = "\b", e = "\27", E = "\27", f = "\f", n = "\n", r = "\r",
  t = "\t", v = "\v" }

-- What depends on the locale or ends a C string stays unknown.
local function code(base, limit)
  return function(digits)
    local n = tonumber(digits, base)
    return n > 0 and n <= limit and char(n)
  end
end

local function upto(n, pattern)
  return pattern * pattern ^ (1 - n)
end

local hex = R("09", "af", "AF")
local escape = "\\" * (C(S "abeEfnrtv") / SIMPLE
  + C(upto(3, R "07")) / code(8, 255) + "x" * (C(upto(2, hex)) / code(16, 255))
  + "u" * (C(upto(4, hex)) / code(16, 127)) + "U" * (C(upto(8, hex)) / code(16, 127))
  + S "MCxuU\n" * Cc(false) + C(1))

local function dollar_quoted(pos, text, pieces)
  for i = 1, #pieces do
    if not pieces[i] then
      return { t = "escape", pos = pos, stop = pos + #text - 1, text = text }
    end
  end
  return { t = "lit", s = concat(pieces), quote = "dollar" }
end

M.dollar_quote = Cp() * C("$'" * Ct((C((1 - S "'\\") ^ 1) + escape) ^ 0)
  * (P "'" + missing "closing '")) / dollar_quoted

local double_part = C((1 - S '"\\$`') ^ 1) / double
  + "\\" * (C(S '$\\`"') / double + P "\n" + Cc "\\" / double)
  + V "double_dollar" + V "double_backquote"

-- Inside the braces of a quoted ${ }: only } ends it, and " begins a string of its own.
local double_brace_part = C((1 - S '"\\$`}') ^ 1) / double + "\\" * (P "\n" + C(1) / double)
  + V "double_quoted" + V "double_dollar" + V "double_backquote"


-- Backquotes: the text between them is read as a line of its own, without its backslashes.
local function backquote(quote)
  local special = quote and '[\\`$"]' or "[\\`$]"
  local body = "`" * C(((1 - S "`\\") + "\\" * P(1)) ^ 0) * (P "`" + missing "closing `")
  return Cmt(Cp() * body, function(_, stop, pos, raw)
    local text = raw:gsub("\\(.)", function(c)
      return c == "\n" and "" or c:find(special) and c or nil
    end)
    local list = state.inner(pos + 1, "list", text)
    return stop, { t = "command", form = "`", quote = quote, body = list, pos = pos,
      stop = stop - 1 }
  end)
end

-- Braces ---------------------------------------------------------------------------------------

-- Braces that expand to nothing else: the same text.
local function flat(items, closed)
  local parts = { plain "{" }
  for i = 1, #items do
    if i > 1 then
      parts[#parts + 1] = plain ","
    end
    local inner = items[i].parts
    for j = 1, #inner do
      parts[#parts + 1] = inner[j]
    end
  end
  if closed then
    parts[#parts + 1] = plain "}"
  end
  return unpack(parts)
end

local function range(text)
  local from, to, step = text:match "^(%-?%d+)%.%.(%-?%d+)%.?%.?(%-?%d*)$"
  if from and (step == "") == not text:find("%.%..*%.%.") then
    return from, to, step ~= "" and step or nil
  end
  return text:match "^([%w%p])%.%.([%w%p])$"
end

local function make_brace(pos, text, items, closed)
  if not closed then
    return flat(items, false)
  end
  local stop = pos + #text - 1
  if #items > 1 then
    return { t = "brace", pos = pos, stop = stop, items = items }
  end
  local inner = items[1]
  if not inner.text:find("..", 1, true) then
    return flat(items, true)
  end
  local from, to, step = range(inner.text)
  if from then
    return { t = "brace", pos = pos, stop = stop, from = from, to = to, step = step }
  end
  return { t = "range", pos = pos, stop = stop, word = inner }
end

local function brace()
  local item = word_of(V "brace_part" ^ 0)
  return state.now(Cp() * C("{" * enter * Ct(item * ("," * item) ^ 0)
    * (P "}" * Cc(true) + Cc(false)) * leave) / make_brace)
end

-- Globs ----------------------------------------------------------------------------------------

local class = "[:" * R "az" ^ 1 * ":]"
local in_bracket = class + (1 - S " \t\n;&|<>()\\'\"`$*?[]{}~^#")
local bracket = "[" * S "!^" ^ -1 * P "]" ^ -1 * in_bracket ^ 0 * "]"
M.number_range = "<" * digit ^ 0 * "-" * digit ^ 0 * ">"

-- A word that is a lone bracket is no pattern.
local lone_bracket = -B(1 - S(" \t\n;&|<>()")) * C "[" * M.word_end / plain

local globs = C(S "*?~^#" ^ 1 + bracket + M.number_range) / glob + lone_bracket + C "[" / glob

local function make_group(text, parts)
  local alternatives = false
  for i = 1, #parts do
    local part = parts[i]
    alternatives = alternatives or part.group or part.t == "glob" and part.s:find("|", 1, true)
      and true
  end
  return { t = "glob", s = text, parts = parts, group = true, alternatives = alternatives or nil }
end

-- In a glob's parentheses blanks and newlines are text.
local function group()
  local inside = C(S " \t\n|*?~^#" ^ 1) / glob + C "}" / plain + V "argument_part"
  return state.now(C("(" * -P ")" * enter * Ct(inside ^ 0) * close(")", "closing )"))
    / make_group)
end

-- Parts ----------------------------------------------------------------------------------------

-- A backslash-newline inside a word: dropped where the characters around it make nothing together.
local letter = R("az", "AZ", "09") + S "_/.:-"
local argument_end = #(S " \t\n;&|)" + "()" + -P(1))
local joined_argument = "\\\n" * (joint ^ 0 * argument_end + B(S "'\")]," * P "\\\n")
  + B(letter * "\\\n") * #(letter + S "'\"") + B("{\\\n") * #S "'\""
  + missing "line continuation inside a word")
local joined_command = "\\\n" * (joint ^ 0 * argument_end
  + missing "line continuation inside a word")

local quoted = V "single_quoted" + V "double_quoted" + V "dollar" + V "backquote"
local backslash = "\\" * (C(1 - P "\n") / escaped + -P(1) * missing "character after \\")

local function run(stops)
  return C((1 - S(stops)) ^ 1) / plain
end

local PLAIN_STOPS <const> = " \t\n;&|<>()\\'\"`$*?[{}~^#"

-- A `}` at the end of a word is no part of it.
local tail_brace = C("}" * -(joint ^ -1 * stop_char)) / plain

local function shell_rules(rules)
  rules.argument_part = run(PLAIN_STOPS) + quoted + globs + V "brace" + V "glob_group" + V "process"
    + joined_argument + backslash + tail_brace
  rules.command_part = run(PLAIN_STOPS) + quoted + globs + V "brace" + V "glob_group"
    + V "process" + joined_command + backslash + tail_brace
  rules.value_part = V "argument_part" + C "}" / plain
  rules.brace_part = run(PLAIN_STOPS .. ",") + quoted + globs + V "brace" + V "glob_group"
    + V "process" + joined_argument + backslash
  rules.bracket_part = run " \t\n;&|<>()\\'\"`$[]" + quoted + V "bracket_nest" + V "bracket_group"
    + C(M.number_range) / glob + joined_argument + backslash
  rules.bracket_nest = C "[" / plain * enter * V "bracket_part" ^ 0 * (C "]" / plain) ^ -1 * leave
  rules.bracket_group = C "(" / plain * enter
    * (V "bracket_part" + C(S " \t\n|" + "]") / plain) ^ 0 * close(C ")" / plain, "closing )")
end

-- What only the start of a word can be.
local function start_rules(rules)
  local name = (alpha + digit + S "-+.") ^ 0
  local tilde = Cp() * C("~" * (P "[" * V "bracket_part" ^ 0 * P "]" ^ -1)) /
    function(pos, text) return unknown("dynamic directory name", pos, text) end
    + "~" * C(name) * -P "\\\n" / function(user) return { t = "tilde", name = user } end
  local equals = "=" * -(S "(" + M.word_end) * C((1 - S(PLAIN_STOPS)) ^ 0)
    / function(program) return { t = "equals", name = program } end
  rules.start = tilde + equals + V "file_process"
end

---Adds the rules of words to a grammar table.
---@param rules table
function M.add(rules)
  rules.single_quoted = single_quoted
  rules.double_quoted = '"' * (P '"' * Cc "" / double + double_part ^ 1
    * (P '"' + missing 'closing "'))
  rules.double_part = double_part
  rules.double_brace_part = double_brace_part
  rules.backquote, rules.double_backquote = backquote(nil), backquote "double"
  rules.brace, rules.glob_group = brace(), group()
  shell_rules(rules)
  start_rules(rules)
  local quick = Cp() * C((1 - S(PLAIN_STOPS .. "=")) * (1 - S(PLAIN_STOPS)) ^ 0)
    * argument_end / make_plain
  rules.argument = quick + word_of(V "start" * V "argument_part" ^ 0 + V "argument_part" ^ 1)
  rules.command_word = quick + word_of(V "start" * V "command_part" ^ 0 + V "command_part" ^ 1)
  rules.value = word_of((V "start" + joint * #S "'\"") ^ -1 * V "value_part" ^ 0)
end

return M
