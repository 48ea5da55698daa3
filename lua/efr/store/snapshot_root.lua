-- Owns: the snapshots of one root: its store, its walks, and the tree that stands for the disk.
-- Must not know: calls, turns, what a snapshot is for.
-- Runs in efrd; take waits, in a task. One at a time for a root.
--
-- Policy: a walk by descriptors finds what changed; git gets only that. A watch may skip the walk
-- where nothing can change a file unseen: all directories watched, a local file system, no file
-- with a second name. Folders of build results are left out only where the project ignores them.

local async = require "efr.util.async"
local names = require "efr.store.snapshot_names"
local snapshot_git = require "efr.store.snapshot_git"

local M = {}

local FOLDERS <const> = {
  "target", "node_modules", ".venv", "venv", "__pycache__", "dist", "build", ".next", ".cache",
}
local TAKE <const> = 1000
local AGAIN_US <const> = 600 * 1000000 -- a root that was too big is counted again
local DECIDE_MAX <const> = 8 -- rounds of undecided folders
local TOO_MANY <const> = "EFR_TREE_TOO_MANY"

---@class efr.SnapshotRoot
---@field path string
---@field tree_id string?  what the disk was at the newest snapshot
---@field users integer?  tasks that are in alone() or wait for it
local Root = {}
Root.__index = Root

---@class efr.SnapshotRootDeps
---@field ports table  fs, dir, tree, sys, uv
---@field git table  efr.sbx.git
---@field path string  real path of the root
---@field dir string  real path of its store, which may be missing
---@field ignored fun(paths: string[]): table<string, boolean>?  asks the project's repository
---@field limits fun(): {max_bytes: integer, max_entries: integer}

---@param deps efr.SnapshotRootDeps
---@return efr.SnapshotRoot
function M.new(deps)
  return setmetatable({
    ports = deps.ports, path = deps.path, git = deps.git, ignored = deps.ignored,
    limits = deps.limits, as_root = deps.ports.sys.getuid() == 0, dir = deps.dir,
    store = snapshot_git.new { git = deps.git, fs = deps.ports.fs, uv = deps.ports.uv,
      root = deps.path, dir = deps.dir },
  }, Root)
end

-- One at a time -----------------------------------------------------------------------------------

---Runs fn when nobody else uses the root. Waits.
function Root:alone(fn, ...)
  self.users = (self.users or 0) + 1
  while self.busy do self.busy:get() end
  local done = async.future()
  self.busy = done
  local results = table.pack(pcall(fn, ...))
  self.busy = nil
  self.users = self.users - 1
  done:set()
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The walk ----------------------------------------------------------------------------------------

local function walk(self)
  local limits = self.limits()
  local sums, err, code = async.await(function(resume)
    local ok, why, kind = self.tree:walk({
      max_bytes = limits.max_bytes, max_entries = limits.max_entries, watch = true,
    }, resume)
    if not ok then resume(nil, why, kind) end
  end)
  if not sums then return nil, err, code end
  self.may_skip = sums.watched and not sums.remote and sums.linked == 0
  return sums
end

local function all_changes(self)
  local out = {}
  while true do
    local some, err, code = self.tree:take(TAKE)
    if not some then return nil, err, code end
    if #some == 0 then return out end
    table.move(some, 1, #some, #out + 1, out)
    async.sleep(0) -- the loop has other things to do
  end
end

-- Which folders of build results are left out: those that the project ignores.
local function decide(self, open)
  local paths = {}
  for i, change in ipairs(open) do paths[i] = change.path end
  local ignored = self.ignored(paths)
  local err, code
  if not ignored then
    ignored, err, code = self.store:ignored(paths)
    if not ignored then return nil, err, code end
  end
  for _, path in ipairs(paths) do assert(self.tree:decide(path, not ignored[path])) end
  return true
end

local function undecided(changes)
  local open, rules = {}, false
  for _, change in ipairs(changes) do
    if change.after and change.after.mark == "open" then open[#open + 1] = change end
    rules = rules or change.path:match("[^/]*$") == ".gitignore"
  end
  return open, rules
end

-- Walks until every folder is decided, but not for ever: what is nested deeper, or made all the
-- time, stays left out. Returns what changed.
local function find_changes(self)
  local ruled = false
  for round = 1, DECIDE_MAX do
    local sums, err, code = walk(self)
    if not sums then return nil, err, code end
    local changes
    changes, err, code = all_changes(self)
    if not changes then return nil, err, code end
    local open, rules = undecided(changes)
    if rules and not ruled then
      ruled = true
      assert(self.tree:forget())
    elseif #open == 0 or round == DECIDE_MAX then
      return changes
    else
      local ok
      ok, err, code = decide(self, open)
      if not ok then return nil, err, code end
    end
  end
  error("no round is the last")
end

-- Into the store ----------------------------------------------------------------------------------

local function collect(self, changes)
  local lines, files, links = {}, {}, {}
  for _, change in ipairs(changes) do
    local old_name, mode, name, has_bytes
    if change.before then _, old_name = names.encode(change.path, change.before, self.as_root) end
    if change.after then
      mode, name, has_bytes = names.encode(change.path, change.after, self.as_root)
    end
    if old_name and old_name ~= name then
      lines[#lines + 1] = { name = old_name }
      old_name = nil
    end
    if name then
      local line = { name = name, mode = mode, change = change, old_name = old_name }
      lines[#lines + 1] = line
      local list = has_bytes and (change.after.type == "link" and links or files)
      if list then list[#list + 1] = line end
    end
  end
  return lines, files, links
end

-- A file that could not be read, or that did not hold still, stands as left out.
local function leave_out(self, lines, line)
  if line.old_name then lines[#lines + 1] = { name = line.old_name } end
  local entry = line.change.after
  entry.mark = "unread"
  line.mode, line.name = names.encode(line.change.path, entry, self.as_root)
  line.mark = nil
end

-- Writes the content of some of all lines. Returns the next mark.
local function feed(self, all, lines, what)
  local mark = what.first_mark
  for first = 1, #lines, TAKE do
    local last = math.min(first + TAKE - 1, #lines)
    what.paths, what.first_mark = {}, mark
    for i = first, last do
      what.paths[#what.paths + 1] = lines[i].change.path
      lines[i].mark = mark
      mark = mark + 1
    end
    local failed, err, code = async.await(function(resume)
      local ok, why, kind = self.tree:feed(what, resume)
      if not ok then resume(nil, why, kind) end
    end)
    if not failed then return nil, err, code end
    for _, i in ipairs(failed) do leave_out(self, all, lines[first + i - 1]) end
  end
  return mark
end

local function put(self, changes)
  local lines, files, links = collect(self, changes)
  local bytes = 0
  for _, line in ipairs(files) do bytes = bytes + line.change.after.size end
  return self.store:import {
    base = self.tree_id or snapshot_git.EMPTY_TREE, bytes = bytes,
    content = function(fd, mark)
      local err, code
      mark, err, code = feed(self, lines, files,
        { fd = fd, first_mark = mark, max_bytes = self.limits().max_bytes })
      if mark then
        mark, err, code = feed(self, lines, links, { fd = fd, first_mark = mark, links = true })
      end
      return mark and lines, err, code
    end,
  }
end

-- Opening -----------------------------------------------------------------------------------------

local function kept_file(self)
  return self.dir:gsub("%.git$", "") .. ".walk"
end

-- The walk that the last run kept.
local function take_kept(self)
  local fs, path = self.ports.fs, kept_file(self)
  local tag = fs.read_real(path .. ".tag", 256)
  fs.unlink(path .. ".tag")
  local tree = tag and tag:match("^(%x+)\n$")
  if tree and self.tree:load(path, tree) then self.tree_id = tree end
  fs.unlink(path)
end

local function open(self)
  if self.tree then return true end
  local ok, err, code = self.store:init()
  if not ok then return nil, err, code end
  local tree
  tree, err, code = self.ports.tree.open(self.path)
  if not tree then return nil, err, code end
  for _, name in ipairs(FOLDERS) do assert(tree:ask_for(name)) end
  self.tree = tree
  take_kept(self)
  return true
end

---Keeps the newest walk for the next run, and lets go of it.
function Root:close()
  if not self.tree then return end
  local path, fs = kept_file(self), self.ports.fs
  if self.tree_id and self.tree:save(path, self.tree_id) then
    fs.write_real(path .. ".tag", self.tree_id .. "\n", { mode = 384 })
  end
  self.tree:close()
  self.tree, self.tree_id, self.may_skip = nil, nil, nil
end

-- After a failure the store may lack what the walk relies on: the next snapshot begins anew.
local function drop(self)
  if not self.tree then return end
  self.tree:close()
  self.tree, self.tree_id, self.may_skip = nil, nil, nil
end

-- A snapshot --------------------------------------------------------------------------------------

local function too_big(self)
  local at = self.too_many_us
  return at and self.ports.sys.mono_us() - at < AGAIN_US
end

local function snapshot(self)
  local changes, err, code = find_changes(self)
  if not changes then return nil, err, code end
  local tree = self.tree_id
  if #changes > 0 or not tree then
    tree, err, code = put(self, changes)
    if not tree then return nil, err, code end
  end
  assert(self.tree:commit())
  self.tree_id = tree
  return tree
end

-- A store that lost something, by a crash of the machine, is filled again.
local function is_worth_another(base, err, code)
  return base and code == "EFR_GIT_FAILED" and not err:find(" space", 1, true)
    and not err:find("diskspace", 1, true)
end

local function take(self, may_skip)
  if too_big(self) then
    return nil, self.path .. " has more files than snapshot.max_files", "EFR_NOT_COVERED"
  end
  local ok, err, code = open(self)
  if not ok then return nil, err, code end
  if may_skip and self.may_skip and self.tree_id and self.tree:is_quiet() then
    self.skipped = true
    return self.tree_id
  end
  self.skipped = false
  local base = self.tree_id
  local tree
  tree, err, code = snapshot(self)
  if tree then return tree end
  drop(self)
  if code == TOO_MANY then
    self.too_many_us = self.ports.sys.mono_us()
    return nil, self.path .. " has more files than snapshot.max_files", "EFR_NOT_COVERED"
  elseif is_worth_another(base, err, code) then
    return take(self, false)
  end
  return nil, ("snapshot of %s: %s"):format(self.path, err), code
end

---The tree of what the disk is now. Waits; the caller runs alone.
---@param may_skip boolean  whether the watch may stand for a walk
---@return string? tree
---@return string? err
---@return string? code  EFR_NOT_COVERED: the root is too big; all else is a failure
function Root:take(may_skip)
  return take(self, may_skip)
end

M.alone = Root.alone

---For the layer of a root (snapshot_layer), with a walk of its own: what lies there, its content as
---a stream, and which folders are asked about.
M.find_changes, M.feed, M.FOLDERS = find_changes, feed, FOLDERS

return M
