-- The probe: its judgement of what the self-test printed, real launches that hold and that fail, each
-- stage that gives no answer, and what is remembered. Needs efr-lua for the launches. Not covered: a
-- daemon (e2e/sandbox.sh), that each check sees its hole (tests/sbx/selftest.sh).
local probe = require "efr.sbx.probe"

describe("sbx.probe.judge", function()
  local function report(change)
    local lines = {}
    for i, row in ipairs(probe.CHECKS) do
      lines[i] = row[1] .. " " .. ((change or {})[row[1]] or "ok")
      if (change or {})[row[1]] == false then lines[i] = "" end
    end
    return table.concat(lines, "\n") .. "\n"
  end

  it("holds when every check does", function()
    local checks, reason = probe.judge(report())
    assert.is_nil(reason)
    assert.equal(#probe.CHECKS, #checks)
    assert.same({ name = "write_inside", outcome = "ok" }, checks[1])
  end)

  for name, case in pairs({
    ["a failure"] = { report({ tcp = "FAILED: it worked" }), "self-test: tcp: it worked" },
    ["a check without an answer"] = { report({ mptcp = false }),
      "self-test: mptcp: gave no answer" },
    ["nothing at all"] = { "", "self-test: write_inside: gave no answer" },
    ["a check that was skipped"] = { report({ tty = "skipped" }), "self-test: tty: skipped" },
    ["other words"] = { report({ vsock = "okay" }), "self-test: vsock: okay" },
    ["a second line that says ok"] = { report({ tcp = "FAILED: EPERM" }) .. "tcp ok\n",
      "self-test: tcp: EPERM" },
  }) do
    it("fails for " .. name, function()
      local _, reason = probe.judge(case[1])
      assert.equal(case[2], reason)
    end)
  end

  it("lets the cache be skipped", function()
    local checks, reason = probe.judge(report({ cache_write = "skipped" }))
    assert.is_nil(reason)
    assert.equal("skipped", checks[16].outcome)
  end)
end)

if not package.preload["efr.fs"] then return end
local async = require "efr.util.async"
local contained = require "spec.support.contained"
local ports = contained.ports

describe("sbx.probe with the launcher", function()
  local w, logged, events

  -- Runs fn as a task on the real loop and returns its values.
  local function wait(fn)
    local values
    async.spawn(function() values = table.pack(fn()) end)
    for _ = 1, 10000 do
      if values then break end
      ports.uv.run("once")
    end
    assert(values, "it never ended")
    return table.unpack(values, 1, values.n)
  end

  before_each(function()
    async.setup({
      timer = function(ms, fn)
        local timer = ports.uv.new_timer()
        timer:start(ms, 0, fn)
        return function()
          if not timer:is_closing() then timer:close() end
        end
      end,
      on_error = error,
    })
    w = contained.new({})
    w:file("home/.ssh/id_test")
    logged, events = {}, {}
    w.app.log = { part = function()
      return { warn = function(_, words, ...) logged[#logged + 1] = words:format(...) end }
    end }
    w.app.store = { append = function(_, batch)
      events[#events + 1] = batch.events[1]
      return { 1 }
    end }
  end)

  after_each(function() w:close() end)

  -- Another program in the launcher's place.
  local function fake_launcher(script)
    w:file("bin/efr-sbx", "#!/bin/sh\n" .. script .. "\n")
    assert(ports.fs.chmod(w.base .. "/bin/efr-sbx", 493))
    w.exe = w.base .. "/bin/efrd"
    w:restart()
  end

  local function leftovers()
    local names = {}
    for _, dir in ipairs({ "data/scratch", "runtime/sbx/probe" }) do
      for _, entry in ipairs(ports.fs.readdir(w.base .. "/" .. dir) or {}) do
        names[#names + 1] = entry.name
      end
    end
    return names
  end

  it("holds here, with every check", function()
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.is_nil(report.reason)
    assert.is_true(report.available)
    assert.is_true(report.landlock_abi >= 2)
    for _, check in ipairs(report.checks) do
      assert.equal(check.name == "cache_write" and "skipped" or "ok", check.outcome, check.name)
    end
    assert.same({}, leftovers())
  end)

  it("makes one plan, also where none of the caches exists", function()
    w.settings["sandbox.cache_mode"] = "tmp"
    local real, count = w.sandbox.prepare, 0
    w.sandbox.prepare = function(self, opts)
      count = count + 1
      return real(self, opts)
    end
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.is_true(report.available, report.reason)
    assert.equal(1, count)
  end)

  local function cache_write(report)
    for _, check in ipairs(report.checks) do
      if check.name == "cache_write" then return check.outcome, check.detail end
    end
  end

  it("writes into a cache, also where none of the settings exists", function()
    w.settings["sandbox.cache_mode"] = "tmp"
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.is_true(report.available, report.reason)
    assert.equal("ok", (cache_write(report)))
    w.settings["sandbox.caches"] = { w.base .. "/home/.cache" }
    w:file("home/.cache/mine")
    report = wait(function() return probe.run(w.sandbox) end)
    assert.is_true(report.available, report.reason)
    assert.equal("ok", (cache_write(report)))
    assert.same({}, leftovers())
  end)

  it("sees a cache whose real directory changes", function()
    local cache = w.base .. "/home/.cache"
    w:file("home/.cache/mine")
    w.settings["sandbox.write_roots"] = { cache }
    local real = w.sandbox.prepare
    w.sandbox.prepare = function(self, opts)
      local argv = opts.argv
      opts.argv = function(mounts)
        mounts = table.move(mounts, 1, #mounts, 1, {})
        table.insert(mounts, { kind = "overlay", path = cache })
        return argv(mounts)
      end
      return real(self, opts)
    end
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.equal("self-test: cache_write: the real cache changed", report.reason)
    assert.is_false(report.available)
    assert.equal("fail", (cache_write(report)))
    assert.is_nil(ports.fs.lstat(cache .. "/.efr-self-test"))
  end)

  it("holds where the runtime root lies in the state root", function()
    w.app.paths.runtime = w.base .. "/state/run"
    w:restart()
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.is_true(report.available, report.reason)
  end)

  it("holds below a long path", function()
    w.app.paths.data = w.base .. ("/a-long-directory-name"):rep(8)
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.is_true(report.available, report.reason)
  end)

  it("sees what is not hidden", function()
    local real = w.sandbox.prepare
    w.sandbox.prepare = function(self, opts)
      local argv = opts.argv
      opts.argv = function(mounts)
        local words = argv(mounts)
        for i, word in ipairs(words) do
          if word == "--masked" then words[i + 1] = w:file("home/shown") end
        end
        return words
      end
      return real(self, opts)
    end
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.equal("self-test: mask_empty: its content shows", report.reason)
    assert.matches("report it", report.fix)
  end)

  it("uses no more than the ABI it is given, and refuses one below 2", function()
    local report = wait(function() return probe.run(w.sandbox, { max_abi = 2 }) end)
    assert.is_true(report.available, report.reason)
    assert.equal(2, report.landlock_abi)
    report = wait(function() return probe.run(w.sandbox, { max_abi = 1 }) end)
    assert.is_false(report.available)
    assert.matches("^landlock: Landlock is off or too old %(ABI 1", report.reason)
    assert.is_string(report.fix)
  end)

  for name, case in pairs({
    ["a launcher that is missing"] = { nil, "^efr%-sbx is not installed" },
    ["a launcher that refuses"] = { "echo 'efr-sbx: probe: no' >&2; exit 125", "^launch: probe: no" },
    ["a launcher that says nothing"] = { "exit 0", "^launch: the launcher left no result" },
    ["a self-test that is not believed"] = { "echo tcp ok", "^launch: the launcher left no result" },
  }) do
    it("fails with " .. name, function()
      fake_launcher(case[1] or "")
      if not case[1] then
        ports.fs.unlink(w.base .. "/bin/efr-sbx")
        w:restart()
      end
      local report = wait(function() return probe.run(w.sandbox) end)
      assert.is_false(report.available)
      assert.matches(case[2], report.reason)
      assert.same({}, leftovers())
    end)
  end

  it("names the stage that gives no answer, and ends what it started", function()
    local limits = { launch = 1000, self_test = 10 }
    fake_launcher("echo $$ >" .. w.base .. "/pid; exec sleep 1000")
    local report = wait(function() return probe.run(w.sandbox, { limits = limits }) end)
    assert.matches("^launch: no answer in 1 s", report.reason)
    assert.matches("dead network or FUSE mount", report.fix)
    local pid = tonumber(ports.fs.read_file(w.base .. "/pid", 20))
    assert.is_true(wait(function()
      for _ = 1, 2000 do
        if not ports.sys.kill(pid, 0) then return true end
        async.sleep(5)
      end
    end))
    fake_launcher(': >"$3/started"; exec sleep 1000')
    report = wait(function() return probe.run(w.sandbox, { limits = limits }) end)
    assert.matches("^self%-test: no answer in 1 s", report.reason)
  end)

  it("refuses roots that every call has for itself", function()
    w.app.paths.state = "/tmp/efr-probe-spec"
    local report = wait(function() return probe.run(w.sandbox) end)
    assert.matches("^roots: the state root /tmp/efr%-probe%-spec lies below /tmp", report.reason)
    assert.is_string(report.fix)
  end)

  it("does not look at projects", function()
    w:file("project/.env")
    w.projects = { { root = w.base .. "/project" } }
    local touched = {}
    w.app.ports.fs = setmetatable({
      readdir = function(path)
        touched[#touched + 1] = path
        return ports.fs.readdir(path)
      end,
    }, { __index = ports.fs })
    w.settings["sandbox.mask_globs"] = { ".env" }
    assert.is_true(wait(function() return w.sandbox:status().available end))
    for _, path in ipairs(touched) do
      assert.is_nil(path:find(ports.fs.realpath(w.base .. "/project"), 1, true))
    end
    assert.is_true(#touched > 0)
  end)

  it("remembers a good result until something changes", function()
    assert.is_true(wait(function() return w.sandbox:status().available end))
    wait(function() return w.sandbox:status() end)
    assert.equal(1, w.sandbox.probes)
    w.sandbox:check_again()
    local known, checking = w.sandbox:known()
    assert.is_true(known.available and checking)
    assert.is_true(wait(function() return w.sandbox:status().available end))
    assert.equal(2, w.sandbox.probes)
  end)

  it("asks again after a bad one, and says the change once", function()
    fake_launcher("exit 1")
    for _ = 1, 2 do
      assert.is_false(wait(function() return w.sandbox:status().available end))
    end
    assert.equal(2, w.sandbox.probes)
    assert.equal(1, #logged)
    assert.equal("sandbox_unavailable", events[1].kind)
    assert.matches("^launch: ", events[1].reason)
    assert.equal(1, #events)
    w.exe = nil
    w.sandbox.launcher = require("efr.sbx.launcher").new(w.app)
    assert.is_true(wait(function() return w.sandbox:status().available end))
    w.sandbox.launcher.path = function() return nil, "gone", "EFR_SANDBOX" end
    w.sandbox:check_again()
    assert.is_false(wait(function() return w.sandbox:status().available end))
    assert.equal(2, #events)
  end)

  it("makes one launch for all that ask at once", function()
    local seen = 0
    for _ = 1, 5 do
      async.spawn(function()
        if w.sandbox:status().available then seen = seen + 1 end
      end)
    end
    wait(function() return w.sandbox:status() end)
    assert.equal(1, w.sandbox.probes)
    assert.equal(5, seen)
  end)

  it("looks again when [sandbox] or the projects changed, and for nothing else", function()
    local all = { { name = "sandbox.mask", value = {} }, { name = "log", value = "info" } }
    w.app.config.all = function() return all end
    w.sandbox:settings_read()
    all[2].value = "debug"
    w.sandbox:settings_read()
    assert.equal(0, w.sandbox.probes)
    all[1].value = { "/x" }
    w.sandbox:settings_read()
    assert.is_true(wait(function() return w.sandbox:status().available end))
    assert.equal(1, w.sandbox.probes)
    w.projects = { { root = w.base .. "/project" } }
    w.sandbox:settings_read()
    assert.is_true(wait(function() return w.sandbox:status().available end))
    assert.equal(2, w.sandbox.probes)
  end)

  it("says why it is off", function()
    w.settings["sandbox.enabled"] = false
    local report = wait(function() return w.sandbox:status() end)
    assert.equal("sandbox.enabled is false", report.reason)
    assert.is_false(report.available)
    assert.equal("efr config set sandbox.enabled true", report.fix)
    assert.equal(0, #events)
  end)
end)
