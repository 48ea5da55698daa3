-- Starting efrd on demand, without systemd.
-- Owns: the start lock, the daemon's small environment, the wait. Must not know: the protocol.
-- Loop thread of `efr`; run waits in a task.

local async = require "efr.util.async"

local M = {}

local WAIT_MS <const> = 10000
local FIRST_POLL_MS <const> = 10
local LAST_POLL_MS <const> = 250
local OLD_MS <const> = 5000 -- an efrd that is stopping
local LOG_LINES <const> = 10
local LOG_BYTES <const> = 64 * 1024 * 1024

local KEEP <const> =
  { HOME = true, USER = true, LOGNAME = true, SHELL = true, LANG = true, TZ = true }
local KEEP_PATTERNS <const> = { "^LC_", "^XDG_", "^EFR_%u+_DIR$", "^EFR_HOME$" }

-- What login gives an ordinary user and root; the hidden shells read the user's own files anyway.
local PATH <const> = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
local ROOT_PATH <const> = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

local function kept(name)
  for _, pattern in ipairs(KEEP_PATTERNS) do
    if name:find(pattern) then
      return true
    end
  end
  return KEEP[name]
end

--- The environment of an efrd that efr starts: nothing of the terminal's session leaks into
--- the hidden shells.
--- @return string[] env sorted NAME=value
function M.environment(environ, uid)
  local env = { "PATH=" .. (uid == 0 and ROOT_PATH or PATH) }
  for name, value in pairs(environ) do
    if kept(name) then
      env[#env + 1] = name .. "=" .. value
    end
  end
  table.sort(env)
  return env
end

local function log_path(roots)
  return roots.state.path .. "/logs/efrd.log"
end

--- The last lines of efrd's log after the first `from` bytes, for a person; nil when there is none.
function M.last_lines(fs, path, from)
  local bytes = fs.read_file(path, LOG_BYTES)
  local lines = {}
  for line in (bytes or ""):sub((from or 0) + 1):gmatch("[^\n]+") do
    lines[#lines + 1] = line
  end
  if #lines == 0 then
    return nil
  end
  return table.concat(lines, "\n", math.max(1, #lines - LOG_LINES + 1))
end

local function failed(opts, why)
  local path = log_path(opts.roots)
  local data = { log = path, log_lines = M.last_lines(opts.ports.fs, path, opts.log_from) }
  return nil, "efrd could not be started: " .. why, "EFR_NO_DAEMON", data
end

-- Runs `step` at each change below the runtime root and at growing intervals until it gives
-- something or the time is over.
local function watch(opts, step)
  local uv = opts.ports.uv
  local deadline = uv.now() + WAIT_MS
  local event = uv.new_fs_event()
  local poll = FIRST_POLL_MS
  local wake
  if event then
    event:start(opts.roots.runtime.path, {}, function()
      if wake then
        wake()
      end
    end)
  end
  local result, done
  repeat
    result, done = step()
    if result or done then
      break
    end
    async.await(function(resume)
      wake = resume
      local timer = assert(uv.new_timer())
      timer:start(poll, 0, function()
        resume()
      end)
      opts.timer = timer
    end)
    wake = nil
    opts.timer:close()
    poll = math.min(poll * 2, LAST_POLL_MS)
  until uv.now() >= deadline
  if event then
    event:close()
  end
  return result
end

local function spawn(opts)
  local ports = opts.ports
  local exe = ports.sys.exe_path()
  local efrd = exe and exe:gsub("[^/]*$", "efrd")
  if not efrd or not ports.fs.stat(efrd) then
    return nil, "there is no efrd beside " .. (exe or "efr")
  end
  local logs = opts.roots.state.path .. "/logs"
  local ok, err = ports.fs.mkdirs(logs, 448)
  if not ok then
    return nil, err
  end
  return ports.proc.start_daemon({
    path = efrd,
    argv = { efrd },
    env = M.environment(opts.environ, ports.sys.getuid()),
    cwd = "/",
    output_path = log_path(opts.roots),
  })
end

local function alive(ports, pid)
  return math.type(pid) ~= "integer" or ports.sys.kill(pid, 0)
end

-- Did the new efrd meet one that was still stopping, and is that gone now?
local function old_is_gone(opts)
  local told = M.last_lines(opts.ports.fs, log_path(opts.roots), opts.log_from)
  if not told or not told:find("another efrd is running", 1, true) then
    return false
  end
  local lock = opts.ports.sys.lock_wait(opts.roots.data.path .. "/daemon.lock", OLD_MS)
  if lock then
    lock:close()
  end
  return lock ~= nil
end

local launch

-- Waits until the new efrd answers, or has ended.
local function wait(opts, pid, retry)
  local gone = false
  local pipe = watch(opts, function()
    local found = opts.ports.fs.stat(opts.roots.runtime.path .. "/daemon.json")
    local pipe = found and opts.connect()
    if pipe then
      return pipe
    end
    if gone then
      return nil, true
    end
    gone = not alive(opts.ports, pid) -- one more try: it may have lost a race for the lock
    return nil
  end)
  if pipe then
    return pipe
  elseif gone and retry and old_is_gone(opts) then
    return launch(opts, false)
  end
  return failed(opts, gone and "it ended at once" or "it did not answer within 10 s")
end

-- Starts efrd and connects; `retry`: once more after an efrd that was stopping.
function launch(opts, retry)
  local log = opts.ports.fs.stat(log_path(opts.roots))
  opts.log_from = log and log.size or 0
  local pid, err = spawn(opts)
  if not pid then
    return failed(opts, err)
  end
  return wait(opts, pid, retry)
end

--- Starts efrd unless another efr did so meanwhile, and connects.
--- @param opts {ports: table, environ: table, roots: table, connect: fun(): any}
--- @return any pipe, string? message, string? code, table? data
function M.run(opts)
  local ports, environ = opts.ports, opts.environ
  if (environ.EFR_HIDDEN_SHELL or "") ~= "" or (environ.EFR_SANDBOX or "") ~= "" then
    return nil, "efrd does not run", "EFR_NO_START"
  end
  local runtime = opts.roots.runtime.path
  local ok, err = ports.fs.mkdirs(runtime, 448)
  if ok then
    ok, err = ports.fs.check_private_dir(runtime)
  end
  if not ok then
    return failed(opts, err)
  end
  local lock
  lock, err = ports.sys.lock_wait(runtime .. "/start.lock", WAIT_MS)
  if not lock then
    return failed(opts, "start.lock: " .. (err or "held by another efr"))
  end
  local pipe, message, code, data = opts.connect()
  if not pipe then
    pipe, message, code, data = launch(opts, true)
  end
  lock:close()
  return pipe, message, code, data
end

return M
