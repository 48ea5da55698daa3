-- Owns: what a call requires beyond what its tool said: the paths and dangers of its command lines,
-- the real places behind the names, and the facts about them.
-- Must not know: effects, rules, exits; the disk, which is asked through ports.
-- Runs in efrd and efr. Waits where a port waits for git.
--
-- Policy: a fact that a port does not give is missing, and the engine then takes the stricter case.
-- More paths than the limit cannot all be looked at, so the call then counts as one that may read
-- anything.

local helpers = require "efr.perm.data.helpers"
local git_code = require "efr.perm.git_code"
local hidden_names = require "efr.perm.hidden_names"
local line_of = require "efr.perm.line"
local line_paths = require "efr.perm.line_paths"
local list = require "efr.util.list"
local program_search = require "efr.perm.program_search"
local read_only = require "efr.perm.read_only"
local text = require "efr.util.text"

local M = {}

local PATHS_MAX <const> = 256
local PROGRAMS_MAX <const> = 32
local DEEP_MAX <const> = 128

---@class efr.Facts
---@field targets table<string, string>?  "file", "dir", "other" or "missing", by path
---@field tracked table<string, integer>?  tracked files below a directory
---@field git_code { state: string, file: string?, key: string?, variable: string? }?  clean, dirty
---  or unknown
---@field remote_code string?  the same for what git would run on the way to a remote
---@field remote_part string?  what a call could have written of it
---@field remotes table<string, boolean>?  names of the repository's remotes
---@field programs efr.perm.ProgramFact[]?
---@field found table<string, true|string>?  by name: that the shell's PATH leads to no file which
---  may change without a question, or why not; a name that is missing is not trusted
---@field covered boolean?  whether the call's own snapshot covers every file that it can change
---@field covered_paths table<string, boolean>?  paths of which a snapshot holds everything
---@field reals table<string, string>?  of a path that is written: what its name reaches
---@field dangling table<string, boolean>?  of a path that is written: a link on it leads to nothing
---@field parents table<string, string>?  the same with a link at its end not followed
---@field network { mode: string, allow: string[], presets: string[] }?
---@field netview boolean?  which views and filters of the host a contained call has
---@field mount_view boolean?
---@field process_view boolean?
---@field bus_filter boolean?
---@field mounts table<string, boolean>?
---@field always table[]?  `[[sandbox.allow]]`, with `cite`, and `problem` where one covers nothing
---@field more_floors string[]?  floors that only the disk knows: what links of home lead to, PATH
---@field session_bus string[]?

---@class efr.perm.ProgramFact
---@field word string
---@field resolved string?  the file that runs, links followed
---@field builtin boolean?
---@field untrusted string?  why another file than the user's own may run
---@field in_write_root boolean?  it lies where files can change without a question
---@field changed boolean?  it changed since the turn began

---@class efr.perm.FactPorts  each may be missing
---@field stat fun(path: string): string?  "file", "dir", "other", "missing"; follows links
---@field realpath fun(path: string): string?
---@field is_link fun(path: string): boolean
---@field program fun(word: string): efr.perm.ProgramSearch  what PATH has for a name
---@field git_code fun(dirs: string[]): table?  waits for git
---@field remote_code fun(dirs: string[]): table?  waits for git
---@field tracked fun(dir: string): integer?  tracked files below a directory; waits for git
---@field hidden_in fun(dir: string): string[]  files below that projects hide for their names
---@field changed fun(file: string): boolean  whether the file changed since the turn began
---@field mounts fun(): table<string, boolean>?  where file systems are mounted
---@field rebuildable table<string, boolean>?  names of directories that builds make anew

-- Real places -----------------------------------------------------------------------------------

local function parent_of(path)
  return path:match("^(.+)/[^/]*$") or "/"
end

-- The place that a name really reaches: the real path of the deepest part that exists; and whether
-- a link on the way leads to nothing.
local function real_of(ports, path)
  if not ports.realpath then return nil end
  local rest, at, dangles = "", path, false
  for _ = 1, DEEP_MAX do
    local real = ports.realpath(at)
    if real then return (real == "/" and rest ~= "" and "" or real) .. rest, dangles end
    dangles = dangles or ports.is_link ~= nil and ports.is_link(at)
    if at == "/" then return nil end
    rest, at = "/" .. at:match("[^/]*$") .. rest, parent_of(at)
  end
  return nil
end

-- Requirements ----------------------------------------------------------------------------------

local function at_real_place(item, path)
  return { kind = item.kind, path = path, tree = item.tree, unknown = item.unknown,
    below = item.below, contents = item.contents, why = item.why }
end

local function add_paths(ports, declared, out)
  local seen = { read = {}, write = {} }
  for i, item in ipairs(declared) do
    out[#out + 1] = item
    if i > PATHS_MAX then
      out[#out + 1] = { kind = "read", path = "/", tree = true, unknown = true }
      return
    end
    local searched = item.contents and ports.hidden_in
    for _, hidden in ipairs(searched and ports.hidden_in(item.path) or {}) do
      out[#out + 1] = { kind = "read", path = hidden, found = true }
    end
    local same = seen[item.kind]
    local real = not item.unknown and not same[item.path] and real_of(ports, item.path)
    same[item.path] = true
    if real and real ~= item.path then out[#out + 1] = at_real_place(item, real) end
  end
end

local FLAGS <const> = { "network", "interactive", "may_prompt" }

local function add_flags(flags, out)
  for _, name in ipairs(FLAGS) do
    if flags[name] then
      local there = false
      for _, item in ipairs(out) do there = there or item.kind == name end
      if not there then out[#out + 1] = { kind = name } end
    end
  end
end

-- Facts -----------------------------------------------------------------------------------------

local function add_target(ports, targets, path)
  for _ = 1, DEEP_MAX do
    if targets[path] then return end
    local what = ports.stat(path)
    if not what then return end
    targets[path] = what
    if what ~= "missing" or path == "/" then return end
    path = parent_of(path)
  end
end

local function is_in_repository(ports, path)
  local dir = path
  for _ = 1, DEEP_MAX do
    local what = ports.stat(dir == "/" and "/.git" or dir .. "/.git")
    if what ~= "missing" then return true end
    if dir == "/" then return false end
    dir = parent_of(dir)
  end
  return true
end

-- Directories of which nothing is tracked: outside of every repository, or made anew by a build.
local function add_tracked(ports, tracked, path)
  local name = path:match("[^/]*$")
  if ports.rebuildable and ports.rebuildable[name] or not is_in_repository(ports, path) then
    tracked[path] = 0
  elseif ports.tracked then
    tracked[path] = ports.tracked(path)
  end
end

local lexical <const> = text.fold_path

-- The place that a name reaches when a link at its end is not followed.
local function parent_real(ports, path)
  if path == "/" then return path end
  local parent = real_of(ports, parent_of(path))
  return parent and (parent == "/" and "" or parent) .. "/" .. path:match("[^/]*$")
end

local function add_reals(ports, facts, path)
  local real, dangles = real_of(ports, path)
  local parent = parent_real(ports, path)
  if real ~= path then facts.reals[path] = real end
  if dangles then facts.dangling[path] = true end
  if parent ~= path then facts.parents[path] = parent end
end

-- The paths that the model asks for, whose number has a limit of its own.
local function add_needed(ports, facts, needs)
  for _, name in ipairs({ "write", "sockets", "unmask" }) do
    for _, wanted in ipairs(needs[name] or {}) do
      local path = lexical(wanted)
      add_reals(ports, facts, path)
      add_target(ports, facts.targets, facts.reals[path] or path)
      facts.targets[path] = facts.targets[facts.reals[path] or path]
    end
  end
end

local function add_targets(ports, items, facts)
  if not ports.stat then return end
  facts.reals, facts.parents, facts.dangling = {}, {}, {}
  facts.targets, facts.tracked = {}, {}
  local count = 0
  for _, item in ipairs(items) do
    if item.kind == "write" and not item.unknown and count < PATHS_MAX then
      count = count + 1
      local path = lexical(item.path)
      add_target(ports, facts.targets, path)
      add_reals(ports, facts, path)
      if facts.targets[path] == "dir" then add_tracked(ports, facts.tracked, path) end
    elseif item.kind == "needs" then
      add_needed(ports, facts, item.needs)
    end
  end
end

-- Whether a name is trusted, with the names that its program runs in turn.
local function add_found(ports, found, word)
  if found[word] or word:find("/", 1, true) then return end
  local doubt = ports.program(word).doubt
  for _, helper in ipairs(not doubt and helpers[word] or {}) do
    local why = ports.program(helper).doubt
    doubt = doubt or why and ("it may run %s, and %s"):format(helper, why)
  end
  found[word] = doubt or true
end

-- The place of a program that is named by its path.
local function placed(command, cwd)
  local word = command.name
  if not word:find("/", 1, true) or word:sub(1, 1) == "/" then return word end
  return not command.cwd_lost and lexical(cwd .. "/" .. word) or "./" .. word
end

local function add_program(ports, facts, command, seen, cwd)
  local word = command.name
  if not word or seen[word] or #facts.programs >= PROGRAMS_MAX then return end
  seen[word] = true
  local program = { word = word, builtin = command.builtin and true or nil }
  facts.programs[#facts.programs + 1] = program
  if not ports.program then return end
  add_found(ports, facts.found, word)
  if command.builtin then return end
  local known = ports.program(placed(command, cwd))
  program.resolved, program.in_write_root = known.file, known.open
  -- A path names its file whatever PATH holds.
  local by_name = not word:find("/", 1, true)
  program.untrusted = (by_name or known.open) and known.doubt or nil
  if known.file and ports.changed and ports.changed(known.file) then
    program.changed = true
    program.untrusted = program.untrusted or "it changed in this turn"
  end
end

local function add_programs(ports, line, facts, cwd)
  local seen = {}
  for _, command in ipairs(line_of.found(line)) do
    add_program(ports, facts, command, seen, cwd)
    for _, outer in ipairs(command.wrappers or {}) do
      if ports.program then add_found(ports, facts.found, outer) end
    end
  end
end

local UNKNOWN_CODE <const> = { state = "unknown" }

local function add_git_code(ports, line, item, home, facts)
  if not ports.git_code then
    facts.git_code = UNKNOWN_CODE
    return
  end
  local may = line.ast and line.text:find("git", 1, true)
  if not may or not read_only.uses_git(line.ast) then return end
  local places = line_paths.git_places(line.ast,
    { cwd = item.cwd, home = home, commands = line_of.found(line) })
  local found = places and ports.git_code(places) or UNKNOWN_CODE
  -- Of several lines the worst counts.
  if not facts.git_code or found.state ~= "clean" then facts.git_code = found end
end

-- git's subcommands that run its own code on the way to a remote.
local REMOTE <const> = {
  push = true, ["send-pack"] = true, ["send-email"] = true, fetch = true, pull = true,
  clone = true, ["ls-remote"] = true, remote = true, submodule = true, archive = true,
}
-- With these git works in another place than the shell.
local ELSEWHERE <const> = { "^%-C", "^%-%-git%-dir", "^%-%-work%-tree", "^%-%-namespace" }

local function reaches_remote(command)
  if command.name ~= "git" then return false end
  local reaches, elsewhere = false, false
  for _, word in ipairs(command.words) do
    local text_of = word.text
    reaches = reaches or text_of == nil or REMOTE[text_of] == true
    for _, pattern in ipairs(text_of and ELSEWHERE or {}) do
      elsewhere = elsewhere or text_of:find(pattern) ~= nil
    end
  end
  return reaches, elsewhere
end

local function add_remote_code(ports, line, item, home, facts)
  local any, elsewhere = false, false
  for _, command in ipairs(ports.remote_code and line_of.found(line) or {}) do
    local reaches, away = reaches_remote(command)
    any, elsewhere = any or reaches, elsewhere or reaches and away
  end
  if not any then return end
  local places = line.ast and not elsewhere and line_paths.git_places(line.ast,
    { cwd = item.cwd, home = home, commands = line_of.found(line) })
  local found = places and ports.remote_code(places) or UNKNOWN_CODE
  if not facts.remote_code or found.state ~= "clean" then
    facts.remote_code, facts.remote_part = found.state, found.file
    facts.remotes = found.remotes
  end
end

---What a call requires, with what its lines declare, and the facts about it.
---@param ports efr.perm.FactPorts
---@param requirements table[]  what the tool declared
---@param home string
---@return table[] requirements
---@return efr.Facts facts
---@return table<string, efr.perm.Line> lines  by their text
function M.collect(ports, requirements, home)
  local out, lines = list.copy(requirements), {}
  local facts = { programs = {}, found = {} }
  for _, item in ipairs(requirements) do
    if item.kind == "line" then
      local line = line_of.read(item.text)
      lines[item.text] = line
      local declared, flags
      if line.ast then
        declared, flags = line_paths.declare(line.ast,
          { cwd = item.cwd, home = home, commands = line_of.found(line) })
      else
        declared, flags = line_paths.opaque(item.text)
      end
      add_paths(ports, declared, out)
      add_flags(flags, out)
      add_programs(ports, line, facts, item.cwd)
      add_git_code(ports, line, item, home, facts)
      add_remote_code(ports, line, item, home, facts)
    end
  end
  add_targets(ports, out, facts)
  return out, facts, lines
end

-- Ports -----------------------------------------------------------------------------------------

local NOT_THERE <const> = { ENOENT = true, ENOTDIR = true }
local HIDDEN_ENTRIES_MAX <const> = 20000

local function depth_of(path, root)
  return select(2, path:sub(#root + 1):gsub("/[^/]", ""))
end

-- Searches one directory and what lies below it, nearest first.
local function search(fs, start, depth, matches, out)
  local level, left = { start }, HIDDEN_ENTRIES_MAX
  for _ = 1, depth do
    local below = {}
    for _, dir in ipairs(level) do
      for _, entry in ipairs(left > 0 and fs.readdir(dir) or {}) do
        left = left - 1
        if matches(entry.name) then
          out[#out + 1] = dir .. "/" .. entry.name
        elseif entry.type == "dir" and not hidden_names.SKIP[entry.name] then
          below[#below + 1] = dir .. "/" .. entry.name
        end
      end
    end
    level = below
  end
end

local function hidden_in(fs, machine)
  local matches = hidden_names.matcher(machine.mask_globs or {})
  return function(dir)
    local out = {}
    dir = lexical(dir)
    for _, root in ipairs(machine.project_roots or {}) do
      if dir == root or text.starts_with(root, dir == "/" and "/" or dir .. "/") then
        search(fs, root, hidden_names.DEPTH, matches, out)
      elseif text.starts_with(dir, root .. "/") then
        search(fs, dir, hidden_names.DEPTH - depth_of(dir, root), matches, out)
      end
    end
    return out
  end
end

local MOUNTINFO_MAX <const> = 4 * 1024 * 1024

local function from_octal(digits)
  return string.char(tonumber(digits, 8))
end

-- The mount points of this process; what cannot be read is not known.
local function mounts(fs)
  return function()
    local info = fs.read_file("/proc/self/mountinfo", MOUNTINFO_MAX)
    if not info then return nil end
    local out = {}
    for path in info:gmatch("%d+ %d+ [%d:]+ /[^ ]* (/[^ ]*) [^\n]*") do
      out[path:gsub("\\(%d%d%d)", from_octal)] = true
    end
    return out
  end
end

---The facts that the disk gives.
---@param fs table  port
---@param path_variable string?  PATH of the shell that will run the line; nil: not known
---@param machine efr.Machine
---@param git efr.perm.GitPort?  without it nothing is known of git
---@param git_env (table<string, string>|false)?  of the shell that will run the line; false: not
---known; nil: the port's
---@return efr.perm.FactPorts
function M.ports(fs, path_variable, machine, git, git_env)
  local program = program_search.new(fs, path_variable, machine)
  local of_git = git and git_code.new {
    fs = fs, git = git, home = machine.home, machine = machine, program = program,
    env = git_env,
  }
  return {
    hidden_in = hidden_in(fs, machine),
    git_code = of_git and function(dirs) return of_git:code(dirs) end,
    remote_code = of_git and function(dirs) return of_git:remote(dirs) end,
    tracked = of_git and function(dir) return of_git:tracked(dir) end,
    stat = function(path)
      local info, _, code = fs.stat(path)
      if info then
        return (info.type == "file" or info.type == "dir") and info.type or "other"
      end
      return NOT_THERE[code] and "missing" or nil
    end,
    realpath = function(path) return (fs.realpath(path)) end,
    is_link = function(path)
      local info = fs.lstat(path)
      return info ~= nil and info.type == "link"
    end,
    program = program,
    mounts = mounts(fs),
    rebuildable = list.set(machine.rebuildable or {}),
  }
end

return M
