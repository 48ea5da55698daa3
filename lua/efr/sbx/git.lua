-- Owns: running git for efr itself, always as `efr-sbx git`: which git program, which places it
-- may be given, its output and its end.
-- Must not know: what is asked of git or what an answer means.
-- Runs in efrd and efr, on the loop thread; run waits in a task.
--
-- Policy: git reads one root, its recorded git directories and the system, and writes the given
-- store alone. No root may hold the home directory, a place of efr's own or an engine secret, and
-- none may lie in a secret: what lies below a root is readable. The program comes from an absolute
-- entry of PATH where no contained call ever writes. Output counts as bytes that others chose.

local async = require "efr.util.async"
local git_kept = require "efr.perm.git_kept"
local launcher_of = require "efr.sbx.launcher"
local paths = require "efr.perm.paths"

local M = {}

M.TIMEOUT_MS = 10000 ---@type integer
M.MAX_BYTES = 8 * 1024 * 1024 ---@type integer
M.EXIT_TIMEOUT = 124 ---@type integer
M.EXIT_SETUP = 125 ---@type integer

local ERR_BYTES <const> = 64 * 1024
local GRACE_MS <const> = 2000 -- beyond the launcher's own limit
local EXECUTABLE <const> = 73 -- 0111
local SCRATCHES <const> = { "/tmp", "/var/tmp", "/dev/shm" }
local PASSED <const> = {
  "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE",
  "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
}

local Git = {}
Git.__index = Git

-- Programs ----------------------------------------------------------------------------------------

local function is_overlapped(path, list)
  for _, dir in ipairs(list) do
    if paths.within(path, dir) then return true end
  end
  return false
end

-- Where a contained call can write, or anybody: no program of efr's comes from there.
local function writable_places(self)
  local app, fs, out = self.app, self.app.ports.fs, { table.unpack(SCRATCHES) }
  local function add(path)
    out[#out + 1] = path
    local real = fs.realpath(path)
    if real and real ~= path then out[#out + 1] = real end
  end
  if self.home ~= "/" then add(self.home) end
  for _, root in pairs(app.paths) do add(root) end
  for _, project in ipairs(app.projects and app.projects:list() or {}) do add(project.root) end
  for _, root in ipairs(app.config and app.config:get("sandbox.write_roots") or {}) do add(root) end
  return out
end

local function find_git(self)
  local fs, taken = self.app.ports.fs, writable_places(self)
  for dir in (self.app.env.PATH or "/usr/bin:/bin"):gmatch("[^:]+") do
    local real = dir:sub(1, 1) == "/" and fs.realpath(dir .. "/git")
    local info = real and not is_overlapped(real, taken) and not is_overlapped(dir, taken)
      and fs.stat(real)
    if info and info.type == "file" and info.mode & EXECUTABLE ~= 0 then return real end
  end
  return nil, "git is not installed where only the system writes", "EFR_GIT"
end

-- In efrd the trusted copy, as for the calls.
local function find_launcher(app)
  if app.sandbox then return app.sandbox.launcher:path() end
  return launcher_of.find(app.ports)
end

-- Places ------------------------------------------------------------------------------------------

-- Why git must not be given a place, or nil.
local function refusal(self, path)
  local fs = self.app.ports.fs
  if type(path) ~= "string" or path:sub(1, 1) ~= "/" or path == "/" then
    return "git needs an absolute path that is not /"
  end
  local home = fs.realpath(self.home) or self.home
  if paths.within(home, path) then return path .. " is or holds the home directory" end
  for _, own in pairs(self.app.paths) do
    local real = fs.realpath(own) or own
    if paths.within(real, path) then return path .. " holds files of efr" end
  end
  for _, secret in ipairs(self.secrets) do
    if paths.within(path, secret) then return path .. " is a secret" end
    if paths.within(secret, path) and fs.lstat(secret) then
      return ("%s holds the secret %s"):format(path, secret)
    end
  end
  return nil
end

local function real_secrets(self)
  local app, out = self.app, {}
  local found = self.home == "/" and {} or paths.prepare({
    home = self.home, secrets_dir = app.paths.data .. "/secrets",
    secret_paths = app.config and app.config:get("permissions.secret_paths"),
  }).secrets
  for _, path in ipairs(found) do
    out[#out + 1] = path
    local real = app.ports.fs.realpath(path)
    if real and real ~= path and real ~= "/" then out[#out + 1] = real end
  end
  return out
end

local function check_places(self, what)
  self.secrets = real_secrets(self)
  for _, list in ipairs({ { what.root }, what.git_dirs or {}, what.read or {} }) do
    for _, path in ipairs(list) do
      local why = refusal(self, path)
      if why then return nil, why, "EFR_GIT" end
    end
  end
  return true
end

local function arguments(git, what, timeout_ms)
  local out = { "efr-sbx", "git", "--git", git, "--root", what.root,
    "--timeout-ms", ("%d"):format(timeout_ms) }
  local function add(...) table.move({ ... }, 1, select("#", ...), #out + 1, out) end
  for _, dir in ipairs(what.git_dirs or {}) do add("--git-dir", dir) end
  for _, path in ipairs(what.read or {}) do add("--read", path) end
  if what.store then add("--store", what.store) end
  if what.user_config then add("--user-config") end
  add("--", table.unpack(what.args))
  return out
end

local function environment(what)
  local out = {}
  for _, name in ipairs(PASSED) do
    local value = what.env and what.env[name]
    if value then out[#out + 1] = name .. "=" .. value end
  end
  return out
end

-- Running -----------------------------------------------------------------------------------------

local function finish(run, ...)
  if run.done then return end
  run.done = true
  if run.forget then run.forget() end
  for _, handle in ipairs(run.handles) do
    if not handle:is_closing() then handle:close() end
  end
  run.resume(...)
end

local function settle(run)
  if run.open > 0 or not run.code then return end
  local out, err = table.concat(run.out), table.concat(run.err)
  if run.code == M.EXIT_TIMEOUT then
    return finish(run, nil, "git did not end in time", "EFR_TIMEOUT")
  elseif run.code == M.EXIT_SETUP then
    return finish(run, nil, err:match("^[^\n]*"), "EFR_GIT")
  end
  finish(run, { code = run.code, out = out, err = err })
end

local function give_up(run, text, code)
  if run.child and not run.code then run.child:kill(run.ports.sys.SIGKILL) end
  finish(run, nil, text, code)
end

-- Our end of a pipe as a handle, and the number of the child's end.
local function open_pipe(run, ours, theirs)
  local fds, err, code = run.ports.uv.pipe({ nonblock = ours == "read" },
    { nonblock = ours == "write" })
  if not fds then return nil, err, code end
  local pipe = assert(run.ports.uv.new_pipe(false))
  assert(pipe:open(fds[ours]))
  run.handles[#run.handles + 1] = pipe
  return pipe, fds[theirs]
end

-- One stream of the child's output. What standard error holds beyond its limit is dropped.
local function collect(run, list, limit, is_output)
  local pipe, fd, code = open_pipe(run, "read", "write")
  if not pipe then return nil, fd, code end
  run.open = run.open + 1
  local size = 0
  pipe:read_start(function(_, bytes)
    if run.done then return end
    if not bytes then
      pipe:close()
      run.open = run.open - 1
      return settle(run)
    end
    size = size + #bytes
    if size <= limit then
      list[#list + 1] = bytes
    elseif is_output then
      give_up(run, "git said more than efr takes", "EFR_TOO_BIG")
    end
  end)
  return fd
end

local function feed(run, bytes)
  local pipe, fd, code = open_pipe(run, "write", "read")
  if not pipe then return nil, fd, code end
  pipe:write(bytes, function()
    if not pipe:is_closing() then pipe:close() end
  end)
  return fd
end

-- A pipe for what the caller writes itself, in a thread that may wait.
local function open_source(run)
  local fds, err, code = run.ports.uv.pipe({ nonblock = false }, { nonblock = false })
  if not fds then return nil, err, code end
  run.source_fd = fds.write
  return fds.read
end

-- Lets the caller write. Where git went away before it had all, git's own words say why.
local function use_source(run, source)
  local fd = run.source_fd
  run.open = run.open + 1
  async.spawn(function()
    local ok, err, code = source(fd)
    run.ports.sys.close_fd(fd)
    run.open = run.open - 1
    if not ok and code ~= "EPIPE" then return give_up(run, err, code) end
    settle(run)
  end)
end

local function open_streams(run, what)
  local fds, err, code = {}, nil, nil
  fds[0] = "null"
  if what.source then fds[0], err, code = open_source(run) end
  if what.stdin then fds[0], err, code = feed(run, what.stdin) end
  if fds[0] then fds[1], err, code = collect(run, run.out, what.max_bytes or M.MAX_BYTES, true) end
  if fds[1] then fds[2], err, code = collect(run, run.err, ERR_BYTES, false) end
  return fds, err, code
end

local function start(run, launcher, argv, what, timeout_ms)
  local ports = run.ports
  local fds, err, code = open_streams(run, what)
  if fds[2] then
    run.child, err, code = ports.proc.spawn {
      path = launcher, argv = argv, env = environment(what), cwd = "/", fds = fds,
      on_exit = function(status, signal)
        run.code = signal ~= 0 and 128 + signal or status
        settle(run)
      end,
    }
  end
  for _, fd in pairs(fds) do
    if fd ~= "null" then ports.sys.close_fd(fd) end
  end
  if not run.child then
    if run.source_fd then ports.sys.close_fd(run.source_fd) end
    return finish(run, nil, err, code)
  end
  if what.source then use_source(run, what.source) end
  local timer = assert(ports.uv.new_timer())
  run.handles[#run.handles + 1] = timer
  timer:start(timeout_ms + GRACE_MS, 0, function()
    give_up(run, "git did not end in time", "EFR_TIMEOUT")
  end)
  if what.token then
    local forget = what.token:on_cancel(function()
      give_up(run, "nobody waits for git any more", "EFR_CANCELLED")
    end)
    if run.done then forget() else run.forget = forget end
  end
end

---@class efr.sbx.GitRun
---@field root string  real path; git starts there
---@field args string[]
---@field git_dirs string[]?  real paths, readable: the recorded ones of the root
---@field read string[]?  real paths of more files, readable
---@field store string?  real path, writable: the one place
---@field env table<string, string>?  GIT_DIR, GIT_INDEX_FILE and their like (PASSED above)
---@field user_config boolean?  the user's and the system's settings count
---@field stdin string?
---@field source (fun(fd: integer): true?, string?, string?)?  in place of stdin: writes to a pipe
---that blocks, in a task of its own; never on the loop thread
---@field timeout_ms integer?
---@field token efr.Token?  whoever waits; without them git is ended
---@field max_bytes integer?  of its output

---Runs git and waits for its end, in a task.
---@param what efr.sbx.GitRun
---@return {code: integer, out: string, err: string}? result
---@return string? err  it did not run, did not end in time or said too much
---@return string? code  EFR_GIT, EFR_TIMEOUT, EFR_TOO_BIG, EFR_CANCELLED or of the start
function Git:run(what)
  local ok, err, code = check_places(self, what)
  if not ok then return nil, err, code end
  local git, launcher
  git, err, code = find_git(self)
  if not git then return nil, err, code end
  launcher, err = find_launcher(self.app)
  if not launcher then return nil, err, "EFR_GIT" end
  local timeout_ms = what.timeout_ms or M.TIMEOUT_MS
  local argv = arguments(git, what, timeout_ms)
  return async.await(function(resume)
    local run = {
      ports = self.app.ports, resume = resume, out = {}, err = {}, open = 0, handles = {},
    }
    start(run, launcher, argv, what, timeout_ms)
  end)
end

---Why git must not be given a root, or nil.
---@param path string  real
---@return string? why
function Git:why_not(path)
  self.secrets = real_secrets(self)
  return refusal(self, path)
end

---A function that runs git as run does, but not longer than `ms` from now, over all its runs.
---@param ms integer
---@param token efr.Token?  whoever waits
---@return fun(what: efr.sbx.GitRun): table?, string?, string?
function Git:within(ms, token)
  local sys = self.app.ports.sys
  local ends = sys.mono_us() + ms * 1000
  return function(what)
    local left = (ends - sys.mono_us()) // 1000
    if left <= 0 then return nil, "git did not end in time", "EFR_TIMEOUT" end
    if token and token.cancelled then
      return nil, "nobody waits for git any more", "EFR_CANCELLED"
    end
    what.timeout_ms, what.token = math.min(what.timeout_ms or left, left), token
    return self:run(what)
  end
end

-- What git_kept needs of the disk.
local function kept_ports(ports)
  return {
    stat = function(path)
      local info, _, code = ports.uv.fs_stat(path)
      if not info then return nil, code end
      local changed, written = info.ctime, info.mtime
      return {
        stamp = ("%d.%d %d %d.%d %d.%d"):format(info.dev, info.ino, info.size, written.sec,
          written.nsec, changed.sec, changed.nsec),
        changed_ns = changed.sec * 1000000000 + changed.nsec,
      }
    end,
    realpath = function(path) return (ports.fs.realpath(path)) end,
    readlink = function(path) return (ports.fs.readlink(path)) end,
    now_ns = function() return ports.sys.now_us() * 1000 end,
  }
end

---@param app {ports: table, env: table, paths: table, config: table?, projects: table?}
---@return table git
function M.new(app)
  return setmetatable({
    app = app, env = app.env, home = app.env.HOME or app.ports.sys.user_info().home,
    kept = git_kept.new(kept_ports(app.ports)),
  }, Git)
end

return M
