-- Every rule of the grammar: one text that it takes and one that it refuses, and work that grows in
-- step with the line. Work is counted: how often any rule is tried, and what is made.
local lpeg = require "lpeg"
local rows = require "spec.data.shell_rules"
local shell = require "efr.perm.shell"

describe("the rules of the grammar", function()
  it("all have a row", function()
    local with_row = {}
    for _, row in ipairs(rows) do
      with_row[row[1]] = true
    end
    for _, name in ipairs(shell.rules()) do
      assert(with_row[name], "no row for " .. name)
      with_row[name] = nil
    end
    assert.is_nil(next(with_row))
  end)

  it("are made for the first line and not for a start", function()
    local before = package.loaded["efr.perm.shell"]
    package.loaded["efr.perm.shell"] = nil
    collectgarbage()
    collectgarbage("stop")
    local kib = collectgarbage("count")
    local again = require "efr.perm.shell"
    kib = collectgarbage("count") - kib
    collectgarbage("restart")
    assert.is_true(kib < 256, kib .. " KiB")
    assert.equal("simple", again.parse("echo a").items[1].kind)
    package.loaded["efr.perm.shell"] = before
  end)

  for _, row in ipairs(rows) do
    local name, taken, refused, grow = table.unpack(row)
    it(name .. " takes one and refuses one", function()
      local pattern = shell.compile(name)
      local function takes(text)
        local _, why, detail = shell.parse(text, pattern)
        -- A rule without captures gives a position.
        return why == nil, detail
      end
      local ok, detail = takes(taken)
      assert(ok, detail and detail.what)
      assert.is_false((takes(refused)))
    end)

    it(name .. " costs in step with the line", function()
      local steps = 0
      local counted = shell.compile("any", function(rule)
        return lpeg.Cmt(lpeg.P(true), function() steps = steps + 1 return true end) * rule
      end)
      local function count(times)
        steps = 0
        local line = grow[1] .. grow[2]:rep(times) .. grow[3]
        local tree, why, detail = shell.parse(line, counted, counted)
        assert(tree, ("%s %s: %s"):format(line:sub(1, 60), why, detail and detail.what))
        return steps
      end
      local base, once, twice = count(1), count(41), count(81)
      assert(twice - base <= 2 * (once - base) + 4, ("%d %d %d"):format(base, once, twice))
    end)
  end
end)
