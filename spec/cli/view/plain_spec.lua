-- The view in a pipe: stdout holds the reply only.

require "spec.cli.support"

local plain = require "efr.cli.view.plain"
local turn = require "efr.cli.view.turn"
local turns = require "spec.data.turns"

local function play(name)
  local out, err = {}, {}
  local state = turn.new({ id = turns.id, now_ms = 0, answers = false })
  local view = plain.new(state, {
    out = function(bytes) out[#out + 1] = bytes end,
    err = function(bytes) err[#err + 1] = bytes end,
    diff_lines = 20, turn_summary = true, home = "/home/u",
  })
  local seq = 0
  for _, case in ipairs(turns) do
    for _, step in ipairs(case[1] == name and case[2] or {}) do
      if step.draft then
        state:draft({ turn_id = turns.id, after_seq = seq, draft = step.draft }, 0)
      elseif step.kind then
        seq = seq + 1
        assert(state:event({ seq = seq, event = step }, 0))
      end
      view:update(0)
    end
  end
  return table.concat(out), table.concat(err)
end

describe("cli.view.plain", function()
  it("writes the reply as it came to stdout and the rest to stderr", function()
    local out, err = play("simple")
    assert.equal("Hello.\n\nThe test **passes** now.\n", out)
    assert.matches("^done in", err)
  end)

  it("says once why a turn runs in another mode", function()
    local state = turn.new({ id = turns.id, now_ms = 0, answers = false })
    local err = {}
    local view = plain.new(state, {
      out = function() end, err = function(bytes) err[#err + 1] = bytes end,
      diff_lines = 20, turn_summary = true, home = "/home/u",
    })
    assert(state:event({ seq = 1, event = {
      kind = "turn_started", turn_id = turns.id, cwd = "/home/u", settings = {
        mode = "cautious", fallback = { asked = "auto", reason = "the sandbox is not available: x" },
      },
    } }, 0))
    for _ = 1, 3 do view:update(0) end
    local _, count = table.concat(err):gsub("this turn runs as cautious: the sandbox is not "
      .. "available: x; what mends it: efr sandbox check", "")
    assert.equal(1, count)
  end)

  it("writes streamed text once", function()
    local out = play("drafts")
    assert.equal("The first line\nand the open line goes on.\n", out)
  end)

  it("wraps nothing and keeps the order of question, answer and call", function()
    local out, err = play("question")
    assert.equal("", out)
    local card = assert(err:find("? allow this command", 1, true))
    local answer = assert(err:find("✓ allowed", card, true))
    assert.is_truthy(err:find("· $ sudo ./scripts/setup.sh", answer, true))
    assert.is_truthy(err:find("--and-another-one /usr/local/share/things\n", 1, true))
    assert.is_truthy(err:find("waiting for another client to answer", 1, true))
  end)

  it("shows what a guarded delete takes away", function()
    local question = require "efr.cli.view.question"
    local card, keys = question.card({ tool = "shell", summary = "rm -rf ~/x", reasons = { "r" }, guard = {
      seconds = 60, undo = false, deletes = { "/home/u/x: a project or above one" } } },
      { cols = 80, diff_lines = 0, answers = true })
    local text = {}
    card[#card + 1] = keys
    for _, row in ipairs(card) do
      for _, part in ipairs(row) do text[#text + 1] = type(part) == "table" and part[1] or part end
      text[#text + 1] = "\n"
    end
    text = table.concat(text)
    for _, words in ipairs { "? delete this?", "rm -rf ~/x", "deletes: /home/u/x: a project or above one",
      "efr: undo cannot bring this back", "y delete · n keep (no in 60 s)" } do
      assert.is_truthy(text:find(words, 1, true), text)
    end
  end)

  it("lets no control character through", function()
    local out, err = play("hostile")
    assert.is_nil((out .. err):find("[\0-\8\11-\31\127]"))
    assert.is_nil((out .. err):find("\u{202E}", 1, true))
  end)
end)
