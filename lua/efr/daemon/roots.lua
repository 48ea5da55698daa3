-- The root directories at the start of the daemon: they are ours, private, and made when missing.
-- Knows nothing of what lies in them. Main thread of efrd, before anything else.
local M = {}

local PRIVATE <const> = 448 -- 0700
local OTHERS <const> = 63 -- 0077
local OTHERS_WRITE <const> = 18 -- 0022

local function refuse(name, path, what, fix)
  return nil, ("%s directory %s %s; %s"):format(name, path, what, fix), "EFR_ROOT"
end

local function owned_by_another(name, path, uid)
  return refuse(name, path, ("belongs to uid %d"):format(uid),
    "run efr as that user, or give this one a home of its own (HOME or EFR_HOME; sudo -H)")
end

local function parent_of(path)
  local parent = path:match("^(.*)/[^/]+$")
  return parent == "" and "/" or parent
end

-- A missing root is made only below a directory of ours or of the system: root with the HOME of a
-- user must not leave directories there that the user cannot write.
local function check_ancestor(fs, name, path, uid)
  local at = parent_of(path)
  while at do
    local stat = fs.stat(at)
    if stat then
      if stat.uid ~= uid and stat.uid ~= 0 then
        return owned_by_another(name, at, stat.uid)
      end
      return true
    end
    at = at ~= "/" and parent_of(at) or nil
  end
  return refuse(name, path, "has no parent", "set EFR_HOME")
end

local function check_existing(name, path, stat, uid, forbidden)
  if stat.type ~= "dir" then
    return refuse(name, path, "is no directory", "move it away or set EFR_HOME")
  elseif stat.uid ~= uid then
    return owned_by_another(name, path, stat.uid)
  elseif stat.mode & forbidden ~= 0 then
    local fix = forbidden == OTHERS and "chmod 700 " or "chmod go-w "
    return refuse(name, path, ("has mode %03o"):format(stat.mode & 511), fix .. path)
  end
  return true
end

local function prepare_private(fs, name, path, uid)
  local stat = fs.stat(path)
  if not stat then
    local ok, err, code = check_ancestor(fs, name, path, uid)
    if ok then
      ok, err, code = fs.mkdirs(path, PRIVATE)
    end
    if not ok then
      return nil, err, code
    end
    stat = fs.stat(path)
    if not stat then
      return refuse(name, path, "cannot be read", "check its parent")
    end
  end
  return check_existing(name, path, stat, uid, OTHERS)
end

--- Checks the roots and makes data, state and runtime. The config root may be missing.
--- @param fs table efr.fs
--- @param paths table of config.paths.resolve
--- @param uid integer
--- @return true|nil, string|nil message, string|nil code
function M.prepare(fs, paths, uid)
  local stat = fs.stat(paths.config.path)
  if stat then
    local ok, err, code = check_existing("config", paths.config.path, stat, uid, OTHERS_WRITE)
    if not ok then
      return nil, err, code
    end
  end
  for _, name in ipairs { "data", "state", "runtime" } do
    local ok, err, code = prepare_private(fs, name, paths[name].path, uid)
    if not ok then
      return nil, err, code
    end
  end
  return true
end

return M
