-- What goes up and what stays below, beyond the golden turns.

local support = require "spec.cli.support"

local transcript = require "efr.cli.view.transcript"
local turn = require "efr.cli.view.turn"

local T <const> = "0199a000-0000-7000-8000-000000000001"

local function new(answers)
  local state = turn.new({ id = T, now_ms = 0, answers = answers })
  local seq = 0
  local function event(fields)
    seq, fields.turn_id = seq + 1, T
    assert(state:event({ seq = seq, event = fields }, 0))
  end
  event({ kind = "turn_started", cwd = "/" })
  return state, transcript.new(state), event
end

local function context(more)
  local ctx = {
    cols = 60, lines = 10, now_ms = 0, tick = 0, motion = false,
    diff_lines = 50, turn_summary = false, answers = true,
  }
  for name, value in pairs(more or {}) do
    ctx[name] = value
  end
  return ctx
end

local function tall_diff()
  local lines = { "--- a", "+++ b", "@@ -0,0 +1,20 @@" }
  for i = 1, 20 do
    lines[#lines + 1] = "+line " .. i
  end
  return table.concat(lines, "\n") .. "\n"
end

local function frame(page, ctx)
  local commit, below = page:frame(ctx)
  return support.dump(commit), support.dump(below), #commit, #below
end

describe("cli.view.transcript", function()
  it("commits a card that is taller than the screen and keeps its keys row live", function()
    local _, page, event = new(true)
    event({
      kind = "approval_requested", call_id = "c", tool = "edit", summary = "edit a",
      diff_preview = tall_diff(),
    })
    local up, below, rows = frame(page, context())
    assert.equal(23, rows)
    assert.matches("allow this edit", up)
    assert.matches("^{muted:│ }{bold:y}", below)
    up = frame(page, context())
    assert.equal("", up)
    event({ kind = "approval_resolved", call_id = "c", decision = "deny" })
    up, below = frame(page, context())
    assert.equal("{error:✗ }{muted:denied}\n", up)
    assert.matches("running edit", below)
  end)

  it("shows no spinner while it asks here, and one when another client must answer", function()
    for _, answers in ipairs({ true, false }) do
      local _, page, event = new(answers)
      event({ kind = "approval_requested", call_id = "c", tool = "shell", summary = "ls" })
      local _, below = frame(page, context({ answers = answers }))
      assert.equal(answers, below:find("y", 1, true) ~= nil and below:find("•", 1, true) == nil)
      assert.equal(not answers, below:find("waiting for another client", 1, true) ~= nil)
    end
  end)

  it("puts no blank row between notes", function()
    local state, page = new(true)
    state:note("one")
    state:note("two")
    assert.equal("{muted:one}\n{muted:two}\n", (frame(page, context())))
  end)

  it("ends open blocks with the turn", function()
    local _, page, event = new(true)
    event({ kind = "tool_call_started", call_id = "c", tool = "shell", input = { command = "x" } })
    event({ kind = "assistant_message_updated", index = 3, offset = 0, delta = "half a" })
    local up, below = frame(page, context())
    assert.equal("", up)
    assert.matches("half a", below)
    event({ kind = "turn_cancelled" })
    local _, rest, _, left = frame(page, context())
    assert.same({ "", 0 }, { rest, left })
  end)

  it("says what efr can undo and counts one file in the singular", function()
    local _, page, event = new(true)
    event({
      kind = "turn_completed", undo = { available = true },
      changes = { files = { { path = "a", kind = "added", added = 3 } }, added = 3 },
    })
    assert.equal("{muted:1 file changed}{muted:,}{success: +3}"
      .. "{muted:; efr undo reverts this turn}\n", (frame(page, context())))
  end)

  it("shows each kind of refusal", function()
    for words, refusal in pairs({
      ["refused: no (floor)"] = { kind = "floor", reason = "no" },
      ["refused: bad"] = { kind = "input", reason = "bad" },
      ["did not run"] = { kind = "interrupted", reason = "the turn was interrupted" },
    }) do
      local _, page, event = new(true)
      event({ kind = "tool_call_started", call_id = "c", tool = "x", input = {} })
      event({ kind = "tool_call_completed", call_id = "c", is_error = true, refusal = refusal })
      assert.is_truthy(frame(page, context()):find("{error:" .. words .. "}", 1, true))
    end
  end)
end)
