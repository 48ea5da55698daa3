-- Owns: what of git stays read-only in a call, and which git directories cannot be moved away.
-- Must not know: the disk (asked through the spec's functions) or how anything is mounted.
-- Runs in efrd. Pure but for those functions.
--
-- Policy: `.git` of each write root is a mount of its own, so that it cannot be renamed or
-- removed; a recorded git directory is a root, so it is one too. Read-only in a git directory
-- are its settings and hooks, those of its work trees, and those of its submodules at each
-- depth to 8; the files that its settings include; and the hooks directory that they name. A
-- linked `.git`, a linked config and a link where submodules lie refuse the call, because the link
-- could be replaced; a linked hooks directory works, and its target is read-only. A `.git` file is
-- read-only. What does not exist cannot be mounted on: the guard looks for it after the call.

local floors_of = require "efr.sbx.floors"
local git_config = require "efr.sbx.git_config"
local paths = require "efr.perm.paths"

local M = {}

-- In every git directory.
M.SETTINGS = { "config", "config.worktree" }
M.HOOKS = "hooks"
M.MODULES_DEEP = 8 ---@type integer
M.ENTRIES_MAX = 20000 ---@type integer

local INCLUDES_MAX <const> = 256
local SMALL <const> = 4096
-- No git directory of a submodule lies in these.
local NOT_SEARCHED <const> = { objects = true, refs = true, logs = true, lfs = true, hooks = true }

---@class efr.sbx.PinSearch
---@field spec efr.sbx.Spec
---@field roots {path: string, name: string}[]
---@field out {kind: string, path: string}[]
---@field files integer  settings that were read
---@field entries integer  of directories that were searched
---@field paths table<string, string>  of submodules, by their names

local function fail(search, text)
  search.err = search.err or text
end

local function in_a_root(search, path)
  for _, root in ipairs(search.roots) do
    if paths.within(path, root.path) then return true end
  end
  return false
end

local function floor(search, path)
  search.out[#search.out + 1] = { kind = "floor", path = path }
end

local function directory_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

-- Folds `.` and `..`: for paths that git joins from a directory and a relative one.
local function fold(path)
  local parts = {}
  for part in path:gmatch("[^/]+") do
    if part == ".." then
      parts[#parts] = nil
    elseif part ~= "." then
      parts[#parts + 1] = part
    end
  end
  return "/" .. table.concat(parts, "/")
end

-- A path of a setting. nil: git finds it in a way that is not known here.
local function expand(search, value, base)
  if value == "" or value:find("\0", 1, true) then return nil end
  if value == "~" then return search.spec.home end
  if value:sub(1, 2) == "~/" then return fold(search.spec.home .. value:sub(2)) end
  if value:sub(1, 1) == "~" or value:sub(1, 2) == "%(" then return nil end
  if value:sub(1, 1) == "/" then return fold(value) end
  return base and fold(base .. "/" .. value) or nil
end

-- Older git makes a blank of each tab, newer git keeps it.
local function readings(value)
  local plain = value:gsub("[\t\r]", " ")
  return plain == value and { value } or { value, plain }
end

-- Settings ----------------------------------------------------------------------------------------

-- Something that a setting names. Outside of the roots nothing can be written anyway.
local function add_named(search, path)
  local seen = search.spec.look(path)
  if not seen or not in_a_root(search, seen.real) then return end
  local link = floors_of.changeable_link(search.spec, search.roots, path, seen.real)
  if link then
    return fail(search, ("git's settings name %s, and the call could change the link %s on the way "
      .. "to it"):format(path, link))
  end
  floor(search, seen.real)
end

local function add_hooks_dir(search, value, work_trees)
  for _, reading in ipairs(readings(value)) do
    local bases = reading:find("^[/~]") and { "/" } or work_trees
    for _, base in ipairs(bases) do
      local path = expand(search, reading, base)
      if path then add_named(search, path) end
    end
  end
end

local read_settings

local function take_include(search, value, file, context)
  for _, reading in ipairs(readings(value)) do
    local path = expand(search, reading, directory_of(file))
    local seen = path and search.spec.look(path)
    if seen then
      add_named(search, path)
      read_settings(search, seen.real, context)
    end
  end
end

local function is_include(setting)
  if setting.variable ~= "path" then return false end
  return setting.section == "include" and not setting.subsection
    or setting.section == "includeif" and setting.subsection ~= nil
end

local function take_setting(search, setting, file, context)
  if not setting.value then return end
  if is_include(setting) then
    take_include(search, setting.value, file, context)
  elseif setting.key == "core.hookspath" then
    context.hooks[#context.hooks + 1] = setting.value
  elseif setting.key == "core.worktree" then
    context.worktrees[#context.worktrees + 1] = setting.value
  end
end

-- context: work_trees that a relative hooks directory counts from; hooks and worktrees, what
-- core.hooksPath and core.worktree said; read, the files that are in it
function read_settings(search, file, context)
  if context.read[file] then return end
  context.read[file] = true
  search.files = search.files + 1
  if search.files > INCLUDES_MAX then
    return fail(search, "too many git settings include others")
  end
  local text = search.spec.read and search.spec.read(file, git_config.MAX_BYTES)
  for _, setting in ipairs(text and git_config.parse(text) or {}) do
    take_setting(search, setting, file, context)
  end
end

-- Directories -------------------------------------------------------------------------------------

local function add_setting_file(search, path)
  local seen = search.spec.look(path)
  if not seen then return false end
  if seen.link then
    fail(search, path .. " is a link, so it cannot be protected")
    return false
  end
  floor(search, seen.real)
  return true
end

local function add_hooks(search, git_dir)
  local path = git_dir .. "/" .. M.HOOKS
  local seen = search.spec.look(path)
  if seen and (not seen.link or in_a_root(search, seen.real)) then floor(search, seen.real) end
end

-- What a listing says of an entry is enough, unless it is a link or of a kind that is not known.
local function look_at(search, path, kind)
  if kind == "dir" or kind == "file" then
    return { real = path, name = path, link = false, type = kind }
  end
  return search.spec.look(path)
end

-- The entries of a directory whose path is real, with what they are; counts them.
local function entries(search, dir)
  local out = {}
  for _, entry in ipairs(search.spec.entries(dir)) do
    search.entries = search.entries + 1
    if search.entries > M.ENTRIES_MAX then
      fail(search, dir .. " has too many entries to protect the git settings in it")
      return {}
    end
    local path = dir .. "/" .. entry.name
    local seen = look_at(search, path, entry.type)
    if seen then out[#out + 1] = { name = entry.name, path = path, seen = seen } end
  end
  return out
end

local function settings_and_hooks(search, dir, context)
  for _, name in ipairs(M.SETTINGS) do
    if add_setting_file(search, dir .. "/" .. name) then
      read_settings(search, dir .. "/" .. name, context)
    end
  end
  add_hooks(search, dir)
end

-- What git takes for the work tree of a linked one: the directory of the file that `gitdir` names.
local function linked_work_tree(search, dir)
  local text = search.spec.read and search.spec.read(dir .. "/gitdir", SMALL)
  local file = text and text:match("^([^\r\n]+)")
  if not file then return nil end
  return directory_of(file:sub(1, 1) == "/" and fold(file) or fold(dir .. "/" .. file))
end

local function linked_work_trees(search, git_dir, context)
  local dir = git_dir .. "/worktrees"
  local seen = search.spec.look(dir)
  if not seen then return end
  if seen.link then return fail(search, dir .. " is a link, so it cannot be protected") end
  for _, entry in ipairs(seen.type == "dir" and entries(search, dir) or {}) do
    if entry.seen.link then
      fail(search, entry.path .. " is a link, so it cannot be protected")
    elseif entry.seen.type == "dir" then
      context.work_trees[#context.work_trees + 1] = linked_work_tree(search, entry.path)
      settings_and_hooks(search, entry.path, context)
    end
  end
end

-- Work trees that the settings of a git directory name; they count from the git directory.
local function add_work_trees(search, git_dir, context)
  for _, value in ipairs(context.worktrees) do
    for _, reading in ipairs(readings(value)) do
      context.work_trees[#context.work_trees + 1] = expand(search, reading, git_dir)
    end
  end
end

-- One git directory: settings, hooks, work trees, and what its settings name.
local function git_directory(search, git_dir, work_trees)
  local context = { work_trees = work_trees, hooks = {}, worktrees = {}, read = {} }
  settings_and_hooks(search, git_dir, context)
  linked_work_trees(search, git_dir, context)
  add_work_trees(search, git_dir, context)
  for _, value in ipairs(context.hooks) do add_hooks_dir(search, value, context.work_trees) end
end

-- The path of a submodule in the work tree, by the name of its git directory.
local function module_paths(search, work_tree)
  local out = {}
  local text = work_tree and search.spec.read
    and search.spec.read(work_tree .. "/.gitmodules", git_config.MAX_BYTES)
  for _, setting in ipairs(text and git_config.parse(text) or {}) do
    if setting.section == "submodule" and setting.subsection and setting.variable == "path"
      and setting.value then
      out[setting.subsection] = setting.value
    end
  end
  return out
end

local function is_git_directory(found)
  for _, entry in ipairs(found) do
    if entry.name == "HEAD" or entry.name == "config" then return true end
  end
  return false
end

-- Whether a link in the place of submodules hides one: all but the plain files of a git directory.
local function link_hides(entry, in_git_dir)
  return not (in_git_dir and (NOT_SEARCHED[entry.name] or entry.seen.type ~= "dir"))
end

local function is_searched(entry, depth, in_git_dir)
  return entry.seen.type == "dir" and not entry.seen.link and depth < M.MODULES_DEEP
    and not (in_git_dir and NOT_SEARCHED[entry.name])
end

-- The submodule whose git directory this is; its work tree is known by its name.
local function module(search, dir, name, work_tree)
  local path = search.paths[name]
  local inner = path and work_tree and fold(work_tree .. "/" .. path) or nil
  git_directory(search, dir, { inner })
  return inner
end

-- depth: below `modules`; name: the submodule's, which is the path below `modules`
local function modules(search, dir, depth, name, work_tree)
  local found = entries(search, dir)
  local in_git_dir = depth > 0 and is_git_directory(found)
  if in_git_dir then work_tree = module(search, dir, name, work_tree) end
  for _, entry in ipairs(found) do
    if search.err then return end
    if entry.seen.link and link_hides(entry, in_git_dir) then
      return fail(search, entry.path .. " is a link, so what it leads to cannot be protected")
    elseif is_searched(entry, depth, in_git_dir) then
      modules(search, entry.path, depth + 1, name and name .. "/" .. entry.name or entry.name,
        work_tree)
    end
  end
end

local function submodules(search, git_dir, work_tree)
  local dir = git_dir .. "/modules"
  local seen = search.spec.look(dir)
  if not seen then return end
  if seen.link then return fail(search, dir .. " is a link, so it cannot be protected") end
  if seen.type ~= "dir" then return end
  search.paths = module_paths(search, work_tree)
  modules(search, dir, 0, nil, work_tree)
end

-- Roots -------------------------------------------------------------------------------------------

local function root_with_git(search, root)
  local path = root.path .. "/.git"
  local seen = search.spec.look(path)
  if not seen then return end
  if seen.link then return fail(search, path .. " is a link, so it cannot be protected") end
  if seen.type ~= "dir" then return floor(search, seen.real) end
  search.out[#search.out + 1] = { kind = "pin", path = seen.real }
  git_directory(search, seen.real, { root.path })
  submodules(search, seen.real, root.path)
end

-- The user's own settings can name a hooks directory in a root, or one of every work tree.
local function user_settings(search)
  local spec, work_trees = search.spec, {}
  for _, root in ipairs(search.roots) do
    if spec.look(root.path .. "/.git") then work_trees[#work_trees + 1] = root.path end
  end
  local config_home = spec.env.XDG_CONFIG_HOME
  if not config_home or config_home == "" then config_home = spec.home .. "/.config" end
  local context = { work_trees = work_trees, hooks = {}, worktrees = {}, read = {} }
  for _, file in ipairs({ "/etc/gitconfig", config_home .. "/git/config",
    spec.home .. "/.gitconfig" }) do
    local seen = spec.look(file)
    if seen then read_settings(search, seen.real, context) end
  end
  for _, value in ipairs(context.hooks) do add_hooks_dir(search, value, work_trees) end
end

---The pins and floors that git needs in the write roots. A root named "git" is a recorded git
---directory, whose work tree is root.work_tree.
---@param spec efr.sbx.Spec
---@param roots {path: string, name: string, work_tree: string?}[]
---@return {kind: string, path: string}[]? mounts
---@return string? err
function M.collect(spec, roots)
  local search = {
    spec = spec, roots = roots, out = {}, files = 0, entries = 0, paths = {},
  }
  for _, root in ipairs(roots) do
    if root.name == "git" then
      git_directory(search, root.path, { root.work_tree })
      submodules(search, root.path, root.work_tree)
    else
      root_with_git(search, root)
    end
  end
  user_settings(search)
  if search.err then return nil, search.err end
  return search.out
end

return M
