-- What an answer of the Lua rules can change in a decision: the answers are made here, the engine is
-- real. Above all: no answer opens what config.toml could not.
require "spec.helper"
local apply = require "efr.rules.apply"
local calls = require "spec.perm.calls"
local engine = require "efr.perm.engine"
local line_of = require "efr.perm.line"
local machine = require "spec.perm.machine"
local req = require "efr.perm.requirements"

local ORDER <const> = { allow = 1, contain = 2, ask = 3, deny = 4 }
local EMPTY <const> = { rules = {}, exits = {}, effects = {}, hints = {} }

local function question_of(text, requirements, exits)
  local line = text and line_of.read(text)
  return apply.question({
    requirements = requirements, line = line, found = line and line_of.found(line), exits = exits,
  }, { cwd = "/home/u/p/app", mode = "cautious" })
end

-- The decision on a line or other requirements when `answer` comes from the rules.
local function decide(text, answer, changes)
  local items = text and { req.line(text, "/home/u/p/app") } or changes.requirements
  local question = question_of(text, items)
  local added = apply.requirements(answer)
  local input = {
    requirements = table.move(items, 1, #items, #added + 1, added), tool = text and "shell" or "read_file",
    mode = "cautious", origin = "shell", scope = { kind = "project", root = "/home/u/p/app" },
    facts = { found = calls.FOUND }, machine = machine(), lua = apply.input(answer, question),
  }
  for key, value in pairs(changes or {}) do
    if key ~= "requirements" then input[key] = value end
  end
  return engine.decide(input), question
end

local function with(rules, more)
  local out = setmetatable({ rules = rules }, { __index = EMPTY })
  for key, value in pairs(more or {}) do out[key] = value end
  return out
end

-- A match on the i-th command.
local function on(question, i, effect)
  local command = question.commands[i]
  return { on = "command", at = i, pos = command.pos, stop = command.stop, effect = effect,
    file = "rules.lua", line = 7, why = "because of that" }
end

local function on_command(text, i, effect, changes)
  local question = question_of(text, {})
  return (decide(text, with { on(question, i, effect) }, changes))
end

local function reason_with(decision, text)
  for _, reason in ipairs(decision.reasons) do
    if reason.text:find(text, 1, true) then return reason end
  end
  return nil
end

describe("rules.apply", function()
  it("shows every command of a line, also behind wrappers and in inner lines", function()
    local question = question_of("cd x && sudo git push $B; sh -c 'rm a' <in", {})
    local seen = {}
    for i, command in ipairs(question.commands) do
      local words = {}
      for j, word in ipairs(command.words) do words[j] = word or command.texts[j] or "?" end
      seen[i] = table.concat(words, " ") .. (command.behind and " <" .. command.behind[1] or "")
        .. (command.pos and "" or " (inner)")
    end
    assert.is_true(#seen >= 5)
    local all = table.concat(seen, "\n")
    for _, wanted in ipairs { "cd x", "git push $B <sudo", "rm a", "sh -c rm a" } do
      assert.is_truthy(all:find(wanted, 1, true), wanted .. " is not in\n" .. all)
    end
  end)

  it("cites file, line and the words of the rule", function()
    local decision = on_command("cargo build", 1, "deny")
    assert.equal("deny", decision.effect)
    local reason = assert(reason_with(decision, "rules.lua:7"))
    assert.matches("because of that", reason.text)
    assert.equal("rules.lua:7", reason.cite)
  end)

  it("judges one command of several", function()
    local decision = on_command("ls; cargo build", 2, "deny")
    assert.equal("deny", decision.effect)
    assert.matches('for "cargo build"', reason_with(decision, "rules.lua:7").text)
    assert.equal("allow", on_command("cargo build", 1, "allow").effect)
    assert.equal("ask", on_command("cargo build; make", 1, "allow").effect)
  end)

  it("keeps the user's own ask and deny in auto", function()
    assert.equal("contain", decide("cargo build", EMPTY, { mode = "auto" }).inside)
    assert.equal("ask", on_command("cargo build", 1, "ask", { mode = "auto" }).inside)
    assert.equal("deny", on_command("cargo build", 1, "deny", { mode = "auto" }).inside)
    -- No rule lifts the sandbox.
    assert.equal("contain", on_command("cargo build", 1, "allow", { mode = "auto" }).inside)
  end)

  it("follows the rules of config.toml: the last match decides", function()
    local config = { { index = 0, action = "any", effect = "deny",
      resource = { command = { program = "cargo", args = {}, forbid = {} } } } }
    assert.equal("allow", on_command("cargo build", 1, "allow", { rules = config }).effect)
    local question = question_of("cargo build", {})
    local both = with { on(question, 1, "deny"), on(question, 1, "allow") }
    assert.equal("allow", decide("cargo build", both).effect)
    both = with { on(question, 1, "allow"), on(question, 1, "ask") }
    assert.equal("ask", decide("cargo build", both).effect)
  end)

  it("adds what a program touches", function()
    local answer = with({}, { effects = {
      { kind = "write", path = "/etc/x", file = "rules.lua", line = 1 }, { kind = "network" },
      { kind = "interactive" }, { kind = "network" },
    } })
    assert.equal(3, #apply.requirements(answer))
    assert.equal("allow", decide("ls", EMPTY).effect)
    assert.equal("ask", decide("ls", answer).effect)
    assert.is_table(reason_with(decide("ls", answer), "write /etc/x"))
    answer = with({}, { effects = { { kind = "read", path = "/home/u/.ssh/id" } } })
    assert.equal("deny", decide("ls", answer).effect)
  end)

  it("makes a failure a question of the user's own, in every mode", function()
    local answer = with({}, { failed = { text = "rules.lua:3: no answer within 50 ms" } })
    for _, mode in ipairs { "cautious", "auto", "manual" } do
      local decision = decide("ls", answer, { mode = mode })
      assert.is_true(ORDER[decision.inside] >= ORDER.ask, mode)
      assert.is_table(reason_with(decision, "rules.lua:3: no answer within 50 ms"))
    end
    assert.is_nil(apply.input(nil, {}))
  end)

  it("sends exits by kind and target", function()
    local exits = { { kind = "host", target = "a.example", source = "predicted", why = "x" } }
    local question = question_of("ls", {}, exits)
    assert.same({ { kind = "host", target = "a.example", source = "predicted" } }, question.exits)
    local input = apply.input(with({}, { exits = { { at = 1, effect = "deny", file = "rules.lua",
      line = 2 } } }), question)
    assert.same({ { kind = "host", target = "a.example", effect = "deny", cite = "rules.lua:2" } },
      input.exits)
  end)

  describe("opens nothing that config.toml could not:", function()
    local LINES <const> = {
      ["another user"] = "sudo cargo build", ["behind a wrapper"] = "env X=1 cargo build",
      ["a substitution"] = "cargo build $(make)", ["an expansion"] = "cargo $X",
      ["a function"] = "f() { cargo build; }; f", ["a redirection"] = "cargo build > x",
      ["an assignment"] = "PATH=. cargo build", ["a group"] = "{ cargo build; }",
      ["an inner line"] = "sh -c 'cargo build'", ["not readable"] = "cargo build '",
      ["in the background"] = "cargo build &", ["eval"] = "eval cargo build",
    }
    for name, text in pairs(LINES) do
      it(name, function()
        local question = question_of(text, {})
        local rules = {}
        -- A rule for `env` or `sh` opens what a rule of config.toml for `env` or `sh` would.
        for i, command in ipairs(question.commands) do
          local word = command.words[1]
          if word ~= "env" and word ~= "sh" then rules[#rules + 1] = on(question, i, "allow") end
        end
        assert.is_true(#rules > 0)
        assert.equal("ask", decide(text, with(rules)).effect)
        -- And what forbids reaches all of these.
        rules = {}
        for i, command in ipairs(question.commands) do
          if command.words[1] == "cargo" or not command.words[1] or #question.commands == 1 then
            rules[#rules + 1] = on(question, i, "deny")
          end
        end
        assert.equal("deny", decide(text, with(rules)).effect)
      end)
    end

    local PATHS <const> = {
      { "read", "/home/u/.ssh/id_ed25519", "deny" }, { "write", "/home/u/.ssh/config", "deny" },
      { "read", "/home/u/.local/share/efr/secrets/x", "deny" },
      { "write", "/home/u/.config/efr/rules.lua", "deny" }, { "read", "/proc/self/environ", "deny" },
      { "write", "/home/u", "ask" }, { "read", "relative", "deny" },
      { "write", "/etc/hosts", "allow" },
    }
    for _, case in ipairs(PATHS) do
      it(case[1] .. " " .. case[2], function()
        local items = { { kind = case[1], path = case[2] } }
        local answer = with { { on = "path", action = case[1], path = case[2], effect = "allow",
          file = "rules.lua", line = 1 } }
        assert.equal(case[3], (decide(nil, answer, { requirements = items })).effect)
      end)
    end

    it("of one path no other one, and of a reading no writing", function()
      local items = { req.write("/etc/a"), req.write("/etc/a/b") }
      local answer = with { { on = "path", action = "write", path = "/etc/a", effect = "allow",
        file = "rules.lua", line = 1 } }
      local decision = decide(nil, answer, { requirements = items })
      assert.equal("allow", decision.reasons[1].effect)
      assert.equal("ask", decision.reasons[2].effect)
      assert.equal("ask", (decide(nil, answer, { requirements = { req.write("/etc/ab") } })).effect)
    end)

    it("a line as a whole opens no line that cannot be read", function()
      local answer = with { { on = "line", effect = "allow", file = "rules.lua", line = 1 } }
      assert.equal("allow", decide("cargo build", answer).effect)
      assert.equal("ask", decide("sudo cargo build", answer).effect)
      assert.equal("ask", decide("cargo build '", answer).effect)
      assert.equal("contain", decide("cargo build", answer, { mode = "auto" }).inside)
    end)
  end)

  it("never loosens by ask, deny, effects or failures, whatever they are", function()
    math.randomseed(7)
    local TEXTS <const> = { "ls", "cargo build", "ls | wc", "cat /etc/hosts; rm -r x",
      "git push origin $X", "sudo ls", "sh -c 'ls; rm x'", "echo $(rm y)", "ls '", "cat ~/.ssh/id" }
    local MODES <const> = { "manual", "cautious", "auto" }
    local function pick(choices) return choices[math.random(#choices)] end
    for _ = 1, 2000 do
      local text, mode = pick(TEXTS), pick(MODES)
      local question = question_of(text, {})
      local answer = with({}, { effects = {} })
      for _ = 1, math.random(0, 3) do
        local match = math.random(4) == 1 and { on = "line", file = "r.lua", line = 1 }
          or on(question, math.random(#question.commands))
        match.effect = pick { "ask", "deny" }
        table.insert(answer.rules, match)
      end
      for _ = 1, math.random(0, 2) do
        table.insert(answer.effects, pick { { kind = "read", path = "/etc/x" }, { kind = "network" },
          { kind = "write", path = "/home/u/x" }, { kind = "interactive" } })
      end
      if math.random(8) == 1 then answer.failed = { text = "x" } end
      local before = decide(text, nil, { mode = mode })
      local after = decide(text, answer, { mode = mode })
      assert.is_true(ORDER[after.inside] >= ORDER[before.inside], text .. " in " .. mode)
      assert.is_true(ORDER[after.effect] >= ORDER[before.effect], text .. " in " .. mode)
    end
  end)
end)
