-- Specs of the rules by which facts about a terminal become a wait, and of the words of prompts.
local waits = require "efr.shell.waits"

-- Facts of a program that reads in line mode after a prompt, with changes.
local function classify(changes)
  local facts = {
    quiet_ms = 300, echo = true, canonical = true, reads = true, unknown = false, row = "Name: ",
    alternate = false,
  }
  for name, value in pairs(changes) do facts[name] = value end
  local kind, secret = waits.classify(facts)
  return kind and kind .. (secret and "!" or "") or "none"
end

describe("the kind of a wait", function()
  for _, row in ipairs {
    { "visible", {} },
    { "none", { reads = false } },
    { "hidden", { echo = false } },
    { "hidden", { echo = false, row = "" } },
    -- Echo off alone is no wait: `stty -echo; make`.
    { "none", { echo = false, reads = false, quiet_ms = 99999 } },
    { "none", { echo = false, reads = false, unknown = true, quiet_ms = 999 } },
    { "hidden", { echo = false, reads = false, unknown = true, quiet_ms = 1000 } },
    { "none", { reads = false, unknown = true, quiet_ms = 2999, row = "Working" } },
    { "visible", { reads = false, unknown = true, quiet_ms = 3000, row = "Working" } },
    { "none", { reads = false, unknown = true, quiet_ms = 499, row = "Go on? [y/N]" } },
    { "visible", { reads = false, unknown = true, quiet_ms = 500, row = "Go on? [y/N]" } },
    { "visible", { reads = false, unknown = true, quiet_ms = 500 } },
    { "none", { reads = false, unknown = true, quiet_ms = 99999, row = " " } },
    { "visible", { canonical = false } },
    { "visible", { canonical = false, echo = false } },
    { "full_screen", { canonical = false, echo = false, alternate = true } },
    { "keys", { canonical = false, echo = false, row = "" } },
    { "keys", { canonical = false, echo = false, no_cursor = true } },
    { "input", { row = "" } },
    { "input", { shell_line = true, row = ">>> " } },
    { "input", { shell_line = true, row = ">>> ", canonical = false } },
    { "hidden", { shell_line = true, echo = false } },
    { "visible", { row = "Password: " } },
    { "visible!", { row = "Password: ", canonical = false } },
    { "visible!", { row = "Password: ", contained = true } },
    { "visible", { contained = true } },
  } do
    local words = {}
    for name, value in pairs(row[2]) do words[#words + 1] = name .. "=" .. tostring(value) end
    table.sort(words)
    it(("is %s for %s"):format(row[1], table.concat(words, " ")), function()
      assert.equal(row[1], classify(row[2]))
    end)
  end
end)

describe("a prompt", function()
  it("names a secret", function()
    for _, row in ipairs {
      "Password: ", "[sudo] PASSWORD for x:", "Enter passphrase for key '/x':", "Passcode? ",
      "PIN: ", "Enter your pin ", "Verification code: ", "One-time code: ", "one time  code", "a one-time password",
    } do
      assert.is_true(waits.names_secret(row), row)
    end
  end)

  it("names none", function()
    for _, row in ipairs { "Name: ", "spinning...", "Pinned version? ", "opinion: ", "code: ", "pass: ", "" } do
      assert.is_false(waits.names_secret(row), row)
    end
  end)

  it("reads like a question", function()
    for _, row in ipairs { "Go on? [y/N]", "(Y/n)", "sure [yes/no]:", "(yes/NO) ", "Name: ", "What? " } do
      assert.is_true(waits.is_question(row), row)
    end
    for _, row in ipairs { "Compiling x", "50%", "name:", "what?", "" } do
      assert.is_false(waits.is_question(row), row)
    end
  end)
end)

describe("the cursor's row", function()
  local function cells(text)
    local out = {}
    for char in text:gmatch(utf8.charpattern) do
      out[#out + 1] = { text = char, wide = char == "界" or nil }
    end
    return out
  end

  local function row(rows, at, col, alternate)
    return waits.cursor_row {
      rows = rows, cursor = { row = at, col = col }, alternate_screen = alternate or false,
    }
  end

  it("ends at the cursor, with the blanks that were printed", function()
    assert.equal("Go on? ", (row({ { cells = cells("x") }, { cells = cells("Go on?") } }, 1, 7)))
    assert.equal("ab", (row({ { cells = cells("abcd") } }, 0, 2)))
    assert.equal("界a", (row({ { cells = cells("界ab") } }, 0, 3)))
    assert.equal("", (row({}, 0, 0)))
  end)

  it("begins in the rows above that run on", function()
    local rows = { { cells = cells("before") }, { cells = cells("Pass"), wrapped = true },
      { cells = cells("word: ") } }
    assert.equal("Password: ", (row(rows, 2, 6)))
    assert.is_true(select(2, row(rows, 2, 6, true)))
  end)
end)
