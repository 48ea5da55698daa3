-- Generated lines of every construct: zsh runs no command that the grammar did not see, with the
-- words that it called literal, unless it called the line opaque or something in it unknown.
local ast = require "efr.perm.ast"
local compare = require "spec.perm.shell_compare"
local generator = require "spec.perm.shell_generator"
local judge = require "spec.perm.shell_judge"
local shell = require "efr.perm.shell"

local function check_all(count, long, make)
  local seen, opaque, unknown, accepted = 0, 0, 0, 0
  compare.each(count, long, make, function(line, asked)
    seen = seen + 1
    accepted = accepted + (asked.parses and 1 or 0)
    local tree = shell.parse(line)
    if not tree then
      opaque = opaque + (asked.parses and 1 or 0)
    elseif ast.has_unknown(tree) then
      unknown = unknown + 1
    else
      local argv = compare.unexplained(tree, asked.runs)
      assert(not argv, argv and line .. "\n" .. table.concat(argv, "|"))
    end
  end)
  return { seen = seen, opaque = opaque, unknown = unknown, accepted = accepted }
end

describe("lines of every construct", function()
  it("run nothing that the grammar does not hold", function()
    local gen = generator.new(12)
    local counts = check_all(200, 6000, function() return gen:line() end)
    -- What zsh takes, the grammar takes.
    assert(counts.accepted > 0.85 * counts.seen)
    assert(counts.opaque < 0.005 * counts.seen, counts.opaque)
    assert(counts.unknown < 0.03 * counts.seen, counts.unknown)
  end)
end)

describe("a line that does not end", function()
  it("is ended with all that it started, and the lines behind it run", function()
    -- The shell holds the pipe open that its own child reads to the end.
    local lines = { "f a", "f b; coproc while read x; do :; done; wait; h b", "f d" }
    local asked = judge.ask(lines, nil, 1)
    assert.same({ { "f", "a" } }, asked[1].runs)
    assert.same({ { "f", "b" } }, asked[2].runs)
    assert.is_true(asked[2].ended)
    assert.is_nil(asked[1].ended)
    assert.is_nil(asked[3].ended)
    assert.same({ { "f", "d" } }, asked[3].runs)
  end)
end)
