-- Random turns on a random terminal: nothing raises, what went up never changes, and only safe text
-- reaches the screen.

require "spec.cli.support"

local live = require "efr.cli.view.live"
local model = require "spec.cli.screen_model"
local rows = require "efr.cli.view.rows"
local style = require "efr.cli.view.style"
local transcript = require "efr.cli.view.transcript"
local turn = require "efr.cli.view.turn"

local T <const> = "0199a000-0000-7000-8000-000000000001"

local BITS <const> = {
  "word ", "\n", "宽字", "\27[2J", "\r", "\t", ("long"):rep(20), "\u{202E}", "\8", "e\u{301}", "'\"$`",
}

local function text()
  local parts = {}
  for i = 1, math.random(0, 12) do
    parts[i] = BITS[math.random(#BITS)]
  end
  return table.concat(parts)
end

local function call_id()
  return "c" .. math.random(4)
end

local TOOLS <const> = { "shell", "read_file", "edit", "strange_tool" }

local function changes()
  if math.random(3) > 1 then
    return nil
  end
  return { files = { { path = text(), kind = "renamed", from = text(), added = 3, removed = 2 } } }
end

local MAKE = {
  function()
    return { kind = "assistant_message_completed", index = math.random(3), text = text() }
  end,
  function()
    local tool = TOOLS[math.random(#TOOLS)]
    local input = { command = text(), path = "/home/u/" .. text() }
    return { kind = "tool_call_started", call_id = call_id(), tool = tool, input = input }
  end,
  function()
    return { kind = "tool_call_output_updated", call_id = call_id(), tail = text(), bytes = 3 }
  end,
  function()
    return {
      kind = "tool_call_completed", call_id = call_id(), output = text(), is_error = true,
      exit_code = math.random(0, 2), changes = changes(),
      diff = math.random(2) == 1 and "@@ -1 +1 @@\n-" .. text() .. "\n+" .. text() or nil,
    }
  end,
  function()
    return {
      kind = "approval_requested", call_id = call_id(), tool = TOOLS[math.random(#TOOLS)],
      summary = text(), reasons = { text() },
    }
  end,
  function()
    local decision = math.random(2) == 1 and "allow" or "deny"
    return { kind = "approval_resolved", call_id = call_id(), decision = decision }
  end,
  function()
    return { kind = "of_tomorrow", x = text() }
  end,
}

local function play(seed)
  math.randomseed(seed)
  local cols, lines = math.random(20, 90), math.random(4, 30)
  local state = turn.new({ id = T, now_ms = 0, answers = math.random(2) == 1 })
  local page, screen = transcript.new(state), model.new(cols)
  local zone = live.new(style.new({ enabled = true, colour = math.random(2) == 1 }))
  local ctx = {
    cols = cols, lines = lines, now_ms = 0, tick = 0, motion = true, diff_lines = 3,
    turn_summary = true, answers = state.answers, home = "/home/u",
  }
  local want, seq = {}, 0
  local function send(event)
    seq, event.turn_id = seq + 1, T
    assert(state:event({ seq = seq, event = event }, ctx.now_ms))
    local commit, below = page:frame(ctx)
    for _, row in ipairs(commit) do
      want[#want + 1] = rows.plain(row)
    end
    screen:write(zone:frame(commit, below, ctx))
  end
  send({ kind = "turn_started", cwd = "/" })
  for _ = 1, math.random(30) do
    ctx.now_ms, ctx.tick = ctx.now_ms + math.random(3000), ctx.tick + 1
    send(MAKE[math.random(#MAKE)]())
  end
  send({ kind = "turn_completed", changes = changes() })
  screen:write(zone:finish(cols))
  return table.concat(want), table.concat(screen.rows)
end

describe("cli.view", function()
  it("shows any turn on any screen", function()
    for seed = 1, 150 do
      local want, got = play(seed)
      assert.equal(want, got, "seed " .. seed)
      assert.is_nil(got:find("[\0-\31\127]"))
      assert.is_nil(got:find("\u{202E}", 1, true))
    end
  end)

  it("refuses a field of the wrong type", function()
    local state = turn.new({ id = T, now_ms = 0, answers = false })
    local event = { kind = "turn_completed", turn_id = T, changes = "many" }
    local ok, why = state:event({ seq = 1, event = event }, 0)
    assert.is_nil(ok)
    assert.matches("turn_completed has no valid changes", why)
  end)
end)
