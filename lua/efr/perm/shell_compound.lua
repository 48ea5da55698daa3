-- Owns: the rules of the shell grammar for compound commands in all forms of zsh, functions,
-- conditions, pipelines and lists.
-- Must not know: the inside of words and simple commands; what a command means for a decision.
-- Runs in efrd, efr and the rules process. Pure.

local lpeg = require "lpeg"
local commands = require "efr.perm.shell_commands"
local state = require "efr.perm.shell_state"
local words = require "efr.perm.words"

local M = {}

local C, Cc, Cf, Cg, Cp, Ct = lpeg.C, lpeg.Cc, lpeg.Cf, lpeg.Cg, lpeg.Cp, lpeg.Ct
local P, R, S, V = lpeg.P, lpeg.R, lpeg.S, lpeg.V

local ipairs = ipairs

_ENV = nil

local missing, close, enter, leave = state.missing, state.close, state.enter, state.leave
local blanks, separators, newlines = commands.blanks, commands.separators, commands.newlines
local keyword, need = commands.keyword, commands.need

-- Lists ----------------------------------------------------------------------------------------

---@class efr.ShellList
---@field kind string  "list"
---@field items table[]
---@field async table<integer, true>  items that run in the background

local function make_list(pos, captured)
  local items, async, count = captured, {}, 0
  for i = 1, #captured do
    local item = captured[i]
    if item == true then
      async[count] = true
    else
      count = count + 1
      items[count] = item
    end
  end
  for i = #captured, count + 1, -1 do
    items[i] = nil
  end
  local first, last = items[1], items[#items]
  return { kind = "list", pos = first and first.pos or pos, stop = last and last.stop or pos - 1,
    items = items, async = async }
end

-- first, and then operators and nodes in turn.
local function chain(first, rest)
  local nodes, ops = { first }, {}
  for i = 1, #rest, 2 do
    ops[#ops + 1], nodes[#nodes + 1] = rest[i], rest[i + 1]
  end
  return nodes, ops
end

local function make_sublist(first, rest)
  local parts, ops = chain(first, rest)
  return { kind = "sublist", pos = first.pos, stop = parts[#parts].stop, parts = parts, ops = ops }
end

local function make_pipeline(first, rest)
  local stages, ops = chain(first, rest)
  return { kind = "pipeline", pos = first.pos, stop = stages[#stages].stop,
    commands = stages, ops = ops, negated = false, coproc = false, timed = false }
end

local function with_prefix(pos, prefix, inner)
  local made = inner
  if not inner or inner.kind ~= "pipeline" or inner.timed then
    made = { kind = "pipeline", stop = inner and inner.stop or pos + #prefix - 1,
      commands = { inner or nil }, ops = {}, timed = false }
  end
  made.pos, made.negated, made.coproc = pos, prefix == "!", prefix == "coproc"
  return made
end

local function make_time(pos, inner)
  if inner and inner.kind == "pipeline" and not inner.timed then
    inner.timed, inner.pos = true, pos
    return inner
  end
  return { kind = "pipeline", pos = pos, stop = inner and inner.stop or pos + 3, timed = true,
    negated = false, coproc = false, commands = { inner or nil }, ops = {} }
end

local function list_rules(rules)
  local background = "&" * -S "&>" * S "|!" ^ -1 * Cc(true)
  local separator = blanks * (background + commands.semicolon + commands.newline
    + commands.comment * (commands.newline + -P(1))) * separators
  rules.list = state.now(Cp() * separators * Ct((V "sublist" * (separator * V "sublist") ^ 0
    * separator ^ -1) ^ -1) / make_list)
  rules.one = state.now(Cp() * Ct(V "sublist") / make_list)
  -- A fold of one value is that value: only more than one make a node of their own.
  local joined = Ct((blanks * C(P "&&" + "||") * separators
    * need(V "pipeline", "command after && or ||")) ^ 1)
  rules.sublist = Cf(V "pipeline" * joined ^ -1, make_sublist)
  local pipe = C(P "|&" + "|" * -P "|")
  local piped = Ct((blanks * pipe * separators * need(V "command", "command after |")) ^ 1)
  local commands_piped = Cf(V "command" * piped ^ -1, make_pipeline)
  local prefix = C(keyword "!" + keyword "coproc") * blanks
  rules.pipeline = Cp() * prefix * enter * (commands_piped + Cc(false)) * leave / with_prefix
    + commands_piped
  rules.time = Cp() * keyword "time" * enter * blanks * (state.now(V "pipeline") + Cc(false))
    * leave / make_time
end

-- Bodies ---------------------------------------------------------------------------------------

local braces_rest = V "list" * blanks * need("}" * words.word_end, "closing }")
local braces = "{" * braces_rest
local done = keyword "do" * V "list" * blanks * need(keyword "done", "done")
local loop_body = separators * need(done + braces + V "one", "body of a loop")

-- A compound command: everything after its first word stands or the run ends.
local function compound(kind, opener, pattern, ...)
  return commands.as(kind, opener * enter * pattern * leave, ...)
end

local function make_if(pos, captured, stop)
  local made = { kind = "if", pos = pos, stop = stop - 1, tests = {}, bodies = {} }
  for i, item in ipairs(captured) do
    if item.otherwise then
      made.otherwise = item.otherwise
    else
      local into = i % 2 == 1 and made.tests or made.bodies
      into[#into + 1] = item
    end
  end
  return made
end

local function condition_rules(rules)
  local function otherwise(body)
    return keyword "else" * separators * body / function(list) return { otherwise = list } end
  end
  local list_fi = V "list" * blanks * need(keyword "fi", "fi")
  rules.if_branch = V "list" * separators * (keyword "then" * V "list" * blanks * V "after_then"
    + braces * V "after_braces" + need(V "one", "then"))
  rules.after_then = keyword "fi" + otherwise(list_fi)
    + need(keyword "elif", "fi") * V "if_branch"
  rules.after_braces = blanks * otherwise(braces + list_fi)
    + blanks * keyword "elif" * V "if_branch" + P(true)
  rules["if"] = Cp() * keyword "if" * enter * Ct(V "if_branch") * leave * Cp() / make_if
  rules["while"] = compound("while", keyword "while", V "list" * loop_body, "test", "body")
    + compound("until", keyword "until", V "list" * loop_body, "test", "body")
end

local function make_arith(pos, text, parts)
  return { kind = "arith", pos = pos, stop = pos + #text - 1, text = text, parts = parts }
end

local word = -P "#" * V "argument"

local function for_rules(rules)
  local name = C(words.ident + R "09" ^ 1) * words.word_end
  local words_in = keyword "in" * Ct((blanks * word) ^ 0) * blanks
    * need(#(S ";\n#"), "end of the words")
  local words_paren = "(" * enter * Ct((newlines * word) ^ 0) * newlines
    * close(")", "closing )")
  local names = Ct(name * (blanks * -keyword "in" * -keyword "do" * name) ^ 0)
  local over = newlines * words_in + blanks * words_paren + Cc(false)
  local text = V "double_dollar" + V "double_backquote" + (1 - S "\\`$;") + "\\" * P(1)
  local part = Cp() * C(Ct(text ^ 0)) / make_arith * need(P ";", "; in for ((")
  local counting = part * part * (Cp() * C(Ct(V "math" ^ 0)) / make_arith)
    * need(P "))", "closing ))")
  local foreach_body = separators * need(done + braces
    + V "list" * blanks * keyword "end", "end of foreach")
  local function each(kind, vars, body)
    return compound(kind, keyword(kind), blanks * need(vars, "name") * over * body,
      "vars", "words", "body")
  end
  rules["for"] = compound("cfor", keyword "for" * blanks * P "((", counting * loop_body,
      "init", "test", "step", "body")
    + each("for", names, loop_body) + each("select", Ct(name), loop_body)
    + each("foreach", names, foreach_body)
  rules["repeat"] = compound("repeat", keyword "repeat", blanks * need(word, "count") * loop_body,
    "count", "body")
end

-- `( a | b )` may be one pattern or stand for the parentheses of the arm. It is read once, as a
-- pattern, and taken apart where nothing of a pattern follows.
local function arm_patterns(list, ended)
  if ended then
    return list
  end
  local patterns = list[1].parts[1].patterns
  if #list > 1 or #list[1].parts > 1 or not patterns then
    state.fail("no match", "closing ) of a pattern", list[1].pos)
  end
  return patterns
end

local function case_rules(rules)
  local space = S " \t\n" + "\\\n"
  local inside = space ^ 0 * words.word_of((V "argument_part"
    + C(space ^ 1 * -S "|)") / function(s) return { t = "glob", s = s } end) ^ 0) * space ^ 0
  local group = C("(" * enter * Ct(inside * ("|" * inside) ^ 0) * close(")", "closing )"))
    / function(text, list)
      return { t = "glob", group = true, alternatives = true, s = text, patterns = list }
    end
  local pattern = words.word_of((group + V "start") * V "argument_part" ^ 0
    + V "argument_part" ^ 1)
  local empty = words.word_of(P(true))
  local more = (blanks * "|" * blanks * (pattern + empty)) ^ 0
  rules.case_patterns = (Ct(pattern * more) * (blanks * ")" * Cc(true) + Cc(false))
    + Ct(empty * more) * blanks * ")" * Cc(true)) / arm_patterns
  local last = C(P ";;" + ";&" + ";|") + #(keyword "esac" + "}") * Cc(false)
  rules.arm = commands.as("arm", separators * -keyword "esac" * -P "}" * V "case_patterns"
    * V "list" * blanks * need(last, "end of an arm"), "patterns", "body", "last")
  local arms = Ct(V "arm" ^ 0) * separators
  rules["case"] = compound("case", keyword "case", blanks * need(word, "word") * separators
    * need(keyword "in" * arms * need(keyword "esac", "esac")
      + "{" * arms * need("}" * words.word_end, "closing }"), "in"), "word", "arms")
end

-- Conditions -----------------------------------------------------------------------------------

---@class efr.ShellCond  kind "cond" holds one as expr; a leaf has op and args, the others items
---@field op string  "and", "or", "not", "group", or the operator of a test, such as "-f" or "=="
---@field args efr.ShellWord[]?
---@field items efr.ShellCond[]?

local function as_word(item)
  if item.kind == "word" then
    return item
  end
  return words.make_word(item.pos, item.text, { { t = "lit", s = item.text } })
end

local function make_test(pos, captured)
  local made = { kind = "test", pos = pos, stop = captured[#captured].stop, args = {} }
  local first, second = captured[1], captured[2]
  local from = 2
  if #captured == 1 then
    made.op, from = "-n", 1
  elseif #captured == 3 and second.kind == "operator" then
    made.op, made.args[1], from = second.text, as_word(first), 3
  elseif first.text:find("^%-") then
    made.op = first.text
  else
    return { kind = "unknown", why = "condition", pos = pos, stop = made.stop }
  end
  for i = from, #captured do
    made.args[#made.args + 1] = as_word(captured[i])
  end
  return made
end

local function many(op)
  return function(pos, items)
    if #items == 1 then
      return items[1]
    end
    return { kind = "test", op = op, pos = pos, stop = items[#items].stop, items = items }
  end
end

local function one(op)
  return function(pos, inner, stop)
    return { kind = "test", op = op, pos = pos, stop = stop - 1, items = { inner } }
  end
end

local function cond_rules(rules)
  local operator = Cp() * C(P "==" + "=~" + "!=" + "=" + "-" * R("az", "AZ") ^ 1) * words.word_end
    + Cp() * C(-words.number_range * S "<>" * -P "(")
  local symbol = operator / function(pos, text)
    return { kind = "operator", pos = pos, stop = pos + #text - 1, text = text }
  end
  local operand = -(P "]]" * words.word_end) * word
  local test = Cp() * Ct(operand * (blanks * (symbol + operand)) ^ 0) / make_test
  rules.cond_not = state.now(Cp() * keyword "!" * enter * newlines
      * need(V "cond_not", "condition") * leave * Cp() / one "not"
    + Cp() * "(" * enter * newlines * V "cond_or" * newlines * close(")", "closing )") * Cp()
      / one "group"
    + need(test, "condition"))
  rules.cond_and = Cp() * Ct(V "cond_not" * (newlines * "&&" * newlines * V "cond_not") ^ 0)
    / many "and"
  rules.cond_or = Cp() * Ct(V "cond_and" * (newlines * "||" * newlines * V "cond_and") ^ 0)
    / many "or"
  rules.cond = compound("cond", keyword "[[", newlines * V "cond_or" * newlines
    * need("]]" * words.word_end, "closing ]]"), "expr")
end

-- Groups and functions -------------------------------------------------------------------------

local function make_function(simple, body, redirs)
  local all, last = {}, redirs[#redirs] or body
  for _, some in ipairs { simple.redirs, redirs } do
    for _, redir in ipairs(some) do
      all[#all + 1] = redir
    end
  end
  return { kind = "func", pos = simple.pos, stop = last.stop, names = simple.words, body = body,
    assigns = simple.assigns[1] and simple.assigns or nil, redirs = all }
end

local function split(captured)
  local args, redirs = {}, {}
  for _, item in ipairs(captured) do
    local into = item.kind == "word" and args or redirs
    into[#into + 1] = item
  end
  return args, redirs
end

local function make_anonymous(pos, names, body, rest, stop)
  local made = { kind = "func", pos = pos, stop = stop - 1, names = names, body = body }
  made.anonymous_args, made.redirs = split(rest)
  if names[1] then
    made.anonymous_args = nil
  end
  return made
end

local function function_rules(rules)
  local body = separators * (braces + state.now(need(V "command", "body of a function")))
  local rest = Ct((blanks * (V "argument_redir" + word)) ^ 0)
  local redirs = Ct((blanks * V "redir") ^ 0)
  local func_name = -P "{" * -P "#" * V "command_word"
  local names = Ct((blanks * func_name) ^ 1)
  local nameless = keyword "function" * blanks * P "()" ^ -1 * #(separators * "{")
  rules.anonymous = Cp() * (P "()" + nameless)
      * Ct(P(true)) * enter * body * leave * rest * Cp() / make_anonymous
    + Cp() * keyword "function" * enter * need(names, "name of a function") * blanks * P "()" ^ -1
      * body * leave * redirs * Cp() / make_anonymous
  rules.named = Cf(V "simple" * Cg(blanks * "()" * enter * body * leave * redirs) ^ -1,
    make_function)
end

local function with_redirs(node, redirs)
  local last = redirs[#redirs]
  node.redirs = node.redirs or {}
  for _, redir in ipairs(redirs) do
    node.redirs[#node.redirs + 1] = redir
  end
  if last and last.stop > node.stop then
    node.stop = last.stop
  end
  return node
end

local function with_leading(pos, redirs, node)
  if not node then
    return { kind = "simple", pos = pos, stop = redirs[#redirs].stop, assigns = {}, words = {},
      redirs = redirs }
  end
  local after = node.redirs
  if not after then
    -- `>o time a`: a timed pipeline has no place for the file.
    local why = "redirection before " .. node.kind
    return { kind = "unknown", pos = pos, stop = node.stop, why = why }
  end
  node.pos, node.redirs, node.plain = pos, redirs, nil
  for _, redir in ipairs(after) do
    redirs[#redirs + 1] = redir
  end
  return node
end

local function command_rules(rules)
  rules.arith = Cp() * C("((" * state.enter_math * Ct(V "math" ^ 0)
    * (P "))" * leave + #P ")" * state.fail_math + -P ")" * missing "closing ))")) / make_arith
  rules.subshell = compound("subshell", P "(", V "list" * blanks * need(P ")", "closing )"), "body")
  rules.group = compound("group", P "{", braces_rest
    * (blanks * keyword "always" * separators * need(braces, "body of always") + Cc(false)),
    "body", "always")
  local form = V "group" + V "anonymous" + V "arith" + V "subshell" + V "cond" + V "if" + V "for"
    + V "while" + V "case" + V "repeat"
  local whole = form * Ct((blanks * V "redir") ^ 0) / with_redirs
  local bare = #S "{([ifwucrs" * whole + V "time" + V "named"
  local leads = #(S "<>" + "&>" + R "09" * (S "<>" + "&>"))
  rules.command = leads * Cp() * Ct((V "redir" * blanks) ^ 1) * (bare + Cc(false)) / with_leading
    + bare
end

---Adds the rules of compound commands and lists to a grammar table.
---@param rules table
function M.add(rules)
  list_rules(rules)
  condition_rules(rules)
  for_rules(rules)
  case_rules(rules)
  cond_rules(rules)
  function_rules(rules)
  command_rules(rules)
end

return M
