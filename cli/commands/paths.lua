-- efr paths: the four roots, the files in them, and what the daemon uses.

local conn = require "efr.cli.conn"

local M = { summary = "where efr keeps its files" }

function M.add(parser)
  parser:flag("--json", "as one JSON object")
end

local ROOTS <const> = { "config", "data", "state", "runtime" }

local SOURCE <const> = { default = "default", EFR_HOME = "EFR_HOME" }

local FILES <const> = {
  { "config.toml", "config" },
  { "projects.toml", "config" },
  { "efr.sqlite", "data" },
  { "secrets", "data" },
  { "logs", "state" },
  { "daemon.sock", "runtime" },
  { "daemon.json", "runtime" },
}

local function file_state(fs, path)
  local info = fs.lstat(path)
  if not info then
    return "absent"
  end
  if info.type == "link" then
    local target = fs.readlink(path) or "?"
    if not fs.stat(path) then
      return ("a link to %s, which does not exist"):format(target)
    end
    return "a link to " .. target
  end
  return info.type == "file" and "a file" or "exists"
end

-- The roots the running daemon uses; nil and why when it cannot say.
local function daemon_roots(env)
  local link, message, code = conn.open(env, { start = false })
  if not link then
    return nil, code == "EFR_NOT_RUNNING" and "not running" or message
  end
  local status, why = link:call("admin.status", {})
  link:close()
  if not status then
    return nil, why
  end
  return status.roots or {}
end

local function collect(env)
  local roots, message, code = conn.roots(env.ports, env.environ)
  if not roots then
    return nil, message, code
  end
  local fs = env.ports.fs
  local report = { roots = {}, files = {}, daemon = {}, warnings = env.ports.json.array({}) }
  for _, name in ipairs(ROOTS) do
    local root = roots[name]
    local exists = fs.stat(root.path) ~= nil
    report.roots[name] = { path = root.path, source = root.source, exists = exists }
  end
  for _, file in ipairs(FILES) do
    local path = roots[file[2]].path .. "/" .. file[1]
    report.files[file[1]] = { path = path, state = file_state(fs, path) }
  end
  local used, why = daemon_roots(env)
  report.daemon = used and { roots = used } or { error = why }
  for _, name in ipairs(ROOTS) do
    local root = used and used[name]
    if root and root.path ~= roots[name].path then
      local words = "the daemon uses %s, this shell uses %s; give efrd the same EFR_HOME"
      table.insert(report.warnings, words:format(root.path, roots[name].path))
    end
  end
  return report
end

local function print_rows(env, report)
  local function row(key, value)
    env:say(("%-14s %s"):format(key, value))
  end
  for _, name in ipairs(ROOTS) do
    local root = report.roots[name]
    local source = SOURCE[root.source] or root.source
    row(name, ("%s  (%s, %s)"):format(root.path, source, root.exists and "exists" or "absent"))
  end
  for _, file in ipairs(FILES) do
    local entry = report.files[file[1]]
    row(file[1], ("%s  (%s)"):format(entry.path, entry.state))
  end
  if not report.daemon.roots then
    row("daemon", report.daemon.error)
    return
  end
  for _, name in ipairs(ROOTS) do
    local root = report.daemon.roots[name]
    if root then
      row("daemon " .. name, ("%s  (%s)"):format(root.path, root.source))
    end
  end
end

function M.run(args, env)
  local report, message, code = collect(env)
  if not report then
    return nil, message, code
  end
  if args.json then
    env:out(assert(env.ports.json.encode(report, { sort = true, pretty = true })) .. "\n")
    return 0
  end
  print_rows(env, report)
  for _, warning in ipairs(report.warnings) do
    env:warn("warning: " .. warning)
  end
  return 0
end

return M
