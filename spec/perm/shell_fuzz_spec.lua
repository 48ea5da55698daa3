-- Random bytes and changed lines: parse never raises, its memory is bounded, and a tree has its nodes
-- inside the line. The long size is for a run of ten minutes and more.
local ast = require "efr.perm.ast"
local generator = require "spec.perm.shell_generator"
local shell = require "efr.perm.shell"

-- Another seed tries other lines: EFR_FUZZ_SEED=$RANDOM.
local SEED <const> = math.tointeger(os.getenv("EFR_FUZZ_SEED") or "0")
local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"
local WHY <const> = { length = true, depth = true, steps = true, ["no match"] = true }

local function check(line)
  local tree, why, detail = shell.parse(line)
  if not tree then
    assert(WHY[why], ("%q: %s %s"):format(line, why, detail and detail.what))
    return
  end
  ast.walk(tree, function(node)
    if node.pos and (node.pos < 1 or node.stop > #line + 1) then
      error(("%q: %s %d-%d"):format(line, node.kind or node.t, node.pos, node.stop))
    end
    if node.kind == "word" then
      ast.literal(node)
      ast.has_glob(node)
    end
  end)
end

local SHELL <const> = " \t\n'\"`$(){}[]<>&|;\\#=~*!^?+-:/,.%@0129abfix"

describe("any bytes", function()
  it("that once raised", function()
    for _, line in ipairs { ">>|o time 1f >>|o time 11", ">o time a", ">o time" } do
      check(line)
      assert(ast.has_unknown(shell.parse(line)), line)
    end
  end)

  it("never raise", function()
    local gen = generator.new(SEED + 21)
    for _ = 1, LONG and 3400000 or 2000 do
      local bytes = {}
      for i = 1, gen:random(60) do
        bytes[i] = gen:chance(90) and SHELL:byte(gen:random(#SHELL)) or gen:random(256) - 1
      end
      check(string.char(table.unpack(bytes)))
    end
  end)

  it("never raise where a line was changed", function()
    local gen = generator.new(SEED + 22)
    for _ = 1, LONG and 680000 or 1000 do
      check(gen:mutate(gen:line()))
    end
  end)

  it("need little memory, whatever the line", function()
    local gen = generator.new(SEED + 23)
    for _ = 1, LONG and 3400 or 6 do
      local unit = gen:mutate(gen:line()):sub(1, 40)
      local line = unit:rep(65536 // math.max(#unit, 1))
      collectgarbage()
      collectgarbage("stop")
      local before = collectgarbage("count")
      check(line)
      local used = collectgarbage("count") - before
      collectgarbage("restart")
      assert(used < 64 * 1024, ("%.0f KiB for %q"):format(used, unit))
    end
  end)
end)
