-- Owns: the rules of the shell grammar for what begins with `$`, for process substitution and for
-- arithmetic.
-- Must not know: commands beyond "a list stands here".
-- Runs in efrd, efr and the rules process. Pure.

local lpeg = require "lpeg"
local state = require "efr.perm.shell_state"
local words = require "efr.perm.words"

local M = {}

local C, Cc, Cg, Cp, Ct = lpeg.C, lpeg.Cc, lpeg.Cg, lpeg.Cp, lpeg.Ct
local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V

local ipairs = ipairs

_ENV = nil

local missing, close, enter, leave = state.missing, state.close, state.enter, state.leave
local word_of, ident = words.word_of, words.ident

local digits = R "09" ^ 1
local special = S "*@#?$!-"

-- Substitutions --------------------------------------------------------------------------------

local inside = state.enter_scope * V "list" * V "blanks"
local inside_end = P ")" * state.leave_scope + missing "closing )"

local function command(quote)
  return Cp() * "$(" * inside * inside_end * Cp() / function(pos, body, stop)
    return { t = "command", form = "$(", quote = quote, body = body, pos = pos, stop = stop - 1 }
  end
end

local function process(openers)
  return Cp() * C(openers) * "(" * inside * inside_end * Cp() / function(pos, dir, body, stop)
    return { t = "process", dir = dir, body = body, pos = pos, stop = stop - 1 }
  end
end

-- Arithmetic -----------------------------------------------------------------------------------

-- Quotes mean nothing in it and brackets must match; expansions are those of a double-quoted text.
local expansion = V "double_dollar" + V "double_backquote"
local math_text = (1 - S "\\`$()[]") ^ 1 + "\\" * P(1)

local function make_arith(quote, form)
  return function(pos, text, parts)
    return { t = "arith", form = form, pos = pos, stop = pos + #text - 1, text = text,
      parts = parts, quote = quote }
  end
end

local function arithmetic(quote)
  -- `$((` may also begin a command substitution that holds a subshell.
  return state.now(Cp() * C("$((" * state.enter_math * Ct(V "math" ^ 0)
      * (P "))" * leave + #P ")" * state.fail_math + -P ")" * missing "closing ))"))
      / make_arith(quote, "$(("))
    + command(quote)
    + state.now(Cp() * C("$[" * enter * Ct(V "math" ^ 0) * close("]", "closing ]"))
      / make_arith(quote, "$["))
end

-- Parameters -----------------------------------------------------------------------------------

---@class efr.ShellParam  a part with t = "param"
---@field name string?  nil where another expansion stands in its place
---@field text string
---@field quote string?  "double"
---@field flags string?  what stands in ( ) after the brace
---@field prefix string?  of the characters ^ = ~ # +
---@field subscript efr.ShellWord?
---@field op string?  the operator after the name, for example ":-"
---@field word efr.ShellWord?  what follows the operator
---@field parts efr.ShellPart[]  everything nested that is in no other field

local name_follows = #(words.ident + digits + special + S '{("[$')
local prefix = C((S "^=~" + S "#+" * name_follows) ^ 1)

local delimiters = P(false)
for delimiter in (":.,/|!@#%^&*_-+=;~?'\""):gmatch "." do
  delimiters = delimiters + delimiter * (1 - S(delimiter .. "$`}")) ^ 0 * delimiter
end
for open, shut in ("()[]<>"):gmatch "(.)(.)" do
  delimiters = delimiters + open * (1 - S(shut .. "$`}")) ^ 0 * shut
end
-- A flag with arguments, or any one character.
local flag = S "gjslrIZ_" * delimiters ^ 1 + (1 - S ")}$`")

local operator = C(P "::=" + ":-" + ":=" + ":+" + ":?" + ":#" + ":/" + ":|" + ":*" + ":^^" + ":^"
  + ":" + "-" + "=" + "+" + "?" + "##" + "#" + "%%" + "%" + "//" + "/")

local function make_braced(quote)
  return function(pos, text, p)
    state.made(2, pos)
    local parts = {}
    for i, part in ipairs(p) do
      parts[i], p[i] = part, nil
    end
    if p.from then
      p.flags, p.from, p.to = text:sub(p.from - pos + 1, p.to - pos), nil, nil
    end
    p.t, p.pos, p.stop, p.text, p.quote, p.parts = "param", pos, pos + #text - 1, text, quote, parts
    if p.rest then
      p.t, p.why = "unknown", "parameter expansion"
    end
    return p
  end
end

local function braced(quote)
  local part = quote and V "double_brace_part" or V "brace_param_part"
  local bracket = quote and V "double_bracket_part" or V "param_bracket_part"
  local dollar = quote and V "double_dollar" or V "dollar"
  local flags = "(" * Cg(Cp(), "from") * (flag + dollar + V "double_backquote") ^ 0
    * Cg(Cp(), "to") * (P ")" + missing "closing )")
  local subscript = "[" * enter * word_of(bracket ^ 0) * close("]", "closing ]")
  local file = quote and P(true) or V "file_process" ^ -1
  local base = Cg(C(ident + digits + S "*@#?!-" + "$" * -(ident + S "{(['\"$")), "name") + dollar
    + V "double_quoted"
  local body = flags ^ -1 * Cg(prefix, "prefix") ^ -1 * base ^ -1
    * Cg(subscript, "subscript") ^ -1 * Cg(Ct(subscript ^ 1), "subscripts") ^ -1
    * (Cg(operator, "op") * Cg(word_of(file * part ^ 0), "word")) ^ -1
    * Cg(word_of(part ^ 1), "rest") ^ -1
  return state.now(Cp() * C("${" * enter * Ct(body) * close("}", "closing }"))
    / make_braced(quote))
end

local function make_simple(quote)
  return function(pos, text, p)
    state.made(1, pos)
    p.t, p.pos, p.stop, p.text, p.quote, p.parts = "param", pos, pos + #text - 1, text, quote, {}
    if p.unclosed then
      p.t, p.why = "unknown", "subscript"
    end
    return p
  end
end

local function simple(quote)
  local bracket = quote and V "double_bracket_part" or V "bracket_part"
  local subscript = "[" * enter * Cg(word_of(bracket ^ 0), "subscript")
    * (P "]" + Cg(Cc(true), "unclosed")) * leave
  local modifiers = Cg(C((":" * R("az", "AZ")) ^ 1), "op")
  local first = Cg(C(S "^=~" ^ 1 * P "#" ^ -1 * #(ident + digits + special)
    + S "#+" * #(ident + digits + S "*@?$!-#")), "prefix")
  -- zsh would read the next line as part of the name.
  local whole = -(P "\\\n" ^ 1 * (1 - S " \t\n;&|<>()")) + missing "line continuation inside a word"
  return Cp() * C("$" * Ct(first ^ -1 * Cg(C(ident * whole + digits
      + S "*@#?!-" + "$" * -S "{(['"), "name")
    * subscript ^ -1 * modifiers ^ -1)) / make_simple(quote)
end

local function dollar_rule(quote)
  -- $= and the like take away what follows them, even where that is no name. In $$( and $$' the
  -- first $ makes the number of the process, and the second still begins what it begins alone.
  local nameless = Cp() * C("$" * (S "^=~" ^ 1 + #("$" * S "{(['")) * Ct(P(true)))
    / make_simple(quote)
  local rule = arithmetic(quote) + braced(quote) + simple(quote) + nameless
  if not quote then
    rule = rule + words.dollar_quote
  end
  return #P "$" * (rule + "$" * #P "\\\n" * missing "line continuation inside a word"
    + C "$" / function(s) return { t = "lit", s = s, quote = quote } end)
end

---Adds the rules of expansions to a grammar table.
---@param rules table
function M.add(rules)
  rules.dollar, rules.double_dollar = dollar_rule(nil), dollar_rule "double"
  rules.process, rules.file_process = process(S "<>"), process "="
  rules.math = math_text + expansion + "(" * enter * V "math" ^ 0 * close(")", "closing )")
    + "[" * enter * V "math" ^ 0 * close("]", "closing ]")
  local lit = function(s) return { t = "lit", s = s } end
  local quoted = V "single_quoted" + V "double_quoted" + V "dollar" + V "backquote"
  local escape = "\\" * (P "\n" + C(1) / lit)
  rules.brace_param_part = C((1 - S "\\'\"`${}") ^ 1) / lit + quoted + escape + V "param_braces"
  rules.param_braces = C "{" / lit * enter * V "brace_param_part" ^ 0
    * close(C "}" / lit, "closing }")
  rules.param_bracket_part = C((1 - S "\\'\"`${}[]") ^ 1) / lit + quoted + escape
    + V "param_braces" + V "param_brackets"
  rules.param_brackets = C "[" / lit * enter * V "param_bracket_part" ^ 0
    * (C "]" / lit) ^ -1 * leave
  rules.double_bracket_part = C((1 - S '\\"`$[]}') ^ 1) / lit + "\\" * C(1) / lit + expansion
    + V "double_brackets"
  rules.double_brackets = C "[" / lit * enter * V "double_bracket_part" ^ 0
    * (C "]" / lit) ^ -1 * leave
end

return M
