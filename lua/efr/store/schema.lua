-- Opens the database: checks it, backs it up, migrates it and rebuilds the projections.
-- A database that is damaged, foreign or newer than this build is refused with the path of its
-- backup; there is never a silent new database.
-- Knows nothing of what the tables mean. Main thread of efrd, at the start; M.rebuild waits for
-- commits and runs in a coroutine.
local async = require "efr.util.async"
local projections = require "efr.store.projections"

local M = {}

M.APPLICATION_ID = 1701212777 -- "efri", set by migrations/0001_base.sql
M.PAGE = 512 -- events per transaction of a rebuild

-- Above this size the start does not read the whole file to find damage.
local CHECK_BYTES <const> = 32 * 1024 * 1024

--- The migrations in order, from the names and texts of the embedded files.
--- @param names string[] such as "0001_base"
--- @param read fun(name: string): string
function M.migrations(names, read)
  local list = {}
  for _, name in ipairs(names) do
    local number = name:match("^(%d%d%d%d)_[%w_]+$")
    assert(number, "migration with a bad name: " .. name)
    list[#list + 1] = { version = math.tointeger(tonumber(number)), name = name, read = read }
  end
  table.sort(list, function(a, b)
    return a.version < b.version
  end)
  for i, migration in ipairs(list) do
    assert(migration.version == i, "migrations must be numbered without a gap: " .. migration.name)
  end
  return list
end

local function pragma(db, name)
  local rows, err, code = db:read("SELECT * FROM pragma_" .. name)
  if not rows then
    return nil, err, code
  end
  local _, value = next(rows[1] or {})
  return value
end

local function backup_path(deps, version)
  return deps.data_dir .. "/backups/efr.sqlite." .. version
end

-- The newest backup that exists, for messages.
local function newest_backup(deps)
  local best, best_version
  for _, entry in ipairs(deps.fs.readdir(deps.data_dir .. "/backups") or {}) do
    local version = math.tointeger(tonumber(entry.name:match("^efr%.sqlite%.(%d+)$")))
    if version and (not best_version or version > best_version) then
      best, best_version = deps.data_dir .. "/backups/" .. entry.name, version
    end
  end
  return best
end

local function refuse(deps, why)
  local backup = newest_backup(deps)
  local hint = backup and ("the newest backup is " .. backup) or ("there is no backup below "
    .. deps.data_dir .. "/backups")
  return nil, ("database %s: %s; %s"):format(deps.path, why, hint), "EFR_STORE"
end

local function is_empty(db)
  local rows, err = db:read("SELECT count(*) AS n FROM sqlite_schema")
  if not rows then
    return nil, err
  end
  return rows[1].n == 0
end

-- true when the file is a sound database of this program (or a new one).
local function check(deps, db, newest)
  local empty, err = is_empty(db)
  if empty == nil then
    return refuse(deps, "is damaged: " .. err)
  end
  local version = pragma(db, "user_version")
  if empty and version == 0 then
    return version, true
  end
  if pragma(db, "application_id") ~= M.APPLICATION_ID then
    return refuse(deps, "is not a database of efr")
  elseif version > newest then
    return refuse(deps, ("is of a newer efr (schema %d, this build knows %d)"):format(version,
      newest))
  end
  local stat = deps.fs.stat(deps.path)
  if stat and stat.size <= CHECK_BYTES then
    local sound, problem = db:check()
    if not sound then
      return refuse(deps, "is damaged: " .. tostring(problem))
    end
  end
  return version, false
end

local function backup(deps, db, version)
  local ok, err = deps.fs.mkdirs(deps.data_dir .. "/backups", 448) -- 0700
  if not ok then
    return nil, err
  end
  return db:backup(backup_path(deps, version))
end

local function apply(db, migration, existing)
  local sql = { migration.read(migration.name),
    ("PRAGMA user_version = %d;"):format(migration.version) }
  if existing then
    sql[#sql + 1] = "UPDATE projection_state SET rebuild_from = 0 WHERE id = 1;"
  end
  return db:script(table.concat(sql, "\n;\n"))
end

local function migrate(deps, db, version, is_new)
  local migrations = deps.migrations
  if version < #migrations and not is_new then
    local ok, err, code = backup(deps, db, version)
    if not ok then
      return nil, ("back up %s before a migration: %s"):format(deps.path, err), code
    end
    deps.log:info("backup before the migration: %s", backup_path(deps, version))
  end
  for i = version + 1, #migrations do
    local ok, err = apply(db, migrations[i], not is_new)
    if not ok then
      return refuse(deps, ("migration %s failed: %s"):format(migrations[i].name, err))
    end
  end
  return true
end

--- @class efr.store.SchemaDeps
--- @field store table          efr.store
--- @field fs table             efr.fs
--- @field log table            a logger
--- @field path string          the database file
--- @field data_dir string
--- @field migrations table     M.migrations(...)

--- Opens and migrates. The writer of the returned database is not started yet.
--- @param deps efr.store.SchemaDeps
--- @return table|nil db, string|nil message, string|nil code
function M.open(deps)
  local db, err = deps.store.open(deps.path)
  if not db then
    return refuse(deps, "cannot be opened: " .. tostring(err))
  end
  local version, is_new, code = check(deps, db, #deps.migrations)
  local ok, message = version, is_new
  if version then
    ok, message, code = migrate(deps, db, version, is_new)
  end
  if not ok then
    db:close()
    return nil, message, code
  end
  return db
end

local function write(db, statements)
  return async.await(function(resume)
    local answered, err, code = db:write(statements, false, function(failure, failure_code)
      resume(failure == nil or nil, failure, failure_code)
    end)
    if answered == nil and err then
      resume(nil, err, code)
    end
  end)
end

local function rows_of(deps, page)
  local rows = {}
  for i, stored in ipairs(page) do
    local event, err = deps.json.decode(stored.payload)
    if not event then
      return nil, ("event %d: %s"):format(stored.seq, err), "EFR_JSON"
    end
    rows[i] = {
      seq = stored.seq, at = stored.created_at, kind = stored.kind,
      conversation_id = stored.conversation_id, event = event,
    }
  end
  return rows
end

local function set_state(value)
  return { "UPDATE projection_state SET rebuild_from = ? WHERE id = 1", { value } }
end

-- Facts are facts: a replay asks for no row counts.
local function without_expectations(statements)
  for _, statement in ipairs(statements) do
    statement.expect_changes = nil
  end
  return statements
end

local function clear(deps, db)
  local statements = {}
  for _, name in ipairs(projections.TABLES) do
    statements[#statements + 1] = { "DELETE FROM " .. name, {} }
  end
  statements[#statements + 1] = set_state(1)
  local ok, err, code = write(db, statements)
  if ok then
    deps.log:info("rebuilding the projections from the event log")
  end
  return ok, err, code
end

local function replay_page(deps, db, project, from)
  local page, read_err, read_code = db:read("SELECT seq, conversation_id, kind, payload, created_at"
    .. " FROM events WHERE seq >= ? ORDER BY seq LIMIT ?", { from, M.PAGE })
  if not page then
    return nil, read_err, read_code
  end
  local rows, err, code = rows_of(deps, page)
  if not rows then
    return nil, err, code
  end
  local statements = {}
  for _, row in ipairs(rows) do
    project:event(statements, row)
  end
  project:close(statements, rows)
  local following = #rows == M.PAGE and rows[#rows].seq + 1 or nil
  statements[#statements + 1] = set_state(following or deps.null)
  local ok
  ok, err, code = write(db, without_expectations(statements))
  if not ok then
    return nil, err, code
  end
  return true, following
end

--- Rebuilds the projections when a migration asked for it, in pages, and goes on where an
--- interrupted rebuild stopped. Call after db:start().
--- @param deps {json: table, null: any, log: table}
--- @return true|nil, string|nil message, string|nil code
function M.rebuild(deps, db)
  local state, err, code = db:read("SELECT rebuild_from FROM projection_state WHERE id = 1")
  if not state then
    return nil, err, code
  end
  local from = state[1].rebuild_from
  if from == 0 then
    local ok
    ok, err, code = clear(deps, db)
    if not ok then
      return nil, err, code
    end
    from = 1
  end
  local project = projections.new {
    null = deps.null,
    encode = function(value)
      return assert(deps.json.encode(value, { sort = true }))
    end,
  }
  while from do
    local ok, following, failure = replay_page(deps, db, project, from)
    if not ok then
      return nil, "rebuild the projections: " .. tostring(following), failure
    end
    from = following
  end
  return true
end

return M
