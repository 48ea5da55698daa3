-- Owns: undos: which turn one is about, the order that they must keep, the plan against the disk of
-- now, the journal, and the end of one that was cut short.
-- Must not know: the wire, how a question is shown.
-- Runs in efrd; plan and apply wait, in a task.
--
-- Policy: turns come back newest first. The roots are locked from the last look at the disk to the
-- end of the writing. The journal is on the disk before the first write, so an undo that was killed
-- is completed by the next one, whatever it is asked for.

local apply_of = require "efr.undo.apply"
local async = require "efr.util.async"
local journal = require "efr.undo.journal"
local list = require "efr.util.list"
local plan = require "efr.undo.plan"
local refs = require "efr.undo.refs"
local turns = require "efr.undo.turns"

local M = {}

local NEXT_TREE <const> = "SELECT tree_before FROM snapshot_spans WHERE root = ? AND id > ?"
  .. " AND tree_before IS NOT NULL ORDER BY id LIMIT 1"

local Undo = {}
Undo.__index = Undo

---@param app table  ports, snapshots, db, store, config, conversations, paths, log
function M.new(app)
  return setmetatable({ app = app, log = app.log:part("undo") }, Undo)
end

---The turns and runs that have snapshots, newest first (undo.turns).
---@param where {conversation_id: string?, cwd: string?}
function Undo:list(where) return turns.list(self, where) end

-- Plans -------------------------------------------------------------------------------------------

-- The tree after a span whose call never ended: what the next one began with, else now.
local function after_of(self, span, now)
  if span.tree_after then return span.tree_after end
  local rows = self.app.db:read(NEXT_TREE, { span.root, span.id })
  return rows and rows[1] and rows[1].tree_before or now
end

-- A root of single files looks only at what it is told.
local function include(root, spans)
  if not root.is_partial then return true end
  local trees = {}
  root:reset()
  for _, span in ipairs(spans) do
    trees[#trees + 1] = span.tree_before
    trees[#trees + 1] = span.tree_after
  end
  return root:include(trees)
end

-- The trees before the first span, after the last one and now. Those of single files hold other
-- files in each span, so they are put together.
local function trees_of(root, spans, now)
  local store, out = root.store, {}
  local function read(tree)
    local listing, err, code = store:list(tree)
    return listing and plan.read(listing), err, code
  end
  local err, code
  if root.is_partial then
    local pairs_of = {}
    for i, span in ipairs(spans) do
      local before, after
      before, err, code = read(span.before)
      if before then after, err, code = read(span.after) end
      if not after then return nil, err, code end
      pairs_of[i] = { before = before, after = after }
    end
    out.before, out.after = plan.put_together(pairs_of)
  else
    out.before, err, code = read(spans[1].before)
    if out.before then out.after, err, code = read(spans[#spans].after) end
    if not out.after then return nil, err, code end
  end
  out.now, err, code = read(now)
  if not out.now then return nil, err, code end
  return out
end

local function rows_of_root(self, root, spans, force)
  local ok, err, code = include(root, spans)
  local now
  if ok then now, err, code = root:take(false) end
  if not now then return nil, err, code end
  local found = {}
  for i, span in ipairs(spans) do
    local after = after_of(self, span, now)
    local diff
    diff, err, code = root.store:diff(span.tree_before, after, { all = true })
    if not diff then return nil, err, code end
    found[i] = { diff = diff, shared = span.shared == 1, unfinished = span.state ~= "done",
      before = span.tree_before, after = after }
  end
  local trees
  trees, err, code = trees_of(root, found, now)
  if not trees then return nil, err, code end
  local rows = plan.rows(root.path, found, trees, force)
  -- What a redo needs must be kept as long as the undo.
  rows[#rows + 1] = { root = root.path, path = "", is_dir = true, action = "keep", tree = now }
  return rows
end

-- The spans of a turn by root, and what had no snapshot.
local function spans_of(self, turn_id)
  local rows, err, code = self.app.snapshots:spans(turn_id)
  if not rows then return nil, err, code end
  local by_root, order, uncovered = {}, {}, {}
  for _, span in ipairs(rows) do
    if span.state == "uncovered" then
      uncovered[#uncovered + 1] = { root = span.root, path = "", action = "not_covered",
        reason = span.note }
    else
      if not by_root[span.root] then
        by_root[span.root] = {}
        order[#order + 1] = span.root
      end
      table.insert(by_root[span.root], span)
    end
  end
  local moved
  moved, err, code = self.app.snapshots:moved_refs(turn_id)
  if not moved then return nil, err, code end
  for _, row in ipairs(moved) do
    if not by_root[row.root] then
      by_root[row.root] = {}
      order[#order + 1] = row.root
    end
  end
  table.sort(order)
  return { by_root = by_root, order = order, uncovered = uncovered, moved = moved }
end

-- Runs fn while nobody else uses the roots.
local function with_roots(self, paths, fn)
  local roots = {}
  local function enter(i)
    if i > #paths then return fn(roots) end
    local root, err, code = self.app.snapshots:root(paths[i])
    if not root then return nil, err, code end
    roots[i] = root
    return root:alone(function()
      if #root.active > 0 then
        return nil, "a command runs in " .. root.path .. "; wait for its end", "conflict"
      end
      return enter(i + 1)
    end)
  end
  return enter(1)
end

local function plan_turn(self, roots, spans, force)
  local out = table.move(spans.uncovered, 1, #spans.uncovered, 1, {})
  for _, root in ipairs(roots) do
    local own, rows, err, code = spans.by_root[root.path], {}, nil, nil
    if #own > 0 then rows, err, code = rows_of_root(self, root, own, force) end
    if not rows then return nil, err, code end
    table.move(rows, 1, #rows, #out + 1, out)
  end
  return refs.add_rows(self.app, out, spans.moved, force)
end

-- Every row that could be acted on needs --force.
local function check_rows(rows)
  local acts, skips = 0, 0
  for _, row in ipairs(rows) do
    if row.action == "restore" or row.action == "trash" or row.action == "ref" then
      acts = acts + 1
    end
    if row.forceable then skips = skips + 1 end
  end
  if acts == 0 and skips > 0 then
    return nil, "everything that this undo could take back needs --force: it changed since, or "
      .. "its call did not finish", "conflict"
  elseif acts == 0 then
    return nil, "there is nothing to take back", "not_found"
  end
  return true
end

-- Carrying out ------------------------------------------------------------------------------------

-- Blobs by hash: those of the next entries at once, the rest when they are asked for.
local function blobs_of(self)
  local cache = {}
  local function store_of(root)
    return assert(self.app.snapshots:root(root)).store
  end
  local function load(entries)
    cache = {}
    local wanted = {}
    for _, entry in ipairs(entries) do
      for _, side in ipairs({ "from", "to" }) do
        local state = entry[side]
        if state and state.oid and not entry.is_dir then
          wanted[entry.root] = wanted[entry.root] or {}
          table.insert(wanted[entry.root], state.oid)
        end
      end
    end
    for root, oids in pairs(wanted) do
      for oid, bytes in pairs(store_of(root):blobs(oids) or {}) do cache[oid] = bytes end
    end
  end
  local function blob(root, oid)
    if cache[oid] then return cache[oid] end
    return store_of(root):blob(oid)
  end
  return load, blob
end

local function carry_out(self, undo, again)
  local trash = self.app.paths.data .. "/undo-trash/" .. undo.id
  local ok, err, code = self.app.ports.fs.mkdirs(trash, 448)
  if not ok then return nil, err, code end
  local real
  real, err, code = self.app.ports.fs.realpath(trash)
  if not real then return nil, err, code end
  local load, blob = blobs_of(self)
  local run = apply_of.new { ports = self.app.ports, id = undo.id, trash = real, load = load,
    blob = blob }
  for i, entry in ipairs(undo.entries) do entry.number = i end
  local failed
  ok, failed = run:run(plan.steps(undo.entries), again)
  if ok then ok, failed = refs.carry_out(self.app, undo) end
  local stopped = not ok and failed or nil
  local counts = journal.finish(self.app, undo, stopped, self.log)
  counts.trash, counts.stopped, counts.undo_id = real, stopped, undo.id
  counts.turn_id, counts.redo = undo.turn_id, undo.redo == 1
  return counts
end

local function start(self, undo)
  local ok, err, code = journal.begin(self.app, undo)
  if not ok then return nil, err, code end
  return carry_out(self, undo, false)
end

local function roots_in(entries)
  local seen, out = {}, {}
  for _, entry in ipairs(entries) do
    if not seen[entry.root] and entry.action ~= "not_covered" then
      seen[entry.root] = true
      out[#out + 1] = entry.root
    end
  end
  table.sort(out)
  return out
end

-- What was left of a half-done undo is done; what was done stays.
local function complete(self, undo)
  return with_roots(self, roots_in(undo.entries), function()
    return carry_out(self, undo, true)
  end)
end

-- Redo --------------------------------------------------------------------------------------------

local NEWEST_UNDO <const> = [[
SELECT u.* FROM undos u WHERE u.status = 'done' AND u.redo = 0 AND NOT EXISTS (
  SELECT 1 FROM undos n WHERE n.turn_id = u.turn_id AND n.created_at > u.created_at)
ORDER BY u.created_at DESC, u.id DESC LIMIT 100]]

local function find_undo(self, where)
  local rows, err, code = self.app.db:read(NEWEST_UNDO, {})
  if not rows then return nil, err, code end
  for _, row in ipairs(rows) do
    local mine = not where.conversation_id or row.conversation_id == where.conversation_id
      or row.conversation_id == nil and turns.touches(self, row.turn_id, where.cwd)
    if mine and (not where.turn_id or row.turn_id == where.turn_id) then
      row.entries = journal.decode(self.app, row.entries)
      return row
    end
  end
  return nil, "there is no undo to take back", "not_found"
end

local function plan_redo(app, roots, undo, force)
  local trees = {}
  for _, root in ipairs(roots) do
    if root.is_partial then
      root:reset()
      root:include_paths(list.map(list.filter(undo.entries, function(entry)
        return entry.root == root.path and entry.path ~= ""
      end), function(entry) return entry.path end))
    end
    local now, err, code = root:take(false)
    local listing
    if now then listing, err, code = root.store:list(now) end
    if not listing then return nil, err, code end
    trees[root.path] = plan.read(listing)
  end
  local done, moved = {}, {}
  for _, entry in ipairs(undo.entries) do
    if entry.result == "done" then table.insert(entry.ref and moved or done, entry) end
  end
  local rows = plan.reverse(done, function(entry)
    local tree = trees[entry.root]
    if not entry.is_dir then return tree.files[entry.path] end
    return plan.dir_state(tree, entry.path)
  end, force)
  return refs.add_reverse(app, rows, moved, undo.id, force)
end

-- From outside ------------------------------------------------------------------------------------

local function prepare(self, where)
  if where.redo then
    local undo, err, code = find_undo(self, where)
    if not undo then return nil, err, code end
    return { turn_id = undo.turn_id, conversation_id = undo.conversation_id,
      roots = roots_in(undo.entries),
      rows = function(roots) return plan_redo(self.app, roots, undo, where.force) end }
  end
  local target, err, code = turns.find(self, where)
  if not target then return nil, err, code end
  local spans
  spans, err, code = spans_of(self, target.turn_id)
  if not spans then return nil, err, code end
  return { turn_id = target.turn_id, conversation_id = target.conversation_id,
    title = target.title, roots = spans.order,
    rows = function(roots) return plan_turn(self, roots, spans, where.force) end }
end

local function enabled(self)
  if self.app.config:get("undo.enabled") then return true end
  return nil, "undo.enabled is false", "conflict"
end

---What an undo would do. Waits.
---@param where {conversation_id: string?, turn_id: string?, cwd: string?, force: boolean?,
---redo: boolean?}
---@return {turn_id: string, title: string?, entries: efr.UndoEntry[], continues: boolean?}?
---@return string? err
---@return string? code
function Undo:plan(where)
  local ok, err, code = enabled(self)
  if not ok then return nil, err, code end
  local half
  half, err, code = journal.half_done(self.app)
  if half then
    return { turn_id = half.turn_id, entries = half.entries, continues = true }
  elseif err then
    return nil, err, code
  end
  local job
  job, err, code = prepare(self, where)
  if not job then return nil, err, code end
  local rows
  rows, err, code = with_roots(self, job.roots, job.rows)
  if not rows then return nil, err, code end
  ok, err, code = check_rows(rows)
  if not ok then return nil, err, code end
  return { turn_id = job.turn_id, title = job.title, entries = rows }
end

local function apply(self, where)
  local half, err, code = journal.half_done(self.app)
  if half then return complete(self, half) end
  if err then return nil, err, code end
  local job
  job, err, code = prepare(self, where)
  if not job then return nil, err, code end
  return with_roots(self, job.roots, function(roots)
    local rows, why, kind = job.rows(roots)
    local ok
    if rows then ok, why, kind = check_rows(rows) end
    if not ok then return nil, why, kind end
    return start(self, {
      id = self.app.ports.sys.uuid7(), turn_id = job.turn_id, redo = where.redo and 1 or 0,
      conversation_id = job.conversation_id, entries = rows, command_id = where.command_id,
    })
  end)
end

---Carries an undo or a redo out, after finishing one that was cut short. One at a time. Waits.
---@param where table  as for plan
---@return {turn_id: string, undo_id: string, restored: integer, trashed: integer,
---skipped: string[], trash: string, stopped: string?}?
---@return string? err
---@return string? code
function Undo:apply(where)
  local ok, err, code = enabled(self)
  if not ok then return nil, err, code end
  while self.busy do self.busy:get() end
  local done = async.future()
  self.busy = done
  local results = table.pack(pcall(apply, self, where))
  self.busy = nil
  done:set()
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

return M
