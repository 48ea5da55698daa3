-- Which paths of a call a snapshot covers, on real trees: ahead of the decision, and once more with the
-- call's own trees. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local coverage = require "efr.conv.coverage"
local snap = require "spec.support.snap"
local world = require "spec.undo.world"

describe("conv.coverage", function()
  local w, turn

  setup(snap.setup)
  before_each(function()
    w = world.new("coverage")
    w.settings["snapshot.max_file_mib"] = 1
    turn = { app = w.app, settings = { mode = "auto" }, project_root = w.project }
    w.shell("mkdir -p d/e big n; echo 1 > a; chmod 600 a; echo 2 > d/e/f; truncate -s 2M big/x; "
      .. "git init -q n/repo; ln -s d l; mkfifo p; mkdir -m 700 shut; echo s > shut/s")
  end)
  after_each(function() w.remove() end)

  local function paths(line, ...)
    local call = { requirements = {}, facts = {} }
    for i, path in ipairs({ ... }) do
      call.requirements[i] = { kind = "write", path = path:sub(1, 1) == "/" and path
        or w.project .. "/" .. path }
    end
    local out = {}
    call.facts.covered_paths = snap.wait(coverage.paths, turn, call, { { kind = "line", text = line } })
    for path in pairs(call.facts.covered_paths or {}) do out[#out + 1] = path:sub(#w.project + 2) end
    table.sort(out)
    return out, call
  end

  it("covers what the tree of now holds whole", function()
    assert.same({ "a", "d", "d/e/f", "shut" }, (paths("rm -r x", "a", "d", "d/e/f", "shut")))
  end)

  it("covers nothing that was left out, is a link, is missing, or is no part of the root", function()
    assert.same({}, (paths("rm -r x", "big", "big/x", "n", "n/repo", "l", "l/e/f", "p", "none", ".",
      "../home", "/", "/etc/passwd", "d/../a")))
  end)

  it("looks only for lines that can throw away, in auto, with undo on", function()
    assert.same({}, (paths("echo x", "a")))
    assert.same({ "a" }, (paths(": > a", "a")))
    assert.same({ "a" }, (paths("truncate -s 0 a", "a")))
    for key, value in pairs { ["undo.enabled"] = false, ["snapshot.enabled"] = false,
      ["sandbox.ask_destructive"] = "always" } do
      local was = w.settings[key]
      w.settings[key] = value
      assert.same({}, (paths("rm a", "a")), key)
      w.settings[key] = was
    end
    turn.settings.mode = "cautious"
    assert.same({}, (paths("rm a", "a")))
  end)

  it("looks again with the trees of the call", function()
    local _, call = paths("rm -r d", "d")
    call.snapshot = w.begin("t1")
    assert.is_true((snap.wait(coverage.holds_still, turn, call)))
    w.finish(call.snapshot)
    w.shell("truncate -s 2M d/e/big")
    call.snapshot = w.begin("t1")
    local held, path = snap.wait(coverage.holds_still, turn, call)
    assert.is_false(held)
    assert.equal(w.project .. "/d", path)
    w.finish(call.snapshot)
  end)
end)
