-- A command that waits, in the view: what is asked for, what is shown while it is typed, what stays.
require "spec.cli.support"

local plain = require "efr.cli.view.plain"
local rows = require "efr.cli.view.rows"
local transcript = require "efr.cli.view.transcript"
local turn = require "efr.cli.view.turn"
local waits = require "efr.cli.view.waits"

local ID <const> = "0199a000-0000-7000-8000-000000000001"
local CTX <const> = {
  cols = 90, lines = 40, now_ms = 0, tick = 0, motion = false, diff_lines = 20, turn_summary = false, answers = true,
}

local function start(opts, launch)
  opts.id, opts.now_ms = ID, 0
  local state, seq = turn.new(opts), 0
  local function event(fields)
    seq = seq + 1
    fields.turn_id = fields.turn_id or ID
    if fields.turn_id == "" then fields.turn_id = nil end
    assert(state:event({ seq = seq, event = fields }, 0))
  end
  event { kind = "turn_started", cwd = "/p" }
  event { kind = "tool_call_started", call_id = "c", tool = "shell", input = { command = "x" }, launch = launch }
  event { kind = "tool_call_output_updated", call_id = "c", tail = "first\nGo on? ", bytes = 13 }
  return state, event
end

local function text_of(list)
  local out = {}
  for i, row in ipairs(list) do out[i] = rows.plain(row) end
  return table.concat(out, "\n")
end

local function live(page) return text_of(select(2, page:frame(CTX))) end

describe("a command that waits", function()
  it("visibly shows what is typed, and that it was sent", function()
    local state, event = start({ answers = true })
    local page = transcript.new(state)
    event { kind = "tool_call_input_changed", call_id = "c", input = "visible" }
    local item = waits.open(state)
    item.typed = "yes\27[2J"
    local shown = live(page)
    assert.truthy(shown:find("Go on?", 1, true))
    assert.truthy(shown:find("the agent sees it if the program shows it", 1, true))
    assert.truthy(shown:find("> yes", 1, true))
    assert.is_nil(shown:find("\27", 1, true))
    item.state = "sent"
    event { kind = "tool_call_input_changed", call_id = "c", input = "none" }
    event { kind = "tool_call_completed", call_id = "c", output = "ok\n[exit code 0, cwd /p]", exit_code = 0 }
    assert.truthy(text_of((page:frame(CTX))):find("answer sent", 1, true))
    assert.is_nil(waits.open(state))
  end)

  it("for hidden input shows nothing of it", function()
    for _, row in ipairs { { "hidden", nil, "it is not shown" }, { "visible", true, "your typing is not shown" } } do
      local state, event = start({ answers = true })
      local page = transcript.new(state)
      event { kind = "tool_call_input_changed", call_id = "c", input = row[1], looks_secret = row[2] }
      waits.open(state).typed = "hunter2"
      local shown = live(page):gsub("%s+", " ")
      assert.truthy(shown:find(row[3], 1, true), shown)
      assert.is_nil(shown:find("hunter2", 1, true))
      event { kind = "tool_call_completed", call_id = "c", output = "x", exit_code = 0 }
      assert.is_nil(waits.open(state))
      assert.is_nil(text_of((page:frame(CTX))):find("hunter2", 1, true))
    end
  end)

  it("in the sandbox for a secret is not asked about", function()
    for _, fields in ipairs { { input = "hidden" }, { input = "visible", looks_secret = true } } do
      local state, event = start({ answers = true }, { kind = "contained" })
      fields.kind, fields.call_id = "tool_call_input_changed", "c"
      event(fields)
      assert.is_nil(waits.open(state))
      assert.truthy(live(transcript.new(state)):find("does not type secrets into the sandbox", 1, true))
    end
  end)

  it("where nobody can type is one note, and in a record none", function()
    local state, event = start({ answers = false })
    for _, input in ipairs { "hidden", "none", "visible", "none" } do
      event { kind = "tool_call_input_changed", call_id = "c", input = input }
    end
    local _, count = live(transcript.new(state)):gsub("cannot ask for here", "")
    assert.equal(1, count)
    state, event = start({ answers = false, past = true })
    event { kind = "tool_call_input_changed", call_id = "c", input = "hidden" }
    assert.is_nil(live(transcript.new(state)):find("cannot ask", 1, true))
  end)

  it("after its call answered is asked about until it ends", function()
    local state, event = start({ answers = true })
    event { kind = "tool_call_completed", call_id = "c", output = "[still runs]" }
    event { kind = "shell_command_input_changed", call_id = "c", pty_id = "p", input = "visible", turn_id = "" }
    local page = transcript.new(state)
    assert.truthy(live(page):find("Go on?", 1, true))
    assert.is_true(waits.open(state).late)
    event { kind = "shell_command_ended", call_id = "c", pty_id = "p", turn_id = "" }
    assert.is_nil(waits.open(state))
  end)

  it("is asked on the error stream where the reply goes into a pipe", function()
    local state, event = start({ answers = true })
    local out, err = {}, {}
    local view = plain.new(state, {
      out = function(bytes) out[#out + 1] = bytes end, err = function(bytes) err[#err + 1] = bytes end,
      diff_lines = 20,
    })
    event { kind = "tool_call_input_changed", call_id = "c", input = "visible" }
    view:update(0)
    waits.open(state).typed = "ye"
    view:update(0)
    local said = table.concat(err)
    assert.truthy(said:find("Go on?\n", 1, true))
    assert.truthy(said:find("> ye", 1, true))
    waits.open(state).state = "sent"
    view:update(0)
    view:update(0)
    local _, count = table.concat(err):gsub("answer sent", "")
    assert.equal(1, count)
    assert.equal("", table.concat(out))
  end)
end)
