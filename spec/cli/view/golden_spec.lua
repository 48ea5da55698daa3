-- Whole turns as rows, at two widths, against golden files.

local support = require "spec.cli.support"

local live = require "efr.cli.view.live"
local model = require "spec.cli.screen_model"
local style = require "efr.cli.view.style"
local transcript = require "efr.cli.view.transcript"
local rows = require "efr.cli.view.rows"
local turn = require "efr.cli.view.turn"
local turns = require "spec.data.turns"

-- Plays the turn; `draw` gets the rows of each frame. With `every`, each step draws one.
local function play(steps, cols, draw, every)
  local state = turn.new({ id = turns.id, now_ms = 0, answers = true })
  local page = transcript.new(state)
  local ctx = {
    cols = cols, lines = 24, now_ms = 0, tick = 0, motion = true,
    diff_lines = 20, turn_summary = true, answers = true, home = "/home/u",
  }
  local seq = 0
  local function frame()
    local commit, below = page:frame(ctx)
    draw(commit, below, ctx)
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
    if every then
      frame()
    end
  end
  frame()
end

local function written(steps, cols)
  local out = {}
  play(steps, cols, function(commit, below, ctx)
    out[#out + 1] = support.dump(commit)
    if #below > 0 then
      local words = "--- live at %ds\n%s---\n"
      out[#out + 1] = words:format(ctx.now_ms // 1000, support.dump(below))
    end
  end)
  return table.concat(out)
end

describe("cli.view", function()
  for _, case in ipairs(turns) do
    for _, cols in ipairs({ 40, 100 }) do
      it(("shows the turn %q at %d columns"):format(case[1], cols), function()
        local got = written(case[2], cols)
        assert.equal(support.golden(("view/%s.%d.txt"):format(case[1], cols), got), got)
      end)

      it(("leaves the turn %q on a screen of %d columns"):format(case[1], cols), function()
        local zone, screen = live.new(style.new({ enabled = true, colour = true })), model.new(cols)
        local want = {}
        play(case[2], cols, function(commit, below, ctx)
          for _, row in ipairs(commit) do
            want[#want + 1] = rows.plain(row)
          end
          screen:write(zone:frame(commit, below, ctx))
        end, true)
        screen:write(zone:finish(cols))
        want[#want + 1] = ""
        assert.equal(table.concat(want), table.concat(screen.rows, ""))
        assert.is_false(screen.hidden)
      end)
    end
  end
end)
