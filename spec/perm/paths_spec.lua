local machine = require "spec.perm.machine"
local paths = require "efr.perm.paths"

local M = machine()

local function class(path) return paths.class(assert(paths.normalise(path, M)), M) end

local CLASSES = {
  { "/home/u/notes.txt", "user_data" }, { "/home/u", "user_data" },
  { "/home/u/p/app/a.c", "user_data" },
  { "/home/u/.zshrc", "user_config" }, { "/home/u/.config/nvim/init.lua", "user_config" },
  { "/home/u/.local", "user_config" }, { "/home/u/.local/bin/x", "user_config" },
  { "/home/u/.local/share/x", "user_data" }, { "/home/u/.local/state", "user_data" },
  { "/home/u/.cache/x", "user_data" }, { "/home/u/.cachex", "user_config" },
  { "/home/u/.local/share/efr/scratch/2026-01-01-x-abc/f", "scratch" },
  { "/home/u/.local/share/efr/scratch/2026-01-01-x-abcd/f", "user_data" },
  { "/home/u/.config/efr/config.toml", "user_config" }, { "/srv/conf/x", "user_config" },
  { "/srv/confx", "system" }, { "/etc/passwd", "system" }, { "/", "system" }, { "/home", "system" },
  { "/home/user2/x", "system" }, { "/tmp/x", "system" },
  { "/home/u/p/app/.git", "user_config" }, { "/home/u/p/app/.git/config", "user_config" },
  { "/home/u/p/app/.gitignore", "user_data" }, { "/home/u/p/x.git/y", "user_data" },
  { "/home/u/.local/share/efr/scratch/2026-01-01-x-abc/.git/config", "user_config" },
  { "/srv/x/.git/config", "system" },
  { "/home/u/keys", "secrets" }, { "/home/u/keys/a", "secrets" }, { "/home/u/keysx", "user_data" },
  { "/opt/vault/x", "secrets" }, { "/home/u/.local/share/efr/secrets/x.json", "secrets" },
  { "/etc/shadow", "secrets" }, { "/etc/shadow-", "system" }, { "/etc/gshadow", "secrets" },
  { "/home/u/.sshx", "user_config" }, { "/home/u/.ssh/id", "secrets" },
  { "/home/u/p/.ssh/id", "user_data" },
}

local SECRETS = {
  ".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".netrc", ".aws/credentials",
  ".aws/sso/cache", ".azure", ".config/gcloud", ".docker/config.json", ".kube/config",
  ".codex/auth.json", ".git-credentials", ".config/gh/hosts.yml", ".npmrc", ".pypirc",
  ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".vault-token",
  ".terraform.d/credentials.tfrc.json", ".config/hub", ".config/github-copilot", ".gcm",
}

describe("perm.paths", function()
  for _, row in ipairs(CLASSES) do
    it("puts " .. row[1] .. " into " .. row[2], function() assert.equal(row[2], class(row[1])) end)
  end

  it("knows every engine secret, in both spellings of home, and no longer name", function()
    for _, name in ipairs(SECRETS) do
      for _, home in ipairs { "/home/u", "/var/home/u", "/home/./x/..//u" } do
        assert.equal("secrets", class(home .. "/" .. name), name)
        assert.equal("secrets", class(home .. "/" .. name .. "/below"), name)
      end
      assert.not_equal("secrets", class("/home/u/" .. name .. "x"), name)
    end
  end)

  it("lists the secret places", function()
    local secrets = require("efr.util.list").set(paths.secrets(M))
    for _, path in ipairs { "/home/u/.ssh", "/etc/shadow", "/home/u/keys",
      "/home/u/.local/share/efr/secrets" } do
      assert.is_true(secrets[path])
    end
    assert.equal(24 + 2 + 2 + 1, #paths.secrets(M))
  end)

  it("lists every secret in docs/permissions.md", function()
    local file = assert(io.open("docs/permissions.md"))
    local doc = file:read("a")
    file:close()
    for _, name in ipairs(SECRETS) do
      assert.is_truthy(doc:find("`" .. name .. "`", 1, true), name)
    end
  end)

  it("knows the forms of /proc", function()
    for _, name in ipairs { "environ", "root", "cwd", "fd", "map_files", "mem" } do
      for _, base in ipairs { "1", "self", "thread-self", "self/task/7" } do
        assert.equal("secrets", class("/proc/" .. base .. "/" .. name))
        assert.equal("secrets", class("/proc/" .. base .. "/" .. name .. "/x"))
      end
    end
    for _, path in ipairs { "/proc/self/status", "/proc/self/fdinfo", "/proc/environ",
      "/proc/self/task/7/comm", "/proc/self/task/environ", "/proc/sys/kernel/mem" } do
      assert.equal("system", class(path))
    end
    for _, tree in ipairs { "/", "/proc", "/proc/1", "/proc/self/task", "/proc/self/task/1" } do
      assert.is_true(paths.holds_secret(tree, M), tree)
    end
    assert.is_false(paths.holds_secret("/proc/self/net", M))
  end)

  it("normalises", function()
    local rows = {
      { "/a/./b//c/", "/a/b/c" }, { "/a/../../b", "/b" }, { "/", "/" },
      { "/var/home/u", "/home/u" },
      { "/var/home/u/x", "/home/u/x" }, { "/var/home/ux", "/var/home/ux" },
      { "/var/home/u/../v", "/var/home/v" }, { "/x/../var/home/u/.ssh", "/home/u/.ssh" },
    }
    for _, row in ipairs(rows) do assert.equal(row[2], paths.normalise(row[1], M)) end
    assert.is_nil(paths.normalise("a/b", M))
    assert.is_nil(paths.normalise("", M))
    assert.is_nil(paths.normalise("/a\0b", M))
  end)

  -- Other spellings of one path: detours, doubled slashes, the other name of home.
  it("gives one class to every spelling of a path", function()
    local function detour(path)
      local out = {}
      for part in path:gmatch("[^/]+") do
        local roll = math.random(5)
        if roll == 1 then out[#out + 1] = "." end
        if roll == 2 then out[#out + 1] = "" end
        if roll == 3 then out[#out + 1] = "x/.." end
        out[#out + 1] = part
      end
      return "/" .. table.concat(out, "/") .. ("/"):rep(math.random(0, 2))
    end
    math.randomseed(5)
    for _, row in ipairs(CLASSES) do
      for _ = 1, 20 do
        assert.equal(row[2], class(detour(row[1])))
        local inside = row[1]:match("^/home/u(.*)$")
        if inside then assert.equal(row[2], class(detour("/var/home/u" .. inside))) end
      end
      local normal = paths.normalise(row[1], M)
      assert.equal(normal, paths.normalise(normal, M))
    end
  end)

  it("raises on a machine that makes no sense", function()
    for _, wrong in ipairs {
      { home = "/" }, { home = "u" }, { aliases = { "/" } }, { aliases = { "/home" } },
      { aliases = { "/home/u/x" } }, { aliases = { "/a", "/a/b" } }, { aliases = { "rel" } },
    } do
      assert.has_error(function() paths.normalise("/x", machine(wrong)) end)
    end
    assert.equal("/x", paths.normalise("/x", machine { aliases = { "/home/u" } }))
  end)

  it("sees what lies below", function()
    assert.is_true(paths.holds_secret("/home/u", M))
    assert.is_true(paths.holds_secret("/home/u/.aws", M))
    assert.is_false(paths.holds_secret("/home/u/.ssh", M))
    assert.is_false(paths.holds_secret("/home/u/p", M))
    assert.is_true(paths.holds_write_sealed("/home/u/dotfiles", M))
    assert.is_false(paths.holds_write_sealed("/home/u/dotfiles/efr.toml", M))
    assert.is_true(paths.is_write_sealed("/home/u/.config/efr/rules.d/x.lua", M))
    assert.is_false(paths.is_write_sealed("/home/u/.config/efrx", M))
    assert.is_true(paths.is_masked("/home/u/.mozilla/x", M))
    assert.is_true(paths.is_sealed("/home/u/.local/share/efr/secrets", M))
    assert.is_false(paths.is_sealed("/x", { home = "/home/u" }))
  end)

  it("never takes the home directory or what is above it as a project", function()
    for _, root in ipairs { "/", "/home", "/home/u", "/var/home/u", "/home/u/p/..", "rel" } do
      assert.is_nil(paths.project_root(root, M))
    end
    assert.equal("/home/u/p", paths.project_root("/var/home/u/p/", M))
  end)
end)
