-- Owns: whether contained calls work on this machine: one real launch of the self-test with the
-- plan that calls have, its judgement, and what is remembered of it.
-- Must not know: what a call is for.
-- Runs in efrd and efr on the loop thread; run and status wait.
--
-- Policy: available means that every check passed on its exact answer; a check without an answer
-- failed. Every stage (launcher, roots, plan, launch, self-test) can refuse, and its name is in the
-- reason. Nothing of the projects is touched, so a dead mount there cannot hold a start. A good
-- result counts until the settings or the projects change or a launch fails; after a bad one every
-- turn in auto asks again.

local async = require "efr.util.async"
local backend = require "efr.sbx.backend"
local paths = require "efr.perm.paths"
local problems = require "efr.sbx.problems"

local M = {}

M.LAUNCH_MS = 10000 ---@type integer
M.SELF_TEST_MS = 20000 ---@type integer
local CONVERSATION <const> = "probe"
local DIR_MODE <const> = 448 -- 0700
local PROGRAM_MODE <const> = 448
local REPORT_MODE <const> = 384
local MAX_REPORT <const> = 65536
local MAX_SMALL <const> = 4096
local HIDDEN <const> = "hidden\n"
local MAX_MASKED <const> = 8 -- of sbx/selftest.c
local NAME_BYTES <const> = 16
local FILE <const> = ".efr-self-test" -- of sbx/selftest.c
-- Where none of the settings' caches exists: a directory that every system has.
local ANY_CACHE <const> = "/usr/share"

-- The checks of `efr-sbx self-test`, and what each stands for in efr sandbox check.
M.CHECKS = {
  { "write_inside", "writes in a write root and in /tmp work" },
  { "write_outside", "no write outside of the write roots (read-only mounts)" },
  { "write_landlock_only", "the write fence holds a second time (Landlock)" },
  { "mask_empty", "hidden paths are empty" },
  { "unix_socket", "no connect to a socket of the host (socket broker)" },
  { "abstract_socket", "no abstract socket of the host (network namespace)" },
  { "signal_outside", "no signal to other processes (PID namespace)" },
  { "proc_environ", "no look into other processes (PID namespace)" },
  { "tcp", "no network but its own loopback (network namespace)" },
  { "io_uring", "io_uring is absent (seccomp)" },
  { "vsock", "rare socket families are absent (seccomp)" },
  { "nested_userns", "no new user namespace (seccomp)" },
  { "other_pts", "no other terminal in sight (own devpts)" },
  { "tiocsti", "nothing is typed into the terminal (seccomp)" },
  { "tty", "the terminal works" },
  { "cache_write", "tool caches can be written" },
  { "unix_dgram", "no datagram to a socket of the host (seccomp)" },
  { "mptcp", "MPTCP is refused (seccomp)" },
  { "ptrace_child", "debuggers work" },
  { "pid1_untouched", "the sandbox's first process cannot be touched" },
  { "proc_sys", "/proc is read-only" },
  { "setuid_file", "no set-user-id file (seccomp)" },
  { "no_capability", "no capability" },
  { "own_socket", "a call's own sockets work (socket broker)" },
}
local MAY_SKIP <const> = { cache_write = true } -- with cache_mode readonly there is nothing to try

---@class efr.sbx.Check
---@field name string
---@field outcome "ok"|"fail"|"skipped"
---@field detail string?

---@class efr.sbx.Report
---@field available boolean
---@field reason string?  with the stage
---@field fix string?
---@field backend string?
---@field bwrap string?  with that backend
---@field bwrap_version string?
---@field landlock_abi integer?
---@field landlock_erratum integer?
---@field checks efr.sbx.Check[]
---@field launch_us integer?  of the whole self-test, from outside
---@field disabled boolean?  by the settings

-- Judging ----------------------------------------------------------------------------------------

---Reads what the self-test printed. Strict: a line that is none of a check counts for nothing, a
---check without a line failed.
---@param text string
---@return efr.sbx.Check[] checks  in the order of CHECKS
---@return string? reason  the first that failed
function M.judge(text)
  local seen = {}
  for line in text:gmatch("[^\n]+") do
    local name, words = line:match("^([%w_]+) (.+)$")
    if name and not seen[name] then seen[name] = words end
  end
  local checks, reason = {}, nil
  for i, row in ipairs(M.CHECKS) do
    local name, words = row[1], seen[row[1]] or "gave no answer"
    local skipped = words == "skipped" and MAY_SKIP[name]
    local outcome = words == "ok" and "ok" or skipped and "skipped" or "fail"
    local detail = outcome == "fail" and words:gsub("^FAILED: ", "") or nil
    checks[i] = { name = name, outcome = outcome, detail = detail }
    if detail and not reason then reason = ("self-test: %s: %s"):format(name, detail) end
  end
  return checks, reason
end

local function unavailable(calls, reason, more)
  local report = more or { checks = {} }
  report.available, report.reason = false, reason
  report.fix = problems.fix(reason, function(path)
    return calls.app.ports.fs.read_file(path, MAX_SMALL)
  end)
  return report
end

-- What the self-test needs ------------------------------------------------------------------------

-- Every call has these for itself, so efr's own roots cannot lie there.
local function check_roots(app)
  for _, name in ipairs({ "state", "data", "runtime" }) do
    local real = app.ports.fs.realpath(app.paths[name]) or app.paths[name]
    for _, private in ipairs({ "/tmp", "/var/tmp", "/dev/shm" }) do
      if paths.within(real, private) then
        return nil, ("roots: the %s root %s lies below %s, which every call has for itself"):format(
          name, real, private)
      end
    end
  end
  return true
end

-- A copy that the call can execute: the first place that is not noexec.
local function place_program(app, launcher, dir)
  local fs, uv = app.ports.fs, app.ports.uv
  local tmp = ("%s/sandbox/%s/tmp"):format(app.paths.state, CONVERSATION)
  local made, err = fs.mkdirs(tmp, DIR_MODE)
  if not made then return nil, err end
  for _, place in ipairs({ { dir, dir }, { tmp, "/tmp" } }) do
    local path = place[1] .. "/efr-sbx"
    local ok
    fs.unlink(path)
    -- No sync: nothing needs it after a crash.
    ok, err = uv.fs_copyfile(launcher, path, { excl = true })
    if ok then ok, err = uv.fs_chmod(path, PROGRAM_MODE) end
    if not ok then return nil, err end
    if uv.fs_access(path, "X") then return place[2] .. "/efr-sbx", nil, path end
    fs.unlink(path)
  end
  return nil, ("the self-test cannot be executed in %s or %s: both are noexec"):format(dir, tmp)
end

-- Hidden paths that hold something: a file of efr's own state, and what the plan hides below the
-- home directory.
local function masked(app, home, work, mounts)
  local out = { work.hidden }
  for _, mount in ipairs(mounts) do
    local stat = mount.kind == "mask" and paths.below(mount.path, home)
      and app.ports.fs.lstat(mount.path)
    local plain = stat and (stat.type == "dir" or stat.type == "file")
    for _, other in ipairs(mounts) do
      -- The places of other mounts show in a mask.
      plain = plain and not paths.below(other.path, mount.path)
    end
    if plain and #out < MAX_MASKED then out[#out + 1] = mount.path end
  end
  return out
end

local function hide_something(app, work)
  local dir, err = app.ports.fs.realpath(app.paths.state .. "/sandbox/" .. CONVERSATION)
  if not dir then return nil, err end
  work.hidden = dir .. "/hidden"
  if app.ports.fs.read_file(work.hidden, MAX_SMALL) == HIDDEN then return true end
  return app.ports.fs.write_atomic(work.hidden, HIDDEN, REPORT_MODE)
end

local function cache_of(mounts)
  for _, mount in ipairs(mounts) do
    if mount.kind == "overlay" then return mount.path end
  end
  return nil
end

local function self_test_arguments(calls, work, mounts)
  local app = calls.app
  local home = app.ports.fs.realpath(calls.home) or calls.home
  local argv = {
    work.program, "self-test", "--write", work.dir, "--outside", home,
    "--socket", "socket", -- from the call's directory: a whole path can be too long for an address
    "--abstract", work.name,
    "--pid", tostring(app.ports.sys.getpid()), "--terminal", "yes",
  }
  for _, path in ipairs(masked(app, home, work, mounts)) do
    argv[#argv + 1], argv[#argv + 2] = "--masked", path
  end
  work.cache = cache_of(mounts)
  if work.cache then argv[#argv + 1], argv[#argv + 2] = "--cache", work.cache end
  return argv
end

-- One launch -------------------------------------------------------------------------------------

-- What the self-test wrote into a cache must not be in the real one.
local function check_cache(calls, work, report)
  local file = work.cache and work.cache .. "/" .. FILE
  if not file or not calls.app.ports.fs.lstat(file) then return report end
  calls.app.ports.fs.unlink(file)
  for _, check in ipairs(report.checks) do
    if check.name == "cache_write" then
      check.outcome, check.detail = "fail", "the real cache changed"
    end
  end
  return unavailable(calls, "self-test: cache_write: the real cache changed", report)
end

-- The arguments depend on the plan, which takes them last.
local function prepare(calls, work)
  local call, err = calls:prepare({
    conversation_id = CONVERSATION, cwd = work.dir, launch = "contained", call_id = work.id,
    scratch = work.dir, only_own = true, spare_cache = ANY_CACHE,
    argv = function(mounts) return self_test_arguments(calls, work, mounts) end,
  })
  if not call then return nil, "plan: " .. err end
  return call
end

-- Waits for the end, with a limit for each stage. Returns the stage that has no answer, if any.
local function wait(app, call, ended, limits)
  local function within(ms)
    return async.with_timeout(ms, function() return ended:get() end)
  end
  if within(limits.launch) then return nil end
  local started = app.ports.fs.stat(call.dir .. "/started")
  if not started then return "launch", limits.launch end
  if within(limits.self_test) then return nil end
  return "self-test", limits.launch + limits.self_test
end

-- Runs the launcher beside its listeners. Returns what it printed, or nil and the reason.
local function launch(calls, call, work)
  local app = calls.app
  local uv = app.ports.uv
  local path = call.dir .. "/report"
  local fd, err = uv.fs_open(path, "wx", REPORT_MODE)
  if not fd then return nil, "launch: " .. err end
  local argv = {
    "efr-sbx", "probe", "--call-dir", call.dir, "--dir", work.dir, "--name", work.name,
  }
  if work.max_abi then
    argv[#argv + 1], argv[#argv + 2] = "--max-abi", tostring(work.max_abi)
  end
  local ended = async.future()
  local child
  child, err = app.ports.proc.spawn({
    path = call.launcher, argv = argv, env = { "PATH=" .. (app.env.PATH or "/usr/bin:/bin") },
    cwd = "/", fds = { [0] = "null", fd, fd }, on_exit = function(code) ended:set(code) end,
  })
  uv.fs_close(fd)
  if not child then return nil, "launch: " .. err end
  local stage, ms = wait(app, call, ended, work.limits)
  if stage then
    child:kill(app.ports.sys.SIGKILL)
    return nil, ("%s: no answer in %d s"):format(stage, ms // 1000)
  end
  return app.ports.fs.read_file(path, MAX_REPORT) or ""
end

local function judge_launch(calls, call, work, text)
  local checks, reason = M.judge(text)
  local report = {
    backend = work.bwrap and "bwrap" or "native", bwrap = work.bwrap,
    bwrap_version = work.bwrap_version, checks = checks,
  }
  local result, err = call:result()
  if not result then
    local said = text:match("efr%-sbx: ([^\n]+)")
    return unavailable(calls, "launch: " .. (said or err))
  end
  report.landlock_abi, report.landlock_erratum = result.landlock_abi, result.landlock_erratum
  if result.setup_error then
    report.checks = {}
    return unavailable(calls, result.setup_error, report)
  elseif result.launch_error or not result.started then
    report.checks = {}
    local words = result.launch_error or "it was not started"
    return unavailable(calls, "self-test: " .. words, report)
  elseif reason or result.exit_code ~= 0 then
    return unavailable(calls, reason or "self-test: it ended early", report)
  end
  report.available = true
  return report
end

local function hex(bytes)
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

local function probe_in(calls, work)
  local app = calls.app
  local ok, err = calls:answers({ only_own = true })
  if not ok then return unavailable(calls, "roots: " .. err) end
  ok, err = check_roots(app)
  if not ok then return unavailable(calls, err) end
  local launcher
  launcher, err = calls.launcher:path()
  if not launcher then return unavailable(calls, err) end
  ok, err = app.ports.fs.mkdirs(work.dir, DIR_MODE)
  if ok then work.dir, err = app.ports.fs.realpath(work.dir) end
  if not work.dir then return unavailable(calls, "roots: " .. err) end
  work.bwrap, err = backend.path(app)
  if work.bwrap then work.bwrap_version, err = backend.inspect(app, work.bwrap, work.dir) end
  if err then return unavailable(calls, err) end
  work.program, err, work.placed = place_program(app, launcher, work.dir)
  if not work.program then return unavailable(calls, err) end
  ok, err = hide_something(app, work)
  if not ok then return unavailable(calls, "roots: " .. err) end
  local call
  call, err = prepare(calls, work)
  if not call then return unavailable(calls, err) end
  local begun = app.ports.sys.mono_us()
  local text
  text, err = launch(calls, call, work)
  local report = text and judge_launch(calls, call, work, text) or unavailable(calls, err)
  report = check_cache(calls, work, report)
  report.launch_us = app.ports.sys.mono_us() - begun
  call:cleanup()
  return report
end

---One probe. Waits.
---@param calls table  the calls of the daemon
---@param opts {max_abi: integer?, limits: {launch: integer, self_test: integer}?}?  limits in ms
---@return efr.sbx.Report
function M.run(calls, opts)
  opts = opts or {}
  local app = calls.app
  if app.config:get("sandbox.enabled") == false then
    return unavailable(calls, "sandbox.enabled is false", { checks = {}, disabled = true })
  end
  calls.probes = calls.probes + 1
  local work = {
    id = ("%d-%d"):format(app.ports.sys.getpid(), calls.probes),
    name = "efr-probe-" .. hex(app.ports.sys.random(NAME_BYTES)), max_abi = opts.max_abi,
    limits = opts.limits or { launch = M.LAUNCH_MS, self_test = M.SELF_TEST_MS },
  }
  local dir = ("%s/scratch/.probe-%s"):format(app.paths.data, work.id)
  work.dir = dir
  local ok, report = xpcall(probe_in, app.traceback or tostring, calls, work)
  if not ok then report = unavailable(calls, "the probe failed: " .. tostring(report)) end
  if work.placed then app.ports.fs.unlink(work.placed) end
  app.ports.fs.rmtree(dir)
  return report
end

---How long the launch of a call that does nothing takes. Waits.
---@param calls table
---@param max_abi integer?
---@return integer? us  nil: it failed
function M.launch_time(calls, max_abi)
  calls.probes = calls.probes + 1
  local app = calls.app
  local call = calls:prepare({
    conversation_id = CONVERSATION, cwd = "/", launch = "contained", argv = { "true" },
    call_id = ("%d-%d"):format(app.ports.sys.getpid(), calls.probes), only_own = true,
  })
  if not call then return nil end
  local argv = { "efr-sbx", "run", "--call-dir", call.dir }
  if max_abi then argv[5], argv[6] = "--max-abi", tostring(max_abi) end
  local begun = app.ports.sys.mono_us()
  local ok, code = async.with_timeout(M.LAUNCH_MS, function()
    return async.await(function(resume)
      local child = app.ports.proc.spawn({
        path = call.launcher, argv = argv, env = { "PATH=/usr/bin:/bin" }, cwd = "/",
        on_exit = resume,
      })
      if not child then resume(nil) end
    end)
  end)
  local us = app.ports.sys.mono_us() - begun
  call:cleanup()
  return ok and code == 0 and us or nil
end

-- What is remembered ------------------------------------------------------------------------------

-- Said once for each change to unavailable.
local function tell(calls, before, report)
  if report.available or before and not before.available or report.disabled then return end
  local app = calls.app
  if app.log then
    app.log:part("sandbox"):warn("the sandbox is not available: %s%s", report.reason,
      report.fix and "; fix: " .. report.fix or "")
  end
  if app.store then
    app.store:append({ events = { { kind = "sandbox_unavailable", reason = report.reason } } })
  end
end

local function run_once(calls)
  local future, wanted = async.future(), calls.wanted
  calls.running = future
  local report = M.run(calls)
  local before = calls.last
  calls.last, calls.last_wanted, calls.running = report, wanted, nil
  future:set(report)
  tell(calls, before, report)
  return report
end

local function is_current(calls)
  return calls.last ~= nil and calls.last_wanted == calls.wanted
end

---Whether contained calls work here: a good result is remembered, after a bad one a new launch
---answers. Waits.
---@param calls table  the calls of the daemon
---@return efr.sbx.Report
function M.status(calls)
  if is_current(calls) and calls.last.available then return calls.last end
  -- A probe that runs may have begun before a change.
  local shared = false
  while calls.running do
    calls.running:get()
    shared = true
  end
  if shared and is_current(calls) then return calls.last end
  return run_once(calls)
end

---What is known without waiting.
---@param calls table
---@return efr.sbx.Report?  nil: nothing yet
---@return boolean checking  a probe runs
function M.known(calls)
  return calls.last, calls.running ~= nil
end

---From now on nothing that was known counts; a new probe begins in the background.
---@param calls table
function M.again(calls)
  calls.wanted = calls.wanted + 1
  async.spawn(M.status, calls)
end

return M
