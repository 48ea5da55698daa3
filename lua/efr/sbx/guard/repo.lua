-- Owns: what of one git directory decides which programs git runs: its settings, its hooks, those
-- of its worktrees and submodules, the files and the hooks directory that its settings name.
-- Must not know: what changed, what is done about it. Runs in efrd, on the loop thread; waits while
-- git lists settings that name other files.
--
-- Policy: everything is opened below the git directory, which is held open, and no link is
-- followed. A link or anything else in place of a file counts as what it stands for.

local git_keys = require "efr.perm.git_keys"
local look = require "efr.sbx.guard.look"
local strings = require "efr.util.text"

local M = {}

M.MODULE_DEPTH = 8 ---@type integer

local MAX_NAMES <const> = 4096
local INCLUDE_DEPTH <const> = 10
local MAX_INCLUDES <const> = 64
local NOT_MODULES <const> = {
  objects = true, refs = true, logs = true, lfs = true, hooks = true, info = true,
}

---@class efr.sbx.guard.Repo
---@field path string  the git directory, real
---@field id string  device and inode
---@field linked boolean?  a `.git` file names it
---@field work_tree string?  where its `.git` stands
---@field late boolean?  found only because the shell stands there
---@field items table<string, efr.sbx.guard.Item>  by what they are: "config", "hooks/NAME", ...
---@field unsure boolean?  it has more, or is nested deeper, than efr looks at
---@field worktrees table<string, true>  names of its linked work trees

---@class efr.sbx.guard.RepoOptions
---@field open fun(path: string): efr.Dir?  efr.dir.open
---@field old efr.sbx.guard.Repo?  the same at the last look
---@field now_ns integer
---@field home string
---@field inside fun(path: string): boolean  whether a call can write there
---@field realpath fun(path: string): string?
---@field list fun(bytes: string): efr.GitEntry[]?, string?  what git reads in a config; waits

local Reader = {}
Reader.__index = Reader

local function add(self, key, rel, role, dir, base)
  local path = (base or self.repo.path) .. "/" .. rel
  local old = self.opts.old and self.opts.old.items[key]
  if old and old.path ~= path then old = nil end
  local item = look.at(dir or self.dir, rel, path, { now_ns = self.opts.now_ns, old = old })
  if item then
    item.role = role
    self.repo.items[key] = item
  end
  return item
end

-- An entry in a directory that lies elsewhere.
local function add_at(self, key, path, role)
  local above, name = path:match("^(.*)/([^/]+)$")
  local dir <close> = above and self.opts.open(above == "" and "/" or above)
  return dir and add(self, key, name, role, dir, above == "" and "" or above)
end

-- Hooks ------------------------------------------------------------------------------------------

local function add_hooks_in(self, dir, rel, role, key, base)
  local names = dir:list(rel, MAX_NAMES)
  local count = 0
  for name in pairs(names or {}) do
    count = count + 1
    if not name:find("%.sample$") then
      local below = rel == "." and name or rel .. "/" .. name
      add(self, key .. "/" .. name, below, role, dir, base)
    end
  end
  if count >= MAX_NAMES then self.repo.unsure = true end
end

-- A hooks directory that lies elsewhere, where a call could write it.
local function add_hooks_at(self, path, role)
  local real = self.opts.realpath(path)
  if not real or not self.opts.inside(real) then return end
  local dir <close> = self.opts.open(real)
  if dir then add_hooks_in(self, dir, ".", role, "hooks:" .. real, real) end
end

local function add_hooks(self, rel, role)
  local stat = self.dir:stat(rel)
  if not stat then return end
  if stat.type == "dir" then return add_hooks_in(self, self.dir, rel, role, rel) end
  add(self, rel, rel, role)
  add_hooks_at(self, self.repo.path .. "/" .. rel, role)
end

-- Settings ---------------------------------------------------------------------------------------

-- A path of a config, as git takes it; nil: one that is not known here.
local function expand(self, value, base)
  if not value or value == "" then return nil end
  local path
  if value:sub(1, 2) == "~/" then
    path = self.opts.home .. value:sub(2)
  elseif value:sub(1, 1) == "/" then
    path = value
  elseif value:sub(1, 1) ~= "~" and value:sub(1, 1) ~= "%" then
    path = base .. "/" .. value
  end
  return path and strings.fold_path(path)
end

local add_config

local function add_include(self, value, item, depth)
  local path = expand(self, value, item.path:match("^(.*)/[^/]*$"))
  if not path or depth >= INCLUDE_DEPTH then return end
  local real = self.opts.realpath(path) or path
  local key = "include:" .. real
  if self.repo.items[key] or not self.opts.inside(real) then return end
  self.includes = self.includes + 1
  if self.includes > MAX_INCLUDES then
    self.repo.unsure = true
    return
  end
  add_config(self, add_at(self, key, real, "include"), depth + 1)
end

local function follow(self, item, entries, depth)
  for _, entry in ipairs(entries) do
    local section, subsection, variable = git_keys.split(entry.key)
    local includes = section == "include" and not subsection or section == "includeif"
    if includes and variable == "path" then
      add_include(self, entry.value, item, depth)
    elseif section == "core" and not subsection and variable == "hookspath" then
      local path = expand(self, entry.value, self.repo.work_tree or self.repo.path)
      if path then add_hooks_at(self, path, "hook") end
    end
  end
end

-- What a config names. Names of sections and variables stand in it as they are, so git is asked
-- only where one of them can.
function add_config(self, item, depth)
  if not item or not item.bytes or item.type ~= "file" then return end
  local text = item.bytes:lower()
  if not text:find("include", 1, true) and not text:find("hookspath", 1, true) then return end
  local entries = self.opts.list(item.bytes)
  if entries then follow(self, item, entries, depth) end
end

local function add_settings(self, rel, role)
  local item = add(self, rel, rel, role)
  add_config(self, item, 0)
  -- A linked file of settings: what it leads to counts as well.
  if item and item.type == "link" then
    local real = self.opts.realpath(item.path)
    if real and self.opts.inside(real) then
      add_config(self, add_at(self, "include:" .. real, real, "include"), 0)
    end
  end
end

-- Worktrees and submodules -----------------------------------------------------------------------

local function each_dir(self, rel, fn)
  local names = self.dir:list(rel, MAX_NAMES)
  local count = 0
  for name, kind in pairs(names or {}) do
    count = count + 1
    local path = rel .. "/" .. name
    if kind == "dir" then
      fn(path, name)
    elseif kind == "link" then
      add(self, path, path, "link")
    end
  end
  if count >= MAX_NAMES then self.repo.unsure = true end
end

local function add_worktrees(self)
  each_dir(self, "worktrees", function(rel, name)
    self.repo.worktrees[name] = true
    add(self, rel .. "/gitdir", rel .. "/gitdir", "worktree_gitdir")
    add(self, rel .. "/commondir", rel .. "/commondir", "worktree_commondir")
    add_settings(self, rel .. "/config.worktree", "worktree_config_worktree")
  end)
end

local function add_modules(self, rel, depth)
  each_dir(self, rel, function(path, name)
    if NOT_MODULES[name] and depth > 1 then return end
    if depth > M.MODULE_DEPTH then
      self.repo.unsure = true
      return
    end
    if self.dir:stat(path .. "/HEAD") or self.dir:stat(path .. "/config") then
      add(self, path .. "/commondir", path .. "/commondir", "commondir")
      add_settings(self, path .. "/config", "module_config")
      add_settings(self, path .. "/config.worktree", "config_worktree")
      add_hooks(self, path .. "/hooks", "module_hook")
    end
    add_modules(self, path, depth + 1)
  end)
end

---Looks at a git directory.
---@param path string  real path
---@param opts efr.sbx.guard.RepoOptions
---@return efr.sbx.guard.Repo?  nil: there is no such directory, or it cannot be opened
function M.read(path, opts)
  local dir <close> = opts.open(path)
  local stat = dir and dir:stat(".")
  if not stat then return nil end
  local self = setmetatable({
    repo = { path = path, id = (look.stamp(stat)), items = {}, work_tree = opts.work_tree,
      linked = opts.linked, worktrees = {} },
    dir = dir, opts = opts, includes = 0,
  }, Reader)
  add(self, "commondir", "commondir", "commondir")
  add_settings(self, "config", "config")
  add_settings(self, "config.worktree", "config_worktree")
  add_hooks(self, "hooks", "hook")
  add(self, "objects/info/alternates", "objects/info/alternates", "alternates")
  for _, name in ipairs({ "worktrees", "modules" }) do
    local kind = dir:stat(name)
    if kind and kind.type == "link" then add(self, name, name, "link") end
  end
  add_worktrees(self)
  add_modules(self, "modules", 1)
  return self.repo
end

---The git directory that a `.git` file names.
---@param text string  its content
---@param base string  the directory in which it lies
---@return string? path
function M.named(text, base)
  local target = text:match("^gitdir: ([^\r\n]+)")
  if not target then return nil end
  return strings.fold_path(target:sub(1, 1) == "/" and target or base .. "/" .. target)
end

---Whether a commondir file leads to the git directory that this one lies in as a worktree.
---@param git_dir string  real path of the directory with the file
---@param text string  its content
---@return boolean
function M.is_own_commondir(git_dir, text)
  local main = git_dir:match("^(.+)/worktrees/[^/]+$")
  local value = text:gsub("[\r\n]+$", "")
  if not main or value == "" or value:find("[\r\n]") then return false end
  local target = value:sub(1, 1) == "/" and value or git_dir .. "/" .. value
  return strings.fold_path(target) == main
end

return M
