-- Owns: the snapshots around calls: the roots that are open, which calls run in them, and the rows
-- that say what each call did between which trees.
-- Must not know: tools, turns beyond their ids, how anything is shown.
-- Runs in efrd; everything that touches a root waits, in a task.
--
-- Policy: a call that can write has a tree before and after it, or it does not run. Trees of one
-- root stand in one order. Where two calls run at the same time, the time that they share is told
-- apart, so that none takes what the other did for its own. A row exists before its call starts: a
-- call that never ended is known after a crash.

local async = require "efr.util.async"
local collect = require "efr.store.snapshot_collect"
local exact = require "efr.util.exact"
local list = require "efr.util.list"
local sha256 = require "efr.util.sha256"
local snapshot_home = require "efr.store.snapshot_home"
local snapshot_refs = require "efr.store.snapshot_refs"
local snapshot_root = require "efr.store.snapshot_root"

local M = {}

local MAX_OPEN <const> = 4 -- roots whose walks stay in memory
local MIB <const> = 1024 * 1024
local HOME_FILE_MAX <const> = 16 * MIB
local TIDY_US <const> = 3600 * 1000000

local INSERT <const> = "INSERT INTO snapshot_spans (id, root, turn_id, call_id, conversation_id,"
  .. " state, tree_before, shared, note, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
local FINISH <const> = "UPDATE snapshot_spans SET state = ?, tree_after = ?, shared = ?"
  .. " WHERE id = ?"
local HIGHEST <const> = "SELECT max((SELECT coalesce(max(id), 0) FROM snapshot_spans),"
  .. " (SELECT coalesce(max(last_id), 0) FROM snapshot_refs)) AS id"
local INSERT_REFS <const> = "INSERT OR REPLACE INTO snapshot_refs (turn_id, root, conversation_id,"
  .. " moved, shared, last_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
local REBASE <const> = "UPDATE snapshot_spans SET tree_before = ? WHERE id = ?"
local REMOVE <const> = "DELETE FROM snapshot_spans WHERE id = ?"

---@class efr.Snapshots
local Snapshots = {}
Snapshots.__index = Snapshots

---@class efr.SnapshotCall
---@field turn_id string
---@field call_id string
---@field conversation_id string?
---@field roots string[]  real paths
---@field done {root: string, before: string, after: string, shared: boolean}[]
local Call = {}
Call.__index = Call

---@class efr.SnapshotsDeps
---@field ports table  fs, dir, tree, sys, store, uv
---@field git table  efr.sbx.git
---@field db table
---@field config table
---@field log table
---@field paths {data: string}
---@field ignored fun(root: string, paths: string[]): table<string, boolean>?
---@field home string?  real path of the home directory: files outside of all roots are copied there
---@field hidden fun(): (fun(path: string): boolean)  of single files; see snapshot_home

---@param deps efr.SnapshotsDeps
---@return efr.Snapshots?
---@return string? err
---@return string? code
function M.new(deps)
  local rows, err, code = deps.db:read(HIGHEST, {})
  if not rows then return nil, err, code end
  return setmetatable({
    ports = deps.ports, git = deps.git, db = deps.db, config = deps.config, log = deps.log,
    dir = deps.paths.data .. "/snapshots", trash = deps.paths.data .. "/undo-trash",
    ignored = deps.ignored, home = deps.home, hidden = deps.hidden, null = deps.ports.store.null,
    next_id = rows[1].id + 1, roots = {}, order = {},
  }, Snapshots)
end

-- Rows --------------------------------------------------------------------------------------------

---Writes rows. Waits for the commit.
---@param statements table[]
---@param durable boolean?
---@return true?
---@return string? err
---@return string? code
function Snapshots:write(statements, durable)
  if #statements == 0 then return true end
  local err, code = async.await(function(resume)
    local ok, why, kind = self.db:write(statements, durable or false, resume)
    if ok == nil and why then resume(why, kind) end
  end)
  if err then return nil, "record the snapshot: " .. tostring(err), code end
  return true
end

local function insert(self, out, root, call, row)
  local id = self.next_id
  self.next_id = id + 1
  out[#out + 1] = { INSERT, {
    id, root, call.turn_id, call.call_id, call.conversation_id or self.null, row.state,
    row.before or self.null, row.shared and 1 or 0, row.note or self.null,
    self.ports.sys.now_us(),
  } }
  return id
end

-- Roots -------------------------------------------------------------------------------------------

-- Whether nobody has the root or waits for it: another object for it would know nothing of them.
local function is_unused(root)
  return (root.users or 0) == 0 and #root.active == 0
end

-- Roots that nobody uses are let go of; the newest one stays.
local function make_room(self)
  local too_many = #self.order - MAX_OPEN
  for i = #self.order - 1, 1, -1 do
    local path = self.order[i]
    local root = self.roots[path]
    if too_many > 0 and is_unused(root) then
      root:close()
      self.roots[path] = nil
      table.remove(self.order, i)
      too_many = too_many - 1
    end
  end
end

local function touch(self, path)
  for i, known in ipairs(self.order) do
    if known == path then
      table.remove(self.order, i)
      break
    end
  end
  self.order[#self.order + 1] = path
end

---The name of the store of a root.
---@param path string
---@return string
function M.store_name(path)
  return sha256.hex(path):sub(1, 16) .. ".git"
end

local function new_home(self, top)
  return snapshot_home.new {
    ports = self.ports, git = self.git, path = self.home, dir = top .. "/home.git",
    hidden = self.hidden, limits = function()
      return { max_bytes = HOME_FILE_MAX, max_files = self.config:get("snapshot.home_max_files"),
        max_total = self.config:get("snapshot.home_max_mib") * MIB }
    end,
  }
end

---The snapshots of one root.
---@param path string  real
---@return efr.SnapshotRoot?
---@return string? err
---@return string? code
function Snapshots:root(path)
  touch(self, path)
  local root = self.roots[path]
  if root then return root end
  local ok, err, code = self.ports.fs.mkdirs(self.dir, 448)
  if not ok then return nil, err, code end
  local top
  top, err, code = self.ports.fs.realpath(self.dir)
  if not top then return nil, err, code end
  root = path == self.home and new_home(self, top) or snapshot_root.new {
    ports = self.ports, git = self.git, path = path, dir = top .. "/" .. M.store_name(path),
    ignored = function(paths) return self.ignored(path, paths) end,
    limits = function()
      return { max_bytes = self.config:get("snapshot.max_file_mib") * MIB,
        max_entries = self.config:get("snapshot.max_files") }
    end,
  }
  root.active = {}
  self.roots[path] = root
  make_room(self)
  return root
end

---Whether calls have snapshots at all.
---@return boolean
function Snapshots:enabled()
  return self.config:get("snapshot.enabled") == true
end

---Makes the first snapshot of a root in the background, so that its first call waits less.
---@param path string  real
function Snapshots:warm(path)
  local root = self:enabled() and self:root(path)
  if not root or root.tree_id or root.busy then return end
  async.spawn(function()
    local tree, err = root:alone(root.take, root, false)
    if not tree then self.log:info("first snapshot of %s: %s", path, err) end
  end)
end

-- Around a call -----------------------------------------------------------------------------------

-- Everybody who runs in the root gets a row that ends at this tree, when it changed, and a new one.
local function split(self, root, tree, out, ending)
  local kept = {}
  for _, span in ipairs(root.active) do
    local changed = span.before ~= tree
    if changed then
      table.insert(span.call.done, { root = root.path, before = span.before, after = tree,
        shared = span.shared })
    end
    if span.call == ending then
      local state = span.call.unfinished and "unfinished" or "done"
      out[#out + 1] = (changed or state == "unfinished")
        and { FINISH, { state, tree, span.shared and 1 or 0, span.id } }
        or { REMOVE, { span.id } }
    else
      kept[#kept + 1] = span
      if changed then
        out[#out + 1] = { FINISH, { "done", tree, span.shared and 1 or 0, span.id } }
        span.before, span.shared = tree, false
        span.id = insert(self, out, root.path, span.call, { state = "open", before = tree })
      end
    end
  end
  root.active = kept
end

local function mark_shared(root)
  for _, span in ipairs(root.active) do
    span.shared = span.shared or #root.active > 1
  end
end

local function add_uncovered(self, call, path, note)
  call.uncovered[#call.uncovered + 1] = { root = path, note = note }
  local out = {}
  insert(self, out, path, call, { state = "uncovered", note = note })
  return self:write(out)
end

local function begin_root(self, call, root)
  local tree, err, code = root:take(call.may_skip)
  if not tree and code == "EFR_NOT_COVERED" then
    return add_uncovered(self, call, root.path, err)
  elseif not tree then
    return nil, err, code
  end
  local out = {}
  split(self, root, tree, out)
  local span = { call = call, before = tree, shared = false }
  span.id = insert(self, out, root.path, call, { state = "open", before = tree })
  root.active[#root.active + 1] = span
  mark_shared(root)
  return self:write(out)
end

local function end_root(self, call, root)
  local tree, err, code = root:take(call.may_skip and not root.is_partial)
  if not tree then
    -- The row stays open: what the call did there is not known.
    for i, span in ipairs(root.active) do
      if span.call == call then
        table.remove(root.active, i)
        break
      end
    end
    return nil, err, code
  end
  local out = {}
  split(self, root, tree, out, call)
  mark_shared(root)
  return self:write(out)
end

-- Copies of files outside of all roots. What others in flight may change there stays theirs: their
-- time is cut before the new paths come into the trees.
local function begin_home(self, call, root, paths)
  local out = {}
  if #root.active == 0 then
    root:reset()
  else
    local tree, err, code = root:take()
    if not tree then return nil, err, code end
    split(self, root, tree, out)
  end
  local notes, err, code = root:add(paths)
  local tree
  if notes then tree, err, code = root:take(true) end
  if not tree then return nil, err, code end
  for _, span in ipairs(root.active) do
    span.before = tree
    out[#out + 1] = { REBASE, { tree, span.id } }
  end
  local span = { call = call, before = tree, shared = false }
  span.id = insert(self, out, root.path, call, { state = "open", before = tree })
  root.active[#root.active + 1] = span
  mark_shared(root)
  for _, item in ipairs(notes) do
    call.uncovered[#call.uncovered + 1] = { root = root.path .. "/" .. item.path,
      note = item.note }
    insert(self, out, root.path .. "/" .. item.path, call,
      { state = "uncovered", note = item.note })
  end
  return self:write(out)
end

---@class efr.SnapshotBegin
---@field turn_id string  or of a run
---@field call_id string
---@field conversation_id string?
---@field roots string[]  real paths of what the call can write
---@field may_skip boolean  whether a watch may stand for a walk
---@field uncovered {root: string, note: string}[]?  what it can write without a snapshot
---@field home efr.HomePath[]?  what else it can write below the home directory

---The trees before a call. Without them the call must not run. Waits.
---@param what efr.SnapshotBegin
---@return efr.SnapshotCall?
---@return string? err
---@return string? code
function Snapshots:begin(what)
  local call = setmetatable({
    snapshots = self, turn_id = what.turn_id, call_id = what.call_id, may_skip = what.may_skip,
    conversation_id = what.conversation_id, roots = {}, done = {}, uncovered = {},
  }, Call)
  for _, item in ipairs(what.uncovered or {}) do
    local ok, err, code = add_uncovered(self, call, item.root, item.note)
    if not ok then return nil, err, code end
  end
  for _, path in ipairs(what.roots) do
    local root, err, code = self:root(path)
    local ok
    if root then ok, err, code = root:alone(begin_root, self, call, root) end
    if not ok then
      call:finish()
      return nil, err, code
    end
    call.roots[#call.roots + 1] = path
  end
  if #(what.home or {}) == 0 then return call end
  local root, err, code = self:root(self.home)
  local ok
  if root then ok, err, code = root:alone(begin_home, self, call, root, what.home) end
  if ok then
    call.home = self.home
    return call
  end
  call:finish()
  return nil, err, code
end

---The trees after the call. What it did stands in `done` then. Waits.
---@param opts {unfinished: boolean?}?  unfinished: it goes on, or was cut short
---@return true?
---@return string? err  of the first root that could not be read
---@return string? code
function Call:finish(opts)
  self.unfinished = opts and opts.unfinished or false
  local self_snapshots, failed, why = self.snapshots, nil, nil
  local paths = list.copy(self.roots)
  paths[#paths + 1] = self.home
  for _, path in ipairs(paths) do
    local root = self_snapshots.roots[path]
    local ok, err, code = root:alone(end_root, self_snapshots, self, root)
    if not ok and not failed then failed, why = err, code end
  end
  if failed then return nil, failed, why end
  return true
end

-- A walk where the newest tree came from the watch alone: a write through a mapping gives no event.
local function settle(self, turn_id, call_id, conversation_id, root)
  if #root.active > 0 or not root.tree_id or not root.skipped then return true end
  local quiet, before = root.tree:is_quiet(), root.tree_id
  local tree, err, code = root:take(false)
  if not tree then return nil, err, code end
  if tree == before or not quiet then return true end
  local out = {}
  local id = insert(self, out, root.path,
    { turn_id = turn_id, call_id = call_id, conversation_id = conversation_id },
    { state = "open", before = before })
  out[2] = { FINISH, { "done", tree, 0, id } }
  return self:write(out)
end

---The last look of a turn at the roots of its calls. Waits.
---@param turn {turn_id: string, call_id: string, conversation_id: string?, roots: string[]}
function Snapshots:settle(turn)
  for _, path in ipairs(turn.roots) do
    local root = self.roots[path]
    if root then
      local ok, err = root:alone(settle, self, turn.turn_id, turn.call_id, turn.conversation_id,
        root)
      if not ok then self.log:error("last snapshot of %s: %s", path, err) end
    end
  end
end

---The rows of a turn or run, oldest first.
---@param turn_id string
---@return table[]? rows
---@return string? err
---@return string? code
function Snapshots:spans(turn_id)
  return self.db:read("SELECT * FROM snapshot_spans WHERE turn_id = ? ORDER BY id", { turn_id })
end

---The references of a root's own repository, or nil where they cannot be brought back.
---@param path string
---@return efr.SnapshotRefs?
function Snapshots:refs(path)
  local root = self:root(path)
  local refs = root and snapshot_refs.new { git = self.git, fs = self.ports.fs,
    dirs = self.ports.dir, root = path, dir = root.dir }
  return refs and refs:usable() and refs or nil
end

---Records which references a turn or a run moved since `before`, and keeps what only their old
---places reach. Waits.
---@param turn {turn_id: string, conversation_id: string?}
---@param path string  of the root
---@param before table<string, string>
---@return integer? count
---@return string? err
function Snapshots:record_refs(turn, path, before)
  local refs = self:refs(path)
  if not refs then return 0 end
  local moved, after = refs:since(before)
  if not moved then return nil, after end
  if #moved == 0 then return 0 end
  local ok, err = refs:keep(turn.turn_id, moved, "before", after)
  if not ok then return nil, err end
  local json, id = self.ports.json, self.next_id
  self.next_id = id + 1
  ok, err = self:write({ { INSERT_REFS, {
    turn.turn_id, path, turn.conversation_id or self.null,
    json.encode(exact.clean(json.array(moved), self.ports.text), { sort = true }),
    #self.roots[path].active > 0 and 1 or 0, id, self.ports.sys.now_us(),
  } } })
  if not ok then return nil, err end
  return #moved
end

---The references that a turn or a run moved.
---@param turn_id string
---@return {root: string, moved: table[], shared: boolean}[]? rows
---@return string? err
---@return string? code
function Snapshots:moved_refs(turn_id)
  local rows, err, code = self.db:read("SELECT turn_id, root, moved, shared FROM snapshot_refs"
    .. " WHERE turn_id = ? ORDER BY root", { turn_id })
  for _, row in ipairs(rows or {}) do
    row.moved = exact.restore(assert(self.ports.json.decode(row.moved)))
    row.shared = row.shared == 1
  end
  return rows, err, code
end

---Forgets what the settings no longer keep, in the background, at most once an hour.
function Snapshots:tidy()
  local now = self.ports.sys.mono_us()
  if self.tidied_us and now - self.tidied_us < TIDY_US then return end
  self.tidied_us = now
  async.spawn(self.collect, self)
end

---The same now. Waits.
function Snapshots:collect()
  collect.run(self, {
    days = self.config:get("snapshot.max_age_days"),
    turns = self.config:get("snapshot.keep_turns"), gib = self.config:get("snapshot.max_gib"),
  }, { trash = self.trash, name_of = M.store_name })
end

---Lets go of the walks and watches of roots in which nothing runs; a file keeps the walks.
function Snapshots:rest()
  for _, root in pairs(self.roots) do
    if is_unused(root) then root:close() end
  end
end

---Keeps what makes the next start quick.
function Snapshots:close()
  for _, root in pairs(self.roots) do root:close() end
  self.roots, self.order = {}, {}
end

return M
