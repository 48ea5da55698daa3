-- Owns: walking the AST that efr.perm.shell makes, and small questions about its words.
-- Must not know: the grammar; any decision.
-- Runs in efrd, efr and the rules process. Pure.

local M = {}

local concat = table.concat

-- Where nodes and parts hold others, in the order of the line as far as that has one.
local FIELDS <const> = { "init", "test", "step", "count", "word", "subscript", "subscripts", "vars",
  "names", "assigns", "items", "commands", "tests", "bodies", "otherwise", "expr", "args", "value",
  "values", "words", "target", "heredoc", "patterns", "arms", "parts", "body", "always",
  "anonymous_args", "rest", "redirs" }

---Calls fn for a node or part and for everything in it, outer ones first, also in substitutions.
---@param node table  a node, a part or a list of them
---@param fn fun(node: table): boolean?  true = do not go into this one
function M.walk(node, fn)
  if node.kind or node.t then
    if fn(node) then
      return
    end
    for i = 1, #FIELDS do
      local inner = node[FIELDS[i]]
      if type(inner) == "table" then
        M.walk(inner, fn)
      end
    end
  elseif node.delimiter then
    M.walk(node.body, fn)
  else
    for i = 1, #node do
      if type(node[i]) == "table" then
        M.walk(node[i], fn)
      end
    end
  end
end

---The text that zsh makes of a word that only has literal parts.
---@param word efr.ShellWord
---@return string?
function M.literal(word)
  local parts = word.parts
  if #parts == 1 then
    return parts[1].t == "lit" and parts[1].s or nil
  end
  local pieces = {}
  for i = 1, #parts do
    if parts[i].t ~= "lit" then
      return nil
    end
    pieces[i] = parts[i].s
  end
  return concat(pieces)
end

local PATTERN <const> = { glob = true, qual = true }

---Whether a word has an unquoted glob.
---@param word efr.ShellWord
---@return boolean
function M.has_glob(word)
  for _, part in ipairs(word.parts) do
    if PATTERN[part.t] then
      return true
    end
  end
  return false
end

---Whether an unknown node stands anywhere in a node.
---@param node table
---@return boolean
function M.has_unknown(node)
  local found = false
  M.walk(node, function(inner)
    found = found or inner.kind == "unknown" or inner.t == "unknown"
    return found
  end)
  return found
end

return M
