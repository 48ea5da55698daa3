-- The shape of a tree as a list of texts, equal for a line and for what zsh itself prints of it after
-- it has read it: redirections, comments, blanks and the form of a loop's brackets are left out. Test
-- help only.
local ast = require "efr.perm.ast"

local add

local function text_of(word)
  return ast.literal(word) or (word.text:gsub("\\\n", ""))
end

local function add_all(out, nodes)
  for _, node in ipairs(nodes or {}) do
    add(out, node)
  end
end

local function put(out, ...)
  for _, item in ipairs { ... } do
    if type(item) == "string" then
      out[#out + 1] = item
    elseif item.kind then
      add(out, item)
    else
      add_all(out, item)
    end
  end
end

local SHAPES <const> = {}

function SHAPES.word(out, word)
  local last = word.parts[#word.parts]
  if last and last.t == "array" then
    put(out, "array " .. word.parts[1].s, last.values, ")")
    return
  end
  out[#out + 1] = "word " .. text_of(word)
  ast.walk(word.parts, function(node)
    if node.kind == "list" then
      put(out, "$(", node, ")")
      return true
    end
  end)
end

function SHAPES.list(out, list)
  for i, item in ipairs(list.items) do
    put(out, item, list.async[i] and "&" or ";")
  end
end

function SHAPES.sublist(out, node)
  for i, part in ipairs(node.parts) do
    put(out, part, node.ops[i] or "")
  end
end

function SHAPES.pipeline(out, node)
  put(out, node.negated and "!" or "", node.coproc and "coproc" or "", node.timed and "time" or "")
  for i, command in ipairs(node.commands) do
    put(out, command, node.ops[i] and "|" or "")
  end
end

function SHAPES.assign(out, node)
  put(out, "assign " .. node.name .. node.op, node.value or node.values, ")")
end

function SHAPES.simple(out, node)
  put(out, node.assigns)
  for _, word in ipairs(node.words) do
    if word.text ~= "nocorrect" then
      add(out, word)
    end
  end
end

SHAPES["if"] = function(out, node)
  for i, test in ipairs(node.tests) do
    put(out, "if", test, "then", node.bodies[i])
  end
  put(out, "else", node.otherwise or "", "fi")
end

local function each(out, node)
  put(out, node.kind == "select" and "select" or "for", table.concat(node.vars, " "),
    node.words or "no words", "do", node.body, "done")
end
SHAPES["for"], SHAPES.foreach, SHAPES.select = each, each, each

function SHAPES.arith(out, node)
  out[#out + 1] = "(( " .. node.text:gsub("%s", "") .. " ))"
end

function SHAPES.cfor(out, node)
  local function plain(part) return (part.text:gsub("%s", "")) end
  put(out, "for", plain(node.init), plain(node.test), plain(node.step), node.body, "done")
end

local function loop(out, node)
  put(out, node.kind, node.test or node.count, "do", node.body, "done")
end
SHAPES["while"], SHAPES["until"], SHAPES["repeat"] = loop, loop, loop

function SHAPES.case(out, node)
  put(out, "case", node.word)
  for i, arm in ipairs(node.arms) do
    put(out, arm.patterns, ")", arm.body, i < #node.arms and arm.last or "end")
  end
end

function SHAPES.subshell(out, node) put(out, "(", node.body, ")") end

function SHAPES.group(out, node)
  put(out, "{", node.body, "always", node.always or "", "}")
end

function SHAPES.func(out, node)
  -- zsh prints a body that is one command as a list of it.
  put(out, "function", node.names, "{", node.body, node.body.kind == "list" and "" or ";", "}",
    node.anonymous_args or {})
end

function SHAPES.cond(out, node) put(out, "[[", node.expr, "]]") end

function SHAPES.test(out, node)
  if not node.items then
    put(out, node.op == "==" and "=" or node.op, node.args)
    return
  end
  -- zsh drops the parentheses of a group and prints some where its neighbours need them.
  for i, item in ipairs(node.items) do
    put(out, node.op == "not" and "!" or i > 1 and node.op or "", item)
  end
end

function SHAPES.unknown(out) out[#out + 1] = "unknown" end

function add(out, node)
  assert(SHAPES[node.kind], node.kind)(out, node)
end

---@param tree table
---@return string
return function(tree)
  local out, kept = {}, {}
  add(out, tree)
  for _, text in ipairs(out) do
    if text ~= "" then
      kept[#kept + 1] = text
    end
  end
  return table.concat(kept, "\n")
end
