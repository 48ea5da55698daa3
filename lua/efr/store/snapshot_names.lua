-- Owns: the names in efr's snapshot trees: a name carries what a git tree cannot hold (permissions,
-- owner, empty directories, what was left out and why).
-- Must not know: git, the disk. Pure. Runs in efrd.
--
-- The trees are a data base that nobody checks out, so a name may be any bytes that git takes:
--   NAME                    a file of mode 644 or 755, a link, a part of a path
--   NAME\1m600[.UID.GID]    a file of another mode; the owner where efrd runs as root
--   NAME/\1d700[.UID.GID]   a directory that is empty, or not of mode 755
--   NAME\1uB.SIZE.TIME      a file that was left out: its size and the time of its change
--   NAME\1uP                a directory that was left out
-- A \1 in a name is \1e, and git's own name, which git refuses, is \1g and the name.

local M = {}

local SET_ID <const> = 511 -- 0777: what is kept of a mode

-- Why something was left out.
M.CODES = {
  big = "B", unreadable = "U", special = "S", nested = "N", mount = "M", passed = "P", open = "P",
  unread = "F", masked = "K",
}

---Words for what was left out, by code.
M.REASONS = {
  B = "larger than snapshot.max_file_mib", U = "it cannot be read", S = "no file or directory",
  N = "a repository of its own", M = "another file system", P = "an ignored folder",
  F = "it could not be read in time", K = "hidden from commands",
}

local function encode_part(part)
  if part:find("\1", 1, true) then part = part:gsub("\1", "\1e") end
  if #part == 4 and part:lower() == ".git" then part = "\1g" .. part end
  return part
end

local function decode_part(part)
  if part:sub(1, 2) == "\1g" then part = part:sub(3) end
  return (part:gsub("\1e", "\1"))
end

---A path as it stands in a tree, without what its own kind adds.
---@param path string
---@return string
function M.encode_path(path)
  if not path:find("\1", 1, true) and not path:lower():find(".git", 1, true) then return path end
  return (path:gsub("[^/]+", encode_part))
end

local function owner_of(entry, as_root)
  if not as_root or entry.uid == 0 and entry.gid == 0 then return "" end
  return (".%d.%d"):format(entry.uid, entry.gid)
end

-- The mode and name of a file or a link.
local function encode_file(name, entry, as_root)
  local owner = owner_of(entry, as_root)
  if entry.type == "link" then
    return "120000", owner == "" and name or name .. "\1m777" .. owner
  end
  local mode = entry.mode & SET_ID
  local git_mode = mode & 64 ~= 0 and "100755" or "100644"
  if owner == "" and (mode == 420 or mode == 493) then return git_mode, name end
  return git_mode, ("%s\1m%03o%s"):format(name, mode, owner)
end

---How an entry of a walk stands in a tree.
---@param path string
---@param entry efr.TreeEntry
---@param as_root boolean
---@return string? mode  nil: a directory that needs no name of its own
---@return string? name
---@return boolean? has_bytes  whether it has content that is kept
function M.encode(path, entry, as_root)
  local name = M.encode_path(path)
  if entry.mark then
    local code = M.CODES[entry.mark]
    if entry.type == "dir" then return "100644", name .. "\1u" .. code, false end
    return "100644", ("%s\1u%s.%d.%d"):format(name, code, entry.size, entry.ctime_ns), false
  end
  if entry.type ~= "dir" then
    local mode, full = encode_file(name, entry, as_root)
    return mode, full, true
  end
  local mode, owner = entry.mode & SET_ID, owner_of(entry, as_root)
  if not entry.empty and mode == 493 and owner == "" then return nil end
  return "100644", ("%s/\1d%03o%s"):format(name, mode, owner), false
end

-- Numbers behind a mark: mode and owner.
local function rights(text, default)
  local mode, uid, gid = text:match("^(%d+)%.?(%d*)%.?(%d*)$")
  return mode and tonumber(mode, 8) or default, tonumber(uid), tonumber(gid)
end

---@class efr.SnapshotName
---@field path string
---@field kind "file"|"link"|"dir"|"left"
---@field mode integer?
---@field uid integer?
---@field gid integer?
---@field code string?  of what was left out

---What a name in a tree says.
---@param git_mode string  "100644" and so on
---@param name string
---@return efr.SnapshotName
function M.decode(git_mode, name)
  local kind = git_mode == "120000" and "link" or "file"
  local mode = kind == "link" and SET_ID or git_mode == "100755" and 493 or 420
  if not name:find("\1", 1, true) then return { path = name, kind = kind, mode = mode } end
  local dir, last = name:match("^(.*/)([^/]*)$")
  if not dir then dir, last = "", name end
  dir = dir:gsub("[^/]+", decode_part)
  local marked = last:match("^\1d(.*)$")
  if marked then
    local uid, gid
    mode, uid, gid = rights(marked, 493)
    return { path = dir:sub(1, -2), kind = "dir", mode = mode, uid = uid, gid = gid }
  end
  local stem, mark, rest = last:match("^(.*)\1([mu])(.*)$")
  if not stem then return { path = dir .. decode_part(last), kind = kind, mode = mode } end
  local path = dir .. decode_part(stem)
  if mark == "u" then return { path = path, kind = "left", code = rest:sub(1, 1) } end
  local uid, gid
  mode, uid, gid = rights(rest, mode)
  return { path = path, kind = kind, mode = mode, uid = uid, gid = gid }
end

return M
