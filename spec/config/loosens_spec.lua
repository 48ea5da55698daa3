-- Which changes of settings let more run without a question.
local loosens = require "efr.config.loosens"

local function rule(effect, under)
  return { action = "write", effect = effect, resource = { under = under or "/a" } }
end

-- name, before, after: the change loosens, and the way back does not but for those marked.
local LOOSER <const> = {
  { "permissions.mode", "cautious", "auto" }, { "permissions.mode", "manual", "full" },
  { "permissions.allow_full", false, true }, { "permissions.secret_paths", { "/a", "/b" }, { "/b" } },
  { "permissions.rules", {}, { rule "allow" } }, { "permissions.rules", { rule "ask" }, {} },
  { "permissions.rules", { rule "deny" }, { rule("deny", "/b") }, both = true },
  { "permissions.rules", { rule "allow", rule "deny" }, { rule "deny", rule "allow" }, both = true },
  { "sandbox.enabled", true, false }, { "sandbox.bwrap", nil, "/x", both = true },
  { "sandbox.write_projects", "named", "all" }, { "sandbox.write_projects", "turn", "named" },
  { "sandbox.write_roots", {}, { "/a" } }, { "sandbox.caches", { "/a" }, { "/a", "/b" } },
  { "sandbox.env_keep", {}, { "A" } }, { "sandbox.env_deny", { "A" }, {} },
  { "sandbox.rebuildable", {}, { "t" } }, { "sandbox.mask", { "/a" }, {} },
  { "sandbox.mask_globs", { ".env" }, {} }, { "sandbox.mask_globs", { ".env" }, { ".env", "!.env" } },
  { "sandbox.synced_dirs", { "/a" }, {} }, { "sandbox.protect", { "/a" }, {} },
  { "sandbox.ask_destructive", "always", "unless_undoable" }, { "network.mode", "none", "proxy" },
  { "network.netview", false, true }, { "network.allow", {}, { "h" } }, { "network.deny", { "h" }, {} },
  { "network.hosts", { { host = "h", port = 1 } }, { { host = "h", port = 2 } }, both = true },
  { "network.max_upload_bytes", 1, 2 }, { "dbus.proxy", false, true }, { "jobs.forward_ports", false, true },
  { "shell.sudo_cache", "per_call", "keep" },
}

describe("config.loosens", function()
  for _, row in ipairs(LOOSER) do
    it(row[1] .. " in the one direction", function()
      assert.is_true(loosens.key(row[1], row[2], row[3]))
      assert.equal(row.both or false, loosens.key(row[1], row[3], row[2]))
      assert.is_false(loosens.key(row[1], row[2], row[2]))
    end)
  end

  it("knows nothing of the others", function()
    assert.is_false(loosens.key("model.name", "a", "b"))
    local function of(values) return function(name) return values[name] end end
    assert.same({ "permissions.mode", "sandbox.mask" }, loosens.names(
      { "sandbox.mask", "log", "permissions.mode" },
      of { ["sandbox.mask"] = { "/a" }, log = "info", ["permissions.mode"] = "cautious" },
      of { ["sandbox.mask"] = {}, log = "debug", ["permissions.mode"] = "auto" }))
  end)
end)
