local rules = require "efr.perm.rules"

local LIST = {
  { id = "0", action = "any", resource = { kind = "any" }, effect = "ask" },
  { id = "1", action = "read", resource = { kind = "any" }, effect = "allow" },
  { id = "2", action = "write", resource = { kind = "project" }, effect = "allow" },
  { id = "3", action = "any", resource = { kind = "class", class = "secrets" }, effect = "deny" },
  { id = "4", action = "read", resource = { kind = "mask" }, effect = "ask" },
}

local function decide(subject, project)
  local rule = rules.decide(LIST, subject, project)
  return rule and rule.id
end

describe("perm.rules", function()
  it("lets the last matching rule decide", function()
    assert.equal("1", decide { action = "read", path = "/x", class = "system" })
    assert.equal("3", decide { action = "read", path = "/x", class = "secrets" })
    assert.equal("4", decide { action = "read", path = "/x", class = "secrets", masked = true })
    assert.equal("0", decide { action = "execute" })
    assert.is_nil(rules.decide({}, { action = "read" }))
  end)

  it("takes writes strictly below the project only", function()
    assert.equal("2", decide({ action = "write", path = "/p/a", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/p", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/px/a", class = "user_data" }, "/p"))
    assert.equal("0", decide({ action = "write", path = "/p/a", class = "user_data" }, nil))
  end)
end)
