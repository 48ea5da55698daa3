-- Generated lines of literal words: the words that the grammar makes equal those that zsh would run,
-- and those of ${(z)} and ${(Q)}. In order, all of them.
local compare = require "spec.perm.shell_compare"
local generator = require "spec.perm.shell_generator"
local shell = require "efr.perm.shell"

local function text_of(commands)
  local out = {}
  for i, words in ipairs(commands) do
    out[i] = table.concat(words, "\1")
  end
  return table.concat(out, "\2")
end

-- The words of zsh's lexer hold all words of the commands in their order.
local function holds(found, commands)
  local at = 1
  for _, words in ipairs(commands) do
    for _, word in ipairs(words) do
      while found[at] ~= word do
        if not found[at] then
          return false, word
        end
        at = at + 1
      end
      at = at + 1
    end
  end
  return true
end

describe("literal lines", function()
  it("have the words that zsh runs", function()
    local gen = generator.new(11)
    local compared = 0
    compare.each(200, 9000, function() return gen:plain_line() end, function(line, asked)
      local tree = shell.parse(line)
      if not asked.parses then
        return
      end
      assert(tree, line)
      local commands = compare.plain_commands(tree)
      assert(commands, line)
      assert.equal(text_of(asked.runs), text_of(commands), line)
      assert(holds(asked.words, commands), line)
      compared = compared + 1
    end)
    assert(compared > 150)
  end)
end)
