local engine = require "efr.perm.engine"
local machine = require "spec.perm.machine"
local req = require "efr.perm.requirements"

local ORDER = { allow = 1, contain = 2, ask = 3, deny = 4 }
local SCRATCH = machine().scratch

local function decide(items, changes)
  local input = {
    requirements = items, tool = "write_file", mode = "cautious", origin = "shell",
    scope = { kind = "project", root = "/home/u/p/app" }, machine = machine(),
  }
  for key, value in pairs(changes or {}) do input[key] = value end
  return engine.decide(input)
end

local function effect(item, changes) return decide({ item }, changes).effect end

-- path, read, write in cautious with the project ~/p/app
local CAUTIOUS = {
  { "/home/u/p/app/src/a.c", "allow", "allow" }, { "/home/u/p/app", "allow", "ask" },
  { "/home/u/p/appx/a.c", "allow", "ask" }, { "/home/u/notes.txt", "allow", "ask" },
  { "/home/u/.zshrc", "allow", "ask" }, { "/home/u/p/app/.git/config", "allow", "ask" },
  { "/home/u/p/app/.gitignore", "allow", "allow" }, { SCRATCH .. "/x", "allow", "allow" },
  { SCRATCH .. "/.git/hooks/x", "allow", "ask" }, { "/etc/hosts", "allow", "ask" },
  { "/home/u/.ssh/id_ed25519", "deny", "deny" }, { "/home/u/keys/k", "deny", "deny" },
  { "/home/u/.mozilla/x", "ask", "ask" }, { "/home/u/p/app/.env", "ask", "allow" },
  { "/home/u/.config/efr/config.toml", "allow", "deny" },
  { "/home/u/dotfiles/efr.toml", "allow", "deny" }, { "/home/u/dotfiles", "allow", "ask" },
  { "/home/u/.local/share/efr/secrets/x.json", "deny", "deny" }, { "relative", "deny", "deny" },
  { "/home/u/p/app/../../.ssh/id", "deny", "deny" }, { "/proc/self/environ", "deny", "deny" },
  { "/proc/self/root/home/u/.ssh/id", "deny", "deny" },
}

local FOUND = require("spec.perm.calls").FOUND

local ITEMS = {
  req.network(), req.interactive(), req.nested_shell(), req.destructive(),
  req.line("ls", "/home/u"),
  req.read("/home/u", { tree = true }), req.read("/"), req.write("/home/u"),
}
for _, row in ipairs(CAUTIOUS) do
  ITEMS[#ITEMS + 1] = req.read(row[1])
  ITEMS[#ITEMS + 1] = req.write(row[1])
end

describe("perm.engine", function()
  for _, row in ipairs(CAUTIOUS) do
    it("reads and writes " .. row[1] .. " as the table says", function()
      assert.equal(row[2], effect(req.read(row[1])))
      assert.equal(row[3], effect(req.write(row[1])))
      -- The file tools follow the same rules in auto, and manual is never freer.
      assert.equal(row[2], decide({ req.read(row[1]) }, { mode = "auto" }).inside)
      assert.equal(row[3], decide({ req.write(row[1]) }, { mode = "auto" }).inside)
      assert.is_true(ORDER[effect(req.write(row[1]), { mode = "manual" })] >= ORDER.ask)
      assert.is_true(ORDER[effect(req.read(row[1]), { mode = "manual" })] >= ORDER.ask)
    end)
  end

  it("lets a rule of the user see the command behind xargs", function()
    local function of(command, line)
      return effect(req.line(line, "/home/u"), { tool = "shell", facts = { found = FOUND }, rules = {
        { action = "execute", effect = "deny", resource = { command = command } } } })
    end
    assert.equal("allow", of({ program = "wc" }, "echo a | xargs cat"))
    assert.equal("deny", of({ program = "cat" }, "echo a | xargs -n 1 cat"))
    assert.equal("deny", of({ program = "cat", args = { "a" } }, "echo a | xargs cat"))
    assert.equal("deny", of({ program = "cat", args = { "a" } }, "wc <<< $(echo a | xargs cat)"))
  end)

  it("lets a line of tests alone run, which is no command", function()
    local decision = decide({ req.line("[[ -f a ]]", "/home/u") }, { tool = "shell" })
    assert.equal("allow", decision.effect, decision.reasons[1].text)
    assert.matches("by rule %d", decision.reasons[1].text)
  end)

  it("asks for every line in cautious and manual, and contains every line in auto", function()
    local line = req.line("rm -rf /", "/home/u")
    assert.equal("ask", effect(line, { tool = "shell" }))
    assert.equal("ask", effect(line, { tool = "shell", mode = "manual" }))
    assert.equal("contain", decide({ line }, { tool = "shell", mode = "auto" }).inside)
    local both = { line, req.interactive(), req.network() }
    assert.equal("contain", decide(both, { tool = "shell", mode = "auto" }).inside)
    assert.equal("ask", decide(both, { tool = "shell" }).effect)
  end)

  it("refuses a nested shell in auto, with no question", function()
    local items = { req.line("zsh", "/"), req.nested_shell() }
    assert.equal("deny", decide(items, { tool = "shell", mode = "auto" }).effect)
    assert.equal("ask", decide(items, { tool = "shell" }).effect)
  end)

  it("lets the sandbox hold what a built-in rule would ask, but no secret", function()
    local auto = { tool = "shell", mode = "auto" }
    assert.equal("contain", decide({ req.write("/etc/hosts") }, auto).inside)
    assert.equal("contain", effect(req.read("/home/u", { tree = true }), auto))
    assert.equal("deny", effect(req.read("/home/u/.ssh/id"), auto))
    assert.equal("deny", effect(req.write("/home/u/.config/efr/x"), auto))
  end)

  it("asks for trees with a secret below, and writes above secrets or efr's configuration",
    function()
    assert.equal("ask", effect(req.read("/home/u", { tree = true })))
    assert.equal("ask", effect(req.read("/proc", { tree = true })))
    assert.equal("allow", effect(req.read("/home/u/p/app", { tree = true })))
    local app = { scope = { kind = "project", root = "/home/u/dotfiles" } }
    assert.equal("allow", effect(req.write("/home/u/dotfiles/x"), app))
    local inside = { machine = machine { secret_paths = { "/home/u/p/app/conf/key" } } }
    assert.equal("ask", effect(req.write("/home/u/p/app/conf"), inside))
    assert.equal("deny", effect(req.write("/home/u/p/app/conf/key"), inside))
  end)

  it("gives no right to a project that is too wide, or to a path scope", function()
    local write = req.write("/home/u/p/app/a")
    assert.equal("ask", effect(write, { scope = { kind = "project", root = "/home/u" } }))
    assert.equal("ask", effect(write, { scope = { kind = "project", root = "/" } }))
    assert.equal("ask", effect(write, { scope = { kind = "path", root = "/home/u/p/app" } }))
    assert.equal("ask", effect(write, { scope = { kind = "machine" } }))
    assert.equal("ask", decide({ write }, { scope = false }).effect)
  end)

  it("asks a remote origin for everything outside scratch", function()
    local phone = { origin = "phone" }
    assert.equal("ask", effect(req.read("/home/u/p/app/a.c"), phone))
    assert.equal("allow", effect(req.read(SCRATCH .. "/a"), phone))
    assert.equal("deny", effect(req.read("/home/u/.ssh/id"), phone))
    assert.equal("ask", effect(req.line("ls", "/"), { origin = "phone", mode = "auto",
      tool = "shell" }))
    assert.equal("ask", decide({}, phone).effect)
    assert.equal("allow", decide({}).effect)
  end)

  it("gives reasons in words that name subject and rule", function()
    local reasons = decide({ req.write("/home/u/.zshrc"), req.read("/x") }).reasons
    assert.same({
      {
        subject = "write /home/u/.zshrc", effect = "ask", rule = "4",
        text = "write /home/u/.zshrc: ask, by rule 4 of the machine policy: " ..
          "writes of configuration ask first",
      },
      {
        subject = "read /x", effect = "allow", rule = "1",
        text = "read /x: allow, by rule 1 of the machine policy: reading is free",
      },
    }, reasons)
    local sealed = decide({ req.read("/home/u/.local/share/efr/secrets/k") }).reasons[1]
    assert.equal("read /home/u/.local/share/efr/secrets/k: deny, " ..
      "because efr's credentials are sealed", sealed.text)
    assert.is_nil(sealed.rule)
  end)

  it("orders reasons: paths as declared, line, network, interactive, nested shell", function()
    local reasons = decide({
      req.nested_shell(), req.interactive(), req.network(),
      req.line("ls\n" .. ("\u{e9}"):rep(200), "/"),
      req.write("/b"), req.read("/a"),
    }, { tool = "shell" }).reasons
    local subjects = {}
    for i, reason in ipairs(reasons) do subjects[i] = reason.subject:sub(1, 8) end
    assert.same({ "write /b", "read /a", "run `ls ", "network", "terminal", "nested s" }, subjects)
    assert.is_truthy(utf8.len(reasons[3].text))
  end)

  it("denies with a reason when it fails, and never raises", function()
    for _, changes in ipairs {
      { machine = machine { home = "/" } }, { machine = false }, { requirements = false },
      { requirements = { { kind = "no such" } } }, { machine = machine { secret_paths = { 7 } } },
      { machine = machine { aliases = { "/home" } } },
      { requirements = {}, machine = { home = "x" } },
      { scope = { kind = "project" } }, { mode = {}, machine = {} },
    } do
      local decision = decide({ req.read("/x") }, changes)
      assert.equal("deny", decision.effect)
      assert.is_truthy(decision.reasons[1].text:find("^the call: deny, because "))
    end
    assert.equal("deny", engine.decide(nil).effect)
    assert.equal("deny", engine.decide({}).effect)
  end)

  it("is never loosened by one more requirement", function()
    math.randomseed(3)
    for _ = 1, 500 do
      local items = { ITEMS[math.random(#ITEMS)] }
      local changes = {
        tool = math.random(2) == 1 and "shell" or "edit",
        mode = ({ "manual", "cautious", "auto", "full" })[math.random(4)],
        origin = ({ "shell", "phone" })[math.random(2)],
      }
      local before = ORDER[decide(items, changes).effect]
      for _ = 1, 4 do
        items[#items + 1] = ITEMS[math.random(#ITEMS)]
        local after = ORDER[decide(items, changes).effect]
        assert.is_true(after >= before)
        before = after
      end
    end
  end)

  it("treats an unknown mode as manual, a remote auto as cautious", function()
    for _, item in ipairs(ITEMS) do
      for _, tool in ipairs { "shell", "edit" } do
        local manual = decide({ item }, { mode = "manual", tool = tool })
        for _, mode in ipairs { "FULL", "", "AUTO" } do
          assert.same(manual, decide({ item }, { mode = mode, tool = tool }))
        end
        assert.same(decide({ item }, { origin = "phone", tool = tool }),
          decide({ item }, { origin = "phone", mode = "auto", tool = tool }))
      end
    end
  end)

  it("judges both spellings of the home directory alike", function()
    for _, item in ipairs(ITEMS) do
      if item.path and item.path:find("^/home/u") then
        local other = { kind = item.kind, tree = item.tree, path = "/var" .. item.path }
        for _, mode in ipairs { "manual", "cautious", "auto" } do
          for _, tool in ipairs { "shell", "edit" } do
            assert.equal(effect(item, { mode = mode, tool = tool }),
              effect(other, { mode = mode, tool = tool }), item.path)
          end
        end
      end
    end
  end)
end)
