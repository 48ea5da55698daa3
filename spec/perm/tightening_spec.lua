-- Rules of the user for programs that run others as another user: they refuse and ask, and open
-- nothing.
local calls = require "spec.perm.calls"
local explain = require "efr.perm.explain"

local function rule(effect, program, args)
  return { action = "execute", effect = effect,
    resource = { command = { program = program, args = args } } }
end

local function effect(line, rules, mode)
  local decision = calls.decide(line, { mode = mode or "cautious", rules = rules })
  return decision.effect, decision
end

-- The reason of the line itself.
local function of_line(decision)
  for _, reason in ipairs(decision.reasons) do
    if reason.subject:find("^run ") then return reason end
  end
end

-- Every mode in which a line could go on.
local MODES <const> = { "manual", "cautious", "auto" }

describe("rules for programs that run as another user", function()
  it("refuse", function()
    for _, mode in ipairs(MODES) do
      for _, line in ipairs { "sudo id", "/usr/bin/sudo id", "ls; sudo id", "env sudo id",
        "timeout 5 sudo id", "sudo id > $X", "echo $(sudo id)", "command sudo id" } do
        local found, decision = effect(line, { rule("deny", "sudo") }, mode)
        assert.equal("deny", found, mode .. ": " .. line)
        assert.equal("permissions.rules[0]", of_line(decision).cite, line)
      end
      assert.equal("ask", (effect("sudo id", { rule("deny", "doas") }, mode)))
      assert.equal("ask", (effect("sudo id", { rule("deny", "sudo", { "apt" }) }, mode)))
      assert.equal("deny", (effect("sudo apt update", { rule("deny", "sudo", { "apt" }) }, mode)))
    end
  end)

  it("refuse the program behind it, too", function()
    for _, line in ipairs { "sudo rm a", "sudo -u x rm a", "env A=b sudo rm a", "sudo $X a" } do
      assert.equal("deny", (effect(line, { rule("deny", "rm") })), line)
    end
    assert.equal("ask", (effect("sudo ls a", { rule("deny", "rm") })))
  end)

  it("ask by the user's own rule, which auto and the sandbox do not take away", function()
    local found, decision = effect("sudo id", { rule("ask", "sudo") })
    assert.equal("ask", found)
    assert.equal("permissions.rules[0]", of_line(decision).cite)
    local _, auto = effect("sudo id", { rule("ask", "sudo") }, "auto")
    assert.equal("ask", auto.inside)
    assert.equal("contain", select(2, effect("sudo id", {}, "auto")).inside)
  end)

  it("refuse where the directory is not known any more, and allow nothing there", function()
    local function under(kind)
      local made = rule(kind, "make")
      made.resource.command.under = "/home/u/p"
      return made
    end
    for _, line in ipairs { "make all", "cd src; make all", "cd /tmp && make all" } do
      assert.equal("deny", (effect(line, { under("deny") }, "auto")), line)
    end
    assert.equal("allow", (effect("make all", { under("allow") })))
    assert.equal("ask", (effect("cd src; make all", { under("allow") })))
  end)

  it("are named by the number that they have in the file", function()
    local numbered = rule("deny", "sudo")
    numbered.number = 7
    assert.equal("permissions.rules[7]", of_line(select(2, effect("sudo id", { numbered }))).cite)
  end)

  it("hold for a directory in a line that is only read roughly, also behind cd", function()
    local rules = { { action = "execute", effect = "deny",
      resource = { command = { program = "make", under = "project" } } } }
    assert.equal("deny", (effect("if true; then make all; fi", rules, "auto")))
    assert.equal("deny", (effect("cd src; if true; then make all; fi", rules, "auto")))
  end)

  it("open nothing", function()
    for _, line in ipairs { "sudo id", "env sudo id", "sudo -k" } do
      assert.equal("ask", (effect(line, { rule("allow", "sudo"), rule("allow", "env") })), line)
    end
    assert.equal("deny", (effect("sudo id", { rule("deny", "sudo"), rule("allow", "sudo") })))
  end)

  it("are named by explain", function()
    local decision, input = calls.decide("sudo id", { mode = "cautious",
      rules = { rule("deny", "sudo") } })
    local text = table.concat(explain.text(explain.data(decision, input, "sudo id")), "\n")
    assert.matches("run `sudo id`: deny, by rule %d+ of the machine policy %(permissions.rules%[0%]%)", text)
    assert.matches("it is your rule permissions.rules%[0%]", text)
  end)
end)
