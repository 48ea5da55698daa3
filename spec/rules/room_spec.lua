-- The room of the user's rules from within: what is there, and what a file sees of a question. Real
-- efrd.
require "spec.helper"
local client = require "efr.rules.client"
local line = require "efr.rules.line"
local shell = require "efr.perm.shell"
local support = require "spec.rules.support"

describe("the rules room", function()
  local world

  before_each(function()
    world = support.new()
  end)

  after_each(function()
    world:close()
  end)

  -- What a function of the user gives for a line: its text comes back as the reason.
  local function seen(body, text, more)
    local ok, problem = world:load(("efr.rule { effect = 'ask', parse = true, when = function(cmd, ctx)\n"
      .. "%s\nend }"):format(body))
    assert(ok, problem and client.text_of(problem))
    local question = { line = text, parse = text and shell.parse(text), cwd = "/home/u/p", home = "/home/u",
      mode = "auto", tool = "shell", origin = "shell", project = "/home/u/p" }
    for key, value in pairs(more or {}) do question[key] = value end
    local answer = support.run(world.client.judge, world.client, question)
    assert.is_nil(answer.failed and answer.failed.text)
    local whys = {}
    for i, match in ipairs(answer.rules) do whys[i] = match.why end
    return table.concat(whys, "|")
  end

  it("has these globals and no others", function()
    local text = seen([[
      local names = {}
      for name in pairs(_G) do names[#names + 1] = name end
      table.sort(names)
      return table.concat(names, " ")
    ]], "x")
    assert.equal("_G _VERSION assert coroutine efr error getmetatable ipairs lpeg math next pairs "
      .. "pcall print rawequal rawget rawlen select setmetatable string table tonumber tostring type "
      .. "utf8 xpcall", text)
    assert.equal("exit hint preset program rule under", (seen([[
      local names = {}
      for name in pairs(efr) do names[#names + 1] = name end
      table.sort(names)
      return table.concat(names, " ")
    ]], "x")))
  end)

  it("gives no way to our own libraries", function()
    assert.equal("boolean false", seen([[
      local meta = getmetatable("")
      return type(meta) .. " " .. tostring(meta)
    ]], "x"))
    -- What a file does to its own libraries stays its own.
    assert.equal("fine", seen([[
      string.format, string.gsub, table.concat, string.find = nil, nil, nil, nil
      return "fine"
    ]], "x"))
    assert.equal("nil nil", seen("return tostring(string.dump) .. ' ' .. tostring(rawget(_G, 'rawset'))",
      "x"))
  end)

  it("shows the commands of a line with what is certain of their words", function()
    local show = [[
      local out = {}
      for i, word in ipairs(cmd.args) do out[i] = word or "<" .. cmd.texts[i] .. ">" end
      return (cmd.program or "?") .. ":" .. table.concat(out, ",")
    ]]
    assert.equal("git:push,-f,<$X>|rm:<*.o>,a b", seen(show, "git push -f $X && rm *.o 'a b'"))
    assert.equal("?:x", seen(show, "$CMD x"))
    assert.equal("echo:<$(rm y)>|rm:y", seen(show, "echo $(rm y)"))
    assert.equal("a:\\xff", seen([[
      return cmd.program .. ":" .. (cmd.args[1]:gsub("[\128-\255]", function(c)
        return ("\\x%02x"):format(c:byte()) end))
    ]], "a \xff"))
  end)

  it("shows assignments, redirections, text and place", function()
    assert.equal("A=1 B=? >/dev/null [A=1 B=$C x >/dev/null] 1-24", seen([[
      return ("A=%s B=%s %s%s [%s] %d-%d"):format(cmd.assigns.A, cmd.assigns.B or "?", cmd.redirs[1].op,
        cmd.redirs[1].target, cmd.text, cmd.pos, cmd.stop)
    ]], "A=1 B=$C x >/dev/null"):gsub("%d+%-%d+$", "1-24"))
  end)

  it("answers has and might_have as forbid of config.toml reads words", function()
    local function has(text, words)
      return seen(("return tostring(cmd:has(%s)) .. ' ' .. tostring(cmd:might_have(%s))"):format(words,
        words), text)
    end
    assert.equal("true true", has("git push --force", "'--force'"))
    assert.equal("true true", has("git push --forc", "'--force'"))
    assert.equal("true true", has("git push --force=x", "'--force'"))
    assert.equal("false false", has("git push --force-with-lease", "'--force'"))
    assert.equal("true true", has("rm -rf x", "'-r', '-R'"))
    assert.equal("true true", has("git push", "'push'"))
    assert.equal("false false", has("git push -- -f", "'-f'"))
    assert.equal("false true", has("git push $X", "'-f'"))
    assert.equal("false true", has("$X push", "'-f'"))
  end)

  it("gives operands and the context", function()
    assert.equal("a,-b", seen("return table.concat(cmd.operands, ',')", "x -y a -- -b"))
    assert.equal("/home/u/p auto shell shell 1 true", seen([[
      return ("%s %s %s %s %d %s"):format(ctx.cwd, ctx.mode, ctx.tool, ctx.origin, #ctx.commands,
        ctx.line == cmd.text)
    ]], "x y"))
    assert.equal("list simple", seen([[
      return ctx.parse.kind .. " " .. ctx.parse.items[1].kind
    ]], "x y"))
  end)

  it("judges paths and lines as a whole", function()
    world:load([[
      efr.rule { id = "p", effect = "deny", on = "path", when = function(path, ctx)
        return path.action == "write" and path:under(ctx.project .. "/migrations") end }
      efr.rule { id = "l", effect = "ask", on = "line", when = function(line)
        return line.opaque or #line.commands > 2 end }
    ]])
    local answer = world:judge("x", { project = "/p", requirements = {
      { kind = "read", path = "/p/migrations/1" }, { kind = "write", path = "/p/migrations/1" },
      { kind = "write", path = "/p/migrationsx" } } })
    assert.equal(1, #answer.rules)
    assert.same({ "path", "write", "/p/migrations/1", "deny" },
      { answer.rules[1].on, answer.rules[1].action, answer.rules[1].path, answer.rules[1].effect })
    local opaque = support.run(world.client.judge, world.client, { line = "x '", cwd = "/" })
    assert.equal("line", opaque.rules[1].on)
  end)

  it("knows programs, exits, presets and hints", function()
    world:load([[
      efr.program { name = { "tf", "tofu" }, network = true, reads = { "~/.tf", "a" },
        interactive = function(cmd) return cmd:has("console") end }
      efr.exit { id = "no-upload", effect = "deny", kind = { "upload", "host" },
        when = function(exit) return exit.target == "a.example" end }
      efr.preset { name = "company", hosts = { "a.example", "*.b.example" } }
      efr.hint { text = "our mirror" }
      efr.hint { text = "never", when = function(line) return line.text == "never" end }
    ]])
    local answer = world:judge("tofu console", { exits = {
      { kind = "host", target = "a.example" }, { kind = "bus", target = "a.example" },
      { kind = "host", target = "b.example" } } })
    assert.is_nil(answer.failed and answer.failed.text)
    local effects = {}
    for i, effect in ipairs(answer.effects) do effects[i] = effect.kind .. " " .. (effect.path or "") end
    assert.same({ "read /home/u/.tf", "read /home/u/p/a", "network ", "interactive " }, effects)
    assert.equal(1, #answer.exits)
    assert.same({ 1, "deny", "no-upload" }, { answer.exits[1].at, answer.exits[1].effect,
      answer.exits[1].id })
    assert.equal(1, #answer.hints)
    assert.equal("our mirror", answer.hints[1].text)
    local without_line = support.run(world.client.judge, world.client, { tool = "read_file",
      requirements = { { kind = "read", path = "/a" } } })
    assert.is_nil(without_line.failed and without_line.failed.text)
    assert.equal(1, #without_line.hints)
    assert.same({ "a.example", "*.b.example" }, world.client:presets()[1].hosts)
    assert.is_true(world.client:has("exit"))
    assert.is_false(world.client:has("rule"))
  end)

  it("says of a line that is too large that it cannot be judged", function()
    world:load("efr.rule { effect = 'ask', program = 'x' }")
    local answer = world:judge(("x "):rep(400000))
    assert.matches("too large", answer.failed.text)
    assert.is_table(world.client.process)
  end)

  it("bounds what a line of many commands can cost", function()
    world:load("efr.rule { effect = 'ask', program = 'x', parse = true }")
    for _, count in ipairs { 100, 1300 } do
      local text = ("x yyyyyy; "):rep(count)
      local parse = assert(shell.parse(text))
      local answer = support.run(world.client.judge, world.client,
        { line = text, parse = parse, cwd = "/" })
      assert.equal(count <= 1000, answer.failed == nil)
      assert.equal(count <= 1000 and count or 0, #answer.rules)
    end
  end)

  it("finds commands in every part of a line", function()
    local function names(text)
      local out = {}
      for i, command in ipairs(line.commands(shell.parse(text))) do out[i] = command.words[1] or "?" end
      return table.concat(out, " ")
    end
    assert.equal("a b c d e f g h", names("if a; then b; else c; fi; for x in 1; do d; done; "
      .. "f() { e; }; ( f ); { g; } && h"))
    assert.equal("echo a b c", names("echo `a` <(b) \"$(c)\""))
    assert.equal("", names("x '"))
  end)

  it("is locked", function()
    world:load("efr.rule { effect = 'ask', program = 'x' }")
    local status = assert(world.ports.fs.read_file(("/proc/%d/status"):format(
      world.client.process.child.pid)))
    assert.matches("\nSeccomp:\t2\n", status)
    assert.matches("\nNoNewPrivs:\t1\n", status)
    assert.matches("\nCapEff:\t0+\n", status)
    assert.matches("\nThreads:\t1\n", status)
    local limits = world.ports.fs.read_file(("/proc/%d/limits"):format(world.client.process.child.pid))
    if limits then
      assert.matches("Max address space +67108864 +67108864", limits)
      assert.matches("Max core file size +0 +0", limits)
      assert.matches("Max open files +4 +4", limits)
    end
  end)

  it("runs examples", function()
    world:load("efr.rule { id = 'f', effect = 'deny', program = 'git', when = function(cmd) "
      .. "return cmd:has('-f') end }")
    local reply = support.run(world.client.test, world.client, { { name = "rules_spec.lua", text = [[
describe("git", function()
  local n = 0
  before_each(function() n = n + 1 end)
  it("stops", function()
    expect(judge("git push -f").effect).to.equal("deny")
    expect(judge("git push -f").rule).to.equal("f")
    expect(judge("git push").matched).to.equal({})
    expect(judge("a; git x -f").matched).to.contain("f")
    expect(n).to.equal(1)
  end)
  it("fails", function() expect("abc").never.to.match("b") end)
end)
it("hangs not", function() error("no") end)
]] } })
    local shown = {}
    for i, result in ipairs(reply.results) do
      shown[i] = ("%s %s:%d %s"):format(result.name, result.file, result.line, result.message or "ok")
    end
    assert.same({ "git stops rules_spec.lua:4 ok",
      'git fails rules_spec.lua:11 expected "abc" not to match "b"',
      "hangs not rules_spec.lua:13 no" }, shown)
  end)
end)

describe("the example file", function()
  it("loads, with every example of it put in force", function()
    local world = support.new()
    local text = assert(world.ports.fs.read_file("docs/examples/rules.lua"))
    assert.is_true(world:load(text))
    local live = {}
    for row in text:gmatch("[^\n]*") do
      -- Indented by one blank behind the dashes: code.
      local code = row:match("^%-%- ([ }]*[%w_.]+ ?[{=].*)$") or row:match("^%-%- (  .*)$")
        or row:match("^%-%- (})$")
      live[#live + 1] = code and not code:find("^  efr rules") and code or ""
    end
    local ok, problem = world:load(table.concat(live, "\n"))
    assert(ok, problem and client.text_of(problem))
    assert.is_true(#world.client.entries >= 7)
    local answer = world:judge("git push --force")
    assert.is_nil(answer.failed and answer.failed.text)
    assert.equal("deny", answer.rules[1].effect)
    assert.matches("prod%-1", world:judge("kubectl --context prod-1 get").rules[1].why)
    world:close()
  end)
end)
