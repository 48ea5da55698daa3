-- Whole turns as rows, at two widths, against golden files.

local support = require "spec.cli.support"

local transcript = require "efr.cli.view.transcript"
local turn = require "efr.cli.view.turn"
local turns = require "spec.data.turns"

local function play(steps, cols)
  local state = turn.new({ id = turns.id, now_ms = 0, answers = true })
  local page = transcript.new(state)
  local ctx = {
    cols = cols, lines = 24, now_ms = 0, tick = 0, motion = true,
    diff_lines = 20, turn_summary = true, answers = true, home = "/home/u",
  }
  local out, seq = {}, 0
  local function frame()
    local commit, live = page:frame(ctx)
    out[#out + 1] = support.dump(commit)
    if #live > 0 then
      out[#out + 1] = ("--- live at %ds\n%s---\n"):format(ctx.now_ms // 1000, support.dump(live))
    end
  end
  for _, step in ipairs(steps) do
    if step.frame then
      ctx.now_ms = step.frame * 1000
      frame()
    elseif step.draft then
      state:draft({ turn_id = turns.id, after_seq = seq, draft = step.draft }, ctx.now_ms)
    else
      seq = seq + 1
      assert(state:event({ seq = seq, event = step }, ctx.now_ms))
    end
  end
  frame()
  return table.concat(out)
end

describe("cli.view", function()
  for _, case in ipairs(turns) do
    for _, cols in ipairs({ 40, 100 }) do
      it(("shows the turn %q at %d columns"):format(case[1], cols), function()
        local got = play(case[2], cols)
        assert.equal(support.golden(("view/%s.%d.txt"):format(case[1], cols), got), got)
      end)
    end
  end
end)
