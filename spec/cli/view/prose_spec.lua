-- Streaming: how the text was cut into pieces never changes what is committed.

local support = require "spec.cli.support"

local prose = require "efr.cli.view.prose"
local turn = require "efr.cli.view.turn"

local ID <const> = "0199a000-0000-7000-8000-000000000001"

local WORDS <const> = {
  "a", "word", "\n", "\n\n", " ", "   ", "宽字", "e\u{301}", "\t", "\27[2J", "\r\n",
  ("x"):rep(50), "🙂",
}

local function random_text(count)
  local parts = {}
  for i = 1, count do
    parts[i] = WORDS[math.random(#WORDS)] .. (math.random(3) == 1 and " " or "")
  end
  return table.concat(parts)
end

-- Offsets at which a client may be handed a piece: between characters.
local function cuts(s)
  local list, at = { 0 }, 0
  while at < #s do
    for _ = 1, math.random(1, 9) do
      at = (utf8.offset(s, 2, at + 1) or #s + 1) - 1
      if at >= #s then
        break
      end
    end
    list[#list + 1] = at
  end
  return list
end

local function whole(s, cols)
  return support.dump(prose.new({}):feed({ text = s, done = true }, cols))
end

describe("cli.view.prose", function()
  it("commits the same rows for any split of a text", function()
    math.randomseed(7)
    for round = 1, 300 do
      local s, cols = random_text(math.random(1, 40)), math.random(8, 60)
      local writer, block, out = prose.new({}), { text = "", done = false }, {}
      local list = cuts(s)
      for i = 2, #list do
        block.text = s:sub(1, list[i])
        out[#out + 1] = support.dump(writer:feed(block, cols))
      end
      block.text, block.done = s, true
      out[#out + 1] = support.dump(writer:feed(block, cols))
      assert.equal(whole(s, cols), table.concat(out), "round " .. round)
    end
  end)

  it("waits for the rest of a character", function()
    local writer, block = prose.new({}), { text = "a\xF0\x9F", done = false }
    writer:feed(block, 20)
    assert.equal("a\n", support.dump(writer:live_rows(20)))
    block.text, block.done = "a🙂", true
    assert.equal("a🙂\n", support.dump(writer:feed(block, 20)))
  end)

  it("shows no blank rows at the start or the end", function()
    assert.equal("a\n\nb\n", whole("\n\n a\n\n\nb\n\n\n", 20):gsub("^ ", ""))
  end)
end)

describe("cli.view.turn", function()
  local function update(state, offset, delta, seq)
    local event = { kind = "assistant_message_updated", turn_id = ID, index = 0 }
    event.offset, event.delta = offset, delta
    assert(state:event({ seq = seq, event = event }, 0))
  end

  it("merges drafts and updates by byte offset into the whole text", function()
    math.randomseed(11)
    for _ = 1, 300 do
      local s = random_text(20)
      local state = turn.new({ id = ID, now_ms = 0, answers = false })
      local started = { kind = "turn_started", turn_id = ID, cwd = "/" }
      assert(state:event({ seq = 1, event = started }, 0))
      local list, seq, persisted = cuts(s), 1, 0
      for i = 2, #list do
        local from, to = list[math.random(math.max(1, i - 3), i - 1)], list[i]
        if math.random(3) == 1 then
          seq = seq + 1
          update(state, persisted, s:sub(persisted + 1, to), seq)
          persisted = to
        elseif math.random(8) > 1 then -- a draft may be lost
          local draft = { kind = "text", index = 0, offset = from, delta = s:sub(from + 1, to) }
          state:draft({ turn_id = ID, after_seq = seq, draft = draft }, 0)
        end
        local held = state.blocks[1] and state.blocks[1].text or ""
        assert.equal(s:sub(1, #held), held)
      end
      update(state, persisted, s:sub(persisted + 1), seq + 1)
      assert.equal(s, state.blocks[1] and state.blocks[1].text or "")
    end
  end)

  it("ignores drafts of another turn and of a message that is complete", function()
    local state = turn.new({ id = ID, now_ms = 0, answers = false })
    assert(state:event({ seq = 1, event = { kind = "turn_started", turn_id = ID, cwd = "/" } }, 0))
    local done = { kind = "assistant_message_completed", turn_id = ID, index = 0, text = "abc" }
    assert(state:event({ seq = 2, event = done }, 0))
    local draft = { kind = "text", index = 0, offset = 3, delta = "d" }
    state:draft({ turn_id = ID, after_seq = 1, draft = draft }, 0)
    draft = { kind = "text", index = 1, offset = 0, delta = "d" }
    state:draft({ turn_id = "other", after_seq = 2, draft = draft }, 0)
    assert.equal("abc", state.blocks[1].text)
    assert.equal(1, #state.blocks)
  end)

  it("refuses a known kind with a malformed body and passes an unknown kind", function()
    local state = turn.new({ id = ID, now_ms = 0, answers = false })
    local ok, why = state:event(
      { seq = 1, event = { kind = "assistant_message_completed", turn_id = ID, index = "0" } }, 0)
    assert.is_nil(ok)
    assert.matches("assistant_message_completed", why)
    assert.is_true(state:event({ seq = 5, event = { kind = "of_tomorrow", turn_id = ID } }, 0))
    assert.equal(5, state.seq)
  end)

  it("stops the clock while it asks here", function()
    local state = turn.new({ id = ID, now_ms = 0, answers = true })
    assert(state:event({ seq = 1, event = { kind = "turn_started", turn_id = ID, cwd = "/" } }, 0))
    local asked =
      { kind = "approval_requested", turn_id = ID, call_id = "c", summary = "ls", tool = "shell" }
    assert(state:event({ seq = 2, event = asked }, 2000))
    assert.equal(2, state:seconds(60000))
    local answered = { kind = "approval_resolved", turn_id = ID, call_id = "c", decision = "allow" }
    assert(state:event({ seq = 3, event = answered }, 60000))
    assert.equal(3, state:seconds(61000))
  end)
end)
