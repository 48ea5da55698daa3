-- Owns: which changes of git directories are hits of which rule.
-- Must not know: the disk, how a config is listed (the items say what runs code in it), quarantine.
-- Runs in efrd. Pure.

local look = require "efr.sbx.guard.look"
local repo_of = require "efr.sbx.guard.repo"
local rules = require "efr.sbx.guard.rules"

local M = {}

-- The kernel stamps files with the time of its last tick, so a file can be older than what made it.
M.SLACK_NS = 1000000000 ---@type integer

local RULE = {}
for _, rule in ipairs(rules) do RULE[rule.name] = rule end

-- Files that say where git finds something. Without one git takes what lies beside it.
local POINTERS <const> = { commondir = true, worktree_commondir = true, worktree_gitdir = true }

---@class efr.sbx.guard.Hit
---@field rule string
---@field quarantine boolean
---@field path string
---@field key string?  of a config: what would run a program
---@field item efr.sbx.guard.Item?
---@field before efr.sbx.guard.Item?  what stood there before the call

-- Settings ---------------------------------------------------------------------------------------

local function entry_text(entry) return entry.key .. "\n" .. (entry.value or "\0") end

-- The first entry that runs code and did not stand there before.
local function new_code(before, after)
  local known = {}
  for _, entry in ipairs(before and before.code or {}) do known[entry_text(entry)] = true end
  for _, entry in ipairs(after.code or {}) do
    if not known[entry_text(entry)] then return entry end
  end
  return nil
end

local function config_hit(before, after, code_rule)
  if not after.code then return "config_unreadable" end
  local entry = new_code(before, after)
  if entry then return code_rule, entry.key end
  return nil
end

-- What each kind of entry is when it changed -----------------------------------------------------

local KINDS = {}

function KINDS.commondir(_, after, repo)
  local own = after.path:match("^(.*)/[^/]*$")
  local is_linked = own == repo.path and repo.linked
  if after.type == "missing" then return is_linked and "commondir_outside_repo" or nil end
  if is_linked then
    local fine = after.type == "file" and after.bytes
      and repo_of.is_own_commondir(repo.path, after.bytes)
    return not fine and "commondir_outside_repo" or nil
  end
  return "commondir_in_main_git_dir"
end

function KINDS.config(before, after) return config_hit(before, after, "config_code_key") end

function KINDS.config_worktree(before, after)
  if not before then return "config_worktree_appeared" end
  return config_hit(before, after, "config_code_key")
end

function KINDS.worktree_commondir(_, after)
  local fine = after.type == "file" and after.bytes
    and repo_of.is_own_commondir(after.path:match("^(.*)/[^/]*$"), after.bytes)
  return not fine and "worktree_commondir_elsewhere" or nil
end

-- One of a work tree that is new, or that lay in the private /tmp, leads nowhere outside.
function KINDS.worktree_gitdir(before, after, _, leads_back)
  if not before or not before.bytes or before.bytes:find("^/tmp/") then return nil end
  return not leads_back(after) and "worktree_gitdir_elsewhere" or nil
end

function KINDS.worktree_config_worktree(before, after)
  if not before then return "worktree_config_worktree_appeared" end
  return config_hit(before, after, "config_code_key")
end

KINDS.include = KINDS.config

function KINDS.module_config(before, after) return config_hit(before, after, "module_code_key") end

function KINDS.hook() return "hook_planted" end

function KINDS.module_hook() return "module_hook" end

function KINDS.link() return "config_unreadable" end

function KINDS.alternates() return "alternates_changed" end

---Whether an entry is settings that git must list before they are compared.
---@param item efr.sbx.guard.Item
---@return boolean
function M.is_config(item)
  return item.type == "file" and item.bytes ~= nil and (item.role == "config"
    or item.role == "config_worktree" or item.role == "worktree_config_worktree"
    or item.role == "module_config" or item.role == "include")
end

---@class efr.sbx.guard.HitOptions
---@field is_protected fun(path: string): boolean  the call could not write there
---@field leads_back fun(item: efr.sbx.guard.Item): boolean  a `gitdir` whose work tree names it
---@field since_ns integer  in a directory that was not looked at before, only newer entries count

-- Records ----------------------------------------------------------------------------------------

---@class efr.sbx.guard.Record
---@field repos table<string, efr.sbx.guard.Repo>  by path
---@field ids table<string, efr.sbx.guard.Repo>  by device and inode
---@field git_files table<string, efr.sbx.guard.GitFile>  by path
---@field targets table<string, true>  the git directories that they name
---@field protected table<string, true>  paths of names that tools act on
---@field surface table<string, efr.sbx.guard.Item>

-- The same git directory before the call, also when it was moved meanwhile.
local function before_of(before, repo)
  return before.ids[repo.id] or before.repos[repo.path]
end

-- Pointers that are gone while the directory in which they lay is there.
local function add_removed(out, old, repo)
  for key, item in pairs(old.items) do
    local worktree = key:match("^worktrees/([^/]+)/")
    local there = not worktree or repo.worktrees[worktree]
    if POINTERS[item.role] and there and not repo.items[key] then
      local gone = { path = repo.path .. "/" .. key, type = "missing", role = item.role }
      out[#out + 1] = { before = item, after = gone, repo = repo }
    end
  end
end

---The entries that changed, as {before, after, repo}. One that is gone is of the type "missing".
---@param before efr.sbx.guard.Record
---@param after efr.sbx.guard.Record
---@param since_ns integer  in a directory that was not looked at before, only newer entries count
---@return table[]
function M.changed(before, after, since_ns)
  local out = {}
  for _, repo in pairs(after.repos) do
    local old = before_of(before, repo)
    for key, item in pairs(repo.items) do
      local was = old and old.items[key]
      local new = old or not repo.late or not item.ctime_ns
        or item.ctime_ns >= since_ns - M.SLACK_NS
      if new and look.differs(was, item) then
        out[#out + 1] = { before = was, after = item, repo = repo }
      end
    end
    if old then add_removed(out, old, repo) end
  end
  return out
end

local function add_protected(out, before, after)
  for path in pairs(after.protected) do
    if not before.protected[path] then
      out[#out + 1] = { rule = "protected_name_created", quarantine = false, path = path }
    end
  end
end

-- A `.git` that a call made or changed and that names a place where the guard cannot look.
local function add_git_files(out, before, after, since_ns)
  for path, file in pairs(after.git_files) do
    local old = before.git_files[path]
    local new = look.differs(old and old.item, file.item)
      and (not file.late or file.item.ctime_ns >= since_ns - M.SLACK_NS)
    if file.outside and new and not before.targets[file.target] then
      out[#out + 1] = { rule = "git_dir_elsewhere", quarantine = true, path = path,
        item = file.item, before = old and old.item }
    end
  end
end

---The hits, sorted by path; a path is named once.
---@param before efr.sbx.guard.Record
---@param after efr.sbx.guard.Record
---@param changed table[]  what M.changed found, the settings in it listed
---@param opts efr.sbx.guard.HitOptions
---@return efr.sbx.guard.Hit[]
function M.hits(before, after, changed, opts)
  local found, by_path, out = {}, {}, {}
  for _, change in ipairs(changed) do
    local rule, key = KINDS[change.after.role](change.before, change.after, change.repo,
      opts.leads_back)
    if rule and not opts.is_protected(change.after.path) then
      found[#found + 1] = {
        rule = rule, quarantine = RULE[rule].quarantine, path = change.after.path, key = key,
        item = change.after, before = change.before,
      }
    end
  end
  add_git_files(found, before, after, opts.since_ns)
  add_protected(found, before, after)
  table.sort(found, function(a, b)
    if a.path ~= b.path then return a.path < b.path end
    return a.rule < b.rule
  end)
  for _, hit in ipairs(found) do
    local first = by_path[hit.path]
    if not first then
      by_path[hit.path], out[#out + 1] = hit, hit
    elseif hit.quarantine and not first.quarantine then
      first.rule, first.quarantine, first.key, first.item = hit.rule, true, hit.key, hit.item
      first.before = hit.before
    end
  end
  return out
end

return M
