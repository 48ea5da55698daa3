-- Owns: the one-command rule: what may stand beside a command that must run outside the sandbox.
-- Must not know: why it must run outside.
-- Runs in efrd and efr. Pure.
--
-- Policy: the line must be read strictly, but for redirections to files, which are declared, and
-- for input and variables that the line shows whole, as the user must see them. At most one command
-- is other than a reader or one that makes sudo forget its credentials.

local ast = require "efr.perm.ast"
local list = require "efr.util.list"
local read_only = require "efr.perm.read_only"
local strict = require "efr.perm.strict"

local M = {}

local FORGETS <const> = list.set { "-k", "-K", "--reset-timestamp" }
local WRITES_FILE <const> = list.set { ">", ">>", ">|", ">!", ">>|", ">>!", "&>", "&>>", ">&" }

local function is_forgetting(command)
  local words = command.words
  return #words == 2 and words[1].text == "sudo" and FORGETS[words[2].text] == true
end

-- The kinds that the strict reading knows, with where their nodes stand.
local INNER <const> = { list = "items", sublist = "parts", pipeline = "commands" }

local function is_literal(word)
  return word ~= nil and ast.literal(word) ~= nil
end

-- A file that the line names: plain text, also below the user's home directory.
local function is_named(word)
  local first = word and word.parts[1]
  if not first or first.t ~= "tilde" or (first.name or "") ~= "" then return is_literal(word) end
  for i = 2, #word.parts do
    if word.parts[i].t ~= "lit" then return false end
  end
  -- A tilde before anything else is the directory of a user.
  return word.parts[2] == nil or word.parts[2].s:sub(1, 1) == "/"
end

-- `{}` of find is text, whatever options braces have.
local function is_bare(part, text)
  return part ~= nil and part.t == "lit" and not part.quote and part.s == text
end

local function quoted(part)
  return setmetatable({ quote = "single" }, { __index = part })
end

local function with_placeholders(word)
  local parts
  for i, part in ipairs(word.parts) do
    if is_bare(part, "{") and is_bare(word.parts[i + 1], "}") then
      parts = parts or list.copy(word.parts)
      parts[i], parts[i + 1] = quoted(part), quoted(word.parts[i + 1])
    end
  end
  return parts and setmetatable({ parts = parts }, { __index = word }) or word
end

-- Here-documents and here-strings of plain text, and output to files.
local function is_shown(redir)
  if redir.heredoc then return is_literal(redir.heredoc.body) end
  if redir.op == "<<<" then return is_literal(redir.target) end
  return WRITES_FILE[redir.op] and is_named(redir.target)
end

local function is_plain_value(assign)
  return assign.op == "=" and not assign.subscript and is_literal(assign.value)
end

-- The same nodes without what the strict reading does not know but the line shows.
local function without_shown(node)
  local copy = setmetatable({}, { __index = node })
  if node.kind == "simple" then
    copy.redirs = list.filter(node.redirs, function(redir) return not is_shown(redir) end)
    copy.words = list.map(node.words, with_placeholders)
    copy.assigns = list.filter(node.assigns, function(one) return not is_plain_value(one) end)
    return copy
  end
  local inner = INNER[node.kind]
  if inner then copy[inner] = list.map(node[inner], without_shown) end
  return copy
end

---Whether a line may run outside of the sandbox as it is.
---@param line efr.perm.Line
---@param facts table
---@return boolean ok
---@return string? why
function M.check(line, facts)
  if not line.ast then return false, "the line cannot be read" end
  local commands, construct = line.commands, nil
  if not commands then commands, construct = strict.commands(without_shown(line.ast)) end
  if not commands then return false, "the line holds a construct: " .. construct end
  local others = 0
  for _, command in ipairs(commands) do
    if not is_forgetting(command) and not read_only.row(command, facts) then others = others + 1 end
  end
  if others > 1 then return false, "split it into single calls" end
  return true
end

return M
