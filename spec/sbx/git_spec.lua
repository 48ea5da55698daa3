-- Running efr's own git: which places it may be given, which program it is, its output, its limits.
-- Needs efr's own Lua state (C modules) and the launcher. The domain itself is tests/sbx/git.sh.
if not package.preload["efr.fs"] then return end

local async = require "efr.util.async"
local git_of = require "efr.sbx.git"
local git_world = require "spec.support.git_world"

describe("sbx.git", function()
  local ports = git_world.ports
  local base, app, settings

  local function shell(line)
    assert(os.execute(("cd '%s' && { %s; } >/dev/null 2>&1"):format(base, line)))
  end

  local function run(what)
    local out
    async.spawn(function() out = table.pack(git_of.new(app):run(what)) end)
    ports.uv.run()
    assert(out, "run did not end")
    return table.unpack(out, 1, out.n)
  end

  setup(git_world.timers)

  before_each(function()
    base = git_world.base("git-spec", { "project/d", "home/.ssh", "home/p", "config", "data/store",
      "state", "runtime" })
    settings = {}
    app = git_world.app(base, settings)
    shell("cd project && git init -q -b main && echo text > d/f && git add . && "
      .. "git -c user.name=a -c user.email=a@b commit -qm one")
  end)

  after_each(function() ports.fs.rmtree(base) end)

  it("gives the output, what it said of errors, and its status", function()
    local root = base .. "/project"
    assert.same({ code = 0, out = "one\n", err = "" },
      run { root = root, args = { "log", "--format=%s" } })
    local got = run { root = root, args = { "log", "no-such-ref" } }
    assert.equal(128, got.code)
    assert.matches("no%-such%-ref", got.err)
  end)

  it("takes input, and gives binary output whole", function()
    local bytes = ("\0\255\n"):rep(100000)
    local root, store = base .. "/project", base .. "/data/store"
    shell("git init -q --bare data/store")
    local env = { GIT_DIR = store }
    local got = run { root = root, store = store, env = env, stdin = bytes,
      args = { "hash-object", "-w", "--stdin" } }
    assert.equal("", got.err)
    got = run { root = root, git_dirs = { store }, env = env,
      args = { "cat-file", "blob", got.out:match("%x+") } }
    assert.equal(bytes, got.out)
  end)

  it("stops at the limits of bytes and time", function()
    local root = base .. "/project"
    local _, _, code = run { root = root, args = { "help", "-a" }, max_bytes = 10 }
    assert.equal("EFR_TOO_BIG", code)
    shell("rm project/.git/config && mkfifo project/.git/config")
    _, _, code = run { root = root, args = { "status" }, timeout_ms = 100 }
    assert.equal("EFR_TIMEOUT", code)
  end)

  it("ends with whoever waits", function()
    local root = base .. "/project"
    shell("rm project/.git/config && mkfifo project/.git/config")
    local token, out = async.token(), nil
    async.spawn(function()
      local ask = git_of.new(app):within(60000, token)
      out = { select(3, ask { root = root, args = { "status" } }),
        select(3, ask { root = root, args = { "status" } }) }
    end)
    assert.is_nil(out)
    token:cancel("interrupted")
    ports.uv.run()
    assert.same({ "EFR_CANCELLED", "EFR_CANCELLED" }, out)
  end)

  it("refuses a root that holds the home, a secret or efr's files, or lies in a secret", function()
    for path, why in pairs({
      ["/"] = "not /", [base] = "holds the home", [base .. "/home"] = "holds the home",
      [base .. "/home/.ssh"] = "is a secret", [base .. "/data"] = "holds files of efr",
      ["relative"] = "absolute",
    }) do
      local out, err, code = run { root = path, args = { "status" } }
      assert.is_nil(out)
      assert.equal("EFR_GIT", code)
      assert.matches(why, err, 1, true)
    end
    settings["permissions.secret_paths"] = { base .. "/project/d" }
    local _, err = run { root = base .. "/project", args = { "status" } }
    assert.matches("holds the secret", err, 1, true)
    _, err = run { root = base .. "/project/d", args = { "status" } }
    assert.matches("is a secret", err, 1, true)
  end)

  it("refuses the same places as git directories and files to read", function()
    for _, key in ipairs({ "git_dirs", "read" }) do
      local _, err = run { root = base .. "/project", [key] = { base .. "/home/.ssh" },
        args = { "status" } }
      assert.matches("is a secret", err, 1, true)
    end
  end)

  it("takes no git from a place where a call can write", function()
    local fake = "#!/bin/sh\necho fake\n"
    for _, dir in ipairs({ "project/bin", "home/bin", "data/bin" }) do
      assert(ports.fs.mkdirs(base .. "/" .. dir, 448))
      assert(ports.fs.write_atomic(base .. "/" .. dir .. "/git", fake, 493))
    end
    app.projects = { list = function() return { { root = base .. "/project" } } end }
    local dirs = { base .. "/project/bin", base .. "/home/bin", base .. "/data/bin", "bin", "" }
    app.env.PATH = table.concat(dirs, ":")
    local out, err = run { root = base .. "/project", args = { "log", "--format=%s" } }
    assert.is_nil(out)
    assert.matches("not installed", err)
    app.env.PATH = app.env.PATH .. ":/usr/bin:/bin"
    assert.equal("one\n", run({ root = base .. "/project", args = { "log", "--format=%s" } }).out)
  end)

  it("leaves no descriptor open", function()
    local function count() return #ports.fs.readdir("/proc/self/fd") end
    run { root = base .. "/project", args = { "status" }, stdin = "x" }
    local before = count()
    for _ = 1, 5 do
      run { root = base .. "/project", args = { "status" }, stdin = "x" }
      run { root = base .. "/project", args = { "help", "-a" }, max_bytes = 10 }
    end
    assert.equal(before, count())
  end)
end)
