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
    for _, name in ipairs { "manual", "cautious", "auto", "full" } do
      assert.equal(name, modes.known(name, "shell"))
    end
    for _, name in ipairs { "FULL", "", "Auto", "any" } do
      assert.equal("manual", modes.known(name, "shell"))
    end
    assert.equal("manual", modes.known(nil, "shell"))
  end)

  it("caps a remote origin at cautious", function()
    for _, origin in ipairs { "phone", "watch", "" } do
      assert.equal("cautious", modes.known("auto", origin))
      assert.equal("cautious", modes.known("full", origin))
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
    assert.is_true(modes.base("auto", "shell").contained)
    assert.equal(modes.base("cautious", "edit"), modes.base("auto", "edit"))
    assert.is_false(modes.base("auto", "edit").contained)
  end)

  it("numbers the user's rules behind the base rules of each mode", function()
    for mode, first in pairs { manual = 2, cautious = 88, auto = 7, full = 2 } do
      assert.equal(first, modes.base(mode, "shell").first)
    end
  end)

  it("refuses full mode to root, without undo, without zsh, and until the setting allows it", function()
    local fine = { allow_full = true, uid = 1000, undo = true, zsh = true }
    assert.is_nil(modes.full_refusal(fine))
    for key, words in pairs { allow_full = "allow_full", uid = "root", undo = "undo", zsh = "zsh" } do
      local facts = { allow_full = true, uid = 1000, undo = true, zsh = true }
      facts[key] = nil
      assert.is_truthy(modes.full_refusal(facts):find(words, 1, true))
    end
    assert.is_truthy(modes.full_refusal { allow_full = true, uid = 0, undo = true, zsh = true })
    assert.equal("full", of_turn("full", { sandbox = { available = false } }))
  end)
end)
