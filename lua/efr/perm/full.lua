-- Owns: the delete guard of full mode: which deletes it asks about.
-- Must not know: the disk, how the question is asked.
-- Runs in efrd and efr. Pure.
--
-- Policy: tables.md 4. What a word of a delete may mean counts: an unknown beginning may be
-- anything, and a pattern stands for everything in its directory. A file is overwritten as a whole
-- by `>`, cp, mv, install, ln -f and tee where it is there already. A name counts by its text and
-- by the place that it reaches.

local exit_commands = require "efr.perm.exit_commands"
local exit_paths = require "efr.perm.exit_paths"
local paths = require "efr.perm.paths"
local reasons = require "efr.perm.reasons"
local words = require "efr.perm.exit_words"

local M = {}

---Seconds for the answer; no answer means no.
M.SECONDS = 60 ---@type integer

-- Places ----------------------------------------------------------------------------------------

local function is_child(path, dir)
  return paths.below(path, dir) and not path:sub(dir == "/" and 2 or #dir + 2):find("/", 1, true)
end

local function in_project(path, projects)
  for _, root in ipairs(projects) do
    if paths.within(path, root) then return true end
  end
  return false
end

local function own_place(path, machine)
  for _, name in ipairs({ "config_roots", "sealed", "write_sealed", "own" }) do
    for _, root in ipairs(machine[name]) do
      if paths.within(path, root) or paths.within(root, path) then return true end
    end
  end
  return false
end

local PLACES <const> = {
  function(path) return (path == "/" or is_child(path, "/")) and "a root of the system" end,
  function(path, machine)
    if path == machine.home then return "your home directory" end
    if is_child(path, machine.home) and not in_project(path, machine.project_roots) then
      return "a part of your home directory"
    end
    return nil
  end,
  function(path, machine)
    for _, root in ipairs(machine.project_roots) do
      if paths.within(root, path) then return "a project or above one" end
    end
    return nil
  end,
  function(path) return path:match("[^/]*$") == ".git" and "a git directory" end,
  function(path, machine) return own_place(path, machine) and "efr's own" end,
  function(path, _, facts)
    return facts.mounts and facts.mounts[path] and "a mount point"
  end,
  function(path) return exit_paths.device(path) == "device" and "a device" end,
}

local function place(call, path)
  for _, what in ipairs(PLACES) do
    local words_of_it = what(path, call.machine, call.facts)
    if words_of_it then return words_of_it end
  end
  return nil
end

-- The directory of a pattern, or of a word whose end is not known.
local function fixed_dir(call, cmd, word)
  local fixed = word.fixed or ""
  local dir = fixed:match("^(.*)/[^/]*$")
  if dir == "" then return "/" end
  if not dir then return not cmd.moved and paths.normalise(cmd.cwd, call.machine) or nil end
  return exit_commands.path(call, cmd, { text = dir, home = word.home })
end

-- The guarded place of a path, by its name and by what it reaches.
local function real_place(call, path, reals)
  local what = place(call, path)
  if what then return what, path end
  local real = reals and reals[path]
  if not real then return nil, path end
  return place(call, real), real
end

-- What a deleted word may be: the guarded place in words.
local function guarded(call, cmd, word)
  local path = exit_commands.path(call, cmd, word)
  -- `rm link` takes the link away; dd writes through it.
  local reals = call.facts[cmd.name == "dd" and "reals" or "parents"]
  if path then return real_place(call, path, reals) end
  if not word.text and (word.fixed or "") == "" then return "a place that is not known" end
  local dir = fixed_dir(call, cmd, word)
  if not dir then return "a place that is not known" end
  return place(call, dir) or place(call, dir .. "/*"), dir .. "/*"
end

-- Commands ---------------------------------------------------------------------------------------

local function operands_of(cmd)
  return exit_commands.operands(cmd)
end

local function devices_only(cmd)
  local out = {}
  for _, word in ipairs(operands_of(cmd)) do
    if word.shape:find("^/dev/") or words.is_unknown(word.shape) then out[#out + 1] = word end
  end
  return out
end

local function dd(cmd)
  for i = 2, #cmd.words do
    local value = cmd.words[i].shape:match("^of=(.*)$")
    if value then
      local known = cmd.words[i].text and value or nil
      return { { text = known, shape = value, fixed = known or "" } }
    end
  end
  return {}
end

local CWD <const> = { text = ".", shape = ".", fixed = "." }

local function find(cmd)
  if not words.has(cmd.args, "-delete") then return {} end
  local out = {}
  for _, word in ipairs(operands_of(cmd)) do
    if cmd.words[#out + 2] ~= word then break end
    out[#out + 1] = word
  end
  return #out > 0 and out or { CWD }
end

local function rsync(cmd)
  if not words.any(cmd.args, { "--delete", "--delete-before", "--delete-after", "--del" }) then
    return {}
  end
  local all = operands_of(cmd)
  return { all[#all] }
end

-- Only at or above the home directory; inside a project it is work as any other.
local function git_clean(cmd)
  local sub = words.first_operand(cmd.args, { ["-C"] = true, ["-c"] = true })
  local ignored = false
  for _, arg in ipairs(cmd.args) do ignored = ignored or arg:find("^%-%a*[xX]") ~= nil end
  return sub == "clean" and ignored and { CWD } or {}
end

local DELETES <const> = {
  rm = operands_of, rmdir = operands_of, unlink = operands_of, truncate = operands_of,
  shred = operands_of, dd = dd, find = find, rsync = rsync, git = git_clean,
  wipefs = devices_only, blkdiscard = devices_only, fdisk = devices_only, parted = devices_only,
  sgdisk = devices_only, sfdisk = devices_only,
}

local function deleted(cmd)
  if cmd.name and cmd.name:find("^mkfs") then return devices_only(cmd) end
  local words_of = DELETES[cmd.name]
  return words_of and words_of(cmd) or {}
end

local function is_at_home(call, path)
  return path ~= nil and paths.within(call.machine.home, path)
end

-- What is overwritten -----------------------------------------------------------------------------

local function last_operand(cmd)
  local all = operands_of(cmd)
  return { all[#all] }
end

local function forced_last(cmd)
  for _, arg in ipairs(cmd.args) do
    if arg:find("^%-%a*f") or #arg > 2 and ("--force"):sub(1, #arg) == arg then
      return last_operand(cmd)
    end
  end
  return {}
end

local function tee(cmd)
  for _, arg in ipairs(cmd.args) do
    if arg:find("^%-%a*a") or #arg > 2 and ("--append"):sub(1, #arg) == arg then return {} end
  end
  return operands_of(cmd)
end

local OVERWRITES <const> = {
  cp = last_operand, mv = last_operand, install = last_operand, ln = forced_last, tee = tee,
}

-- A directory is written into; what is not there is made.
local function is_overwritten(call, path)
  local what = (call.facts.targets or {})[path]
  return what ~= "missing" and what ~= "dir"
end

local function overwritten(cmd)
  local out = table.move(OVERWRITES[cmd.name] and OVERWRITES[cmd.name](cmd) or {}, 1, 64, 1, {})
  for _, redir in ipairs(cmd.redirs) do
    if redir.write and not redir.append and redir.op ~= "<>" then out[#out + 1] = redir.target end
  end
  return out
end

-- The reasons of one command ----------------------------------------------------------------------

local function add(out, verb, target, what)
  local reason = reasons.because("delete guard " .. reasons.shown(target), "ask",
    ("%s deletes or overwrites %s"):format(verb, what))
  reason.guard, reason.seconds = true, M.SECONDS
  reason.deletes = ("%s: %s"):format(reasons.shown(target), what)
  out[#out + 1] = reason
end

local function of_command(call, cmd, out)
  for _, word in ipairs(deleted(cmd)) do
    local what, path = guarded(call, cmd, word)
    if cmd.name == "git" and not is_at_home(call, path) then what = nil end
    if what then add(out, cmd.name, path or words.shown(word.shape), what) end
  end
  for _, word in ipairs(overwritten(cmd)) do
    local path = exit_commands.path(call, cmd, word)
    if path and is_overwritten(call, path) then
      local what, real = real_place(call, path, call.facts.reals)
      if what then add(out, cmd.name or "a redirection", real, what) end
    end
  end
end

---The guarded deletes of a call in full mode.
---@param call table
---@return efr.Reason[]
function M.guard(call)
  local out = {}
  for _, item in ipairs(call.lines) do
    for _, cmd in ipairs(exit_commands.of_line(call, item)) do of_command(call, cmd, out) end
  end
  return out
end

return M
