local requirements = require "efr.perm.requirements"

describe("perm.requirements", function()
  it("builds what it accepts", function()
    local all = {
      requirements.read("/a"), requirements.read("/a", { tree = true }), requirements.write("/b"),
      requirements.line("ls", "/"), requirements.network(), requirements.interactive(),
      requirements.nested_shell(), requirements.destructive(),
    }
    assert.is_true(requirements.check(all))
    assert.is_true(requirements.check {})
  end)

  it("refuses what is not well formed", function()
    for _, wrong in ipairs {
      { { kind = "reed", path = "/a" } }, { { kind = "read" } }, { { kind = "write", path = "" } },
      { { kind = "line", text = "ls" } }, { { path = "/a" } }, { "read" }, { kind = "read" },
      { [2] = { kind = "network" } }, { { kind = "read", path = "/a", tree = 1 } },
    } do
      assert.is_nil((requirements.check(wrong)))
    end
    assert.is_nil((requirements.check(nil)))
  end)
end)
