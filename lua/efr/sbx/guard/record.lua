-- Owns: the state of everything that the guard compares, at one moment: the git directories in the
-- write roots of a call, names that tools act on, files that run code later.
-- Must not know: what a change means. Runs in efrd, on the loop thread; waits.
--
-- Policy: git directories are those that the search of a root finds, those of the directory in
-- which the shell stands and of all above it, what a `.git` file or link names, and the common
-- directory of a worktree; of all of them only those where the call can write. What the last record
-- of a root holds serves the next one, where a stamp tells that nothing changed.

local look = require "efr.sbx.guard.look"
local paths = require "efr.perm.paths"
local repo_of = require "efr.sbx.guard.repo"
local scan = require "efr.sbx.guard.scan"
local strings = require "efr.util.text"
local surface = require "efr.sbx.guard.surface"

local M = {}

M.MAX_REPOS = 1000 ---@type integer
local MAX_SURFACE_BYTES <const> = 1024 * 1024
local MAX_GIT_FILE <const> = 4096
local BREATH <const> = 64

---@class efr.sbx.guard.RecordOptions
---@field roots string[]  real paths: where the call can write
---@field cwd string?  where the shell stands, real
---@field home string
---@field ports table  dir, fs, sys
---@field is_surface fun(rel: string): boolean
---@field list fun(bytes: string): efr.GitEntry[]?, string?
---@field pause fun()
---@field old efr.sbx.guard.Record?

---@class efr.sbx.guard.GitFile  a `.git` that is a file or a link
---@field item efr.sbx.guard.Item
---@field target string  the git directory that it names
---@field outside boolean?  no call can write there, so that nothing of it is looked at
---@field late boolean?  found only because the shell stands there

local Recorder = {}
Recorder.__index = Recorder

local function inside(self, path)
  for _, root in ipairs(self.opts.roots) do
    if paths.within(path, root) then return true end
  end
  return false
end

local function take_breath(self)
  self.breath = self.breath + 1
  if self.breath % BREATH == 0 then self.opts.pause() end
end

-- Git directories ---------------------------------------------------------------------------------

local add_repo

-- What commondir of a worktree's git directory leads to, where that is one.
local function add_common(self, repo)
  local item = repo.items.commondir
  if not item or item.type ~= "file" or not item.bytes then return end
  local value = item.bytes:gsub("[\r\n]+$", "")
  local path = value:sub(1, 1) == "/" and value or repo.path .. "/" .. value
  if value ~= "" then add_repo(self, strings.fold_path(path), { work_tree = nil }) end
end

function add_repo(self, path, how)
  local real = self.opts.ports.fs.realpath(path)
  local repos = self.record.repos
  if not real or not inside(self, real) then return end
  if repos[real] then
    repos[real].linked = repos[real].linked or how.linked
    return
  end
  if self.repo_count >= M.MAX_REPOS then
    self.record.unsure = true
    return
  end
  take_breath(self)
  local old = self.opts.old and self.opts.old.repos[real]
  local repo = repo_of.read(real, {
    open = self.opts.ports.dir.open, old = old, now_ns = self.now_ns, home = self.opts.home,
    inside = function(at) return inside(self, at) end, realpath = self.opts.ports.fs.realpath,
    list = self.opts.list, work_tree = how.work_tree, linked = how.linked,
  })
  if not repo then return end
  repo.late = how.late and not (old and not old.late) or nil
  self.repo_count = self.repo_count + 1
  repos[real], self.record.ids[repo.id] = repo, repo
  self.record.unsure = self.record.unsure or repo.unsure
  if how.linked then add_common(self, repo) end
end

-- Notes a `.git` that names another directory; what it names.
local function note_git_file(self, dir, path, late)
  local name = (path == "/" and "" or path) .. "/.git"
  local old = self.opts.old and self.opts.old.git_files[name]
  local item = look.at(dir, ".git", name, {
    now_ns = self.now_ns, old = old and old.item, max = MAX_GIT_FILE,
  })
  if not item or not item.bytes then return nil end
  local target = name
  if item.type == "file" then target = repo_of.named(item.bytes, path) end
  if not target then return nil end
  local real = self.opts.ports.fs.realpath(target)
  local file = { item = item, target = real or target, late = late }
  file.outside = not inside(self, file.target)
  self.record.git_files[name], self.record.targets[file.target] = file, true
  return target
end

-- The entry `.git` of a directory that is held open.
local function add_git(self, dir, path, kind, late)
  local base = path == "/" and "" or path
  if kind == "dir" then
    add_repo(self, base .. "/.git", { work_tree = path, late = late })
  elseif kind == "link" or kind == "file" then
    local target = note_git_file(self, dir, path, late)
    if target then add_repo(self, target, { work_tree = path, linked = true, late = late }) end
  end
end

-- The repositories of a directory and of those above it, as git would find them.
local function add_above(self, cwd)
  local path = cwd
  while path and inside(self, path) do
    local dir <close> = self.opts.ports.dir.open(path)
    local stat = dir and dir:stat(".git")
    if stat then add_git(self, dir, path, stat.type, true) end
    if dir and not stat and dir:stat("HEAD")
      and (dir:stat("objects") or dir:stat("commondir"))
    then
      add_repo(self, path, { late = true })
    end
    path = path:match("^(.+)/[^/]*$")
  end
end

-- Roots -------------------------------------------------------------------------------------------

local function add_surface(self, top, root, rel)
  local path = root .. "/" .. rel
  if self.record.surface[path] then return end
  take_breath(self)
  local old = self.opts.old and self.opts.old.surface[path]
  local room = self.surface_room > 0 and surface.MAX_BYTES or 0
  local item = look.at(top, rel, path, { now_ns = self.now_ns, old = old, max = room })
  if not item then return end
  self.surface_room = self.surface_room - #(item.bytes or "")
  self.record.surface[path] = item
end

-- Whether git takes a directory for a git directory. The directories of a repository's own linked
-- work trees look like split ones; they are read with it.
local function is_git_dir(kept, rel, entry)
  if entry.bare or not entry.split then return entry.bare end
  local owner = rel:match("^(.*)/worktrees/[^/]+$") or rel:match("^worktrees/[^/]+$") and "."
  return not (owner and kept[owner] and kept[owner].bare)
end

local function add_dir(self, top, root, rel, entry, takes)
  local path = rel == "." and root or root .. "/" .. rel
  if entry.git then
    local dir <close> = top:open(rel)
    if dir then add_git(self, dir, path, entry.git) end
  end
  if takes then add_repo(self, path, {}) end
  if rel == "." or entry.git then
    for _, name in ipairs(entry.protected or {}) do
      self.record.protected[path .. "/" .. name] = true
    end
  end
  for _, file in ipairs(entry.files) do add_surface(self, top, root, file) end
end

local function add_root(self, root)
  local top <close> = self.opts.ports.dir.open(root)
  if not top then return end
  local old = self.opts.old and self.opts.old.scans[root]
  local kept, whole = scan.run(top, {
    is_surface = self.opts.is_surface, old = old, now_ns = self.now_ns, pause = self.opts.pause,
  })
  self.record.scans[root] = kept
  self.record.unsure = self.record.unsure or not whole
  for rel, entry in pairs(kept) do
    local takes = is_git_dir(kept, rel, entry)
    local busy = entry.git or takes or entry.protected or #entry.files > 0
    if busy then add_dir(self, top, root, rel, entry, takes) end
  end
end

---Records what there is now.
---@param opts efr.sbx.guard.RecordOptions
---@return efr.sbx.guard.Record
function M.take(opts)
  local self = setmetatable({
    opts = opts, now_ns = opts.ports.sys.now_us() * 1000, breath = 0, repo_count = 0,
    surface_room = MAX_SURFACE_BYTES,
    record = { repos = {}, ids = {}, protected = {}, surface = {}, scans = {}, git_files = {},
      targets = {} },
  }, Recorder)
  for _, root in ipairs(opts.roots) do add_root(self, root) end
  if opts.cwd then add_above(self, opts.cwd) end
  return self.record
end

return M
