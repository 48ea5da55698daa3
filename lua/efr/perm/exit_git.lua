-- Owns: which exits a git command needs: what it sends, fetches, or throws away.
-- Must not know: paths that it writes (exit_paths), who decides in the end.
-- Runs in efrd and efr. Pure.

local needs = require "efr.perm.needs"
local tables = require "efr.perm.exit_tables"
local words = require "efr.perm.exit_words"

local M = {}

-- git's own options first, then the subcommand and its arguments.
local function split(args)
  local sub, at = words.first_operand(args, tables.GIT_VALUES)
  local before = table.move(args, 1, at and at - 1 or #args, 1, {})
  local after = at and table.move(args, at + 1, #args, 1, {}) or {}
  return before, sub, after
end

-- Whether a remote is a directory of this machine, a host by ssh, or a host otherwise.
local function remote_form(word)
  if word == "." or word == ".." or word:find("^%.?%.?/") or word:find("^~/")
    or word:find("^file://") then
    return "local"
  end
  if word:find("^ssh://") or word:find("^git%+ssh://") then return "ssh" end
  if word:find("^%a[%w+.-]*://") then return "host" end
  if word:find("^[^/:]+:[^:]") or word:find("^[^/:]+:$") then return "ssh" end
  return "name"
end

local CLONE_VALUES <const> = {
  ["-b"] = true, ["--branch"] = true, ["--depth"] = true, ["-o"] = true, ["--origin"] = true,
  ["-u"] = true, ["-c"] = true, ["--config"] = true, ["--template"] = true, ["--reference"] = true,
  ["-j"] = true, ["--jobs"] = true, ["--filter"] = true, ["--upload-pack"] = true,
  ["--exec"] = true, ["--receive-pack"] = true,
}

local function chooses_code(before, after, cmd)
  return words.any(before, tables.GIT_CODE) or words.any(after, tables.GIT_CODE)
    or words.sets(cmd.assigns, tables.REMOTE_VARIABLES)
end

local PUSH_VALUES <const> = {
  ["-o"] = true, ["--push-option"] = true, ["--receive-pack"] = true, ["--exec"] = true,
}

local function sends(before, after, cmd, emit, sends_to)
  local remote = words.first_operand(after, PUSH_VALUES)
  local form = remote and remote_form(remote)
  -- The repository's own code runs with the user's keys: without the fact that it is clean, and
  -- where the repository is not the one of the directory, only the user decides.
  local unknown = chooses_code(before, after, cmd) or words.has(before, "-C") or cmd.moved
    or form == "local" or words.is_unknown(remote) or words.any(after, { "--repo" })
  emit("upload", { target = remote and words.shown(remote) or "the remote", git_code = true,
    remote = sends_to and form == "name" and remote or nil,
    why = "git sends commits or mail", user_only = unknown or nil })
end

local function fetches(before, after, cmd, emit, sub)
  local remote = words.first_operand(after, CLONE_VALUES)
  local form = remote and remote_form(remote) or "name"
  if form == "local" then return end
  if form == "ssh" then
    local clone = sub == "clone" and words.any(after, tables.GIT_CLONE_CODE)
    emit("outside", { target = remote, ssh = true, git_code = true,
      why = "git over ssh needs your keys",
      user_only = clone or chooses_code(before, after, cmd) or nil })
    return
  end
  local name, port
  if form == "host" then name, port = needs.host(remote) end
  emit("host", { target = name or words.shown(remote or "the remote"), host = name, port = port,
    why = "git reaches a remote" })
end

-- What throws work away -------------------------------------------------------------------------

local function forced(after)
  for _, arg in ipairs(after) do
    if arg == "--" then return false end
    local cluster = arg:find("^%-%a") and arg:find("f", 2, true)
    if cluster or words.is_unknown(arg) or #arg > 4 and ("--force"):sub(1, #arg) == arg then
      return true
    end
  end
  return false
end

local function has_paths(after)
  for i, arg in ipairs(after) do
    if arg == "--" then return i < #after end
    if arg == "." then return true end
  end
  return false
end

local function restores_work_tree(after)
  if words.any(after, { "--worktree" }) then return true end
  for _, arg in ipairs(after) do
    if arg:find("^%-%a*W") then return true end
  end
  return not words.any(after, { "--staged", "-S" })
end

local function abbreviates(after, long)
  return words.any(after, { long })
end

local LOSES <const> = {
  reset = function(after) return abbreviates(after, "--hard") end,
  clean = forced,
  checkout = function(after) return has_paths(after) or forced(after) end,
  restore = restores_work_tree,
  switch = function(after)
    return abbreviates(after, "--discard-changes") or forced(after)
  end,
  stash = function(after)
    local verb = words.first_operand(after, {})
    return verb == "drop" or verb == "clear" or words.is_unknown(verb)
  end,
  branch = function(after)
    local deletes = false
    for _, arg in ipairs(after) do
      if arg:find("^%-%a*D") then return true end
      deletes = deletes or arg:find("^%-%a*d") ~= nil
    end
    return (deletes or abbreviates(after, "--delete")) and forced(after)
  end,
  reflog = function(after)
    local verb = words.first_operand(after, {})
    return verb == "expire" or verb == "delete" or words.is_unknown(verb)
  end,
  gc = function(after) return abbreviates(after, "--prune") end,
}

local function second(after, known)
  local verb = words.first_operand(after, {})
  return words.is_unknown(verb) or known[verb] == true
end

---Reports the exits of a git command.
---@param cmd table  see exit_programs
---@param emit fun(kind: string, detail: table)
function M.exits(cmd, emit)
  local before, sub, after = split(cmd.args)
  if not sub then return end
  if tables.GIT_UPLOADS[sub] or words.is_unknown(sub) then
    sends(before, after, cmd, emit, sub ~= "send-email")
  elseif tables.GIT_HOST[sub] then
    fetches(before, after, cmd, emit, sub)
  elseif sub == "remote" and second(after, tables.GIT_REMOTE)
    or sub == "submodule" and second(after, tables.GIT_SUBMODULE) then
    fetches(before, {}, cmd, emit, sub)
  elseif sub == "archive" and words.any(after, { "--remote" }) then
    fetches(before, { words.value(after, nil, "--remote") }, cmd, emit, sub)
  end
  local loses = LOSES[sub]
  if loses and loses(after) then
    emit("destructive", { target = "git " .. sub, why = ("git %s throws work away"):format(sub),
      git = true })
  end
end

return M
