-- Owns: what a path is: its normal form, its class, secrets, sealed places, masks, the project.
-- Must not know: the disk (links are resolved by the caller, which declares both names), rules or
-- modes.
-- Runs in efrd, on the loop thread. Pure.
--
-- Policy: the target path decides, never the working directory. Everything is compared by whole
-- components, so /home/u/.sshx is not below /home/u/.ssh. Order: secret, scratch, config roots,
-- below home, system; then a `.git` component makes configuration of what would be free to write.

local hidden_names = require "efr.perm.hidden_names"
local list = require "efr.util.list"
local text = require "efr.util.text"

local M = {}

local SLASH <const> = 47
-- Paths of which a machine keeps what they are.
local KNOWN_MAX <const> = 256

local byte, find, sub = string.byte, string.find, string.sub

-- Below the home directory, with everything under them.
local HOME_SECRETS <const> = {
  ".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".netrc", ".aws/credentials",
  ".aws/sso/cache", ".azure", ".config/gcloud", ".docker/config.json", ".kube/config",
  ".codex/auth.json", ".git-credentials", ".config/gh/hosts.yml", ".npmrc", ".pypirc",
  ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".vault-token",
  ".terraform.d/credentials.tfrc.json", ".config/hub", ".config/github-copilot", ".gcm",
}
local SYSTEM_SECRETS <const> = { "/etc/shadow", "/etc/gshadow" }
-- Below /proc/<anything>/ and /proc/<p>/task/<t>/: other views of memory, environment and files.
local PROC_SECRETS <const> = {
  environ = true, root = true, cwd = true, fd = true, map_files = true, mem = true,
}
-- Directories of which every contained call has its own.
local PRIVATE_DIRS <const> = { "/tmp", "/var/tmp", "/dev/shm" }
-- Dot entries of the home directory that hold data, not configuration.
local DATA_DIRS <const> = { ".local/share", ".local/state", ".cache" }

-- Normal form ----------------------------------------------------------------------------------

-- nil: no absolute path.
local function lexical(path)
  if path:byte() ~= SLASH or path:find("\0", 1, true) then return nil end
  return text.fold_path(path)
end

---Whether path is dir or below it. Both in normal form.
---@param path string
---@param dir string
---@return boolean
function M.within(path, dir)
  if dir == "/" or path == dir then return true end
  local size = #dir
  return byte(path, size + 1) == SLASH and sub(path, 1, size) == dir
end

---Whether path is strictly below dir.
---@param path string
---@param dir string
---@return boolean
function M.below(path, dir)
  return path ~= dir and M.within(path, dir)
end

-- The home directory in normal form. A wrong machine is a bug of the caller and raises, which the
-- engine turns into a denial.
local function home_of(machine)
  local home = lexical(machine.home)
  assert(home and home ~= "/", "the home directory is / or not absolute")
  return home
end

local function overlap(a, b)
  return M.within(a, b) or M.within(b, a)
end

local function aliases_of(machine, home)
  local out = {}
  for _, alias in ipairs(machine.aliases or {}) do
    local normal = lexical(alias)
    assert(normal and normal ~= "/", "an alias of the home directory is / or not absolute")
    if normal ~= home then
      assert(not overlap(normal, home), "an alias of the home directory overlaps it")
      for j = 1, #out do assert(not overlap(normal, out[j]), "two aliases overlap") end
      out[#out + 1] = normal
    end
  end
  return out
end

---@class efr.Machine
---@field home string  the user's home directory
---@field aliases string[]?  other names of it, such as its resolved form
---@field scratch string?  the conversation's $SCRATCH
---@field config_roots string[]?  directories that count as configuration
---@field secrets_dir string?  efr's own credentials: sealed
---@field secret_paths string[]?  more secrets of the user's choice
---@field write_sealed string[]?  efr's configuration and the files behind its links
---@field own string[]?  the directories that efr keeps its own things in
---@field masks string[]?  what the sandbox hides although it is no secret
---@field mask_globs string[]?  names that are hidden in every project
---@field project_roots string[]?  every registered project
---@field write_projects string?  "turn": a call may write only its own project (setting)
---@field write_roots string[]?  more directories that a contained call may write (setting)
---@field caches string[]?  tool caches that a contained call sees as its own
---@field synced string[]?  directories that another machine sees
---@field floors {path: string, group: string}[]?  more places that stay read-only
---@field rebuildable string[]?  names of directories that builds make anew

local Prepared = {}

-- Lists in which a path is looked up often, each with a bit of its own.
local BITS <const> = {
  secrets = 1, sealed = 2, write_sealed = 4, masks = 8, scratch = 16, config_roots = 32,
}

-- Marks each place of a list with its bit, and gives the list `above`: a set of all directories
-- above one of its places.
local function index(places, marks, bit)
  local above = {}
  for i = 1, #places do
    local path = places[i]
    marks[path] = (marks[path] or 0) | bit
    if path ~= "/" then above["/"] = true end
    local slash = path:find("/", 2, true)
    while slash do
      above[path:sub(1, slash - 1)] = true
      slash = path:find("/", slash + 1, true)
    end
  end
  places.above = above
end

local function rewrite(normal, prepared)
  local aliases = prepared.aliases
  for i = 1, #aliases do
    local alias = aliases[i]
    if M.within(normal, alias) then return prepared.home .. normal:sub(#alias + 1) end
  end
  return normal
end

-- A list of the machine in normal form; what is no absolute path drops out.
local function normal_list(items, prepared)
  local out = {}
  for _, path in ipairs(items or {}) do
    local normal = lexical(path)
    if normal then out[#out + 1] = rewrite(normal, prepared) end
  end
  return out
end

-- `/`, the home directory and what is above it never count as a project or another write root.
local function roots_of(items, prepared)
  return list.filter(normal_list(items, prepared), function(root)
    return not M.within(prepared.home, root)
  end)
end

-- Where a contained call may write.
local function envelope_of(machine, prepared)
  local out = normal_list(PRIVATE_DIRS, prepared)
  list.extend(out, roots_of(machine.caches, prepared))
  list.extend(out, roots_of(machine.write_roots, prepared))
  if machine.write_projects ~= "turn" then list.extend(out, prepared.project_roots) end
  return out
end

local function floors_of(machine, prepared)
  local out = {}
  for _, floor in ipairs(machine.floors or {}) do
    local normal = lexical(floor.path)
    if normal then out[#out + 1] = { path = rewrite(normal, prepared), group = floor.group } end
  end
  return out
end

-- What a machine that will not change any more was prepared to; false: not yet.
local SETTLED <const> = setmetatable({}, { __mode = "k" })

---Says that a machine will not change any more, so that it is prepared once.
---@param machine efr.Machine
function M.settle(machine)
  SETTLED[machine] = SETTLED[machine] or false
end

---The machine with every path in normal form. Each function here takes either; preparing once
---saves the work of doing it for each path.
---@param machine efr.Machine
---@return table prepared
function M.prepare(machine)
  if getmetatable(machine) == Prepared then return machine end
  if SETTLED[machine] then return SETTLED[machine] end
  local home = home_of(machine)
  local out = setmetatable({ home = home, aliases = aliases_of(machine, home) }, Prepared)
  out.scratch = normal_list({ machine.scratch }, out)
  out.config_roots = normal_list(machine.config_roots, out)
  out.sealed = normal_list({ machine.secrets_dir }, out)
  out.write_sealed = normal_list(machine.write_sealed, out)
  out.own = normal_list(machine.own, out)
  out.masks = normal_list(machine.masks, out)
  out.hides = machine.mask_globs and hidden_names.matcher(machine.mask_globs)
  out.synced = normal_list(machine.synced, out)
  out.project_roots = roots_of(machine.project_roots, out)
  out.envelope = envelope_of(machine, out)
  out.floors = floors_of(machine, out)
  out.secrets = normal_list(machine.secret_paths, out)
  for _, name in ipairs(HOME_SECRETS) do out.secrets[#out.secrets + 1] = home .. "/" .. name end
  for _, path in ipairs(SYSTEM_SECRETS) do out.secrets[#out.secrets + 1] = path end
  out.secrets[#out.secrets + 1] = out.sealed[1]
  out.marks, out.known, out.known_count = {}, {}, 0
  for name, bit in pairs(BITS) do index(out[name], out.marks, bit) end
  if SETTLED[machine] == false then SETTLED[machine] = out end
  return out
end

---The normal form: lexical, with every alias of the home directory rewritten to the home
---directory.
---@param path string
---@param machine efr.Machine
---@return string? normal  nil when the path is not absolute
function M.normalise(path, machine)
  local normal = lexical(path)
  return normal and rewrite(normal, M.prepare(machine))
end

-- The marks of a path and of everything above it.
local function marks_of(path, prepared)
  local marks = prepared.marks
  local out = (marks["/"] or 0) | (marks[path] or 0)
  local slash = find(path, "/", 2, true)
  while slash do
    out = out | (marks[sub(path, 1, slash - 1)] or 0)
    slash = find(path, "/", slash + 1, true)
  end
  return out
end

-- What one path was found to be, kept because a decision asks for it again and again.
local function known_of(path, prepared)
  local known = prepared.known[path]
  if known then return known end
  if prepared.known_count >= KNOWN_MAX then prepared.known, prepared.known_count = {}, 0 end
  known = { marks = marks_of(path, prepared) }
  prepared.known[path], prepared.known_count = known, prepared.known_count + 1
  return known
end

-- Whether a path is at or below a place with this bit.
local function is_marked(path, machine, bit)
  return known_of(path, M.prepare(machine)).marks & bit ~= 0
end

-- Whether one of the places lies strictly below a directory.
local function any_below(dir, places)
  return places.above[dir] == true
end

-- Secrets --------------------------------------------------------------------------------------

local function proc_secret(path)
  if sub(path, 1, 6) ~= "/proc/" then return false end
  local rest = path:match("^/proc/[^/]+/(.+)$")
  if not rest then return false end
  if PROC_SECRETS[rest:match("^[^/]+")] then return true end
  local name = rest:match("^task/[^/]+/([^/]+)")
  return name ~= nil and PROC_SECRETS[name] == true
end

-- A tree that reaches the environment of a process.
local function proc_tree(path)
  return path == "/" or path == "/proc" or path:find("^/proc/[^/]+$") ~= nil
    or path:find("^/proc/[^/]+/task$") ~= nil or path:find("^/proc/[^/]+/task/[^/]+$") ~= nil
end

---The secret places of a machine, but for those of /proc. Whoever can see the disk adds what they
---resolve to to machine.secret_paths.
---@param machine efr.Machine
---@return string[]
function M.secrets(machine)
  return list.copy(M.prepare(machine).secrets)
end

---Whether the path is a secret or below one.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.is_secret(path, machine)
  return proc_secret(path) or is_marked(path, machine, BITS.secrets)
end

---Whether a secret lies strictly below the path.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.holds_secret(path, machine)
  return proc_tree(path) or any_below(path, M.prepare(machine).secrets)
end

---The secret places strictly below a path, and whether a process's environment is there too.
---@param path string  in normal form
---@param machine efr.Machine
---@return string[] secrets
---@return boolean proc
function M.secrets_below(path, machine)
  local out = {}
  for _, secret in ipairs(M.prepare(machine).secrets) do
    if M.below(secret, path) then out[#out + 1] = secret end
  end
  return out, proc_tree(path)
end

---Whether a contained call may write the path: strictly below a root that is not read-only to it.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.is_enveloped(path, machine)
  machine = M.prepare(machine)
  local known = known_of(path, machine)
  if known.enveloped == nil then
    known.enveloped = false
    for _, root in ipairs(machine.envelope) do
      known.enveloped = known.enveloped or M.below(path, root)
    end
  end
  return known.enveloped
end

---Whether the path is efr's own credentials: no rule opens them.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.is_sealed(path, machine)
  return is_marked(path, machine, BITS.sealed)
end

---Whether the path is efr's configuration: no tool writes it.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.is_write_sealed(path, machine)
  return is_marked(path, machine, BITS.write_sealed)
end

---Whether efr's configuration lies strictly below the path.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.holds_write_sealed(path, machine)
  return any_below(path, M.prepare(machine).write_sealed)
end

-- A file of a registered project that is hidden for its name.
local function has_hidden_name(path, machine)
  if not machine.hides then return false end
  for _, root in ipairs(machine.project_roots) do
    if M.below(path, root) and hidden_names.covers(path, root, machine.hides) then return true end
  end
  return false
end

---Whether the sandbox hides the path although it is no secret.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.is_masked(path, machine)
  machine = M.prepare(machine)
  local known = known_of(path, machine)
  if known.masked == nil then
    known.masked = known.marks & BITS.masks ~= 0 or has_hidden_name(path, machine)
  end
  return known.masked
end

---Whether something that the sandbox hides lies strictly below the path, as far as its place is
---known. Files that are hidden for their names are found on the disk.
---@param path string  in normal form
---@param machine efr.Machine
---@return boolean
function M.holds_masked(path, machine)
  return any_below(path, M.prepare(machine).masks)
end

-- Classes --------------------------------------------------------------------------------------

local function home_class(path, home)
  if not M.below(path, home) then return "user_data" end
  local rest = path:sub(#home + 2)
  if rest:sub(1, 1) ~= "." then return "user_data" end
  for _, dir in ipairs(DATA_DIRS) do
    if M.within(path, home .. "/" .. dir) then return "user_data" end
  end
  return "user_config"
end

local function plain_class(path, machine, marks)
  if marks & BITS.scratch ~= 0 then return "scratch" end
  if marks & BITS.config_roots ~= 0 then return "user_config" end
  if M.within(path, machine.home) then return home_class(path, machine.home) end
  return "system"
end

local function has_git(path)
  return find(path, "/.git/", 1, true) ~= nil or sub(path, -5) == "/.git"
end

local function class_of(path, machine, marks)
  if proc_secret(path) or marks & BITS.secrets ~= 0 then return "secrets" end
  local class = plain_class(path, machine, marks)
  local free = class == "scratch" or class == "user_data"
  return free and has_git(path) and "user_config" or class
end

---The class of a path.
---@param path string  in normal form
---@param machine efr.Machine
---@return string class  "scratch", "user_config", "user_data", "system" or "secrets"
function M.class(path, machine)
  machine = M.prepare(machine)
  local known = known_of(path, machine)
  if not known.class then known.class = class_of(path, machine, known.marks) end
  return known.class
end

---Whether a directory can count as a project: `/`, the home directory and what is above it
---never do.
---@param root string
---@param machine efr.Machine
---@return string? normal  the root in normal form; nil when it does not count
function M.project_root(root, machine)
  machine = M.prepare(machine)
  local normal = M.normalise(root, machine)
  if not normal or M.within(machine.home, normal) then return nil end
  return normal
end

return M
