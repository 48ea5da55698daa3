local nearest = require "efr.util.nearest"

local NAMES <const> = { "permissions.mode", "model.provider", "log", "model.name", "render.name" }

describe("the nearest name", function()
  it("is the one with the fewest letters changed", function()
    local rows = {
      ["permissions.moed"] = "permissions.mode", ["prmissions.mode"] = "permissions.mode",
      ["model.providers"] = "model.provider", lgo = "log", ["xodel.name"] = "model.name",
      mode = "permissions.mode", name = "model.name",
    }
    for name, wanted in pairs(rows) do
      assert.equal(wanted, nearest.find(name, NAMES), name)
    end
  end)

  it("is nothing for a name that is near to none", function()
    for _, name in ipairs { "", "x", "colour", "permissions", ("l"):rep(100) } do
      assert.is_nil(nearest.find(name, NAMES), name)
    end
    assert.is_nil(nearest.find("log", {}))
  end)
end)
