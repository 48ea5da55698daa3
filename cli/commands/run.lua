-- efr run: a command of the user's own in the sandbox, on the user's own terminal. What most runs
-- do not need (questions, rows of the view) is loaded only where it is used.

local async = require "efr.util.async"
local conn = require "efr.cli.conn"
local reach = require "efr.sbx.reach"
local words = require "efr.cli.words"

local M = { summary = "run a command of yours in the sandbox" }

-- What the launcher answers when the sandbox could not start.
local NOT_STARTED <const> = 125
-- What timeout(1) answers.
local TIMED_OUT <const> = 124
local WITH_VALUE <const> = {
  ["--write"] = true, ["--env"] = true, ["--cache"] = true, ["--timeout"] = true,
}
local UNIT_MS <const> = { [""] = 1000, s = 1000, m = 60000, h = 3600000 }
local MAX_MS <const> = 7 * 86400 * 1000

function M.add(parser)
  parser:option("--write", "a file or directory the command may write"):argname("PATH"):count("*")
  parser:flag("--ro", "nothing may be written but /tmp and what --write names")
  parser:option("--env", "a variable that the sandbox would take away, or a new value of one")
    :argname("NAME[=VALUE]"):count("*")
  parser:option("--cache", "what becomes of writes in caches of tools")
    :choices({ "tmp", "overlay", "readonly" })
  parser:flag("--dry", "change nothing yet: show at the end what it would change, and ask")
  parser:flag("--yes", "with --dry: keep the changes without a question")
  parser:flag("--no", "with --dry: only show them")
  parser:option("--timeout", "end the command after a time: 90, 90s, 5m, 1h"):argname("TIME")
  parser:argument("command", "the command and its arguments"):args("+")
end

--- The command's own options are not ours.
function M.words(args)
  return words.end_options(args, WITH_VALUE)
end

local function absolute(env, cwd, word)
  local path = word:sub(1, 1) == "/" and word or cwd .. "/" .. word
  local real, err, code = reach.new(env.ports):answers({ path })
  if real then
    real, err, code = env.ports.fs.realpath(path)
  end
  if not real then
    return nil, ("--write %s: %s"):format(word, err), code == "ENOENT" and "EFR_USAGE" or code
  end
  return real
end

local function write_roots(env, cwd, dirs)
  local out = env.ports.json.array({})
  for _, word in ipairs(dirs) do
    local path, message, code = absolute(env, cwd, word)
    if not path then
      return nil, message, code
    end
    out[#out + 1] = path
  end
  return out
end

-- One key on the terminal: y this time, p register, anything else no.
local function ask(env, cwd)
  local input = require("efr.cli.keys").open(env, false)
  if not input then
    return nil
  end
  local style = require("efr.cli.screen").style(env, 2)
  local text = env.ports.text.printable(cwd)
  env:err(style:row({
    { "write in ", "warning" }, { text, "code" }, { "? ", "warning" },
    { "y", "bold" }, { " this time · ", "muted" }, { "p", "bold" }, { " register · ", "muted" },
    { "n", "bold" }, { " " },
  }))
  local key = async.await(function(resume)
    input:listen(resume)
  end)
  input:close()
  env:err((key:find("^[ypn]$") and key or "n") .. "\n")
  return key
end

-- Outside a registered project the user says where the command may write.
local function permit(env, link, cwd, write)
  local result, message, code, data = link:call("projects.list", {})
  if not result then
    return nil, message, code, data
  end
  if require("efr.config.projects").containing(result.projects or {}, cwd) or #write > 0 then
    return true
  end
  local key = env:is_tty(0) and ask(env, cwd)
  if key == "y" then
    write[1] = cwd
    return true
  end
  if key == "p" then
    local added
    added, message, code, data = link:call("admin.project_add", { path = cwd })
    return added and true, message, code, data
  end
  if key then
    return nil, nil, "EFR_SILENT"
  end
  local hint = "name what it may write with --write, or register: efr project add"
  return nil, cwd .. " is in no registered project", "EFR_USAGE", { hint = hint }
end

local function environment(environ)
  local env = {}
  for name, value in pairs(environ) do
    env[#env + 1] = name .. "=" .. value
  end
  table.sort(env)
  return env
end

-- Whether a child of ours was stopped, by Ctrl+Z or a signal.
local function is_stopped(fs, pid)
  local stat = fs.read_file(("/proc/%d/stat"):format(pid), 4096)
  return stat and stat:match("%) (%a) [^)]*$") == "T"
end

-- Signals while the command runs: those of the keyboard are the command's, those that end efr
-- end the command first. When the command stops, efr stops too, so that the shell has its
-- terminal again; its `fg` wakes both.
local function watch_signals(ports, child, limit_ms)
  local uv, handles, ended = ports.uv, {}, {}
  if limit_ms then
    local timer = assert(uv.new_timer())
    timer:start(limit_ms, 0, function()
      ended.timed_out = true
      child:kill(9) -- the kernel ends everything inside with it
    end)
    handles[1] = timer
  end
  local function watch(name, fn)
    local handle = assert(uv.new_signal())
    handle:start(name, fn)
    handles[#handles + 1] = handle
  end
  watch("sigint", function() end)
  watch("sigquit", function() end)
  watch("sigchld", function()
    if is_stopped(ports.fs, child.pid) then
      uv.kill(ports.sys.getpid(), "sigstop")
    end
  end)
  for name, number in pairs({ sigterm = 15, sighup = 1 }) do
    watch(name, function()
      ended.signal = number
      child:kill(number)
    end)
  end
  return function()
    for _, handle in ipairs(handles) do
      handle:close()
    end
    return ended
  end
end

-- Runs the launcher in the foreground and waits. Returns its exit code, and what else ended it: a
-- signal that efr got, or the time limit.
local function execute(env, path, call_dir, limit_ms)
  local ports = env.ports
  local terminal
  for fd = 0, 2 do
    terminal = terminal or env:is_tty(fd) and fd
  end
  if terminal and ports.tty.foreground(terminal) then
    ports.tty.save(terminal)
  end
  local stop
  local code, message = async.await(function(resume)
    local child, err = ports.proc.spawn({
      path = path,
      argv = { path, "run", "--call-dir", call_dir },
      env = environment(env.environ),
      fds = { [0] = 0, [1] = 1, [2] = 2 },
      on_exit = function(status, signal)
        resume(signal and signal ~= 0 and 128 + signal or status)
      end,
    })
    if not child then
      return resume(nil, err)
    end
    stop = watch_signals(ports, child, limit_ms)
  end)
  local ended = stop and stop() or {}
  ports.tty.restore(true)
  return code, message, ended
end

local function print_end(env, result)
  local sandbox = type(result.sandbox) == "table" and result.sandbox or {}
  local blocked_hosts = sandbox.blocked or {}
  if not result.changes and #blocked_hosts == 0 then
    return
  end
  local style = require("efr.cli.screen").style(env, 2)
  local row = require("efr.cli.view.changes").summary_row(result.changes, env.home)
  if row then
    env:err(style:row(row) .. "\n")
    if result.undo_id then
      env:err(style:row({ { "  efr undo takes it back", "muted" } }) .. "\n")
    end
  end
  for _, blocked in ipairs(blocked_hosts) do
    env:err(style:row({ {
      env.ports.text.printable(("network: blocked %s:%s (%s)"):format(
        blocked.host, blocked.port, blocked.reason)), "muted",
    } }) .. "\n")
  end
end

local function ask_daemon(env, link, args, cwd, write)
  return link:call("run.begin", {
    argv = env.ports.json.array(args.command),
    cwd = cwd,
    write = write,
    read_only = args.ro or nil,
    dry = args.dry or nil,
    env = env.ports.json.array(args.env or {}),
    cache = args.cache,
    hosts = env.ports.json.array({}),
  })
end

-- The usual run is in a project and is answered at once; else the user is asked.
local function begin(env, link, args)
  local cwd = env.ports.uv.cwd()
  cwd = cwd and env.ports.fs.realpath(cwd)
  if not cwd then
    return nil, "the current directory is unknown", "EFR_USAGE"
  end
  local write, message, code = write_roots(env, cwd, args.write or {})
  if not write then
    return nil, message, code
  end
  local run, data
  run, message, code, data = ask_daemon(env, link, args, cwd, write)
  if run or code ~= "invalid" then
    return run, message, code, data
  end
  local ok
  ok, message, code, data = permit(env, link, cwd, write)
  if not ok then
    return nil, message, code, data
  end
  return ask_daemon(env, link, args, cwd, write)
end

-- Words of a refusal about the sandbox itself end in the launcher's own code.
local function refused(env, message, code, data)
  if code == "conflict" or code == "internal" then
    env:warn("the sandbox could not start: " .. message)
    return NOT_STARTED
  end
  return nil, message, code, data
end

-- The time limit in milliseconds, nil for none.
local function limit_of(word)
  if not word then
    return nil
  end
  local number, unit = word:match("^(%d+)([smh]?)$")
  local ms = number and #number < 10 and tonumber(number) * UNIT_MS[unit]
  if not ms or ms < 1 or ms > MAX_MS then
    return nil, ("--timeout %s: a time such as 90, 90s, 5m or 1h, at most 168h"):format(word),
      "EFR_USAGE"
  end
  return ms
end

-- What the launcher left is taken and told.
local function finish(env, link, args, run, ended, exit)
  local result, message = link:call("run.end", { run_id = run.run_id, exit_code = exit })
  if not result then
    env:warn("the run was not recorded: " .. message)
  elseif args.dry then
    local answers = { yes = args.yes, no = args.no or ended.signal ~= nil }
    require("efr.cli.dry").finish(env, link, run.run_id, result, answers)
  else
    print_end(env, result)
    local sandbox = type(result.sandbox) == "table" and result.sandbox
    if sandbox and (result.surface_files or sandbox.surface_changes) then
      require("efr.cli.surface").run(env, link, run.run_id, result)
    end
  end
end

-- What is asked for must fit together.
local function check(args, env)
  local limit_ms, message, code = limit_of(args.timeout)
  if not message and (args.dry or args.yes or args.no) then
    message = require("efr.cli.dry").refusal(env, args)
    code = message and "EFR_USAGE"
  end
  return limit_ms, message, code
end

function M.run(args, env)
  local limit_ms, message, code = check(args, env)
  if message then
    return nil, message, code
  end
  local link, data
  link, message, code, data = conn.open(env)
  if not link then
    return nil, message, code, data
  end
  local run
  run, message, code, data = begin(env, link, args)
  if not run then
    return refused(env, message, code, data)
  end
  for _, note in ipairs(run.notes or {}) do
    env:warn(note)
  end
  local exit, ended
  exit, message, ended = execute(env, run.launcher, run.call_dir, limit_ms)
  if not exit then
    env:warn("the sandbox could not start: " .. message)
    exit = NOT_STARTED
  elseif ended.timed_out then
    env:warn("the command was ended after " .. args.timeout:gsub("^%d+$", "%0s"))
    exit = TIMED_OUT
  end
  finish(env, link, args, run, ended, exit)
  link:close()
  return ended.signal and 128 + ended.signal or exit
end

return M
