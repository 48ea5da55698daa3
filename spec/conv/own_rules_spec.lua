-- The user's Lua rules in a turn: the answers are made here, steps and engine are real.
require "spec.helper"
local world_of = require "spec.support.world"

local answer = world_of.answer

describe("conv: own rules", function()
  local asked

  -- Runs one shell call with rules that give these answers, one after another.
  local function run(line, answers, opts)
    local w = world_of.new(opts)
    asked = {}
    w.app.rules = {
      has = function(_, kind) return opts and opts.exits and kind == "exit" end,
      judge = function(_, question)
        asked[#asked + 1] = question
        local out = answers[#asked] or {}
        for _, list in ipairs { "rules", "exits", "effects", "hints" } do out[list] = out[list] or {} end
        return out
      end,
    }
    w:send("go")
    w:reply(answer(nil, { { "shell", { command = line } } }))
    return w
  end

  it("asks about the line, where it starts and how", function()
    run("git push -f; ls $X", {})
    local question = asked[1]
    assert.equal("git push -f; ls $X", question.line)
    assert.equal("list", question.parse.kind)
    assert.same({ "git", "push", "-f" }, question.commands[1].words)
    assert.same({ "ls", false }, question.commands[2].words)
    assert.same({ "/home/u/p", "auto", "shell", "/home/u" },
      { question.cwd, question.mode, question.tool, question.home })
    assert.equal(1, #asked)
  end)

  it("refuses what a rule denies, with file and line", function()
    local w = run("ls", { { rules = { { on = "command", at = 1, pos = 1, stop = 2, effect = "deny",
      file = "rules.lua", line = 3, why = "no listing" } } } })
    assert.equal(0, #w.runs)
    local request = require("spec.support.json").encode(w.provider.requests[2].messages)
    assert.is_truthy(request:find("rules.lua:3", 1, true))
    assert.is_truthy(request:find("no listing", 1, true))
  end)

  it("asks the user when the rules fail, also in auto", function()
    local w = run("ls", { { failed = { text = "rules.lua:9: no answer within 50 ms" } } })
    local question = w:find("approval_requested")[1]
    assert.is_table(question)
    assert.is_truthy(table.concat(question.reasons, "\n"):find("rules.lua:9", 1, true))
    assert.equal(0, #w.runs)
  end)

  it("declares what a program touches", function()
    local w = run("deploy", { { effects = { { kind = "read", path = "/home/u/.ssh/id" } } } })
    assert.equal(0, #w.runs)
    assert.equal(0, #w:find("approval_requested"))
  end)

  it("asks a second time only about exits, and only where a rule knows them", function()
    run("curl https://a.example/", {}, { exits = true })
    assert.equal(2, #asked)
    assert.same({}, asked[1].exits)
    assert.equal("host", asked[2].exits[1].kind)
    run("ls", {}, { exits = true })
    assert.equal(1, #asked)
  end)
end)
