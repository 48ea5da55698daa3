local demo = require "efr.model.demo"

local GOOD <const> = {
  { "FAILED: three words were counted as 6\n[exit code 1, cwd /p]", true },
  { "count=0\n    count=$((count + 2))\n", false },
  { "Success. Replaced 1 match in /p/words.sh.", false },
  { "ok: three words are 3\n[exit code 0, cwd /p]", false },
  { "The user denied the shell call; it did not run.", true },
}

local function request(call, result)
  local block = { kind = "text", text = ", fix the test" }
  if result then
    block = { kind = "tool_result", output = result[1], is_error = result[2] }
  end
  return { call = call, messages = { { role = "user", content = { block } } } }
end

describe("model.demo", function()
  it("goes through its steps when each result is right", function()
    local tools = {}
    for call = 0, 5 do
      local answer = demo.answer(request(call, GOOD[call]))
      tools[#tools + 1] = answer.calls and answer.calls[1].name
    end
    assert.same({ "shell", "read_file", "edit", "shell", "shell" }, tools)
    assert.matches("^Done", demo.answer(request(5, GOOD[5])).text)
  end)

  it("stops at a result that is wrong and shows it", function()
    for call = 1, 5 do
      local answer = demo.answer(request(call, { "something else", false }))
      assert.is_nil(answer.calls)
      assert.matches("stops here", answer.text)
      assert.matches("something else", answer.text)
    end
    -- A write outside that went through is the worst of them.
    local answer = demo.answer(request(5, { "[exit code 0, cwd /home/u/words]", false }))
    assert.matches("Expected: a write outside the project that is denied", answer.text)
  end)

  it("says so when it is asked again", function()
    assert.is_nil(demo.answer(request(7, { "x", false })).calls)
  end)
end)
