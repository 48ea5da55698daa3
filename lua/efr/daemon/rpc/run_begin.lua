-- run.begin: prepares the user's own command (`efr run`) as a contained call; the client runs the
-- launcher in its own terminal.
-- Main thread of efrd; waits.
--
-- The user is the approver: what may be written is a grant of this call; masks and floors hold.

local environment = require "efr.sbx.environment"
local run_dry = require "efr.daemon.run_dry"
local run_snapshot = require "efr.daemon.run_snapshot"
local run_surface = require "efr.daemon.run_surface"

local MAX_ARGUMENTS <const> = 4096
local MAX_ARGUMENT <const> = 131072
local VARIABLE <const> = "^[%a_][%w_]*$"
local CONVERSATION <const> = "run" -- one private /tmp for all of them

local function write_grants(app, params)
  local out = {}
  for i, path in ipairs(params.write or {}) do
    local real, err = app.ports.fs.realpath(path)
    if not real then
      return nil, ("write root %s: %s"):format(path, err), "invalid"
    end
    local info = params.dry and app.ports.fs.lstat(real)
    if info and info.type ~= "dir" then
      return nil, path .. " is no directory: a dry run has overlays of directories only", "invalid"
    end
    out[i] = { kind = "write", path = real }
  end
  return out
end

-- Variables that the user asks for: a name to keep, or a name and its value.
local function split_env(list)
  local pass, set = {}, {}
  for _, item in ipairs(list or {}) do
    local name, value = item:match("^([^=]+)=(.*)$")
    name = name or item
    if not name:match(VARIABLE) or environment.matches(environment.FIXED, name) then
      return nil, ("variable %s: efr sets it itself, or it is no name"):format(name), "invalid"
    end
    if value then
      set[#set + 1] = { name, value }
    else
      pass[#pass + 1] = name
    end
  end
  return { pass = pass, set = set }
end

-- What is asked for, checked and made absolute.
local function read(app, session, params)
  if session.peer.model_side then
    return nil, "a command of the model cannot start efr run", "forbidden"
  end
  local answers, dead = app.sandbox:answers({ cwd = params.cwd, extra_write = params.write })
  if not answers then
    return nil, dead, "conflict"
  end
  local cwd, err = app.ports.fs.realpath(params.cwd)
  if not cwd then
    return nil, ("directory %s: %s"):format(params.cwd, err), "invalid"
  end
  local code
  local wanted = { cwd = cwd, project = app.projects:containing(cwd), argv = params.argv }
  wanted.grants, err, code = write_grants(app, params)
  if not wanted.grants then
    return nil, err, code
  end
  wanted.env, err, code = split_env(params.env)
  if not wanted.env then
    return nil, err, code
  end
  if not wanted.project and #wanted.grants == 0 and not params.read_only then
    return nil, cwd .. " is in no project: register it (efr project add) or give --write PATH",
      "invalid"
  end
  wanted.project_root = wanted.project and wanted.project.root
  return wanted
end

-- What has to be known of the files before the command runs.
local function begin(app, session, call, params, opts)
  local ok, err
  if params.dry then
    ok, err = run_dry.begin(app, session, call, opts)
    return ok, err
  end
  ok, err = run_snapshot.begin(app, session, call, opts)
  if ok then
    run_surface.begin(app, session, call, {
      conversation_id = CONVERSATION, run_id = opts.run_id, cwd = opts.cwd,
    })
  end
  return ok, err
end

local function handler(app, session, params)
  local wanted, err, code = read(app, session, params)
  if not wanted then
    return nil, err, code
  end
  if params.dry and not (app.snapshots:enabled() and app.config:get("undo.enabled")) then
    return nil, "a dry run needs snapshot.enabled and undo.enabled", "invalid"
  end
  local run_id = app.ports.sys.uuid7()
  local call
  call, err = app.sandbox:prepare({
    conversation_id = params.dry and run_dry.conversation(run_id) or CONVERSATION,
    dry = params.dry, call_id = run_id, argv = params.argv, cwd = wanted.cwd,
    project_root = wanted.project_root, launch = "contained", grants = wanted.grants,
    read_only = params.read_only, cache_mode = params.cache, env_pass = wanted.env.pass,
    env_set = wanted.env.set,
  })
  if not call then
    return nil, err, "conflict"
  end
  local covered
  covered, err = begin(app, session, call, params, {
    run_id = run_id, argv = params.argv, cwd = wanted.cwd, grants = wanted.grants,
    project_root = not params.read_only and wanted.project_root or nil,
  })
  if not covered then
    call:cleanup()
    return nil, err, "conflict"
  end
  app.sandbox.runs[run_id] = call
  return {
    run_id = run_id, call_dir = call.dir, launcher = call.launcher,
    notes = #call.notes > 0 and call.notes or nil,
  }
end

return {
  method = "run.begin",
  scope = "terminal",
  params = {
    argv = {
      type = "list", min = 1, max = MAX_ARGUMENTS, items = { type = "string", max = MAX_ARGUMENT },
    },
    cwd = { type = "string", min = 1, max = 4096 },
    write = {
      type = "list", max = 64, items = { type = "string", min = 1, max = 4096 }, optional = true,
    },
    read_only = { type = "boolean", optional = true },
    dry = { type = "boolean", optional = true },
    env = {
      type = "list", max = 256, items = { type = "string", min = 1, max = MAX_ARGUMENT },
      optional = true,
    },
    cache = { type = "choice", choices = { "tmp", "overlay", "readonly" }, optional = true },
  },
  handler = handler,
}
