local machine = require "spec.perm.machine"
local paths = require "efr.perm.paths"
local rules = require "efr.perm.rules"

local LIST = {
  { id = "0", action = "any", resource = { kind = "any" }, effect = "ask" },
  { id = "1", action = "read", resource = { kind = "any" }, effect = "allow" },
  { id = "2", action = "write", resource = { kind = "project" }, effect = "allow" },
  { id = "3", action = "any", resource = { kind = "class", class = "secrets" }, effect = "deny" },
  { id = "4", action = "read", resource = { kind = "mask" }, effect = "ask" },
}

local function decide(subject, project)
  local rule = rules.decide(LIST, subject, project, paths.prepare(machine()))
  return rule and rule.id
end

local function of_user(list)
  return rules.of_user(list, { first = 10, machine = paths.prepare(machine()),
    cite = function(_, index) return ("permissions.rules[%d]"):format(index) end })
end

describe("perm.rules", function()
  it("lets the last matching rule decide", function()
    assert.equal("1", decide { action = "read", path = "/x", class = "system" })
    assert.equal("3", decide { action = "read", path = "/x", class = "secrets" })
    assert.equal("4", decide { action = "read", path = "/x", class = "system", masked = true })
    -- A rule that does not name secrets never loosens one.
    assert.equal("3", decide { action = "read", path = "/x", class = "secrets", masked = true })
    assert.equal("0", decide { action = "execute" })
    assert.is_nil(rules.decide({}, { action = "read" }))
  end)

  it("takes writes strictly below the project only", function()
    assert.equal("2", decide({ action = "write", path = "/p/a", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/p", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/px/a", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/p/a", class = "user_data" }, nil))
  end)

  it("takes each form of the user's resources", function()
    local list = of_user {
      { action = "any", effect = "ask", resource = { any = true } },
      { action = "write", effect = "allow", resource = { under = "/var/home/u/notes" } },
      { action = "read", effect = "deny", resource = { class = "system" } },
      { action = "write", effect = "ask", resource = { project = true } },
      { action = "execute", effect = "allow",
        resource = { command = { program = "cargo", args = { "test" } } } },
      { action = "any", effect = "allow", resource = { command = { program = "curl" } } },
    }
    local function id(subject, project) return rules.decide(list, subject, project).id end
    local cargo = { words = { { text = "cargo" }, { text = "test" } } }
    local curl = { words = { { text = "curl" } } }
    assert.equal("10", id { action = "write", path = "/home/u/x", class = "user_data" })
    assert.equal("11", id { action = "write", path = "/home/u/notes/a", class = "user_data" })
    assert.equal("10", id { action = "write", path = "/home/u/notesx", class = "user_data" })
    assert.equal("12", id { action = "read", path = "/etc/x", class = "system" })
    assert.equal("13", id({ action = "write", path = "/p/a", class = "system" }, "/p"))
    assert.equal("14", id { action = "execute", command = cargo })
    assert.equal("10", id { action = "network", command = cargo })
    assert.equal("15", id { action = "execute", command = curl })
    -- `any` on a command never opens its network.
    assert.equal("10", id { action = "network", command = curl })
    assert.equal("permissions.rules[4]", list[5].cite)
  end)

  it("refuses contain and a resource of no known form", function()
    assert.has_error(function()
      of_user { { action = "any", effect = "contain", resource = { any = true } } }
    end)
    assert.has_error(function() of_user { { action = "any", effect = "ask", resource = {} } } end)
  end)
end)
