-- Owns: the facts that git gives about the repository of a line: whether git would run a program
-- that the repository, or a place where a call can write, names (`git_code`), and how many tracked
-- files lie in a directory.
-- Must not know: how git is run (a port: efr.sbx.git), what is decided with the facts.
-- Runs in efrd and efr. Waits for git, so it runs in a task.
--
-- Policy: git itself lists its settings, as it would read them there. Clean is only what is known
-- to be: no code key in the repository's own settings; none in the user's or the system's whose
-- file or program lies where a call can write or beside the repository; no hook that a reading
-- command runs; the same for every checked out submodule. Whatever cannot be read, is linked,
-- or takes longer than five seconds is unknown. From line to line only git's own listings are kept,
-- while every file that git read for them is the same (git_kept); all else is looked at again, so a
-- repository that is planted later finds the next question.

local git_environment = require "efr.perm.git_environment"
local git_keys = require "efr.perm.git_keys"
local git_remote = require "efr.perm.git_remote"
local git_repository = require "efr.perm.git_repository"
local paths = require "efr.perm.paths"

local M = {}

-- A busy machine is no other repository: whoever waits can give up before.
M.BUDGET_MS = 5000 ---@type integer

local SUBMODULES_MAX <const> = 32
local SUBMODULES_DEEP <const> = 4
-- Settings of a repository of which a listing is kept.
local KEPT_MAX <const> = 1000
local INDEX_BYTES <const> = 32 * 1024 * 1024
local USER_FILES_MAX <const> = 32
local LIST <const> = { "config", "--list", "--show-scope", "--show-origin", "-z", "--includes" }
-- What says which files of settings git reads.
local SETTINGS_FROM <const> = {
  "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
}
local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }
local SHOWN_MAX <const> = 120
local EXECUTABLE <const> = 73 -- 0111
-- Commands of the read-only table refresh the index, and nothing else that has a hook.
local READING_HOOK <const> = "post-index-change"
-- An alias never stands for a command of git's own.
local NEVER_READING <const> = { alias = true }

local UNKNOWN <const> = { state = "unknown" }
local CLEAN <const> = { state = "clean" }

---@class efr.perm.GitPort
---@field within fun(self, ms: integer): fun(what: table): table?, string?, string?  runs git (as
---efr.sbx.git's run) until ms are over
---@field env table<string, string>  the environment of the user's git
---@field kept efr.perm.GitKept?  what it said before; nil: nothing is kept

---@class efr.perm.GitFacts
local Facts = {}
Facts.__index = Facts

-- Shown in reasons, so only what cannot change how a terminal shows it.
local function shown(text)
  text = text:gsub("[^\32-\126]", "?")
  return #text > SHOWN_MAX and text:sub(1, SHOWN_MAX) .. "..." or text
end

local function dirty(file, key)
  return { state = "dirty", file = shown(file), key = shown(key) }
end

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

local function below(dir, name)
  return (dir == "/" and "" or dir) .. "/" .. name
end

-- The user's settings ---------------------------------------------------------------------------

local function expand(self, path, base)
  if path:sub(1, 2) == "~/" then return self.home .. path:sub(2) end
  if path:sub(1, 1) == "/" then return path end
  return base and base .. "/" .. path or nil
end

local function user_files(self)
  local env, home = self.env, self.home
  local config_home = env.XDG_CONFIG_HOME
  if not config_home or config_home == "" then config_home = home .. "/.config" end
  local out = { env.GIT_CONFIG_SYSTEM or "/etc/gitconfig" }
  local own = env.GIT_CONFIG_GLOBAL and { env.GIT_CONFIG_GLOBAL }
    or { config_home .. "/git/config", home .. "/.gitconfig" }
  return table.move(own, 1, #own, #out + 1, out)
end

-- Adds the real path of a file of settings, and those that it includes, to `out`. The files are
-- the user's own; what they include is read as git would read it.
local function add_user_file(self, run, root, out, path)
  local fs = self.fs
  local real = fs.realpath(path)
  if not real or out[real] or #out >= USER_FILES_MAX then return end
  out[real] = true
  out[#out + 1] = real
  local listed = run { root = root, read = { real },
    args = { "config", "--file", real, "--list", "--no-includes", "-z" } }
  for _, entry in ipairs(listed and listed.code == 0 and git_keys.parse(listed.out) or {}) do
    local section, _, variable = git_keys.split(entry.key)
    if (section == "include" or section == "includeif") and variable == "path" then
      local target = expand(self, entry.value or "", parent_of(path))
      if target then add_user_file(self, run, root, out, target) end
    end
  end
end

-- Listed only when git cannot read all of its settings with the files that are always there.
local function user_closure(self, run, root)
  local out = {}
  for _, path in ipairs(user_files(self)) do add_user_file(self, run, root, out, path) end
  return out
end

local function plain_user_files(self)
  local out = {}
  for _, path in ipairs(user_files(self)) do
    local real = self.fs.realpath(path)
    if real then out[#out + 1] = real end
  end
  return out
end

-- Settings --------------------------------------------------------------------------------------

---@class efr.perm.GitSetting
---@field scope string
---@field file string  as git names it; relative to the root
---@field entry efr.GitEntry

---Reads `git config --list --show-scope --show-origin -z`.
---@param bytes string
---@return efr.perm.GitSetting[]?
function M.parse(bytes)
  local fields, out = {}, {}
  if bytes ~= "" and bytes:sub(-1) ~= "\0" then return nil end
  for field in bytes:gmatch("([^\0]*)\0") do fields[#fields + 1] = field end
  if #fields % 3 ~= 0 or #fields > 3 * git_keys.MAX_ENTRIES then return nil end
  for i = 1, #fields, 3 do
    local entries = git_keys.parse(fields[i + 2] .. "\0")
    if not entries or #entries ~= 1 then return nil end
    out[#out + 1] = {
      scope = fields[i], file = fields[i + 1]:gsub("^file:", ""), entry = entries[1],
    }
  end
  return out
end

-- Whether a path lies where a call can write, or in the repository itself.
local function is_taken(self, root, path)
  local real = self.fs.realpath(path) or path
  if paths.within(path, root) or paths.within(real, root) then return true end
  for _, place in ipairs(self.taken) do
    if paths.within(path, place) or paths.within(real, place) then return true end
  end
  return false
end

-- Whether one word of a value names a file or program that a call could have written.
local function word_leads_back(self, root, word)
  local path = expand(self, word)
  if path then return is_taken(self, root, path) end
  if word:find("/", 1, true) then return not word:find("://", 1, true) end
  return self.program ~= nil and self.program(word).doubt ~= nil
end

-- The same for a setting of the user's.
local function leads_back(self, root, setting)
  local section, _, variable = git_keys.split(setting.entry.key)
  local value = setting.entry.value or ""
  if variable == "path" and (section == "include" or section == "includeif") then
    local target = expand(self, value, parent_of(setting.file))
    return target == nil or is_taken(self, root, target)
  elseif setting.entry.key == "core.hookspath" and not expand(self, value) then
    return true -- of the work tree
  end
  for word in value:gmatch("[^%s'\"!;&|()]+") do
    if word_leads_back(self, root, word) then return true end
  end
  return false
end

local FROM_OUTSIDE <const> = { global = true, system = true }

local function judge_setting(self, root, setting)
  if setting.scope == "command" or not git_keys.runs_code(setting.entry) then return nil end
  if FROM_OUTSIDE[setting.scope] and setting.file:sub(1, 1) == "/"
    and not is_taken(self, root, setting.file) then
    if NEVER_READING[git_keys.split(setting.entry.key)] or not leads_back(self, root, setting) then
      return nil
    end
  end
  return dirty(setting.file, setting.entry.key)
end

local function has_user_hooks(settings)
  for _, setting in ipairs(settings) do
    if setting.scope ~= "command" and setting.entry.key == "core.hookspath" then return true end
  end
  return false
end

local function judge_hooks(self, repository, settings)
  if has_user_hooks(settings) then return nil end -- the user's own, since nothing else is clean
  local dir = repository.common .. "/hooks"
  local info, _, code = self.fs.stat(below(dir, READING_HOOK))
  if info and info.mode & EXECUTABLE ~= 0 then return dirty(dir, "the hook " .. READING_HOOK) end
  if not info and not NOT_THERE[code] then return UNKNOWN end
  return nil
end

-- Every file that git read for a listing of settings, or would have read had it been there; nil:
-- they are not all known. `settings` is what it listed.
local function files_of(self, repository, settings)
  local out = user_files(self)
  local function add(path) out[#out + 1] = path end
  add(repository.common .. "/config")
  for _, dir in ipairs({ repository.common, table.unpack(repository.git_dirs) }) do
    add(dir .. "/config.worktree")
    add(dir .. "/commondir")
  end
  for _, setting in ipairs(settings) do
    local file = setting.file
    if setting.scope ~= "command" then
      if file:sub(1, 1) ~= "/" then file = below(repository.root, file) end
      add(file)
      local section, condition, variable = git_keys.split(setting.entry.key)
      if variable == "path" and (section == "include" or section == "includeif") then
        local value = setting.entry.value or ""
        local named = not value:find("^%%") and not value:find("^~[^/]")
          and not (condition or ""):lower():find("^onbranch:")
        local target = named and expand(self, value, parent_of(file))
        if not target then return nil end
        add(target)
      end
    end
  end
  return out
end

-- What git lists, asked anew unless what it was asked before still holds. `files` gives the files
-- of an answer.
local function listed(self, key, ask, files)
  local kept = self.git.kept
  local known = kept and kept:get(key)
  if known then return known end
  local started = kept and kept:now()
  local answer, code = ask()
  if not answer then return nil, code end
  local read = kept and files(answer)
  if read then kept:put(key, answer, read, started) end
  return answer
end

local function ask_settings(self, run, repository)
  local env = {}
  for _, name in ipairs(SETTINGS_FROM) do env[name] = self.env[name] end
  env.HOME = self.home
  local what = { root = repository.root, git_dirs = repository.git_dirs, user_config = true,
    read = plain_user_files(self), env = env, args = LIST }
  local got, _, code = run(what)
  if got and got.code ~= 0 then
    what.read = user_closure(self, run, repository.root)
    got, _, code = run(what)
  end
  if not got or got.code ~= 0 then return nil, code end
  return M.parse(got.out)
end

local function key_of(self, what, repository)
  local env, out = self.env, { what, repository.root, repository.common }
  for _, name in ipairs(SETTINGS_FROM) do out[#out + 1] = name .. "=" .. (env[name] or "") end
  return table.concat(table.move(repository.git_dirs, 1, #repository.git_dirs, #out + 1, out), "\0")
end

local function list_settings(self, run, repository)
  return listed(self, key_of(self, "settings", repository),
    function() return ask_settings(self, run, repository) end,
    function(settings)
      return #settings <= KEPT_MAX and files_of(self, repository, settings)
    end)
end

local function ask_submodules(run, repository)
  local got = run { root = repository.root, git_dirs = repository.git_dirs,
    args = { "ls-files", "--stage", "-z" }, max_bytes = INDEX_BYTES }
  if not got or got.code ~= 0 then return nil end
  -- Entries begin with the mode, behind the NUL that ends the one before.
  local text, out, from = "\0" .. got.out, {}, 1
  while true do
    local at = text:find("\000160000 ", from, true)
    if not at then return out end
    local name, next_at = text:match("^%z160000 %x+ %d\t([^%z]+)()", at)
    if not name or #out >= SUBMODULES_MAX then return nil end
    out[#out + 1], from = name, next_at
  end
end

-- The index, and the settings that say how to read it. A split one lies in more files.
local function index_files(self, repository)
  local dir = repository.git_dirs[1] or repository.common
  for _, entry in ipairs(self.fs.readdir(dir) or {}) do
    if entry.name:find("^sharedindex") then return nil end
  end
  return { dir .. "/index", repository.common .. "/config" }
end

-- The submodules that are checked out. nil: not known.
local function submodules(self, run, repository)
  return listed(self, key_of(self, "submodules", repository),
    function() return ask_submodules(run, repository) end,
    function() return index_files(self, repository) end)
end

local judge

local function judge_submodules(self, run, repository, depth)
  local names = submodules(self, run, repository)
  if not names then return UNKNOWN end
  for _, name in ipairs(names) do
    local dir = below(repository.root, name)
    local real, _, code = self.fs.realpath(dir)
    if not real and not NOT_THERE[code] or real and real ~= dir then return UNKNOWN end
    local inner = real and git_repository.at(self.fs, real)
    if inner == false or inner and depth >= SUBMODULES_DEEP then return UNKNOWN end
    local found = inner and judge(self, run, inner, depth + 1)
    if found and found.state ~= "clean" then return found end
  end
  return CLEAN
end

-- A main git directory that names another one is a trap: git reads its settings from there.
local function judge_place(self, repository)
  if #repository.git_dirs > 0 then return nil end
  local info, _, code = self.fs.lstat(repository.common .. "/commondir")
  if info then return dirty(repository.common .. "/commondir", "another git directory") end
  return not NOT_THERE[code] and UNKNOWN or nil
end

function judge(self, run, repository, depth)
  local found = judge_place(self, repository)
  if found then return found end
  local settings = list_settings(self, run, repository)
  if not settings then return UNKNOWN end
  for _, setting in ipairs(settings) do
    found = judge_setting(self, repository.root, setting)
    if found then return found end
  end
  return judge_hooks(self, repository, settings)
    or judge_submodules(self, run, repository, depth)
end

-- What is known before git is asked. A variable of the shell can name another repository, other
-- settings or a program.
local function known_first(self, dirs)
  if #dirs == 0 or not self.env then return UNKNOWN end
  local variable = git_environment.changes(self.env, self.is_shell and self.home or nil)
  return variable and { state = "unknown", variable = shown(variable) } or CLEAN
end

---What git would run in these directories: clean; dirty, with the file and the key; or unknown.
---@param dirs string[]
---@return { state: string, file: string?, key: string?, variable: string? }  variable: the one of
---the shell that makes it unknown
function Facts:code(dirs)
  local key = table.concat(dirs, "\0")
  if self.known[key] then return self.known[key] end
  local found = known_first(self, dirs)
  local run = self.git:within(M.BUDGET_MS)
  for _, dir in ipairs(found.state == "clean" and dirs or {}) do
    local repository = git_repository.find(self.fs, dir)
    if repository == false then
      found = UNKNOWN
    elseif repository then
      found = judge(self, run, repository, 1)
    end
    if found.state ~= "clean" then break end
  end
  self.known[key] = found
  return found
end

---Whether git's code on the way to a remote could have been written by a call (git_remote).
---@param dirs string[]
---@return { state: string, file: string?, key: string? }
function Facts:remote(dirs)
  return git_remote.judge({
    facts = self, taken = self.taken, projects = self.projects, program = self.program,
    fs = self.fs, run = self.git:within(M.BUDGET_MS),
    is_plain = known_first(self, dirs).state == "clean",
    repository = git_repository.find, repository_at = git_repository.at, expand = expand,
    settings = list_settings, dirty = dirty,
    submodules = function(run, repository) return submodules(self, run, repository) end,
  }, dirs)
end

---How many tracked files lie at or below a directory.
---@param dir string
---@return integer? count  nil: not known
function Facts:tracked(dir)
  local real = self.fs.realpath(dir)
  local repository = real and git_repository.find(self.fs, real)
  if repository == nil and real then return 0 end
  if not repository then return nil end
  local name = real == repository.root and "." or real:sub(#repository.root + 2)
  local got = self.git:within(M.BUDGET_MS) { root = repository.root,
    git_dirs = repository.git_dirs, max_bytes = INDEX_BYTES,
    args = { "--literal-pathspecs", "ls-files", "-z", "--", name } }
  if not got or got.code ~= 0 then return nil end
  return select(2, got.out:gsub("%z", ""))
end

---The repository of a directory, as efr.perm.git_repository finds it.
M.repository = git_repository.find

local function reals(fs, list)
  local out = {}
  for _, path in ipairs(list) do out[#out + 1] = fs.realpath(path) end
  return out
end

---The facts of one call; answers are kept as long as this object.
---@param deps { fs: table, git: efr.perm.GitPort, home: string, machine: efr.Machine,
---program: (fun(word: string): efr.perm.ProgramSearch)?,
---env: (table<string, string>|false)? }
---env: the hidden shell's variables as efr.shell.hidden gives them; false: not known; nil: the
---environment of the user's git is the port's
---@return efr.perm.GitFacts
function M.new(deps)
  local machine, taken = deps.machine, { "/tmp", "/var/tmp" }
  for _, list in ipairs({ machine.project_roots or {}, machine.write_roots or {},
    machine.own or {}, { machine.scratch } }) do
    for _, path in ipairs(list) do
      taken[#taken + 1] = path
      local real = deps.fs.realpath(path)
      if real and real ~= path then taken[#taken + 1] = real end
    end
  end
  return setmetatable({
    fs = deps.fs, git = deps.git, is_shell = deps.env ~= nil,
    env = deps.env == nil and deps.git.env or deps.env, home = deps.home,
    program = deps.program, taken = taken, known = {},
    projects = reals(deps.fs, machine.project_roots or {}),
  }, Facts)
end

return M
