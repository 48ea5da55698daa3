-- What an always rule covers: each condition with a line that it covers and one that it does not.
require "spec.helper"
local always = require "efr.perm.always"
local calls = require "spec.perm.calls"
local list = require "efr.util.list"

local RULE <const> = { kind = "write", under = "/home/u/notes", cite = "sandbox.allow[0]: x" }

-- The disk of the corpus with links: name -> real path, or false for one that leads nowhere.
local function ports(links)
  return {
    stat = function(path)
      return links[path] == false and "missing" or calls.ports.stat(links[path] or path)
    end,
    realpath = function(path)
      if links[path] ~= nil then return links[path] or nil end
      return calls.ports.stat(path) ~= "missing" and path or nil
    end,
    is_link = function(path) return links[path] ~= nil end,
    rebuildable = { target = true },
  }
end

local function decide(line, changes)
  changes = changes or {}
  local facts = { always = changes.always or { RULE } }
  for name, value in pairs(changes.facts or {}) do facts[name] = value end
  return (calls.decide(line, {
    facts = facts, ports = ports(changes.links or {}), more = changes.more, mode = changes.mode,
    machine = changes.machine, lua = changes.lua, rules = changes.rules, tool = changes.tool,
    cwd = changes.cwd,
  }))
end

local function is_covered(decision)
  local n = 0
  for _, exit in ipairs(decision.exits) do n = n + (exit.approver == "rule" and 1 or 0) end
  assert.is_true(n == 0 or n == #decision.exits, "a call is covered as a whole or not at all")
  if n == 0 then
    assert.not_equal("contain", decision.effect)
    return false
  end
  assert.equal("contained", decision.launch)
  assert.equal(RULE.cite, decision.exits[1].cite)
  return decision.effect == "contain"
end

local SOCKET <const> = { kind = "socket", socket = "/home/u/p/x.sock", cite = RULE.cite }
local HOST <const> = { kind = "host", host = "h.org", port = 443, cite = RULE.cite }

local function needs(what) return { { kind = "needs", needs = what } } end

local function proxy(deny)
  return { network = { mode = "proxy", allow = {}, presets = {}, deny = deny } }
end

local function rule_on(path, effect)
  return { { action = "write", resource = { under = path }, effect = effect } }
end

-- Each: words, covered {line, changes}, not covered {line, changes}.
local CONDITIONS <const> = {
  { "every exit of the call", { "touch ~/notes/a.md ~/notes/b.md" },
    { "touch ~/notes/a.md ~/other" } },
  { "a kind that a reviewer may decide", { "touch ~/notes/a.md" }, { "touch ~/.zshrc",
    { always = { { kind = "write", under = "/home/u/.zshrc", cite = RULE.cite } } } } },
  { "no masked read beside it", { "cat ~/notes/a.md > ~/notes/b" },
    { "cat ~/.aws/config > ~/notes/b" } },
  { "no upload", { "touch ~/notes/a.md" }, { "touch ~/notes/a.md; scp x h:" } },
  { "contained", { "echo a > ~/notes/a.md" }, { "sudo touch ~/notes/a.md" } },
  { "a narrow grant", { "touch ~/notes/a.md" },
    { "touch ~/notes/a.md; curl https://h.org", { always = { RULE, HOST } } } },
  { "the directory itself and below it", { "touch ~/notes/a.md" }, { "touch ~/notes2" } },
  { "no link at the end", { "echo a > ~/notes/a.md" },
    { "echo a > ~/notes/a.md", { links = { ["/home/u/notes/a.md"] = "/home/u/Documents/x" } } } },
  { "no link from its own place to its own place", { "echo a > ~/notes/a.md" },
    { "echo a > ~/notes/l", { links = { ["/home/u/notes/l"] = "/home/u/notes/a.md" } } } },
  { "no link in between", { "echo a > ~/notes/a.md" },
    { "echo a > ~/notes/d/x", { links = { ["/home/u/notes/d"] = "/home/u/Documents" } } } },
  { "no link that leads nowhere", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { links = { ["/home/u/notes/b"] = false } } } },
  { "no floor in what is opened", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { facts = { more_floors = { "/home/u/notes/zshrc" } } } } },
  { "no floor that does not exist yet", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { machine = { floors = { { path = "/home/u/notes/later",
      group = "protect" } } } } } },
  { "no synced directory in it", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { machine = { synced = { "/home/u/notes/shared" } } } } },
  { "no project in it", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { machine = { project_roots = { "/home/u/p/efr", "/home/u/notes/p" } } } } },
  { "no git directory", { "cp a.txt ~/notes/b" }, { "cp a.txt ~/notes/.git/b" } },
  { "no secret in it", { "cp a.txt ~/notes/b" },
    { "cp a.txt ~/notes/b", { machine = { secret_paths = { "/home/u/notes/key" } } } } },
  { "no own deny below it", { "cp a.txt ~/notes/b", { rules = rule_on("/home/u/else", "deny") } },
    { "cp a.txt ~/notes/b", { rules = rule_on("/home/u/notes/x", "deny") } } },
  { "no own ask on it", { "cp a.txt ~/notes/b", { rules = rule_on("/home/u/notes", "allow") } },
    { "cp a.txt ~/notes/b", { rules = rule_on("/home/u/notes", "ask") } } },
  { "its project", { "touch ~/notes/a.md", { always = { { kind = "write", under = RULE.under,
    project = "/home/u/p/efr", cite = RULE.cite } } } },
    { "touch ~/notes/a.md", { always = { { kind = "write", under = RULE.under,
      project = "/home/u/p/app", cite = RULE.cite } } } } },
  { "a rule without a problem", { "touch ~/notes/a.md" },
    { "touch ~/notes/a.md", { always = { { kind = "write", under = RULE.under, cite = RULE.cite,
      problem = "a link" } } } } },
  { "a socket by its own name", { "ls", { always = { { kind = "socket", socket = "/tmp/x.sock",
    cite = RULE.cite } }, more = needs { sockets = { "/tmp/x.sock" } },
    links = { ["/tmp/x.sock"] = "/tmp/x.sock" } } },
    { "ls", { always = { { kind = "socket", socket = "/tmp/x.sock", cite = RULE.cite } },
      more = needs { sockets = { "/tmp/x.sock" } }, links = { ["/tmp/x.sock"] = "/tmp/y.sock" } } } },
  { "the socket of the rule", { "ls", { always = { SOCKET }, more =
    needs { sockets = { SOCKET.socket } } } }, { "ls", { always = { SOCKET },
    more = needs { sockets = { "/home/u/p/y.sock" } } } } },
  { "no bus and no engine", { "ls", { always = { SOCKET },
    more = needs { sockets = { SOCKET.socket } } } }, { "ls", { always = { { kind = "socket",
    socket = "/run/docker.sock", cite = RULE.cite } },
    more = needs { sockets = { "/run/docker.sock" } } } } },
  { "the host of the rule", { "curl https://h.org", { always = { HOST }, facts = proxy() } },
    { "curl https://x.h.org", { always = { HOST }, facts = proxy() } } },
  { "its port", { "curl https://h.org", { always = { HOST }, facts = proxy() } },
    { "curl http://h.org", { always = { HOST }, facts = proxy() } } },
  { "no host that the user refuses", { "curl https://h.org", { always = { HOST }, facts = proxy {} } },
    { "curl https://h.org", { always = { HOST }, facts = proxy { "h.org" } } } },
  { "auto", { "touch ~/notes/a.md" }, { "touch ~/notes/a.md", { mode = "cautious" } } },
}

describe("perm.always", function()
  for _, row in ipairs(CONDITIONS) do
    it("covers only with: " .. row[1], function()
      assert.is_true(is_covered(decide(row[2][1], row[2][2])), row[2][1])
      assert.is_false(is_covered(decide(row[3][1], row[3][2])), row[3][1])
    end)
  end

  it("covers no file tool", function()
    local decision = decide("true", { tool = "write_file",
      more = { { kind = "write", path = "/home/u/notes/a.md" } } })
    for _, exit in ipairs(decision.exits) do assert.not_equal("rule", exit.approver) end
  end)

  it("covers nothing with a rule that itself opens too much", function()
    local wide = { kind = "write", under = "/home/u/Documents", cite = RULE.cite }
    local changes = { always = { wide }, machine = { floors = { {
      path = "/home/u/Documents/x", group = "protect" } } } }
    assert.is_false(is_covered(decide("echo a > ~/Documents/sub/y", changes)))
    assert.is_true(is_covered(decide("echo a > ~/Documents/y", { always = { wide } })))
  end)

  it("offers one rule that would cover the rest, and none for what the call makes", function()
    local function proposal(line, changes)
      changes = changes or {}
      changes.always = changes.always or {}
      return always.proposal(decide(line, changes))
    end
    assert.same({ kind = "write", under = "/home/u/notes" }, proposal("cp a.txt ~/notes/b"))
    assert.is_nil(proposal("echo a > ~/notes/new"))
    assert.is_nil(proposal("mkdir ~/notes/new"))
    assert.is_nil(proposal("cp a.txt ~/notes/b; cp a.txt ~/Documents/b"))
    assert.same({ kind = "write", under = "/home/u/Documents" },
      proposal("cp a.txt ~/notes/b; cp a.txt ~/Documents/b", { always = { RULE } }))
    assert.is_nil(proposal("sudo true"))
    assert.is_nil(proposal("curl https://h.org"))
    assert.same({ kind = "host", host = "h.org", port = 443 },
      proposal("curl https://h.org", { facts = proxy() }))
    assert.same({ kind = "socket", socket = "/tmp/x.sock" },
      proposal("ls", { more = needs { sockets = { "/tmp/x.sock" } } }))
  end)

  it("says why a rule covers nothing", function()
    local on = always.setting { machine = calls.machine(), rules = {}, more_floors = {} }
    for path, why in pairs({
      ["/home/u"] = "is protected", ["/home/u/.config/systemd/user"] = "is protected",
      ["/home/u/p"] = "project", ["/home/u/Dropbox/x"] = "other machines",
      ["/home/u/.config/efr/x"] = "efr's configuration",
      ["/home/u/x/.git/y"] = "git directory", ["/home/u/.ssh/x"] = "secret",
    }) do
      local reason = always.problem(on, { kind = "write", under = path })
      assert.is_truthy(reason and reason:find(why, 1, true), path .. ": " .. tostring(reason))
    end
    assert.is_nil(always.problem(on, { kind = "write", under = "/home/u/notes" }))
    assert.same({}, list.filter({ always.problem(on, HOST) }, function(x) return x end))
  end)
end)
