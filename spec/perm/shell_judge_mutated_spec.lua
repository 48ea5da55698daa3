-- Generated lines with random changes: the property of shell_judge_spec where quotes and brackets no
-- longer match.
local ast = require "efr.perm.ast"
local compare = require "spec.perm.shell_compare"
local generator = require "spec.perm.shell_generator"
local shell = require "efr.perm.shell"

describe("broken lines", function()
  it("run nothing that the grammar does not hold", function()
    local gen = generator.new(13)
    local held = 0
    compare.each(100, 5000, function()
      return (gen:mutate(gen:line()):gsub("%z", ""))
    end, function(line, asked)
      local tree = shell.parse(line)
      if tree and not ast.has_unknown(tree) then
        local argv = compare.unexplained(tree, asked.runs)
        assert(not argv, argv and line .. "\n" .. table.concat(argv, "|"))
        held = held + 1
      end
    end)
    assert(held > 20)
  end)
end)
