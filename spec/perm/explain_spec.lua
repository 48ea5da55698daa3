-- A decision as data and as text: the same reasons, who is asked, which rule would change it.
local calls = require "spec.perm.calls"
local explain = require "efr.perm.explain"

local function data(line, changes)
  local decision, input = calls.decide(line, changes)
  return explain.data(decision, input, line)
end

describe("perm.explain", function()
  it("gives one object with all that decided", function()
    local out = data("git push origin x")
    assert.equal("git push origin x", out.line)
    assert.equal("ask", out.decision)
    assert.equal("unsandboxed", out.launch)
    assert.same({ ok = true, commands = { "git push origin x" } }, out.parse)
    assert.equal("upload", out.exits[1].kind)
    assert.equal("user", out.exits[1].approver)
    assert.equal("unsandboxed", out.exits[1].launch)
    assert.equal("you", out.asked)
    assert.equal(out.reasons[#out.reasons], out.exits[1].reason)
    assert.equal("the reviewer, else you", data("cargo update").asked)
    assert.is_nil(data("ls").asked)
  end)

  it("says which rule would change it", function()
    local function change(line, kind, changes)
      for _, item in ipairs(data(line, changes or { mode = "cautious" }).requirements) do
        if item.kind == kind then return item.change end
      end
      return nil
    end
    assert.equal('[[permissions.rules]] action = "execute", resource = { command = { program = '
      .. '"cargo", args = ["test"] } }, effect = "allow"', change("cargo test -q", "line"))
    assert.equal('[[permissions.rules]] action = "write", resource = { under = "/home/u/x" }, '
      .. 'effect = "allow"', change("touch ~/x", "write"))
    assert.equal("no rule changes this", change("vim x", "interactive"))
    assert.is_truthy(change("(make)", "line"):find("only one for \"any\"", 1, true))
    assert.is_nil(change("ls", "line"))
    local rules = { { action = "execute", effect = "deny",
      resource = { command = { program = "make", args = {}, forbid = {} } } } }
    assert.equal("it is your rule permissions.rules[0]", change("make", "line", { mode = "cautious", rules = rules }))
  end)

  it("shows how a line was read", function()
    assert.same({ ok = true, construct = "command substitution" }, data("echo $(ls)").parse)
    local broken = data("echo $(")
    assert.is_false(broken.parse.ok)
    assert.is_truthy(explain.text(broken)[3]:find("not readable", 1, true))
  end)

  it("prints text with one row a fact", function()
    local text = explain.text(data("cp a.txt ~/Documents"))
    assert.same({ "line      cp a.txt ~/Documents", "mode      auto",
      "parse     1 command: `cp a.txt ~/Documents`", "decision  ask (the reviewer, else you)",
      "launch    contained", "why" }, table.move(text, 1, 6, 1, {}))
    local all = table.concat(text, "\n")
    assert.is_truthy(all:find("\nexits\n  write /home/u/Documents, reviewer; contained; grants write "
      .. "/home/u/Documents", 1, true), all)
  end)
end)
