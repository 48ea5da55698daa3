-- Compares what the grammar read with what the real zsh made of a line. Test help only.
local ast = require "efr.perm.ast"
local judge = require "spec.perm.shell_judge"

local M = {}

local MODIFIERS <const> = { nocorrect = true, ["-"] = true }

-- The words of a simple command as a pattern of argv: strings, and false for any number of words.
local function shape(words)
  local out = {}
  for _, word in ipairs(words) do
    if out[1] ~= nil or not MODIFIERS[word.text] then
      out[#out + 1] = ast.literal(word) or false
    end
  end
  return out
end

local function explains(pattern, argv, i, j)
  i, j = i or 1, j or 1
  if i > #pattern then
    return j > #argv
  elseif pattern[i] then
    return pattern[i] == argv[j] and explains(pattern, argv, i + 1, j + 1)
  end
  for next_word = j, #argv + 1 do
    if explains(pattern, argv, i + 1, next_word) then
      return true
    end
  end
  return false
end

local function commands(tree)
  local found = {}
  ast.walk(tree, function(node)
    if node.kind ~= "simple" then
      return
    end
    local words = shape(node.words)
    if words[1] ~= nil then
      found[#found + 1] = words
    elseif node.redirs[1] then
      -- NULLCMD and READNULLCMD.
      for _, program in ipairs { "cat", "more", "pager" } do
        found[#found + 1] = { program }
      end
    end
  end)
  return found
end

---The first command that zsh ran and the tree does not hold; nil when all are there.
---@param tree table
---@param runs string[][]
---@return string[]?
function M.unexplained(tree, runs)
  local patterns = commands(tree)
  for _, argv in ipairs(runs) do
    local known = false
    for _, pattern in ipairs(patterns) do
      known = known or explains(pattern, argv)
    end
    if not known then
      return argv
    end
  end
  return nil
end

---The commands of a line of literal words, in order; nil where a word is not literal.
---@param tree table
---@return string[][]?
function M.plain_commands(tree)
  local out = {}
  for _, pattern in ipairs(commands(tree)) do
    for _, text in ipairs(pattern) do
      if not text then
        return nil
      end
    end
    out[#out + 1] = pattern
  end
  return out
end

local BATCH <const> = 1000
-- Of so many lines one may be ended because it does not end by itself; always a few may.
local ENDED_OF <const> = 500
local ENDED_FEW <const> = 3

---Makes lines, asks zsh about them in batches, with and without extended_glob in turn, and gives each
---to check. Lines that had to be ended are not compared; more than a few of them are an error.
---@param count integer  lines of the ordinary size; EFR_TEST_SIZE=long takes `long` lines
---@param long integer
---@param make fun(): string
---@param check fun(line: string, asked: table)
---@return integer ended  lines that were not compared
function M.each(count, long, make, check)
  local left = os.getenv("EFR_TEST_SIZE") == "long" and long or count
  local extended, seen, ended = false, 0, {}
  while left > 0 do
    local lines = {}
    for i = 1, math.min(left, BATCH) do
      lines[i] = make()
    end
    left = left - #lines
    for i, asked in ipairs(judge.ask(lines, extended and "extendedglob" or nil)) do
      if asked.ended then
        ended[#ended + 1] = lines[i]
      else
        check(lines[i], asked)
      end
    end
    seen = seen + #lines
    assert(#ended <= ENDED_FEW + seen // ENDED_OF,
      ("%d of %d lines did not end:\n%s"):format(#ended, seen, table.concat(ended, "\n")))
    extended = not extended
  end
  return #ended
end

return M
