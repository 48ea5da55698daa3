-- The calls of the daemon with the real launcher: a line, its result, state that lasts from call to
-- call, refusals. Needs efr's own Lua state (C modules); the bytes of a result are
-- checked without it.
local calls = require "efr.sbx.calls"

describe("sbx.calls.parse_result", function()
  local nonce = ("ab"):rep(16)

  local function result(...)
    return table.concat({ "efr-result", "1", ... }, "\0") .. "\0"
  end

  it("reads the fields", function()
    local out = calls.parse_result(result("nonce", nonce, "started", "1", "landlock_abi", "7",
      "exit_code", "3", "end"), nonce)
    assert.are.same({ nonce = nonce, started = true, landlock_abi = 7, exit_code = 3 }, out)
  end)

  for name, bytes in pairs({
    ["another nonce"] = result("nonce", ("cd"):rep(16), "started", "1", "end"),
    ["no nonce"] = result("started", "1", "end"),
    ["no end"] = result("nonce", nonce, "started", "1"),
    ["an unknown field"] = result("nonce", nonce, "colour", "1", "end"),
    ["a field twice"] = result("nonce", nonce, "started", "1", "started", "1", "end"),
    ["a bad number"] = result("nonce", nonce, "exit_code", "-1", "end"),
    ["a cut"] = result("nonce", nonce, "started", "1", "end"):sub(1, -2),
    ["another magic"] = "efr-outcome\0" .. "1\0end\0",
    ["nothing"] = "",
  }) do
    it("refuses " .. name, function()
      local out, err = calls.parse_result(bytes, nonce)
      assert.is_nil(out)
      assert.is_string(err)
    end)
  end
end)

local has_modules = package.preload["efr.fs"] ~= nil
local build = os.getenv("EFR_BIN") or (os.getenv("EFR_BUILD") or "build") .. "/bin"
if not has_modules then return end

describe("sbx.calls with the launcher", function()
  local base, app, sandbox, count

  local function run_lines(launcher, dir)
    local pipe = io.popen(("PATH=/usr/bin:/bin %s run --call-dir %s 2>&1 </dev/null"):format(
      launcher, dir))
    local output = pipe:read("a")
    pipe:close()
    return output
  end

  local function contained(line, opts)
    count = count + 1
    local options = {
      conversation_id = "c1", call_id = "k" .. count, line = line, cwd = base .. "/project",
      project_root = base .. "/project", launch = "contained",
    }
    for key, value in pairs(opts or {}) do options[key] = value end
    local call, err, code = sandbox:prepare(options)
    if not call then return nil, err, code end
    local output = run_lines(call.launcher, call.dir)
    local result = assert(call:result())
    assert(call:cleanup())
    return result, output
  end

  setup(function()
    local ports = {
      fs = require "efr.fs", sys = require "efr.sys", json = require "efr.json",
      uv = require "luv", proc = require "efr.proc", assets = {
        get = function(path)
          local file = assert(io.open((os.getenv("EFR_SOURCE") or ".") .. "/" .. path, "rb"))
          local bytes = file:read("a")
          file:close()
          return bytes
        end,
      },
    }
    local home = os.getenv("HOME")
    if ports.sys.getuid() == 0 then home = "/var/lib" end
    base = ("%s/efr-calls-spec.%d"):format(home, ports.sys.getpid())
    for _, name in ipairs({ "project", "home/.ssh", "config", "data", "state", "runtime" }) do
      assert(ports.fs.mkdirs(base .. "/" .. name, 448))
    end
    local settings = {}
    app = {
      ports = setmetatable({
        sys = setmetatable({
          exe_path = function() return build .. "/efrd" end,
        }, { __index = ports.sys }),
      }, { __index = ports }),
      env = { PATH = "/usr/bin:/bin", HOME = base .. "/home" },
      paths = {
        config = base .. "/config", data = base .. "/data", state = base .. "/state",
        runtime = base .. "/runtime",
      },
      config = { get = function(_, key) return settings[key] end },
    }
    app.settings = settings
    sandbox = calls.new(app)
    count = 0
  end)

  teardown(function()
    app.ports.fs.rmtree(base)
  end)

  it("runs a line and keeps its status", function()
    local result, output = contained("print -r -- hello; exit 3")
    assert.are.equal("hello\n", output)
    assert.are.equal(3, result.exit_code)
    assert.is_true(result.started)
  end)

  it("keeps exports, functions and aliases for later contained calls, and reports the directory",
    function()
      local result = contained(
        "mkdir -p sub; cd sub; export COLOUR=blue DEBUG=1; f() { print f:$1; }")
      assert.are.equal(base .. "/project/sub", result.cwd)
      assert.are.same({ DEBUG = "1" }, result.exports)
      local _, output = contained("print $COLOUR; f x")
      assert.are.equal("blue\nf:x\n", output)
      _, output = contained("print -- ${COLOUR-none}", { conversation_id = "c2" })
      assert.are.equal("none\n", output)
    end)

  it("lets caches be written: for the call, for the conversation or not at all", function()
    local fs = app.ports.fs
    local cache = base .. "/home/.cache"
    assert(fs.mkdirs(cache, 448))
    assert(fs.mkdirs(base .. "/home/.npm", 448))
    assert(fs.write_atomic(cache .. "/old", "old\n"))
    app.settings["sandbox.caches"] = { cache, base .. "/home/.npm" }
    app.settings["sandbox.cache_mode"] = "tmp"
    app.log = { part = function() return { info = function() end, warn = error } end }
    sandbox.tidied_at = app.ports.sys.mono_us() -- the clean-up has its own spec
    app.settings["sandbox.cache_days"], app.settings["sandbox.cache_max_gib"] = 14, 20
    local enter = ("cd %s/home; "):format(base)
    local WRITE <const> = enter
      .. "rm .cache/old; print -r -- new >.cache/new; print 1 >.npm/x; ls .cache"
    local READ <const> = enter .. "print -r -- .cache/* .npm/*(N)"
    local function written_and_read(opts)
      local first, output = contained(WRITE, opts)
      assert.are.equal(0, first.exit_code, output)
      assert.are.equal("new\n", output)
      local _, seen = contained(READ, opts)
      assert.are.equal("old\n", fs.read_file(cache .. "/old"))
      assert.is_nil(fs.lstat(cache .. "/new"))
      return seen
    end
    assert.are.equal(".cache/old\n", written_and_read({}))
    app.settings["sandbox.keep_downloads"] = true
    assert.are.equal(".cache/old .npm/x\n", written_and_read({ conversation_id = "c3" }))
    assert.are.equal(".cache/new .npm/x\n", written_and_read({ cache_mode = "overlay" }))
    local _, other = contained(READ, { cache_mode = "overlay", conversation_id = "c2" })
    assert.are.equal(".cache/old\n", other)
    local _, output = contained(WRITE, { cache_mode = "readonly" })
    assert.is_truthy(output:find("ead-only file system", 1, true), output)
    assert.is_truthy(fs.lstat(base .. "/state/sandbox/c1/last-call"))
    assert.are.same({}, sandbox.live)
    app.settings["sandbox.caches"] = nil
  end)

  it("hides the .env files of projects, also those of other projects", function()
    local fs = app.ports.fs
    assert(fs.mkdirs(base .. "/other/a/b/c", 448))
    for _, name in ipairs({
      "project/.env", "project/.env.example", "other/a/b/.env.local", "other/a/b/c/.env",
    }) do
      assert(fs.write_atomic(base .. "/" .. name, "KEY=1\n", 384))
    end
    app.settings["sandbox.mask_globs"] = { ".env", ".env.*", "!.env.example" }
    app.projects = { list = function() return { { root = base .. "/other" } } end }
    local line = ("grep -c . .env .env.example %s/.env.local %s/c/.env"):format(
      base .. "/other/a/b", base .. "/other/a/b")
    for _ = 1, 2 do -- the second search has the first one's memory
      local _, output = contained(line)
      assert.are.equal(".env:0\n.env.example:1\n" .. base .. "/other/a/b/.env.local:0\n"
        .. base .. "/other/a/b/c/.env:1\n", output)
    end
    local result, output = contained("echo x >>.env")
    assert.are.equal(1, result.exit_code)
    assert.is_truthy(output:find("permission denied"))
    app.projects, app.settings["sandbox.mask_globs"] = nil, nil
    for _, name in ipairs({ ".env", ".env.example" }) do
      assert(fs.unlink(base .. "/project/" .. name))
    end
    assert(fs.rmtree(base .. "/other"))
  end)

  it("makes other projects writable as sandbox.write_projects says", function()
    local other = base .. "/second"
    assert(app.ports.fs.mkdirs(other, 448))
    app.projects = { list = function() return { { root = other } } end }
    local function writes(mode, opts)
      app.settings["sandbox.write_projects"] = mode
      return contained("echo x >" .. other .. "/f", opts).exit_code == 0
    end
    local named = { named = { other .. "/f" } }
    assert.is_true(writes("all"))
    assert.is_false(writes("named"))
    assert.is_true(writes("named", named))
    assert.is_true(writes("named", { cwd = other }))
    assert.is_false(writes("turn", named))
    app.projects, app.settings["sandbox.write_projects"] = nil, nil
    assert(app.ports.fs.rmtree(other))
  end)

  it("does not report a directory that only the call has", function()
    assert.is_nil(contained("cd /tmp").cwd)
    assert.are.equal("/usr", contained("cd /usr").cwd)
  end)

  it("hides efr's own directories and the secrets, and shows the line's own files", function()
    local _, output = contained("ls " .. base .. "/state " .. base .. "/data "
      .. base .. "/home/.ssh; ls $XDG_RUNTIME_DIR/efr-sbx")
    assert.is_nil(output:find("c1", 1, true))
    assert.is_truthy(output:find("child.zsh\neditor\nline\nreplay\n", 1, true))
  end)

  describe("a hidden file", function()
    local fs, project

    local function content(sandbox_line)
      local _, output = contained(sandbox_line)
      return output
    end

    local function secret(path)
      assert(fs.mkdirs(path:match("^(.*)/"), 448))
      assert(fs.write_atomic(path, "hidden words\n", 384))
    end

    before_each(function()
      fs, project = app.ports.fs, base .. "/project"
      app.settings["sandbox.mask_globs"] = { ".env" }
    end)

    after_each(function()
      for _, entry in ipairs(fs.readdir(project)) do
        if entry.type == "dir" then
          fs.rmtree(project .. "/" .. entry.name)
        else
          fs.unlink(project .. "/" .. entry.name)
        end
      end
      app.settings["sandbox.mask_globs"] = nil
    end)

    for name, place in pairs({
      ["deeper than the search goes"] = "a/b/c/d/e", ["where no search goes"] = "node_modules/x",
    }) do
      it("stays hidden when a command moves its directory " .. name, function()
        secret(project .. "/sub/.env")
        local to = place .. "/sub"
        contained(("mkdir -p %s && mv sub %s"):format(place, place))
        assert.are.equal("hidden words\n", fs.read_file(("%s/%s/.env"):format(project, to), 100))
        assert.are.equal("", content(("cat %s/.env"):format(to)))
        sandbox = calls.new(app) -- as after a restart
        assert.are.equal("", content(("cat %s/.env"):format(to)))
      end)
    end

    it("of sandbox.mask stays hidden when a command moves its directory", function()
      secret(project .. "/a/b/words")
      app.settings["sandbox.mask"] = { project .. "/a/b/words" }
      assert.are.equal("", content("cat a/b/words; mv a c"))
      assert.are.equal("", content("cat c/b/words"))
      app.settings["sandbox.mask"] = nil
      assert.are.equal("hidden words\n", content("cat c/b/words"))
    end)

    it("stays hidden when a command makes the project larger than the search goes", function()
      secret(project .. "/sub/.env")
      assert.are.equal("", content("cat sub/.env"))
      for i = 1, 20010 do assert(app.ports.uv.fs_symlink("x", ("%s/f%d"):format(project, i))) end
      assert.are.equal("", content("cat sub/.env"))
    end)

    it("stays hidden when a command removes the link that leads to it", function()
      secret(project .. "/words")
      assert(fs.symlink("words", project .. "/.env"))
      assert.are.equal("", content("cat words; rm .env"))
      assert.are.equal("", content("cat words"))
    end)

    it("moved during another call stays hidden for the next one", function()
      secret(project .. "/sub/.env")
      local other = assert(sandbox:prepare({
        conversation_id = "c2", call_id = "other", line = "true", cwd = project,
        project_root = project, launch = "contained",
      }))
      assert(fs.mkdirs(project .. "/node_modules", 448))
      assert(fs.rename(project .. "/sub", project .. "/node_modules/sub"))
      assert.are.equal("", content("cat node_modules/sub/.env"))
      other:cleanup()
      assert.is_nil(next(sandbox.hidden.holds))
    end)

    it("shows again what other settings show", function()
      secret(project .. "/sub/.env")
      assert.are.equal("", content("cat sub/.env"))
      app.settings["sandbox.mask_globs"] = { ".env", "!.env" }
      assert.are.equal("hidden words\n", content("cat sub/.env"))
    end)
  end)

  it("refuses what cannot be contained", function()
    local call, err, code = contained("true", { extra_write = { base .. "/home" } })
    assert.is_nil(call)
    assert.is_truthy(err:find("holds the home directory", 1, true))
    assert.are.equal("EFR_SANDBOX", code)
    for _, entry in ipairs(app.ports.fs.readdir(base .. "/runtime/sbx/c1")) do
      assert.is_truthy(entry.name:find("^%."), entry.name) -- no call's directory
    end
  end)

  it("writes only the line for a direct call", function()
    local call = assert(sandbox:prepare({
      conversation_id = "c1", call_id = "direct", line = "print 'x'\n", cwd = "/",
      launch = "direct",
    }))
    assert.are.equal("print 'x'\n", app.ports.fs.read_file(call.line_path, 100))
    assert.is_nil(call:result())
    call:cleanup()
  end)

  it("leaves no directory of a conversation once nothing is kept there", function()
    local function prepare(name)
      return assert(sandbox:prepare({
        conversation_id = "gone", call_id = name, line = "true", cwd = "/", launch = "direct",
      }))
    end
    local one, two = prepare("one"), prepare("two")
    assert(one:cleanup())
    assert.is_truthy(app.ports.fs.stat(two.line_path))
    local place = two.dir:match("^(.*)/")
    assert(two:cleanup())
    assert.is_nil((app.ports.fs.stat(place)))
    sandbox.state:put("gone", { exports = { A = "1" }, functions = {}, aliases = {} })
    assert(prepare("three"):cleanup())
    assert.is_truthy(app.ports.fs.stat(place .. "/.state"))
    sandbox:forget("gone")
    assert.is_nil((app.ports.fs.stat(place)))
  end)
end)
