-- Owns: the second check of a call with exits, right before it starts: whether what was decided is
-- still what would happen.
-- Must not know: who decided, how the call starts. Runs in efrd, in the turn's task; waits for git.
--
-- Policy: time passes between the decision and the start, most of it while a person reads. So each
-- thing that the decision rests on has a stamp: what a name leads to, which file, link, socket or
-- device that is, and of a file its content as far as size and times tell. The facts are taken and
-- the exits found once more, too. Any difference ends the call, and the model reads what changed.

local call_facts = require "efr.conv.call_facts"
local engine = require "efr.perm.engine"
local exit_who = require "efr.perm.exit_who"
local git_code = require "efr.perm.git_code"
local line_paths = require "efr.perm.line_paths"
local perm_line = require "efr.perm.line"
local text = require "efr.util.text"

local M = {}

local PATHS_MAX <const> = 512
local GIT_MS <const> = 5000 -- a busy machine is no changed setting
local GIT_BYTES <const> = 1024 * 1024
local DEEP_MAX <const> = 128

-- Stamps -----------------------------------------------------------------------------------------

-- What a name is: only of regular files does the content count.
local function identity(info)
  local content = info.type == "file" and ("%s:%s"):format(info.size, info.mtime_us) or ""
  return ("%s %s %s %s %s %s"):format(info.type, info.dev, info.ino, info.mode, info.uid, content)
end

-- The change time, which no program can set.
local function change_time(uv, path)
  local info = uv and uv.fs_stat(path)
  if not info or info.type ~= "file" then return "" end
  return (" %d.%d"):format(info.ctime.sec, info.ctime.nsec)
end

-- The deepest part of a path that is there, for one that is missing.
local function parent_of_missing(ports, path)
  for _ = 1, DEEP_MAX do
    path = path:match("^(.+)/[^/]*$") or "/"
    local info = ports.fs.stat(path)
    if info then return ("%s %s"):format(ports.fs.realpath(path), identity(info)) end
    if path == "/" then break end
  end
  return "nothing"
end

local function stamp(ports, path)
  local fs = ports.fs
  local own = fs.lstat(path)
  if not own then return "missing below " .. parent_of_missing(ports, path) end
  local real, info = fs.realpath(path), fs.stat(path)
  if not real or not info then return "dangling " .. identity(own) end
  return ("%s = %s %s%s"):format(identity(own), real, identity(info),
    change_time(ports.uv, path))
end

local function add_path(paths, path, cwd)
  if type(path) ~= "string" or path == "" or path:find("\0", 1, true) then return end
  if path:sub(1, 1) ~= "/" then path = cwd .. "/" .. path end
  path = text.fold_path(path)
  if paths[path] or paths.count >= PATHS_MAX then return end
  paths[path], paths.count = true, paths.count + 1
end

local function add_needed(paths, needs, cwd)
  for _, name in ipairs({ "write", "sockets", "unmask" }) do
    for _, path in ipairs(needs[name] or {}) do add_path(paths, path, cwd) end
  end
end

-- Every path that the decision rests on.
local function paths_of(call)
  local paths, cwd = { count = 0 }, call.ctx.cwd
  for _, item in ipairs(call.requirements) do
    if item.path and not item.unknown then add_path(paths, item.path, cwd) end
    if item.kind == "needs" then add_needed(paths, item.needs, cwd) end
  end
  for _, exit in ipairs(call.decision.exits) do
    for _, grant in ipairs(exit.grants) do
      add_path(paths, grant.write or grant.unmask or grant.socket or grant.device, cwd)
    end
  end
  for _, program in ipairs(call.facts.programs or {}) do add_path(paths, program.resolved, cwd) end
  paths.count = nil
  return paths
end

-- git --------------------------------------------------------------------------------------------

local REMOTE <const> = { host = true, upload = true, outside = true }

-- The line of a call that may reach a remote by git.
local function git_line(call)
  for _, exit in ipairs(call.decision.exits) do
    local line = REMOTE[exit.kind] and call.lines and call.lines[call.input.command]
    if line and line.ast and line.text:find("git", 1, true) then return line end
  end
  return nil
end

-- The settings of the repositories that the line's git commands use: remotes and their addresses.
local function git_settings(turn, call)
  local line = git_line(call)
  if not line then return nil end
  local dirs = line_paths.git_places(line.ast,
    { cwd = call.ctx.cwd, home = turn.home, commands = perm_line.found(line) })
  local out = {}
  for _, dir in ipairs(dirs or {}) do
    local repository = git_code.repository(turn.app.ports.fs, dir)
    local got = repository and turn.app.git:within(GIT_MS) { root = repository.root,
      git_dirs = repository.git_dirs, args = { "config", "--list", "-z" }, max_bytes = GIT_BYTES }
    out[#out + 1] = got and got.code == 0 and got.out or "unknown"
  end
  return table.concat(out, "\0\0")
end

-- The decision once more -------------------------------------------------------------------------

local function words_of_exit(exit)
  local out = { exit.kind, exit.target, exit.launch, exit.approver }
  for _, grant in ipairs(exit.grants) do out[#out + 1] = exit_who.grant_text(grant) end
  return table.concat(out, " ")
end

local function words_of_program(program)
  return ("%s %s %s"):format(program.word, program.resolved or "-", program.untrusted or "-")
end

-- The first difference of two lists, in words.
local function difference(before, after, words)
  for i = 1, math.max(#before, #after) do
    local one, other = before[i] and words(before[i]), after[i] and words(after[i])
    if one ~= other then return (other or one):gsub("%z", "?") end
  end
  return nil
end

-- Grants of desktop sockets are found after the decision, so they are no part of what is compared.
local function comparable(exits)
  local out = {}
  for i, exit in ipairs(exits) do
    local late = exit.kind == "desktop_ipc"
    out[i] = late and setmetatable({ grants = {} }, { __index = exit }) or exit
  end
  return out
end

local function decide_again(turn, call)
  local probe = setmetatable({}, { __index = call })
  call_facts.collect(turn, probe, call.declared)
  -- Who has said yes has done so whatever a rule that is saved meanwhile covers.
  if call.decision.effect == "ask" then probe.facts.always = call.facts.always end
  local input = setmetatable({
    requirements = probe.requirements, facts = probe.facts, lines = probe.lines,
    rules = turn.app.config:get("permissions.rules"),
  }, { __index = call.decided })
  local decision = engine.decide(input)
  if decision.effect ~= call.decision.effect or decision.launch ~= call.decision.launch then
    return "how the call would run"
  end
  -- A person may have been told of one writable part, and now it is another.
  if call.facts.remote_code ~= probe.facts.remote_code
    or call.facts.remote_part ~= probe.facts.remote_part then
    return "the code that git runs"
  end
  return difference(comparable(call.decision.exits), comparable(decision.exits), words_of_exit)
    or difference(call.facts.programs or {}, probe.facts.programs or {}, words_of_program)
end

-- The check --------------------------------------------------------------------------------------

---Stamps what the decision on a call rests on.
---@param turn efr.Turn
---@param call table  with exits that are about to be decided
function M.take(turn, call)
  local stamps = {}
  for path in pairs(paths_of(call)) do stamps[path] = stamp(turn.app.ports, path) end
  call.stamps, call.git_settings = stamps, git_settings(turn, call)
end

---Whether everything still has its stamp. Does not wait.
---@param turn efr.Turn
---@param call table
---@return boolean ok
---@return string? why
function M.same(turn, call)
  for path, was in pairs(call.stamps) do
    if stamp(turn.app.ports, path) ~= was then
      return false, path .. " changed since this call was decided"
    end
  end
  return true
end

---The whole second check.
---@param turn efr.Turn
---@param call table
---@return boolean ok
---@return string? why
function M.again(turn, call)
  local ok, why = M.same(turn, call)
  if not ok then return false, why end
  if git_settings(turn, call) ~= call.git_settings then
    return false, "git's settings changed since this call was decided"
  end
  why = decide_again(turn, call)
  if why then return false, why .. " changed since this call was decided" end
  return true
end

---Stamps anew what efr itself has just made.
---@param turn efr.Turn
---@param call table
---@param made string[]
function M.renew(turn, call, made)
  for _, path in ipairs(made) do
    for other in pairs(call.stamps) do
      local above = text.starts_with(path, other == "/" and "/" or other .. "/")
      local real = turn.app.ports.fs.realpath(other)
      if other == path or real == path or above or text.starts_with(other, path .. "/") then
        call.stamps[other] = stamp(turn.app.ports, other)
      end
    end
  end
end

return M
