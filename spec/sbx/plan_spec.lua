-- The launch plan: every rule of roots, masks, floors, order and refusal as a row.
local plan = require "efr.sbx.plan"
local world = dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/sbx/world.lua")

local function mounts_of(changes, files)
  return world.mounts(assert(plan.build(world.spec(changes, files))))
end

local function has(list, wanted)
  for _, entry in ipairs(list) do
    if entry == wanted then return true end
  end
  return false
end

local function shows(row)
  local mounts = mounts_of(row.spec, row.files)
  for _, wanted in ipairs(row.has or {}) do
    assert.is_true(has(mounts, wanted), wanted .. " is missing in\n" .. table.concat(mounts, "\n"))
  end
  for _, unwanted in ipairs(row.lacks or {}) do
    assert.is_false(has(mounts, unwanted), unwanted .. " is there")
  end
end

describe("sbx.plan", function()
  it("limits memory only in a cgroup of the call's own", function()
    local limits = { memory_bytes = 4096 }
    local cgroup = { dir = "/sys/fs/cgroup/u/efr-calls", name = "call-c1-k1" }
    local text = table.concat(assert(plan.build(world.spec({ limits = limits, cgroup = cgroup }))), "|")
    assert.truthy(text:find("|cgroup|/sys/fs/cgroup/u/efr-calls|call-c1-k1|limit|memory_bytes|4096|", 1,
      true))
    text = table.concat(assert(plan.build(world.spec())), "|")
    assert.is_nil(text:find("cgroup", 1, true))
  end)

  it("names the bubblewrap that builds the call, and none for efr's own launcher", function()
    local text = table.concat(assert(plan.build(world.spec({ bwrap = "/usr/bin/bwrap" }))), "\n")
    assert.truthy(text:find("\nbwrap\n/usr/bin/bwrap\n", 1, true))
    text = table.concat(assert(plan.build(world.spec())), "\n")
    assert.is_nil(text:find("bwrap", 1, true))
  end)

  local rows = {
    { "the project is a root", has = { "root /home/u/p/app" } },
    { "/tmp, /var/tmp and the runtime directory are the call's own",
      has = { "private /tmp", "private /var/tmp", "runtime /run/user/1000" } },
    { "the scratch directory is a root inside the masked data root",
      spec = { scratch = "/home/u/.local/share/efr/scratch/one" },
      has = { "mask /home/u/.local/share/efr", "root /home/u/.local/share/efr/scratch/one" } },
    { "roots of the settings and of the call",
      spec = { write_roots = { "/home/u/w" }, extra_write = { "/opt/x" } },
      files = { ["/home/u/w"] = "dir", ["/opt/x"] = "dir" },
      has = { "root /home/u/w", "root /opt/x" } },
    { "a root is the real directory behind a link",
      spec = { write_roots = { "/home/u/l" } },
      files = { ["/home/u/l"] = { link = "/opt/x" }, ["/opt/x"] = "dir" },
      has = { "root /opt/x" }, lacks = { "root /home/u/l" } },
    { "a missing root and one that is a file are skipped",
      spec = { write_roots = { "/home/u/none", "/home/u/f" } }, files = { ["/home/u/f"] = "file" },
      lacks = { "root /home/u/none", "root /home/u/f" } },
    { "without a project nothing of the user's is writable",
      spec = { project_root = false }, lacks = { "root /home/u/p/app" } },
    { "efr's roots and the socket directories are masked",
      has = { "mask /home/u/.local/state/efr", "mask /run/user" } },
    { "git: .git is pinned, its settings and hooks are floors",
      files = { ["/home/u/p/app/.git"] = "dir", ["/home/u/p/app/.git/config"] = "file",
        ["/home/u/p/app/.git/hooks"] = "dir" },
      has = { "pin /home/u/p/app/.git", "floor /home/u/p/app/.git/config",
        "floor /home/u/p/app/.git/hooks" },
      lacks = { "floor /home/u/p/app/.git/config.worktree" } },
    { "what lies between a root and a floor cannot be renamed away",
      spec = { protect = { "/home/u/p/app/a/b/keep" } },
      files = { ["/home/u/p/app/a"] = "dir", ["/home/u/p/app/a/b"] = "dir",
        ["/home/u/p/app/a/b/keep"] = "file" },
      has = { "pin /home/u/p/app/a", "pin /home/u/p/app/a/b", "floor /home/u/p/app/a/b/keep" },
      lacks = { "pin /home/u/p/app", "pin /home/u/p" } },
    { "git: what lies above a linked hooks directory cannot be renamed away",
      files = { ["/home/u/p/app/.git"] = "dir",
        ["/home/u/p/app/.git/hooks"] = { link = "../t/h" }, ["/home/u/p/app/t"] = "dir",
        ["/home/u/p/app/t/h"] = "dir" },
      has = { "pin /home/u/p/app/t", "floor /home/u/p/app/t/h" } },
    { "git: a .git file is a floor", files = { ["/home/u/p/app/.git"] = "file" },
      has = { "floor /home/u/p/app/.git" } },
    { "git: a linked hooks directory in a root makes its target a floor",
      files = { ["/home/u/p/app/.git"] = "dir", ["/home/u/p/app/.git/hooks"] = { link = "../h" },
        ["/home/u/p/app/h"] = "dir" },
      has = { "floor /home/u/p/app/h" } },
    { "a startup file that leads into a root is a floor",
      files = { ["/home/u/.zshrc"] = { link = "p/app/zshrc" }, ["/home/u/p/app/zshrc"] = "file" },
      has = { "floor /home/u/p/app/zshrc" } },
    { "a startup file outside of every root needs no floor",
      files = { ["/home/u/.zshrc"] = "file" }, lacks = { "floor /home/u/.zshrc" } },
    { "efr's settings inside a root are a floor",
      spec = { write_roots = { "/home/u/.config" } }, has = { "floor /home/u/.config/efr" } },
    { "ZDOTDIR counts", spec = { env = { PATH = "/bin", ZDOTDIR = "/home/u/p/app/z" } },
      files = { ["/home/u/p/app/z/.zshrc"] = "file" }, has = { "floor /home/u/p/app/z/.zshrc" } },
    { "sandbox.protect is a floor inside a root", spec = { protect = { "/home/u/p/app/keep" } },
      files = { ["/home/u/p/app/keep"] = "dir" }, has = { "floor /home/u/p/app/keep" } },
    { "the target of a dotfile link is a floor",
      files = { ["/home/u/.foo"] = { link = "p/app/foo" }, ["/home/u/p/app/foo"] = "dir",
        ["/home/u/.config/bar"] = { link = "../p/app/bar" }, ["/home/u/p/app/bar"] = "file",
        ["/home/u/.local/bin/x"] = { link = "/home/u/p/app/x" }, ["/home/u/p/app/x"] = "file" },
      has = { "floor /home/u/p/app/foo", "floor /home/u/p/app/bar", "floor /home/u/p/app/x" } },
    { "a link of the home directory that begins with no dot is nobody's settings",
      files = { ["/home/u/foo"] = { link = "p/app/foo" }, ["/home/u/p/app/foo"] = "dir" },
      lacks = { "floor /home/u/p/app/foo" } },
    { "a directory on PATH inside a root is a floor",
      spec = { env = { PATH = "/bin:/home/u/p/app/bin" } }, files = { ["/home/u/p/app/bin"] = "dir" },
      has = { "floor /home/u/p/app/bin" } },
    { "what lies below a directory on PATH may be a root",
      spec = { env = { PATH = "/bin:/home/u/p" } }, lacks = { "floor /home/u/p" } },
    { "names of agents and editors count below projects and roots, as the first part",
      spec = { write_roots = { "/home/u/w" }, projects = { "/home/u/w/other" } },
      files = { ["/home/u/p/app/.claude"] = "dir", ["/home/u/w"] = "dir",
        ["/home/u/w/.envrc"] = "file", ["/home/u/w/other"] = "dir",
        ["/home/u/w/other/.vscode"] = "dir", ["/home/u/w/deep/.vscode"] = "dir" },
      has = { "floor /home/u/p/app/.claude", "floor /home/u/w/.envrc",
        "floor /home/u/w/other/.vscode" }, lacks = { "floor /home/u/w/deep/.vscode" } },
    { "targets of links in efr's settings are floors",
      files = { ["/home/u/.config/efr/rules.lua"] = { link = "/home/u/p/app/r.lua" },
        ["/home/u/p/app/r.lua"] = "file" }, has = { "floor /home/u/p/app/r.lua" } },
    { "efr's programs in a root are floors", spec = { program_dir = "/home/u/p/app/b" },
      files = { ["/home/u/p/app/b/efrd"] = "file" }, has = { "floor /home/u/p/app/b/efrd" } },
    { "more projects are roots when the call may write them",
      spec = { other_projects = { "/home/u/p/two" } }, files = { ["/home/u/p/two"] = "dir" },
      has = { "root /home/u/p/two" } },
    { "the resolver's files come back inside the masked directory",
      files = { ["/run/systemd"] = "dir", ["/run/systemd/resolve"] = "dir",
        ["/run/systemd/resolve/a.conf"] = "file", ["/run/systemd/resolve/b.conf"] = { link = "/x" },
        ["/x"] = "file" },
      has = { "mask /run/systemd", "floor /run/systemd/resolve/a.conf" },
      lacks = { "floor /x", "floor /run/systemd/resolve/b.conf" } },
    { "a grant shows what is hidden", spec = { grants = { { kind = "unmask", path = "/home/u/.kube/x" } } },
      files = { ["/home/u/.kube"] = "dir", ["/home/u/.kube/x"] = "dir" },
      has = { "mask /home/u/.kube", "floor /home/u/.kube/x" } },
    { "a grant at a mask takes it away, and its secrets stay hidden",
      spec = { grants = { { kind = "unmask", path = "/home/u/.aws" } } },
      files = { ["/home/u/.aws"] = "dir", ["/home/u/.aws/credentials"] = "file" },
      has = { "mask /home/u/.aws/credentials" }, lacks = { "mask /home/u/.aws" } },
    { "what is shown can be granted for writing too",
      spec = { grants = { { kind = "unmask", path = "/home/u/.kube/x" },
        { kind = "write", path = "/home/u/.kube/x" } } },
      files = { ["/home/u/.kube"] = "dir", ["/home/u/.kube/x"] = "dir" },
      has = { "mask /home/u/.kube", "grant /home/u/.kube/x" },
      lacks = { "floor /home/u/.kube/x" } },
    { "secrets below what a grant shows inside a mask stay hidden",
      spec = { grants = { { kind = "unmask", path = "/home/u/m/x" } }, masks = { "/home/u/m" },
        secret_paths = { "/home/u/m/x/s" } },
      files = { ["/home/u/m"] = "dir", ["/home/u/m/x"] = "dir", ["/home/u/m/x/s"] = "file" },
      has = { "mask /home/u/m", "floor /home/u/m/x", "mask /home/u/m/x/s" } },
    { "a mask beats a floor", spec = { masks = { "/home/u/p/app/zshrc" } },
      files = { ["/home/u/.zshrc"] = { link = "p/app/zshrc" }, ["/home/u/p/app/zshrc"] = "file" },
      has = { "mask /home/u/p/app/zshrc" }, lacks = { "floor /home/u/p/app/zshrc" } },
  }
  for _, row in ipairs(rows) do
    it(row[1], function() shows(row) end)
  end

  local refusals = {
    { "/ as a root", spec = { write_roots = { "/" } }, text = "holds the home directory" },
    { "the home directory", spec = { write_roots = { "/home/u" } }, text = "home directory" },
    { "above the home directory", spec = { write_roots = { "/home" } }, text = "home directory" },
    { "the home directory behind a link", spec = { write_roots = { "/l" } },
      files = { ["/l"] = { link = "/home/u" } }, text = "home directory" },
    { "the real home directory", spec = { home = "/h", write_roots = { "/home/u" } },
      files = { ["/h"] = { link = "/home/u" } }, text = "home directory" },
    { "a root at a mask", spec = { write_roots = { "/home/u/.ssh" } }, text = "is hidden" },
    { "a root inside a mask", spec = { write_roots = { "/home/u/.ssh/x" } },
      files = { ["/home/u/.ssh/x"] = "dir" }, text = "is hidden" },
    { "a root inside efr's data", spec = { write_roots = { "/home/u/.local/share/efr/x" } },
      files = { ["/home/u/.local/share/efr/x"] = "dir" }, text = "is hidden" },
    { "a scratch directory that leads elsewhere", spec = { scratch = "/home/u/s" },
      files = { ["/home/u/s"] = { link = "/home/u/.ssh" } }, text = "is hidden" },
    { "a root at a floor", spec = { write_roots = { "/home/u/.config/efr" } },
      text = "is protected" },
    { "a root inside a floor",
      spec = { write_roots = { "/home/u/p/app/.git/hooks/x" } },
      files = { ["/home/u/p/app/.git"] = "dir", ["/home/u/p/app/.git/hooks"] = "dir",
        ["/home/u/p/app/.git/hooks/x"] = "dir" }, text = "is protected" },
    { "/tmp as a root", spec = { write_roots = { "/tmp" } }, text = "its own" },
    { "a root in /dev", spec = { write_roots = { "/dev/shm" } }, files = { ["/dev/shm"] = "dir" },
      text = "its own" },
    { "a linked .git", files = { ["/home/u/p/app/.git"] = { link = "/opt/g" },
      ["/opt/g"] = "dir" }, text = "is a link" },
    { "a linked .git/config", files = { ["/home/u/p/app/.git"] = "dir",
      ["/home/u/p/app/.git/config"] = { link = "../c" }, ["/home/u/p/app/c"] = "file" },
      text = "is a link" },
    { "a floor behind a link that the call could change",
      spec = { write_roots = { "/home/u/.config" } },
      files = { ["/home/u/.config/fish"] = { link = "/opt/fish" }, ["/opt/fish"] = "dir" },
      text = "could change" },
    { "a floor behind a chain whose second link lies in a root",
      files = { ["/home/u/.zshrc"] = { link = "p/app/a" }, ["/home/u/p/app/a"] = { link = "b" },
        ["/home/u/p/app/b"] = "file" }, text = "could change the link /home/u/p/app/a" },
    { "a floor behind a link of a directory in a root",
      files = { ["/home/u/.zshrc"] = { link = "p/app/cur/rc" },
        ["/home/u/p/app/cur"] = { link = "v1" }, ["/home/u/p/app/v1"] = "dir",
        ["/home/u/p/app/v1/rc"] = "file" }, text = "could change the link /home/u/p/app/cur" },
    { "a linked name of an agent", files = { ["/home/u/p/app/.claude"] = { link = "/opt/c" },
      ["/opt/c"] = "dir" }, text = "could change" },
    { "a root at the target of a dotfile link",
      files = { ["/home/u/.foo"] = { link = "p/app" } }, text = "is protected" },
    { "a root that is a directory on PATH", spec = { env = { PATH = "/bin:/home/u/p/app" } },
      text = "is protected" },
    { "a root inside a tool's settings", spec = { write_roots = { "/home/u/.config/nvim/x" } },
      files = { ["/home/u/.config/nvim"] = "dir", ["/home/u/.config/nvim/x"] = "dir" },
      text = "is protected" },
    { "a mask behind a link that the call could change",
      files = { ["/home/u/.aws"] = { link = "p/app/cur/aws" },
        ["/home/u/p/app/cur"] = { link = "v1" }, ["/home/u/p/app/v1"] = "dir",
        ["/home/u/p/app/v1/aws"] = "dir" }, text = "is hidden, and the call could change" },
    { "to show an engine secret",
      spec = { grants = { { kind = "unmask", path = "/home/u/.ssh" } } }, text = "is a secret" },
    { "to show a file of an engine secret", spec = { grants = { { kind = "unmask", path = "/home/u/.ssh/x" } } },
      files = { ["/home/u/.ssh/x"] = "file" }, text = "is a secret" },
    { "to show efr's own data", spec = { grants = { { kind = "unmask", path = "/home/u/.local/share/efr/x" } } },
      files = { ["/home/u/.local/share/efr/x"] = "file" }, text = "is a secret" },
    { "to show what is not hidden",
      spec = { grants = { { kind = "unmask", path = "/home/u/p" } } }, text = "not hidden" },
    { "a grant of what is not there", spec = { grants = { { kind = "write", path = "/none" } } },
      text = "nothing to grant" },
    { "a write grant of a socket", spec = { grants = { { kind = "write", path = "/s" } } },
      files = { ["/s"] = "socket" }, text = "only a file or a directory" },
    { "a write grant of the home directory",
      spec = { grants = { { kind = "write", path = "/home/u" } } }, text = "home directory" },
    { "a write grant of a secret", spec = { grants = { { kind = "write", path = "/etc/shadow" } } },
      text = "is hidden" },
    { "a write grant of a floor", spec = { grants = { { kind = "write", path = "/home/u/.zshrc" } } },
      files = { ["/home/u/.zshrc"] = "file" }, text = "is protected" },
    { "a socket grant of a file", spec = { grants = { { kind = "socket", path = "/s" } } },
      files = { ["/s"] = "file" }, text = "is no socket" },
    { "a device grant elsewhere", spec = { grants = { { kind = "device", path = "/x/kvm" } } },
      files = { ["/x/kvm"] = "char" }, text = "does not lie below /dev" },
    { "a device grant of a directory", spec = { grants = { { kind = "device", path = "/dev/dri" } } },
      files = { ["/dev/dri"] = "dir" }, text = "is no device" },
    { "a device grant of a terminal",
      spec = { grants = { { kind = "device", path = "/dev/pts/3" } } },
      files = { ["/dev/pts/3"] = "char" }, text = "has its own" },
    { "an unknown grant", spec = { grants = { { kind = "all" } } }, text = "unknown grant" },
    { "a mask that would hide everything", spec = { masks = { "/m" } },
      files = { ["/m"] = { link = "/" } }, text = "cannot be hidden" },
    { "a hidden directory to start in", spec = { cwd = "/home/u/.ssh" }, text = "is hidden" },
    { "an empty PATH entry", spec = { env = { PATH = "/bin::/usr/bin" } }, text = "PATH" },
    { "a PATH that ends in a colon", spec = { env = { PATH = "/bin:" } }, text = "PATH" },
    { "a relative PATH entry", spec = { env = { PATH = "bin:/bin" } }, text = "PATH" },
    { "a directory that is not normal", spec = { cwd = "/home/u/../x" }, text = "normal path" },
  }
  for _, row in ipairs(refusals) do
    it("refuses " .. row[1], function()
      local fields, err, code = plan.build(world.spec(row.spec, row.files))
      assert.is_nil(fields)
      assert.is_truthy(err:find(row.text, 1, true), err)
      assert.are.equal("EFR_SANDBOX", code)
    end)
  end

  it("asks for nothing that was not granted, and for what was", function()
    local fields = assert(plan.build(world.spec({ grants = {
      { kind = "write", path = "/opt/f" }, { kind = "write", path = "/opt/d" },
      { kind = "socket", path = "/run/docker.sock" }, { kind = "device", path = "/dev/l" },
      { kind = "host_network" }, { kind = "userns" }, { kind = "userns" },
    }, limits = { processes = 9, file_bytes = 0, open_files = 7 } }, {
      ["/opt/f"] = "file", ["/opt/d"] = "dir", ["/run/docker.sock"] = "socket",
      ["/dev/l"] = { link = "kvm" }, ["/dev/kvm"] = "char",
    })))
    local text = "|" .. table.concat(fields, "|") .. "|"
    for _, wanted in ipairs({ "grant|/opt/f", "grant|/opt/d", "socket|/run/docker.sock",
      "device|/dev/kvm", "network|host|userns|1|limit|processes|9|limit|open_files|7" }) do
      assert.is_truthy(text:find("|" .. wanted .. "|", 1, true), wanted .. " in " .. text)
    end
    assert.is_nil(text:find("file_bytes", 1, true))
    assert.is_nil(text:find("CARGO_NET_OFFLINE", 1, true))
    text = table.concat(assert(plan.build(world.spec())), "|")
    for _, name in ipairs({ "grant", "socket", "device", "network", "userns", "limit" }) do
      assert.is_nil(text:find("|" .. name .. "|", 1, true), name)
    end
    assert.is_truthy(text:find("CARGO_NET_OFFLINE", 1, true))
  end)

  it("sorts by depth, then kind, and drops duplicates", function()
    local sorted = plan.sort({
      { kind = "floor", path = "/a/b" }, { kind = "root", path = "/a/b" },
      { kind = "mask", path = "/a/b" }, { kind = "mask", path = "/z" },
      { kind = "pin", path = "/a/b" }, { kind = "root", path = "/a/b" },
      { kind = "private", path = "/tmp" }, { kind = "floor", path = "/a" },
    })
    local seen = {}
    for i, mount in ipairs(sorted) do seen[i] = mount.kind .. " " .. mount.path end
    assert.are.same({ "mask /z", "private /tmp", "floor /a", "mask /a/b", "root /a/b", "pin /a/b",
      "floor /a/b" }, seen)
  end)

  it("tells which directories are the same outside", function()
    local _, _, _, mounts = plan.build(world.spec({
      scratch = "/home/u/.local/share/efr/scratch/one", write_roots = { "/tmp/w" },
    }, { ["/tmp/w"] = "dir" }))
    for path, shared in pairs({
      ["/home/u/p/app/x"] = true, ["/usr"] = true, ["/tmp"] = false, ["/var/tmp/x"] = false,
      ["/tmp/w/x"] = true, ["/home/u/.ssh"] = false, ["/run/user/1000/x"] = false,
      ["/home/u/.local/share/efr/scratch/one"] = true, ["/home/u/.local/share/efr"] = false,
    }) do
      assert.are.equal(shared, plan.is_shared(mounts, path), path)
    end
  end)

  it("encodes fields with a NUL after each, and no field that holds one", function()
    assert.are.equal("a\0\0b\0", plan.encode({ "a", "", "b" }))
    assert.is_nil(plan.encode({ "a\0b" }))
    assert.is_nil(plan.encode({ ("x"):rep(1024 * 1024) }))
  end)

  it("makes the golden plan, which the launcher's own tests read too", function()
    local fields = assert(plan.build(world.spec({
      caches = { "/home/u/.cache", "/home/u/.npm" }, cache_mode = "tmp", keep_downloads = true,
      layers = "/home/u/.local/state/efr/sandbox/c1", layers_name = "k1",
    }, {
      ["/home/u/p/app/.git"] = "dir", ["/home/u/p/app/.git/config"] = "file",
      ["/home/u/.cache"] = "dir", ["/home/u/.npm"] = "dir",
    })))
    local path = (os.getenv("EFR_SOURCE") or ".") .. "/tests/golden/sbx/plan"
    local file = assert(io.open(path, "rb"))
    local golden = file:read("a")
    file:close()
    assert.are.equal((golden:gsub("\n", "\0")), plan.encode(fields))
  end)
end)
