-- The daemon as a whole: builds its parts in the order of a start and ends them in the order of a
-- stop. `app` is what every part of the daemon gets:
--   ports, log, env, flags, version, daemon_id, boot_id, started_at (us), traceback
--   paths (config, data, state, runtime), roots (the same with their sources), files
--   config (daemon/reload), projects (daemon/registry), store (store/log), query (store/query)
--   followers, answering, notices, watch (daemon/watch)
--   rules, git, snapshots, undo, providers, sandbox, guard, shells, conversations
--                                                        the parts of other folders
--   run_questions (daemon/run_surface), dispatch, server, reach (sbx/reach), reload (a function)
-- Main thread of efrd, in a coroutine.
local always = require "efr.conv.always"
local answering = require "efr.daemon.answering"
local async = require "efr.util.async"
local calls = require "efr.sbx.calls"
local cgroup = require "efr.sbx.cgroup"
local describe = require "efr.sbx.describe"
local dispatch = require "efr.daemon.dispatch"
local git = require "efr.sbx.git"
local guard = require "efr.sbx.guard"
local leftovers = require "efr.daemon.leftovers"
local lua_rules = require "efr.daemon.lua_rules"
local manager = require "efr.conv.manager"
local notices = require "efr.daemon.notices"
local paths = require "efr.config.paths"
local pool = require "efr.shell.pool"
local providers = require "efr.model.providers"
local reach = require "efr.sbx.reach"
local reconcile = require "efr.store.reconcile"
local registry = require "efr.daemon.registry"
local reload = require "efr.daemon.reload"
local roots = require "efr.daemon.roots"
local schema = require "efr.store.schema"
local server = require "efr.daemon.server"
local settings_schema = require "efr.config.schema"
local snapshots = require "efr.daemon.snapshots"
local socket = require "efr.daemon.socket"
local status = require "efr.daemon.status"
local store_log = require "efr.store.log"
local store_query = require "efr.store.query"
local undo = require "efr.undo.undo"
local watch = require "efr.daemon.watch"
local wire = require "efr.daemon.wire"

local M = {}

local FILE_MODE <const> = 384 -- 0600
local SMALL_FILE <const> = 4096
local STOP_MS <const> = 10000 -- for each part
local UUID <const> = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

local App = {}
App.__index = App

local function trimmed(bytes)
  return bytes and bytes:match("^%s*(.-)%s*$")
end

local function find_roots(app)
  local found, err, code = paths.resolve(app.env, app.ports.sys.getuid(), app.ports.fs)
  if not found then
    return nil, err, code
  end
  app.roots, app.paths = found, {}
  for name, root in pairs(found) do
    app.paths[name] = root.path
  end
  app.files = {
    lock = found.data.path .. "/daemon.lock",
    daemon_id = found.data.path .. "/daemon_id",
    database = found.data.path .. "/efr.sqlite",
    socket = found.runtime.path .. "/daemon.sock",
    json = found.runtime.path .. "/daemon.json",
    config = found.config.path .. "/config.toml",
    projects = found.config.path .. "/projects.toml",
    notices = found.runtime.path .. "/notices",
    rules = found.config.path .. "/rules.lua",
    rules_folder = found.config.path .. "/rules.d",
  }
  local ok
  ok, err, code = socket.check_path(app.files.socket)
  if not ok then
    return nil, err, code
  end
  return roots.prepare(app.ports.fs, found, app.ports.sys.getuid())
end

local function boot_id(fs)
  return trimmed(fs.read_file("/proc/sys/kernel/random/boot_id", SMALL_FILE)) or ""
end

-- Who holds the lock: another machine on a shared home is told apart by its boot id.
local function lock_holder(app)
  local text = app.ports.fs.read_file(app.files.json, SMALL_FILE)
  local there = text and app.ports.json.decode(text)
  if type(there) == "table" and there.boot_id and there.boot_id ~= app.boot_id then
    return "another efrd is running on another machine that shares " .. app.paths.data
  end
  return "another efrd is running"
end

local function take_lock(app)
  app.boot_id = boot_id(app.ports.fs)
  local lock, err, code = app.ports.sys.flock(app.files.lock)
  if not lock then
    local held = code == "EWOULDBLOCK" or code == "EAGAIN"
    return nil, held and lock_holder(app) or ("lock %s: %s"):format(app.files.lock, err), code
  end
  app.lock = lock
  return true
end

local function read_daemon_id(app)
  local fs, path = app.ports.fs, app.files.daemon_id
  local text, err, code = fs.read_file(path, SMALL_FILE)
  local id = trimmed(text)
  if id and id:find(UUID) then
    app.daemon_id = id
    return true
  elseif text or code ~= "ENOENT" then
    return nil, ("%s: %s"):format(path, err or "holds no UUID; remove it"), code
  end
  app.daemon_id = app.ports.sys.uuid7()
  return fs.write_atomic(path, app.daemon_id .. "\n", FILE_MODE)
end

local function load_config(app)
  local settings, err, code = reload.new {
    fs = app.ports.fs, log = app.log:part("config"), schema = app.settings_schema,
    path = app.files.config, home = app.env.HOME, env = app.env, flags = app.flags,
  }
  if not settings then
    return nil, err, code
  end
  app.config = settings
  local function apply_log()
    local ok, why = app.log:set_filter(settings:get("log"))
    if not ok then
      app.log:warn("setting log: %s", why)
    end
  end
  apply_log()
  settings:on_change(apply_log)
  return true
end

local function load_projects(app)
  app.projects = registry.new {
    fs = app.ports.fs, log = app.log:part("config"), path = app.files.projects,
    home = app.env.HOME, uuid7 = app.ports.sys.uuid7,
  }
  return true
end

-- A place on a dead mount is known before any part looks at it.
local function look_around(app)
  app.reach:answers({}, (describe.places(app, {})))
  return true
end

local function migrations(app)
  local prefix, names = "efr.store.migrations.", {}
  for i, module in ipairs(app.ports.modules.list(prefix)) do
    names[i] = module:sub(#prefix + 1)
  end
  return schema.migrations(names, function(name)
    return require(prefix .. name)
  end)
end

local function open_store(app)
  local ports, log = app.ports, app.log:part("store")
  local db, err, code = schema.open {
    store = ports.store, fs = ports.fs, log = log, path = app.files.database,
    data_dir = app.paths.data, migrations = migrations(app),
  }
  if not db then
    return nil, err, code
  end
  app.db = db
  local ok
  ok, err, code = db:start()
  if ok then
    ok, err, code = schema.rebuild({ json = ports.json, null = ports.store.null, log = log }, db)
  end
  if not ok then
    return nil, err, code
  end
  app.query = store_query.new { db = db, json = ports.json }
  local last_seq
  last_seq, err, code = app.query:highest_seq()
  if not last_seq then
    return nil, err, code
  end
  app.store = store_log.new {
    db = db, json = ports.json, text = ports.text, now_us = ports.sys.now_us,
    null = ports.store.null, last_seq = last_seq, traceback = app.traceback,
    on_error = function(text)
      log:error("%s", text)
    end,
  }
  return true
end

local function settle_last_run(app)
  app.followers, app.answering = notices.followers(), answering.new()
  app.notices = notices.new {
    uv = app.ports.uv, fs = app.ports.fs, log = app.log:part("notices"), query = app.query,
    followers = app.followers, dir = app.files.notices,
  }
  local lost, err, code = reconcile.run {
    log = app.store, query = app.query, now_us = app.ports.sys.now_us,
  }
  if not lost then
    return nil, err, code
  end
  app.notices:restarted(lost)
  leftovers.remove(app.ports.fs, app.paths.runtime, function(id)
    return app.query:conversation(id) ~= nil
  end)
  app.store:subscribe(nil, function(row)
    app.notices:on_row(row)
  end)
  return true
end

-- Parts of other folders, in the order in which they are built.
local PARTS <const> = {
  { "rules", lua_rules.new },
  { "git", git.new },
  { "snapshots", snapshots.new },
  { "undo", undo.new },
  { "providers", providers.new },
  { "cgroup", function(app) return cgroup.new(app.ports) end },
  { "sandbox", calls.new },
  { "guard", guard.new },
  { "shells", pool.new },
  { "conversations", manager.new },
}

local function build_parts(app)
  for _, part in ipairs(PARTS) do
    local built, err, code = part[2](app)
    if not built then
      return nil, ("%s: %s"):format(part[1], err), code
    end
    app[part[1]] = built
  end
  return true
end

-- What full mode holds back applies when the last of its turns has ended.
local function watch_full(app)
  app.config:watch_full(function()
    return app.conversations:full_runs()
  end)
  function app.full_ended()
    if #app.config:waiting() > 0 and not app.conversations:full_runs() then
      async.spawn(status.reload, app)
    end
  end
  return true
end

-- Without inotify the settings are still read again on SIGHUP and admin.config_reload.
local function watch_settings(app)
  local files, log = app.files, app.log:part("config")
  local watcher, err = watch.new {
    watch = app.ports.watch, fs = app.ports.fs, uv = app.ports.uv, log = log,
    paths = { files.config, files.projects, files.rules }, folders = { files.rules_folder },
    on_change = function()
      status.reload(app)
    end,
  }
  if not watcher then
    log:warn("%s: changes are seen at SIGHUP or efr config reload only", err)
  end
  app.watch = watcher
  return true
end

local function rpc_methods(modules)
  local methods = {}
  for i, module in ipairs(modules.list("efr.daemon.rpc.")) do
    methods[i] = require(module)
  end
  return methods
end

local function write_daemon_json(app)
  local text = assert(app.ports.json.encode({
    pid = app.ports.sys.getpid(), socket = app.files.socket, protocol = wire.PROTOCOL,
    daemon_id = app.daemon_id, boot_id = app.boot_id,
  }, { sort = true, pretty = true }))
  return app.ports.fs.write_atomic(app.files.json, text .. "\n", FILE_MODE)
end

local function serve(app)
  app.dispatch = dispatch.new {
    app = app, methods = rpc_methods(app.ports.modules), json = app.ports.json,
    text = app.ports.text, log = app.log:part("rpc"), traceback = app.traceback,
    store = app.store, query = app.query,
  }
  app.server = server.new(app)
  local ok, err, code = app.server:listen(app.files.socket)
  if not ok then
    return nil, err, code
  end
  return write_daemon_json(app)
end

-- In the background: a start waits for no launch.
local function probe_sandbox(app)
  always.look(app)
  app.sandbox:settings_read()
  app.sandbox:check_again()
  app.sandbox:tidy()
  app.snapshots:tidy()
  -- What only the start needed goes back to the system.
  async.spawn(function()
    app.sandbox:status()
    app.tidy:soon()
  end)
  return true
end

local START <const> = {
  find_roots, take_lock, read_daemon_id, load_config, load_projects, look_around, open_store,
  settle_last_run, build_parts, watch_full, watch_settings, serve, probe_sandbox,
}

-- Text only, and only into the environment that the caller gives: for the script of the scripted
-- provider.
local function load_chunk(text, name, env)
  return load(text, name, "t", env)
end

--- @param opts {ports: table, log: table, env: table, flags: table, version: string}
function M.new(opts)
  opts.ports.load_chunk = load_chunk
  local app = setmetatable({
    ports = opts.ports, log = opts.log, env = opts.env, flags = opts.flags,
    version = opts.version, started_at = opts.ports.sys.now_us(),
    settings_schema = settings_schema.load(opts.ports.modules.list),
    traceback = function(err)
      return opts.ports.sys.traceback((coroutine.running()), tostring(err))
    end,
  }, App)
  function app.reload()
    return status.reload(app)
  end
  reach.install(app)
  return app
end

--- Finds the roots and reads the settings only: for --print-config.
function App:load_settings()
  local found, err, code = paths.resolve(self.env, self.ports.sys.getuid(), self.ports.fs)
  if not found then
    return nil, err, code
  end
  self.files = { config = found.config.path .. "/config.toml" }
  return load_config(self)
end

--- Starts everything; after a failure what was started has ended again.
--- @return true|nil, string|nil message, string|nil code
function App:start()
  for _, step in ipairs(START) do
    local ok, err, code = step(self)
    if not ok then
      self:stop()
      return nil, err, code
    end
  end
  self.ports.sys.notify("READY=1")
  self.log:info("efrd %s, pid %d, socket %s", self.version, self.ports.sys.getpid(),
    self.files.socket)
  return true
end

local function remove_daemon_json(app)
  local text = app.ports.fs.read_file(app.files.json, SMALL_FILE)
  local there = text and app.ports.json.decode(text)
  if type(there) == "table" and there.pid == app.ports.sys.getpid() then
    app.ports.fs.unlink(app.files.json)
  end
end

-- One part that fails to end, or never ends, does not keep the others from ending.
local function guarded(app, what, fn)
  local ended, err = async.with_timeout(STOP_MS, function()
    local ok, traceback = xpcall(fn, app.traceback)
    if not ok then
      app.log:error("stop %s: %s", what, traceback)
    end
  end)
  if not ended then
    app.log:error("stop %s: %s", what, err)
  end
end

--- Ends everything, the lock last. Safe after a start that failed half way.
function App:stop()
  if self.watch then
    self.watch:close()
  end
  if self.server then
    guarded(self, "server", function()
      self.server:stop_listening()
      remove_daemon_json(self)
    end)
  end
  if self.conversations then
    guarded(self, "conversations", function()
      self.conversations:close()
    end)
  end
  if self.shells then
    guarded(self, "shells", function()
      self.shells:close_all()
    end)
  end
  if self.server then
    guarded(self, "connections", function()
      self.server:close()
    end)
  end
  if self.snapshots then
    guarded(self, "snapshots", function()
      self.snapshots:close()
    end)
  end
  if self.rules then
    self.rules:close()
  end
  if self.store then
    self.store:close()
  end
  if self.db then
    guarded(self, "store", function()
      self.db:close()
    end)
  end
  if self.lock then
    self.lock:close()
  end
end

return M
