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

---@class efr.sbx.guard.Hit
---@field rule string
---@field quarantine boolean
---@field path string
---@field key string?  of a config: what would run a program
---@field item efr.sbx.guard.Item?

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
  if own == repo.path and repo.linked then
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

-- Records ----------------------------------------------------------------------------------------

---@class efr.sbx.guard.Record
---@field repos table<string, efr.sbx.guard.Repo>  by path
---@field ids table<string, efr.sbx.guard.Repo>  by device and inode
---@field protected table<string, true>  paths of names that tools act on
---@field surface table<string, efr.sbx.guard.Item>

-- The same git directory before the call, also when it was moved meanwhile.
local function before_of(before, repo)
  return before.ids[repo.id] or before.repos[repo.path]
end

---The entries that changed, as {before, after, repo}.
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

---The hits, sorted by path; a path is named once.
---@param before efr.sbx.guard.Record
---@param after efr.sbx.guard.Record
---@param changed table[]  what M.changed found, the settings in it listed
---@param is_protected fun(path: string): boolean  the call could not write there
---@return efr.sbx.guard.Hit[]
function M.hits(before, after, changed, is_protected)
  local found, by_path, out = {}, {}, {}
  for _, change in ipairs(changed) do
    local rule, key = KINDS[change.after.role](change.before, change.after, change.repo)
    if rule and not is_protected(change.after.path) then
      found[#found + 1] = {
        rule = rule, quarantine = RULE[rule].quarantine, path = change.after.path, key = key,
        item = change.after,
      }
    end
  end
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
    end
  end
  return out
end

return M
