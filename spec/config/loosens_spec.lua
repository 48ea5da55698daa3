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

  it("applies what is stricter of a change that waits", function()
    local function check(name, before, after, waiting)
      assert.is_true(loosens.key(name, before, after), name)
      assert.same(waiting, loosens.waiting(name, before, after), name)
      -- Read again, nothing more happens.
      assert.same(waiting, loosens.waiting(name, waiting, after), name)
    end
    check("sandbox.write_roots", { "/a", "/b" }, { "/b", "/c" }, { "/b" })
    check("network.allow", { "h" }, { "i" }, {})
    check("permissions.secret_paths", { "/a", "/b" }, { "/b", "/c" }, { "/a", "/b", "/c" })
    check("sandbox.mask", { "/a" }, {}, { "/a" })
    check("permissions.mode", "cautious", "auto", "cautious")
    check("network.max_upload_bytes", 1, 2, 1)
    local function one(effect, class)
      return { action = "read", effect = effect, resource = { class = class } }
    end
    local old, deny = one("allow", "system"), one("deny", "user_data")
    local held = { action = "read", effect = "deny", resource = { class = "user_data" }, number = 2 }
    check("permissions.rules", { old }, { one("allow", "secrets"), old, deny }, { old, held })
    assert.is_false(loosens.key("permissions.rules", { old, held }, { old, deny }))
  end)

  it("knows nothing of the others", function()
    assert.is_false(loosens.key("model.name", "a", "b"))
    local function of(values) return function(name) return values[name] end end
    assert.same({ "permissions.mode", "sandbox.mask" }, loosens.names(
      { "sandbox.mask", "log", "permissions.mode" },
      of { ["sandbox.mask"] = { "/a" }, log = "info", ["permissions.mode"] = "cautious" },
      of { ["sandbox.mask"] = {}, log = "debug", ["permissions.mode"] = "auto" }))
  end)
end)
