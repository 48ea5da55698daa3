-- What explain says of every kind of place, from real plans on a fake disk.
require "spec.helper"
local explain = require "efr.sbx.explain"
local plan = require "efr.sbx.plan"

describe("sbx.explain", function()
  local disk, spec

  local function look(path)
    local kind = disk[path]
    if not kind then return nil end
    if kind:sub(1, 1) == ">" then
      return { real = kind:sub(2), name = path, link = true, type = disk[kind:sub(2)] }
    end
    return { real = path, name = path, link = false, type = kind }
  end

  before_each(function()
    disk = {}
    for _, dir in ipairs({
      "/", "/home", "/home/u", "/home/u/p", "/home/u/p/.git", "/home/u/p/.git/hooks",
      "/home/u/p/src", "/home/u/p/mnt", "/home/u/p/mnt/x", "/home/u/.ssh", "/home/u/.cargo",
      "/home/u/notes", "/home/u/.config", "/home/u/.config/efr", "/data", "/state", "/run/efr",
      "/tmp", "/etc", "/home/u/keys", "/home/u/.aws", "/data/scratch", "/data/scratch/s",
      "/home/u/p/docs",
    }) do disk[dir] = "dir" end
    for _, file in ipairs({
      "/home/u/p/.env", "/home/u/p/a", "/home/u/.zshrc", "/home/u/.netrc", "/etc/passwd",
    }) do disk[file] = "file" end
    disk["/home/u/p/link"] = ">/etc/passwd"
    spec = {
      uid = 1000, nonce = ("0"):rep(32), cwd = "/home/u/p", home = "/home/u",
      env = { PATH = "/usr/bin:/bin" }, tmp = "/state/tmp", xrt = "/run/efr/xrt", argv = { "true" },
      paths = { config = "/home/u/.config/efr", data = "/data", state = "/state",
        runtime = "/run/efr" },
      project_root = "/home/u/p", scratch = "/data/scratch/s", write_roots = { "/home/u/notes" },
      masks = { "/home/u/keys" }, secret_paths = { "/home/u/.netrc2", "/home/u/.aws" },
      hidden_files = { "/home/u/p/.env" }, protect = { "/home/u/p/docs" },
      caches = { "/home/u/.cargo" }, cache_mode = "tmp", layers = "/state/sandbox/c", projects = {},
      layers_name = "k1", look = look, list = function() return {} end,
      links = function() return {} end, trace = function() return {} end,
    }
  end)

  local function of(path, mounts)
    local fields, err, _, rows = plan.build(spec)
    assert(fields, err)
    return explain.path(spec, rows, path, mounts or {})
  end

  for path, want in pairs({
    ["/home/u/p/a"] = { "write_root", true, true, "writable: the project" },
    ["/home/u/p/new/file"] = { "write_root", true, true, "writable: the project" },
    ["/home/u/notes/x"] = { "write_root", true, true, "sandbox.write_roots" },
    ["/data/scratch/s"] = { "write_root", true, true, "$SCRATCH" },
    ["/home/u/p/.git"] = { "pin", true, true, "cannot be renamed" },
    ["/home/u/p/.git/hooks"] = { "floor", true, false, "hooks of git", nil, "persistence" },
    ["/home/u/p/docs"] = { "floor", true, false, "sandbox.protect", "out of sandbox.protect",
      "persistence" },
    ["/home/u/p/.env"] = { "masked", false, false, "sandbox.mask_globs", "!NAME" },
    ["/home/u/keys/a"] = { "masked", false, false, "sandbox.mask", "out of sandbox.mask" },
    ["/home/u/.ssh/id"] = { "masked", false, false, "efr's table of secrets", "nothing shows it" },
    ["/home/u/.aws"] = { "masked", false, false, "permissions.secret_paths",
      "out of permissions.secret_paths" },
    ["/state/x"] = { "masked", false, false, "efr's own files", "nothing shows it" },
    ["/tmp/x"] = { "private_tmp", true, true, "the conversation's own" },
    ["/run/efr/xrt/x"] = { "runtime", true, true, "own runtime directory" },
    ["/home/u/.cargo/x"] = { "cache_overlay", true, true, "a tool's cache", "cache_mode is tmp" },
    ["/etc/passwd"] = { "read_only", true, false, "outside of every", "efr project add", "write" },
    ["/home/u/.zshrc"] = { "read_only", true, false, "startup file", nil, "persistence" },
    ["/home/u/.config/efr/config.toml"] = { "read_only", true, false, "no command writes them" },
    ["/dev/null"] = { "device", true, false, "/dev of the call's own" },
    ["/dev/shm/x"] = { "private_tmp", true, true, "the call's own" },
    ["/proc/1/mem"] = { "proc", false, false, "first process" },
    ["/proc/1/fd/3"] = { "proc", false, false, "first process" },
    ["/proc/1/task/1/environ"] = { "proc", false, false, "first process" },
    ["/proc/1/status"] = { "proc", true, false, "own processes" },
    ["/proc/15/mem"] = { "proc", true, false, "own processes" },
    ["/proc/1"] = { "proc", true, false, "the call's own processes" },
    ["/home/u/p/link"] = { "read_only", true, false, "outside of every", "efr project add",
      "write" },
  }) do
    it(path, function()
      local out = of(path)
      assert.equal(want[1], out.role)
      assert.equal(want[2], out.read)
      assert.equal(want[3], out.write)
      assert.is_truthy(out.reason:find(want[4], 1, true), out.reason)
      assert.is_truthy(not want[5] or out.change:find(want[5], 1, true), out.change)
      assert.equal(want[6], out.write_exit)
    end)
  end

  it("knows what is granted to a call", function()
    disk["/run"], disk["/run/x.sock"], disk["/dev/kvm"] = "dir", "socket", "char"
    disk["/etc/hosts"] = "file"
    spec.grants = { { kind = "write", path = "/etc/hosts" }, { kind = "device", path = "/dev/kvm" },
      { kind = "socket", path = "/run/x.sock" }, { kind = "unmask", path = "/home/u/keys" } }
    local function seen(path)
      local out = of(path)
      return { out.role, out.read, out.write }
    end
    assert.same({ "granted", true, true }, seen("/etc/hosts"))
    assert.same({ "granted", true, true }, seen("/dev/kvm"))
    assert.same({ "granted", true, false }, seen("/run/x.sock"))
    assert.same({ "read_only", true, false }, seen("/home/u/keys"))
    assert.same({ "read_only", true, false }, seen("/etc/passwd"))
  end)

  it("names a link's target and what is missing", function()
    assert.equal("/etc/passwd", of("/home/u/p/link").real)
    assert.is_true(of("/home/u/p/nothing").missing)
    assert.is_nil(of("/home/u/p/a").missing)
  end)

  it("says whether a grant could show it", function()
    assert.equal("masked_read", of("/home/u/keys").read_exit)
    assert.is_nil(of("/home/u/.ssh").read_exit)
    assert.is_nil(of("/state").read_exit)
  end)

  it("names what lies below, and never what a hidden place holds", function()
    local out = of("/home/u/p", { "/", "/home/u/p/mnt", "/mnt" })
    assert.same({ "/home/u/p/.env" }, out.hidden_below)
    assert.same({ "/home/u/p/docs", "/home/u/p/.git/hooks" }, out.read_only_below)
    assert.same({ "/home/u/p/mnt" }, out.nested)
    out = of("/home/u/keys", { "/home/u/keys/mnt" })
    assert.is_nil(out.nested or out.hidden_below or out.read_only_below)
  end)

  it("knows that mounts inside a root stay read-only, but for a root of their own", function()
    local out = of("/home/u/p/mnt/x", { "/", "/home/u/p/mnt" })
    assert.is_false(out.write)
    assert.is_truthy(out.reason:find("the mount /home/u/p/mnt inside the write root", 1, true))
    assert.is_true(of("/home/u/p/a", { "/", "/home", "/home/u/p" }).write)
  end)

  it("reads the mount points of the kernel's list", function()
    assert.same({ "/", "/a b\\c" }, explain.mount_points(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      .. "30 22 0:40 / /a\\040b\\134c rw - tmpfs tmpfs rw\nnonsense\n"))
  end)
end)
