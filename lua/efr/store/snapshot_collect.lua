-- Owns: forgetting snapshots: which turns are too old or too many, and the space of their trees.
-- Must not know: what a snapshot is used for. Runs in efrd; run waits, in a task.
--
-- Policy: what a row or an undo names is kept by a reference of its own; everything else goes when
-- it is an hour old: loose objects in each run, packed ones when there are many packs, for then
-- everything is written anew. A root whose store is too large loses its oldest turns, and what
-- nobody names at once. The store of a root that no row names goes whole.

local M = {}

local DAY_US <const> = 86400 * 1000000
local GIB_KIB <const> = 1024 * 1024
local LOOSE_MAX <const> = 2000 -- objects; above it they are packed
local PACKS_MAX <const> = 8
local REPACK_MS <const> = 600000
local ROUNDS <const> = 16 -- of one run; each takes a quarter of the turns of a store too large
local SHARE <const> = 4
local AN_HOUR <const> = "1.hour.ago"

local TOO_MANY <const> = [[
DELETE FROM snapshot_spans WHERE state <> 'open' AND turn_id IN (SELECT turn_id FROM (
  SELECT turn_id, row_number() OVER (PARTITION BY conversation_id ORDER BY last DESC) AS place
  FROM (SELECT turn_id, max(conversation_id) AS conversation_id, max(id) AS last
    FROM snapshot_spans GROUP BY turn_id)) WHERE place > ?)]]
local TOO_OLD <const> = "DELETE FROM snapshot_spans WHERE created_at < ?"
local UNDOS <const> = "DELETE FROM undos WHERE status = 'done' AND created_at < ?"
local REFS <const> = "DELETE FROM snapshot_refs WHERE created_at < ?"
local RUNS <const> = "DELETE FROM runs WHERE NOT EXISTS (SELECT 1 FROM snapshot_spans s"
  .. " WHERE s.turn_id = runs.id) AND NOT EXISTS (SELECT 1 FROM snapshot_refs f"
  .. " WHERE f.turn_id = runs.id)"
local BY_AGE <const> = "SELECT turn_id FROM snapshot_spans WHERE root = ? AND state <> 'open'"
  .. " GROUP BY turn_id ORDER BY max(id)"
local FORGET <const> = "DELETE FROM snapshot_spans WHERE root = ? AND turn_id = ?"

-- Rows --------------------------------------------------------------------------------------------

local function forget_old(self, keep)
  local before = self.ports.sys.now_us() - keep.days * DAY_US
  return self:write({
    { TOO_OLD, { before } }, { TOO_MANY, { keep.turns } }, { UNDOS, { before } },
    { REFS, { before } }, { RUNS, {} },
  })
end

-- The trees that rows and undos name, by root.
local function wanted(self)
  local out = {}
  local function add(root, tree)
    if not tree then return end
    out[root] = out[root] or {}
    out[root][tree] = true
  end
  local rows, err, code = self.db:read("SELECT root, tree_before, tree_after FROM snapshot_spans"
    .. " WHERE state <> 'uncovered' OR tree_before IS NOT NULL", {})
  if not rows then return nil, err, code end
  for _, row in ipairs(rows) do
    out[row.root] = out[row.root] or {}
    add(row.root, row.tree_before)
    add(row.root, row.tree_after)
  end
  rows, err, code = self.db:read("SELECT DISTINCT root FROM snapshot_refs", {})
  if not rows then return nil, err, code end
  for _, row in ipairs(rows) do out[row.root] = out[row.root] or {} end
  rows, err, code = self.db:read("SELECT json_extract(e.value, '$.root') AS root,"
    .. " json_extract(e.value, '$.tree') AS tree FROM undos, json_each(undos.entries) e"
    .. " WHERE json_extract(e.value, '$.action') = 'keep'", {})
  if not rows then return nil, err, code end
  for _, row in ipairs(rows) do add(row.root, row.tree) end
  for path, root in pairs(self.roots) do add(path, root.tree_id) end
  return out
end

-- Stores ------------------------------------------------------------------------------------------

local PREFIX <const> = "refs/efr/"

-- One reference for each tree, and none for others.
local function set_refs(store, trees)
  local out, err, code = store:command({ "for-each-ref", "--format=%(refname)", PREFIX })
  if not out then return nil, err, code end
  local lines, there = {}, {}
  for name in out:gmatch("[^\n]+") do
    local tree = name:sub(#PREFIX + 1)
    there[tree] = true
    if not trees[tree] then lines[#lines + 1] = ("delete %s\n"):format(name) end
  end
  for tree in pairs(trees) do
    if not there[tree] then
      lines[#lines + 1] = ("create %s%s %s\n"):format(PREFIX, tree, tree)
    end
  end
  if #lines == 0 then return true end
  out, err, code = store:command({ "update-ref", "--stdin" }, table.concat(lines))
  return out and true, err, code
end

-- How many loose objects and packs there are, and the size of all in KiB.
local function measure(store)
  local out, err, code = store:command({ "count-objects", "-v" })
  if not out then return nil, err, code end
  local function number(name) return tonumber(out:match(name .. ": (%d+)")) or 0 end
  return { loose = number("count"), packs = number("packs"),
    size = number("size") + number("size%-pack") }
end

-- Long files are copied, not compared with each other.
local REPACK <const> = { "-c", "core.bigFileThreshold=4m", "-c", "pack.threads=1", "repack", "-d",
  "-q" }

local function repack(store, ...)
  local args = table.move(REPACK, 1, #REPACK, 1, {})
  for _, arg in ipairs({ ... }) do args[#args + 1] = arg end
  return store:command(args, nil, REPACK_MS)
end

-- Writes all packs anew, without what nobody names and is older than some time.
local function repack_all(store, age)
  local ok, err, code = repack(store, "-A", "--unpack-unreachable=" .. age)
  if ok then ok, err, code = store:command({ "prune", "--expire=" .. age }) end
  return ok, err, code
end

-- Returns the size of the store.
local function shrink(store, trees, max_kib)
  local ok, err, code = set_refs(store, trees)
  if ok then ok, err, code = store:command({ "prune", "--expire=" .. AN_HOUR }) end
  if not ok then return nil, err, code end
  local now
  now, err, code = measure(store)
  if not now then return nil, err, code end
  if now.size > max_kib then
    ok, err, code = repack_all(store, "now")
  elseif now.packs > PACKS_MAX then
    ok, err, code = repack_all(store, AN_HOUR)
  elseif now.loose > LOOSE_MAX then
    ok, err, code = repack(store)
  else
    return now.size
  end
  if ok then now, err, code = measure(store) end
  if not ok or not now then return nil, err, code end
  return now.size
end

-- Objects that were kept for references of turns and undos that are gone.
local function remove_mirrors(self, root)
  local dir = root.dir .. "/mirror"
  for _, entry in ipairs(self.ports.fs.readdir(dir) or {}) do
    local id = entry.name:match("^(.*)%.pack$") or ""
    local rows = self.db:read("SELECT 1 FROM snapshot_refs WHERE turn_id = ?1"
      .. " UNION SELECT 1 FROM undos WHERE id = ?1", { id })
    if rows and not rows[1] then self.ports.fs.unlink(dir .. "/" .. entry.name) end
  end
end

local function collect_root(self, root, max_kib)
  local path = root.path
  local ok, err, code = root.store:init()
  if not ok then return nil, err, code end
  remove_mirrors(self, root)
  for _ = 1, ROUNDS do
    local all
    all, err, code = wanted(self)
    if not all then return nil, err, code end
    local size
    size, err, code = shrink(root.store, all[path] or {}, max_kib)
    if not size then return nil, err, code end
    if size <= max_kib then return true end
    local oldest
    oldest, err, code = self.db:read(BY_AGE, { path })
    if not oldest then return nil, err, code end
    if #oldest == 0 then return true end
    local rows = {}
    for i = 1, (#oldest + SHARE - 1) // SHARE do
      rows[i] = { FORGET, { path, oldest[i].turn_id } }
    end
    ok, err, code = self:write(rows)
    if not ok then return nil, err, code end
  end
  return true
end

-- Directories of stores that no row names.
local function remove_unknown(self, known, name_of)
  local names, fs = {}, self.ports.fs
  for path in pairs(known) do names[name_of(path):gsub("%.git$", "")] = true end
  for path in pairs(self.roots) do names[name_of(path):gsub("%.git$", "")] = true end
  for _, entry in ipairs(fs.readdir(self.dir) or {}) do
    local id = entry.name:match("^(%x+)%.")
    if id and #id == 16 and not names[id] then fs.rmtree(self.dir .. "/" .. entry.name) end
  end
end

local function remove_trash(self, dir, keep)
  local before = self.ports.sys.now_us() - keep.days * DAY_US
  for _, entry in ipairs(self.ports.fs.readdir(dir) or {}) do
    local path = dir .. "/" .. entry.name
    local info = self.ports.fs.lstat(path)
    if info and info.type == "dir" and info.mtime_us < before then self.ports.fs.rmtree(path) end
  end
end

---Forgets what the settings no longer keep. Waits.
---@param self efr.Snapshots
---@param keep {days: integer, turns: integer, gib: integer}
---@param places {trash: string, name_of: fun(root: string): string}
function M.run(self, keep, places)
  local ok, err = forget_old(self, keep)
  local known
  if ok then known, err = wanted(self) end
  if not known then return self.log:error("old snapshots: %s", err) end
  for path in pairs(known) do
    local root = self.ports.fs.lstat(path) and self:root(path)
    if root then
      ok, err = root:alone(collect_root, self, root, keep.gib * GIB_KIB)
      if not ok then self.log:error("snapshots of %s: %s", path, err) end
    end
  end
  remove_unknown(self, known, places.name_of)
  remove_trash(self, places.trash, keep)
end

return M
