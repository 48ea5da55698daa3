-- Owns: whether what git would run on the way to a remote (`remote_code`), with the user's keys,
-- could have been written by a call: its hooks, the programs of its settings, ssh.
-- Must not know: how git is run and its settings are read (the caller's functions).
-- Runs in efrd and efr, in the task of its caller; waits for git.
--
-- Policy: a part is writable when it lies in a project, in a scratch directory, in a write root or
-- where every process writes. Settings and hooks of a project's own git directory, and of its
-- submodules' there, are read-only in each call, so they count as the user's; what they name may
-- lie in the project all the same. Whatever cannot be told is unknown, and then the user decides.

local git_keys = require "efr.perm.git_keys"
local paths = require "efr.perm.paths"

local M = {}

local SUBMODULES_DEEP <const> = 4
local EXECUTABLE <const> = 73 -- 0111
local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }
local CLEAN <const>, UNKNOWN <const> = { state = "clean" }, { state = "unknown" }

-- Whether the settings and hooks of a repository are floors of every call.
local function is_kept(ask, repository)
  for _, project in ipairs(ask.projects) do
    if repository.root == project or paths.within(repository.common, project .. "/.git") then
      return true
    end
  end
  return false
end

local function is_writable(ask, path)
  local real = ask.fs.realpath(path) or path
  for _, place in ipairs(ask.taken) do
    if paths.within(path, place) or paths.within(real, place) then return true end
  end
  return false
end

-- Whether a file of a repository that is kept is one of those that are.
local function is_writable_file(ask, repository, kept, path)
  if kept and paths.within(ask.fs.realpath(path) or path, repository.common) then return false end
  return is_writable(ask, path)
end

local function file_of(repository, name)
  return name:sub(1, 1) == "/" and name or repository.root .. "/" .. name
end

-- A program or file in the words of a value that a call could have written.
local function writable_word(ask, repository, value)
  for word in value:gmatch("[^%s'\"!;&|()]+") do
    local path = ask.expand(ask.facts, word)
    if not path and word:find("/", 1, true) and not word:find("://", 1, true) then
      path = repository.root .. "/" .. word
    end
    if path and is_writable(ask, path) then return path end
    if not path and ask.program and ask.program(word).doubt then return word end
  end
  return nil
end

local function judge_setting(ask, repository, kept, setting)
  local key, value = setting.entry.key, setting.entry.value or ""
  if setting.scope == "command" or not git_keys.runs_code(setting.entry) then return nil end
  local file = file_of(repository, setting.file)
  if is_writable_file(ask, repository, kept, file) then return ask.dirty(file, key) end
  local section, _, variable = git_keys.split(key)
  if key == "core.hookspath" then
    local dir = ask.expand(ask.facts, value) or repository.root .. "/" .. value
    -- The hooks directory of a project is a floor of every call too.
    if not kept and is_writable(ask, dir) then return ask.dirty(dir, key) end
  elseif not (variable == "path" and (section == "include" or section == "includeif")) then
    local part = writable_word(ask, repository, value)
    if part then return ask.dirty(part, key) end
  end
  return nil
end

-- Remotes ---------------------------------------------------------------------------------------

-- The directory that an address names; nil for a host.
local function directory_of(ask, repository, address)
  local path = address:match("^file://[^/]*(/.*)$") or address
  if path:find("^%a[%w+.-]*:") or path:find("^[^/]+:") then return nil end
  return ask.expand(ask.facts, path) or file_of(repository, path)
end

local PUSHES_TO <const> = { pushdefault = true, pushremote = true, remote = true }

-- What settings name: remotes, and addresses with their key; some are names of remotes.
local function addresses_of(settings)
  local names, addresses = {}, {}
  for _, setting in ipairs(settings) do
    local value = setting.entry.value or ""
    local section, name, variable = git_keys.split(setting.entry.key)
    local is_url = section == "remote" and (variable == "url" or variable == "pushurl")
    if is_url then names[name] = true end
    local is_name = (section == "remote" or section == "branch") and PUSHES_TO[variable]
    if is_url or is_name then
      addresses[#addresses + 1] = { value = value, key = setting.entry.key, is_name = is_name }
    end
  end
  return names, addresses
end

-- The names of the remotes, and what is wrong with a directory among them.
local function judge_remotes(ask, repository)
  local settings = ask.settings(ask.facts, ask.run, repository)
  local names, addresses = addresses_of(settings or {})
  for _, address in ipairs(addresses) do
    local is_known = address.is_name and (names[address.value] or address.value == ".")
    local dir = not is_known and directory_of(ask, repository, address.value)
    if dir and is_writable(ask, dir) then return names, ask.dirty(dir, address.key) end
  end
  return names, nil
end

-- Where the hooks are, as the settings say.
local function hooks_dir(ask, repository, settings)
  local dir = repository.common .. "/hooks"
  for _, setting in ipairs(settings) do
    if setting.scope ~= "command" and setting.entry.key == "core.hookspath" then
      local value = setting.entry.value or ""
      dir = ask.expand(ask.facts, value) or repository.root .. "/" .. value
    end
  end
  return dir
end

local function judge_hooks(ask, repository, kept, settings)
  local dir = hooks_dir(ask, repository, settings)
  local entries, _, code = ask.fs.readdir(dir)
  if not entries then return not NOT_THERE[code] and UNKNOWN or nil end
  for _, entry in ipairs(entries) do
    local path = dir .. "/" .. entry.name
    local info = not entry.name:find("%.sample$") and ask.fs.stat(path)
    if info and info.type == "file" and info.mode & EXECUTABLE ~= 0 then
      local real = ask.fs.realpath(path) or path
      local is_floor = kept and paths.within(real, ask.fs.realpath(dir) or dir)
      if not is_floor and is_writable(ask, path) then return ask.dirty(path, "a hook") end
    end
  end
  return nil
end

local judge

local function judge_submodules(ask, repository, depth)
  local names = ask.submodules(ask.run, repository)
  if not names then return UNKNOWN end
  for _, name in ipairs(names) do
    local dir = repository.root .. "/" .. name
    local real, _, code = ask.fs.realpath(dir)
    if not real and not NOT_THERE[code] or real and real ~= dir then return UNKNOWN end
    local inner = real and ask.repository_at(ask.fs, real)
    if inner == false or inner and depth >= SUBMODULES_DEEP then return UNKNOWN end
    local found = inner and judge(ask, inner, depth + 1)
    if found and found.state ~= "clean" then return found end
  end
  return CLEAN
end

function judge(ask, repository, depth)
  local kept = is_kept(ask, repository)
  if #repository.git_dirs == 0 and ask.fs.lstat(repository.common .. "/commondir") then
    return UNKNOWN
  end
  local settings = ask.settings(ask.facts, ask.run, repository)
  if not settings then return UNKNOWN end
  for _, setting in ipairs(settings) do
    local found = judge_setting(ask, repository, kept, setting)
    if found then return found end
  end
  return judge_hooks(ask, repository, kept, settings) or judge_submodules(ask, repository, depth)
end

---Whether git's own code in these directories could have been written by a call.
---@param ask table  what efr.perm.git_code gives: places and its functions
---@param dirs string[]
---@return { state: string, file: string?, key: string?, remotes: table<string, boolean>? }
---remotes: their names, where everything is clean and there is one directory
function M.judge(ask, dirs)
  if #dirs == 0 or not ask.is_plain then return UNKNOWN end
  local doubt = ask.program and ask.program("ssh").doubt
  if doubt then return ask.dirty("ssh", doubt) end
  local remotes
  for _, dir in ipairs(dirs) do
    local repository = ask.repository(ask.fs, dir)
    if not repository then return UNKNOWN end
    local found = judge(ask, repository, 1)
    if found.state ~= "clean" then return found end
    local names, dirty = judge_remotes(ask, repository)
    if dirty then return dirty end
    remotes = names
  end
  return { state = "clean", remotes = #dirs == 1 and remotes or nil }
end

return M
