-- efr sandbox: whether the sandbox works here and what mends it, and what a command in it finds at
-- a path; the always rules are in cli/allow. Needs no daemon: checks and plan are those of efrd,
-- made here with the same settings.

local allow_command = require "efr.cli.allow"
local alone = require "efr.cli.alone"
local calls_of = require "efr.sbx.calls"
local cgroup = require "efr.sbx.cgroup"
local conn = require "efr.cli.conn"
local explain_of = require "efr.sbx.explain"
local probe = require "efr.sbx.probe"
local projects = require "efr.config.projects"
local warnings = require "efr.sbx.warnings"

local M = { summary = "check the sandbox, explain a path in it, show your always rules" }

local LAUNCHER_MAX <const> = 16 * 1024 * 1024
local SCOPES_ABI <const> = 6
local RESOLVE_UNIX_ABI <const> = 9
local MAX_ABI <const> = 9999

function M.add(parser)
  parser:command_target("action")
  local check = parser:command("check", "try every guarantee in a real call"):add_help(false)
  check:option("--abi", "use no more of Landlock than its ABI N has"):argname("N")
  check:flag("--json", "as one JSON object")
  local explain = parser:command("explain", "what a command finds at a path, and why")
  explain:add_help(false)
  explain:argument("path")
  explain:option("--write", "as if the command could write this, too"):argname("PATH"):count("*")
  explain:flag("--json", "as one JSON object")
  allow_command.add(parser)
end

-- What efrd would build its calls from ------------------------------------------------------------

local function new_calls(env)
  local app, message, code = alone.read(env)
  if not app then
    return nil, message, code
  end
  return calls_of.new(app, { in_place = true })
end

-- check -------------------------------------------------------------------------------------------

-- Means that come with the kernel, beside those that always serve.
local function more_means(name, abi)
  if (name == "abstract_socket" or name == "signal_outside") and abi >= SCOPES_ABI then
    return ", and Landlock scopes"
  elseif name == "unix_socket" and abi >= RESOLVE_UNIX_ABI then
    return ", and Landlock resolve_unix"
  end
  return ""
end

local function means(report)
  local out = {}
  for i, check in ipairs(report.checks) do
    local words = probe.CHECKS[i][2] .. more_means(check.name, report.landlock_abi or 0)
    out[i] = { name = check.name, outcome = check.outcome, detail = check.detail, means = words }
  end
  return out
end

-- The copy that a running efrd uses.
local function compare_copy(calls, add)
  local fs = calls.app.ports.fs
  local source = calls.launcher:path()
  for _, root in ipairs({ "runtime", "data" }) do
    local path = calls.app.paths[root] .. "/bin/efr-sbx"
    local copy = source and fs.read_file(path, LAUNCHER_MAX)
    if copy and copy ~= fs.read_file(source, LAUNCHER_MAX) then
      add("the launcher's copy " .. path .. " is not the installed one", "restart efrd")
    end
  end
end

-- A running efrd has its own environment and may be of another opinion. Returns what it says.
local function ask_daemon(env, report, add)
  local link = conn.open(env, { start = false })
  if not link then
    return
  end
  local status = link:call("admin.status", {})
  link:close()
  local its = status and status.sandbox
  if its and its.available ~= report.available and not its.checking then
    local words = its.available and "works" or "does not: " .. tostring(its.reason)
    add("in the running efrd the sandbox " .. words, "restart efrd")
  end
  return its
end

-- The limit of memory: of the running efrd, else of one that would be started here.
local function memory(env, calls, daemon)
  local mib, reason = calls.app.config:get("sandbox.max_memory_mib") or 0
  if not daemon then
    reason = cgroup.new(env.ports, { look = true }).reason
  elseif not daemon.memory_limit then
    reason = daemon.memory_limit_reason or "it was not looked for"
  end
  return { possible = reason == nil, reason = reason, mib = mib }
end

local function collect(env, calls, max_abi)
  local report = probe.run(calls, { max_abi = max_abi })
  local list = warnings.collect(calls, report)
  local function add(text, fix)
    list[#list + 1] = { text = text, fix = fix }
  end
  compare_copy(calls, add)
  for _, words in ipairs(allow_command.disabled(env, calls.app)) do
    add(words, "see efr sandbox allow")
  end
  local daemon = not max_abi and ask_daemon(env, report, add) or nil
  local limit = memory(env, calls, daemon)
  if limit.reason and limit.mib > 0 then
    add("sandbox.max_memory_mib has no effect: " .. limit.reason,
      "run efrd as the systemd unit that efr brings (Delegate=yes)")
  end
  local launch_us = report.available and probe.launch_time(calls, max_abi) or nil
  return {
    available = report.available, reason = report.reason, fix = report.fix, max_abi = max_abi,
    backend = report.available and report.backend or nil, landlock_abi = report.landlock_abi,
    bwrap = report.bwrap, bwrap_version = report.bwrap_version,
    launch_us = launch_us, memory = limit, checks = env.ports.json.array(means(report)),
    warnings = env.ports.json.array(list),
  }
end

local SIGN <const> = { ok = "ok", fail = "fail", skipped = "skip" }

local function print_memory(row, limit)
  if limit.reason then
    row("note", "memory: a call has no limit of its own: " .. limit.reason)
  elseif limit.mib > 0 then
    row(SIGN.ok, ("memory: a call has at most %d MiB (cgroup)"):format(limit.mib))
  else
    row(SIGN.ok, "memory: a limit is possible (cgroup), none is set (sandbox.max_memory_mib)")
  end
end

local function print_check(env, report)
  local function row(sign, words, fix)
    env:say(("%-4s  %s"):format(sign, words))
    if fix then
      env:say("      fix: " .. fix)
    end
  end
  for _, check in ipairs(report.checks) do
    local detail = check.detail and ": " .. check.detail or ""
    row(SIGN[check.outcome], ("%s: %s%s"):format(check.name, check.means, detail))
  end
  if report.available then
    local abi = "Landlock ABI " .. report.landlock_abi .. (report.max_abi and " (capped)" or "")
    local backend = report.bwrap_version
      and ("bubblewrap %s (%s)"):format(report.bwrap_version, report.bwrap) or report.backend
    row("ok", ("backend %s, %s, socket broker"):format(backend, abi))
    if report.launch_us then
      row("ok", ("launch %.1f ms"):format(report.launch_us / 1000))
    end
  else
    row("fail", report.reason, report.fix)
  end
  print_memory(row, report.memory)
  for _, warning in ipairs(report.warnings) do
    row("warn", warning.text, warning.fix)
  end
  env:say(report.available and "auto: ready"
    or ("auto: unavailable: %s; turns run as cautious"):format(report.reason))
end

local function print_json(env, value)
  env:out(assert(env.ports.json.encode(value, { sort = true, pretty = true })) .. "\n")
end

local function check(args, env, calls)
  local max_abi
  if args.abi then
    max_abi = args.abi:match("^%d+$") and math.tointeger(tonumber(args.abi))
    if not max_abi or max_abi > MAX_ABI then
      return nil, "--abi takes a number", "EFR_USAGE"
    end
  end
  local report = collect(env, calls, max_abi)
  if args.json then
    print_json(env, report)
  else
    print_check(env, report)
  end
  return report.available and 0 or 1
end

-- explain -----------------------------------------------------------------------------------------

local function access_words(allowed, exit)
  if allowed then
    return "yes"
  end
  return exit and ("no; it would be the exit " .. exit) or "no"
end

local MORE <const> = {
  { "hidden_below", "hidden below it: " },
  { "read_only_below", "read-only below it: " },
  { "nested", "mounts of the host, read-only in a write root: " },
}

local function print_explanation(env, out)
  local where = out.project or "no project"
  env:say(("%s, from %s in auto:"):format(out.path, where))
  env:say("  read   " .. access_words(out.read, out.read_exit))
  env:say("  write  " .. access_words(out.write, out.write_exit))
  env:say("  why    " .. out.reason)
  local function row(key, words)
    if words then
      env:say(("  %-6s %s"):format(key, words))
    end
  end
  row("change", out.change)
  row("link", out.real and "leads to " .. out.real)
  row("row", out.at and out.at ~= (out.real or out.path) and out.at or nil)
  row("", out.missing and "nothing is there now" or nil)
  for _, more in ipairs(MORE) do
    row("", out[more[1]] and more[2] .. table.concat(out[more[1]], ", "))
  end
end

local function explain(args, env, calls)
  local cwd = env.ports.fs.realpath(env.ports.uv.cwd() or "/") or "/"
  local function named(word)
    local path, message, code = explain_of.named(calls.app.ports.fs, word, cwd, env.home)
    return path, path or ("%s: %s"):format(word, message), code
  end
  local path, message, code = named(args.path)
  if not path then
    return nil, message, code
  end
  local grants = {}
  for i, word in ipairs(args.write or {}) do
    local granted
    granted, message, code = named(word)
    if not granted then
      return nil, message, code
    end
    grants[i] = { kind = "write", path = granted }
  end
  local project = projects.containing(calls.app.projects.list(), cwd)
  local out
  out, message, code = calls:explain({
    conversation_id = "probe", call_id = "explain", cwd = cwd, argv = { "true" },
    project_root = project and project.root, grants = grants,
  }, path)
  if not out then
    return nil, "no command could run in the sandbox here: " .. message, code
  end
  out.project, out.mode = project and project.root, "auto"
  if args.json then
    print_json(env, out)
  else
    print_explanation(env, out)
  end
  return 0
end

local ACTIONS <const> = { check = check, explain = explain }

function M.run(args, env)
  if args.action == "allow" then
    return allow_command.run(args, env)
  end
  local calls, message, code = new_calls(env)
  if not calls then
    return nil, message, code
  end
  return ACTIONS[args.action](args, env, calls)
end

return M
