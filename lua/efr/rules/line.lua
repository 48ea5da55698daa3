-- Owns: the simple commands of a parsed line, as flat data that rules look at: which words are
-- certain and which only the shell will know.
-- Must not know: rules, effects, programs. Runs in efrd, efr and the rules process. Pure.
--
-- A command is {pos, stop, words, texts, assigns, redirs}: words are strings, or false where the
-- shell expands something (a parameter, a glob, a substitution, a brace or a leading ~), and texts
-- has the source of those; assigns maps names to a string or false; redirs are {op, fd, target =
-- string|false}. Every simple command of the line is there, also those inside substitutions,
-- functions and compound commands, in the order of their places.

local M = {}

local MAX_DEPTH <const> = 400

---The text of a word when it has only literal parts, else false.
---@param word table?
---@return string|false
function M.literal(word)
  if type(word) ~= "table" or type(word.parts) ~= "table" then return false end
  local out = {}
  for i, part in ipairs(word.parts) do
    if part.t ~= "lit" or type(part.s) ~= "string" then return false end
    out[i] = part.s
  end
  return table.concat(out)
end

local function assigns_of(node)
  local out
  for _, assign in ipairs(node.assigns or {}) do
    if type(assign.name) == "string" then
      out = out or {}
      local certain = assign.op ~= "+=" and not assign.subscript and assign.value
      out[assign.name] = certain and M.literal(assign.value) or false
    end
  end
  return out
end

local function redirs_of(node)
  local out
  for _, redir in ipairs(node.redirs or {}) do
    out = out or {}
    out[#out + 1] = {
      op = redir.op, fd = math.type(redir.fd) == "integer" and redir.fd or nil,
      target = M.literal(redir.target),
    }
  end
  return out
end

local function command_of(node)
  local words, texts = {}, {}
  for i, word in ipairs(node.words or {}) do
    words[i] = M.literal(word)
    if not words[i] then texts[i] = word.text end
  end
  return {
    pos = node.pos, stop = node.stop, words = words, texts = texts, assigns = assigns_of(node),
    redirs = redirs_of(node),
  }
end

local function collect(node, out, depth)
  if depth > MAX_DEPTH then return end
  if node.kind == "simple" then out[#out + 1] = command_of(node) end
  for _, child in pairs(node) do
    if type(child) == "table" then collect(child, out, depth + 1) end
  end
end

---@param parse table?  an AST of the shell grammar; nil for a line that it cannot read
---@return table[]
function M.commands(parse)
  local out = {}
  if type(parse) == "table" then collect(parse, out, 0) end
  table.sort(out, function(a, b)
    return (a.pos or 0) < (b.pos or 0)
  end)
  return out
end

return M
