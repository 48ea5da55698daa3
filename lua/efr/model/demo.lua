-- Owns: the script that the provider `scripted` plays when no file is set: ./dev demo.
-- Must not know: how efr works; it sees what a model sees. Pure. Runs in efrd.
--
-- The project is tests/demo/project: words.sh counts wrongly and test.sh shows it. Each answer is
-- decided from the results of the calls before. A result that is not as it must be ends the turn
-- with the result and what was expected, so that a demo that went wrong shows it.

local M = {}

local OUTSIDE <const> = "efr-demo-outside.txt"

-- The newest message's results, joined, and whether one of them failed.
local function results_of(request)
  local last = request.messages[#request.messages]
  local parts, failed = {}, false
  for _, block in ipairs(last.content) do
    if block.kind == "tool_result" then
      parts[#parts + 1] = block.output
      failed = failed or block.is_error
    end
  end
  return table.concat(parts, "\n"), failed
end

local function say(text)
  return { text = text, chunk = 6, delay_ms = 12 }
end

local function call(text, ...)
  local answer = say(text)
  answer.calls = { ... }
  return answer
end

local function shell(command)
  return { name = "shell", input = { command = command } }
end

local function wrong(expected, output)
  return say(("The demo stops here: something is not as it must be.\n\nExpected: %s.\n"
    .. "The result was:\n\n```\n%s\n```"):format(expected, output))
end

local function has(text, part)
  return text:find(part, 1, true) ~= nil
end

local STEPS = {}

STEPS[1] = function()
  return call("I run the test first.", shell("sh ./test.sh"))
end

STEPS[2] = function(output, failed)
  if not failed or not has(output, "counted as 6") then
    return wrong("a failing test that says `counted as 6`; run the demo in its own project", output)
  end
  return call("It fails: three words are counted as 6. I read the script.",
    { name = "read_file", input = { path = "words.sh" } })
end

STEPS[3] = function(output, failed)
  if failed or not has(output, "count=$((count + 2))") then
    return wrong("words.sh with the line that adds 2", output)
  end
  return call("Each word adds 2 instead of 1. I change that line.", {
    name = "edit",
    input = {
      path = "words.sh",
      old_string = "count=$((count + 2))",
      new_string = "count=$((count + 1))",
    },
  })
end

STEPS[4] = function(output, failed)
  if failed or not has(output, "Replaced 1 match") then
    return wrong("an edit of one place", output)
  end
  return call("Now the test again, in the sandbox.", shell("sh ./test.sh"))
end

STEPS[5] = function(output, failed)
  if failed or not has(output, "ok: three words are 3") then
    return wrong("a test that passes", output)
  end
  return call("It passes. A command that writes outside the project asks first; I try it.",
    shell("print hello > ~/" .. OUTSIDE))
end

STEPS[6] = function(output, failed)
  if not failed or not has(output, "The user denied the shell call") then
    return wrong("a write outside the project that is denied: answer n", output)
  end
  return say("Done.\n\n"
    .. "- `words.sh` added 2 for each word; now it adds 1, and `test.sh` passes.\n"
    .. "- Every command ran in the sandbox. The write to your home directory was asked about, and"
    .. " the answer was no, so the file `~/" .. OUTSIDE .. "` does not exist.\n")
end

---The answer to a request, as a script of the provider `scripted` gives it.
---@param request table
---@return table
function M.answer(request)
  local step = STEPS[request.call + 1]
  if not step then return say("The demo has no more steps.") end
  return step(results_of(request))
end

return M
