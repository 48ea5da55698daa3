local machine = require "spec.perm.machine"
local modes = require "efr.perm.modes"

local READY = { available = true }

local function of_turn(asked, changes)
  local facts = { origin = "cli", machine = machine(), sandbox = READY }
  for key, value in pairs(changes or {}) do facts[key] = value end
  return modes.of_turn(asked, facts)
end

describe("perm.modes", function()
  it("takes an unknown mode as manual", function()
    for _, name in ipairs { "manual", "cautious", "auto" } do
      assert.equal(name, modes.known(name, "shell"))
    end
    for _, name in ipairs { "full", "", "Auto", "any" } do
      assert.equal("manual", modes.known(name, "shell"))
    end
    assert.equal("manual", modes.known(nil, "shell"))
  end)

  it("caps a remote origin at cautious", function()
    for _, origin in ipairs { "phone", "watch", "" } do
      assert.equal("cautious", modes.known("auto", origin))
      assert.equal("manual", modes.known("manual", origin))
      assert.is_false(modes.is_local(origin))
    end
    assert.equal("cautious", modes.known("auto", nil))
  end)

  it("falls back to cautious and says why", function()
    assert.equal("auto", of_turn("auto"))
    local mode, fallback = of_turn("auto", { sandbox = { available = false,
      reason = "no landlock" } })
    assert.equal("cautious", mode)
    assert.same({ asked = "auto", reason = "the sandbox is not available: no landlock" }, fallback)
    mode, fallback = of_turn("auto", { scope = { kind = "project", root = "/var/home/u" } })
    assert.equal("cautious", mode)
    assert.equal("auto cannot use your home directory as a project", fallback.reason)
    assert.equal("auto", of_turn("auto", { scope = { kind = "machine" } }))
    assert.is_nil(select(2, of_turn("manual", { sandbox = { available = false } })))
  end)

  it("gives file tools the rules of cautious in auto", function()
    local auto, contained = modes.base("auto", "shell")
    assert.is_true(contained)
    local files, held = modes.base("auto", "edit")
    assert.is_false(held)
    assert.equal(modes.base("cautious", "edit"), files)
    assert.not_equal(auto, files)
  end)
end)
