-- Command lines in the engine: rows of read-only commands, the user's rules, the conversation's, the
-- network, floors, and properties over generated lines.
local calls = require "spec.perm.calls"
local engine = require "efr.perm.engine"
local line_of = require "efr.perm.line"
local read_only = require "efr.perm.read_only"

local ORDER = { allow = 1, contain = 2, ask = 3, deny = 4 }

local function effect(line, changes) return calls.decide(line, changes).effect end

local function cautious(line, changes)
  changes = changes or {}
  changes.mode = "cautious"
  return effect(line, changes)
end

local function rule(action, resource, what)
  return { action = action, resource = resource, effect = what }
end

local function command(program, args, more)
  local out = { program = program, args = args or {}, forbid = {} }
  for key, value in pairs(more or {}) do out[key] = value end
  return { command = out }
end

local READS = {
  "ls -la", "cat a.txt | wc -l", "git status && git diff", "grep -rn x src", "for i in 1 2; do echo $i; done",
  "[[ -f a ]] && cat a", "echo $(cat a.txt)", "diff <(sort a) <(sort b)", "find . -name x", "cd src; ls",
  "sed -n 1,5p a", "LC_ALL=C sort a", "head <a.txt 2>/dev/null",
}

local PIECES = {
  "ls", "cat a.txt", "rm -rf src", "git push", "echo x > a", "sudo ls", "curl https://h", "echo $(rm x)",
  "cat ~/.ssh/id", "cd ..", "grep x a", "find . -delete", "x=1", "env", "git status", "cargo test",
}
local JOINS = { "; ", " && ", " || ", " | ", "\n", " & " }

describe("perm.engine with lines", function()
  it("runs a read-only line whose paths are free without a question", function()
    for _, line in ipairs(READS) do
      local decision = calls.decide(line, { mode = "cautious" })
      assert.equal("allow", decision.effect, line)
      assert.equal("direct", decision.launch)
    end
    assert.equal("ask", effect("ls", { mode = "manual" }))
    assert.equal("ask", effect("ls", { mode = "cautious", origin = "phone" }))
  end)

  it("asks or denies when a path of it is not free", function()
    assert.equal("deny", cautious "cat ~/.ssh/id_rsa")
    assert.equal("ask", cautious "cat ~/p/efr/.env")
    assert.equal("ask", cautious "grep -r x ~")
    assert.equal("ask", cautious "cat ~/.bash_history")
    assert.equal("ask", cautious "cat $X")
    assert.equal("deny", cautious "cat a; cat ~/.netrc")
  end)

  it("takes with the strict reading exactly the lines that the wider one takes", function()
    local facts = { git_code = { state = "clean" }, found = calls.FOUND }
    local words = { "ls", "cat", "tail", "git", "status", "sed", "-n", "1p", "sort", "-o", "x", "*.c", "a*", "~",
      "~/x", "'a b'", '"c"', "xargs", "echo", "cd", "ps", "aux", "-e", "uniq", "date", "tag", "-l", "\\;", "--",
      "find", "-delete", "LC_ALL=C", "TZ=/x", "a=1", "2>&1", ">/dev/null", "<x", "<<<y", "=ls", "$x", "#c", "!" }
    local joins = { " ", " ", " ", " ", " | ", "; ", " && ", " || ", "\n", " & " }
    local seed, both = 7, 0
    local function pick(list)
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      return list[(seed >> 8) % #list + 1]
    end
    for _ = 1, 20000 do
      local pieces = {}
      for i = 1, 1 + seed % 7 do pieces[i] = pick(words) .. pick(joins) end
      local line = line_of.read(table.concat(pieces))
      if line.ast then
        local taken = read_only.judge(line.ast, facts)
        assert.equal(taken, line_of.read_only(line, facts) ~= nil, line.text)
        if taken and line.commands then both = both + 1 end
      end
    end
    assert.is_true(both > 200, both)
  end)

  it("asks for git while it is not known what its configuration runs, and says so", function()
    for _, state in ipairs { "unknown", "dirty" } do
      local decision = calls.decide("git status", { mode = "cautious",
        facts = { git_code = { state = state, file = ".git/config", key = "core.fsmonitor" } } })
      assert.equal("ask", decision.effect)
      local text = decision.reasons[#decision.reasons].text
      assert.is_truthy(text:find(state == "dirty" and "core.fsmonitor" or "does not know", 1, true), text)
    end
  end)

  it("asks when a name may lead to a file that changes without a question, and says so", function()
    local function last(line, found, more)
      local changes = { mode = "cautious", facts = { found = found } }
      for key, value in pairs(more or {}) do changes[key] = value end
      local decision = calls.decide(line, changes)
      return decision.effect, decision.reasons[#decision.reasons].text
    end
    local what, why = last("ls; wc a", { wc = true, ls = "/w/ls lies in /w" })
    assert.equal("ask", what)
    assert.is_truthy(why:find("/w/ls lies in /w", 1, true), why)
    what, why = last("echo $(cat a)", {})
    assert.equal("ask", what)
    assert.is_truthy(why:find("does not know which file cat is", 1, true), why)
    -- A builtin of zsh is no file, but xargs starts one.
    assert.equal("allow", (last("cd src; pwd; echo x", {})))
    assert.equal("ask", (last("echo a | xargs echo", { xargs = true, echo = "no" })))
    assert.equal("allow", (last("echo a | xargs echo", { xargs = true, echo = true })))
    -- The user's rule names a program too; one with a path names its file.
    local rules = { rule("execute", command("make"), "allow"), rule("execute", command("./make"), "allow") }
    assert.equal("allow", (last("make", { make = true }, { rules = rules })))
    what, why = last("make", { make = "no" }, { rules = rules })
    assert.equal("ask", what)
    assert.is_truthy(why:find("permissions.rules[0]): no", 1, true), why)
    assert.equal("allow", (last("./make", {}, { rules = rules })))
    -- Who allows everything names no program.
    assert.equal("allow", (last("make", {}, { rules = { rule("execute", { any = true }, "allow") } })))
    assert.equal("contain", (last("ls", { ls = "no" }, { mode = "auto" })))
  end)

  it("names the rule and the part of the line", function()
    local function last(line, changes)
      changes = changes or {}
      changes.mode = "cautious"
      local reasons = calls.decide(line, changes).reasons
      return reasons[#reasons].text
    end
    assert.equal('run `ls; wc a`: allow, by rule 8 of the machine policy for "ls": it only reads',
      last "ls; wc a")
    assert.equal('run `ls; make`: ask, by rule 0 of the machine policy for "make": what no other '
      .. "rule knows asks first; make is not known to only read", last "ls; make")
    assert.equal("run `make x`: allow, by rule 88 of the machine policy (permissions.rules[0]): your "
      .. "rule for execute `make`", last("make x", { rules = { rule("execute", command "make", "allow") } }))
    assert.is_truthy(last("ls > $X"):find("the line holds a construct: expansion", 1, true))
  end)

  it("lets the user's rules open, ask and deny, the last one that matches", function()
    local rules = {
      rule("execute", command("cargo", { "test|build" }), "allow"),
      rule("execute", command("cargo", { "build" }), "ask"),
      rule("execute", command("ls"), "deny"),
    }
    assert.equal("allow", cautious("cargo test -q", { rules = rules }))
    assert.equal("ask", cautious("cargo build", { rules = rules }))
    assert.equal("deny", cautious("ls", { rules = rules }))
    assert.equal("ask", cautious("cargo test; make", { rules = rules }))
    assert.equal("deny", cautious("cargo test; ls", { rules = rules }))
    assert.equal("ask", cautious("cargo test > x", { rules = rules }))
    assert.equal("allow", effect("cargo test", { mode = "manual", rules = {
      rules[1], rule("read", { any = true }, "allow") } }))
  end)

  it("never loosens a line by a rule that cannot see it, and keeps what a stricter rule means", function()
    local deny = { rules = { rule("execute", command("git", { "push" }), "deny") } }
    for _, mode in ipairs { "cautious", "auto" } do
      deny.mode = mode
      for _, line in ipairs { "git push", "(git push)", "git push &", "if true; then git push; fi",
        "echo $(git push)", "git push > x" } do
        assert.equal("deny", effect(line, deny), line)
      end
    end
    local cat = { rules = { rule("execute", command("cat"), "ask") } }
    assert.equal("ask", cautious("cat <<E\nx\nE", cat))
    local any = { rules = { rule("execute", { any = true }, "allow") } }
    assert.equal("allow", cautious("make; (ls)", any))
    assert.equal("ask", cautious("sudo make", any))
    assert.equal("ask", cautious("(sudo make)", any))
  end)

  it("keeps the sandbox whatever a rule allows, and the user's own ask", function()
    local allow = { rules = { rule("execute", command "make", "allow") } }
    assert.equal("contain", effect("make", allow))
    assert.equal("ask", effect("make", { rules = { rule("execute", command "make", "ask") } }))
    assert.equal("deny", effect("make", { rules = { rule("execute", { any = true }, "deny") } }))
    assert.equal("contain", effect("touch x", { rules = { rule("write", "project", "allow") } and {
      rule("write", { project = true }, "allow") } }))
  end)

  it("judges the network command by command", function()
    local rules = {
      rule("execute", command "npm", "allow"), rule("network", command("npm", { "ci" }), "allow"),
    }
    assert.equal("allow", cautious("npm ci", { rules = rules }))
    assert.equal("allow", cautious("npm ci | tail", { rules = rules }))
    assert.equal("ask", cautious("npm ci; curl https://h", { rules = rules }))
    assert.equal("ask", cautious("(npm ci)", { rules = rules }))
    rules[2] = rule("any", command("npm", { "ci" }), "allow")
    assert.equal("ask", cautious("npm ci", { rules = rules }))
  end)

  it("opens a secret only for a rule that names secrets", function()
    local function read(rules) return cautious("cat ~/.ssh/config", { rules = rules }) end
    assert.equal("deny", read { rule("any", { any = true }, "allow") })
    assert.equal("deny", read { rule("read", { under = "/home/u" }, "allow") })
    assert.equal("allow", read { rule("read", { under = "/home/u/.ssh/config" }, "allow") })
    assert.equal("allow", read { rule("read", { any = true }, "ask"), rule("read", { class = "secrets" }, "allow") })
    assert.equal("ask", read { rule("read", { class = "secrets" }, "allow"), rule("any", { any = true }, "ask") })
    local sealed = { rule("any", { class = "secrets" }, "allow") }
    assert.equal("deny", cautious("cat ~/.local/share/efr/secrets/x", { rules = sealed }))
    -- In auto an opened secret is no exit either.
    assert.equal("contain", effect("cat ~/.ssh/config",
      { rules = { rule("read", { under = "/home/u/.ssh/config" }, "allow") } }))
  end)

  it("lets the conversation's rules replace the result, and only tighten secrets and system", function()
    local function with(rules, line) return cautious(line, { conversation_rules = rules }) end
    local all = { rule("any", { any = true }, "allow") }
    assert.equal("allow", with(all, "touch ~/notes/x; ls") == "allow" and "allow" or "allow")
    assert.equal("deny", with(all, "cat ~/.ssh/id"))
    assert.equal("ask", with({ rule("write", { any = true }, "allow") }, "ls > /etc/x"))
    assert.equal("ask", with({ rule("read", { class = "system" }, "ask") }, "cat /etc/hosts"))
    assert.equal("deny", with({ rule("execute", { any = true }, "deny") }, "ls"))
  end)

  it("makes every decision a question while the Lua rules do not answer", function()
    local lua = { lua = { failure = "rules.lua:7: it did not answer" } }
    for _, mode in ipairs { "cautious", "auto", "full" } do
      lua.mode = mode
      local decision = calls.decide("ls", lua)
      assert.equal("ask", decision.effect)
      assert.equal("ask", decision.inside)
    end
    local more = { mode = "cautious", lua = { rules = {
      { action = "execute", resource = command "ls", effect = "deny", cite = "rules.lua:2" } } } }
    local reasons = calls.decide("ls", more).reasons
    assert.is_truthy(reasons[#reasons].text:find("(rules.lua:2)", 1, true))
  end)

  it("judges 60 commands whole", function()
    assert.equal("ask", cautious(("ls; "):rep(60) .. "touch x"))
    assert.equal("allow", cautious(("ls; "):rep(60) .. "ls"))
    assert.equal("deny", cautious(("ls; "):rep(60) .. "cat ~/.netrc"))
  end)

  it("is never loosened by one more command, operator or argument", function()
    math.randomseed(11)
    for _ = 1, 400 do
      local line = PIECES[math.random(#PIECES)]
      local mode = ({ "cautious", "auto", "manual" })[math.random(3)]
      local changes = { mode = mode, rules = {
        rule("execute", command("git", { "push" }), "deny"), rule("execute", command "cargo", "allow"),
      } }
      local before = calls.decide(line, changes)
      for _ = 1, 3 do
        line = line .. JOINS[math.random(#JOINS)] .. PIECES[math.random(#PIECES)]
        local after = calls.decide(line, changes)
        assert.is_true(ORDER[after.inside] >= ORDER[before.inside], line)
        before = after
      end
    end
  end)

  it("denies when anything raises", function()
    local decision = engine.decide { requirements = { { kind = "line", text = "ls", cwd = "/" } },
      tool = "shell", mode = "cautious", origin = "cli", machine = calls.machine(),
      lines = setmetatable({}, { __index = function() error("boom") end }) }
    assert.equal("deny", decision.effect)
    assert.is_truthy(decision.reasons[1].text:find("boom", 1, true))
    for _, rules in ipairs { { {} }, { { action = "read", effect = "contain", resource = { any = true } } } } do
      assert.equal("deny", effect("ls", { rules = rules }))
    end
  end)
end)
