-- Owns: which efr-sbx runs a call: a copy of the installed one, made when efrd starts, and the
-- checks of it before each use.
-- Must not know: what a call is.
-- Runs in efrd on the loop thread; nothing here waits.
--
-- Policy: the copy lies in `bin` of the runtime root, mode 0500, where no contained call sees or
-- writes it; in the data root when the runtime root cannot execute programs. What an earlier start
-- left is used again when it is such a file and all its bytes are those of the installed one.
-- Before each use the copy is opened and must be that file: owner, mode, and the bytes that were
-- installed when efrd started. The bytes are read again only when the file's change time moved,
-- which no program can set. An installed launcher that a contained call could write is refused,
-- since the copy of the next start would be made from it.

local paths = require "efr.perm.paths"

local M = {}

local NAME <const> = "efr-sbx"
local DIR_MODE <const> = 448 -- 0700
local COPY_MODE <const> = 320 -- 0500
local PERMISSIONS <const> = 4095
local OTHERS_WRITE <const> = 2
local MAX_BYTES <const> = 16 * 1024 * 1024
local PIECE <const> = 64 * 1024 -- of a comparison: a start keeps no megabytes
local CODE <const> = "EFR_SANDBOX"

---@class efr.sbx.Launcher
local Launcher = {}
Launcher.__index = Launcher

local function refuse(words, ...)
  return nil, words:format(...), CODE
end

---The installed launcher: beside the running program, or where an installation has it.
---@param ports table  sys, fs
---@return string? path  resolved
---@return string? err
---@return string? code
function M.find(ports)
  local dir = ports.sys.exe_path():match("^(.*)/[^/]*$")
  for _, path in ipairs({ dir .. "/" .. NAME, dir .. "/../lib/efr/" .. NAME }) do
    local real = ports.fs.realpath(path)
    if real then return real end
  end
  return refuse("efr-sbx is not installed beside efrd")
end

---Where a contained call can write, by the settings of now.
---@param app table
---@param path string
---@return string? place  in words, when the path lies in one
function M.writable_place(app, path)
  for _, project in ipairs(app.projects and app.projects:list() or {}) do
    if paths.within(path, project.root) then return "the project " .. project.root end
  end
  for _, root in ipairs(app.config:get("sandbox.write_roots") or {}) do
    local real = app.ports.fs.realpath(root)
    if real and paths.within(path, real) then return "the write root " .. root end
  end
  return nil
end

-- Checks of the installed one.
local function check_source(self)
  local source, err, code = M.find(self.app.ports)
  if not source then return nil, err, code end
  local place = M.writable_place(self.app, source)
  if place then
    return refuse("the launcher %s lies in %s, where a sandboxed command could change it", source,
      place)
  end
  local stat = self.app.ports.fs.stat(source)
  local uid = self.app.ports.sys.getuid()
  if not stat or stat.type ~= "file" then return refuse("the launcher %s is no file", source) end
  if stat.uid ~= 0 and stat.uid ~= uid or stat.mode & OTHERS_WRITE ~= 0 then
    return refuse("the launcher %s belongs to somebody else or can be written by others", source)
  end
  return source
end

-- Whether an open file has the bytes of the file at a path.
local function same_bytes(uv, fd, path)
  local other = uv.fs_open(path, "r", 0)
  if not other then return false end
  local at = 0
  local mine, theirs
  repeat
    mine, theirs = uv.fs_read(fd, PIECE, at), uv.fs_read(other, PIECE, at)
    at = at + #(mine or "")
  until not mine or mine ~= theirs or mine == "" or at > MAX_BYTES
  uv.fs_close(other)
  return mine == "" and theirs == ""
end

-- The file at a path through one descriptor: what identifies it, and whether its bytes are those of
-- another file when one is named.
local function inspect(uv, path, source)
  local fd, err = uv.fs_open(path, "r", 0)
  if not fd then return nil, err end
  local stat = uv.fs_fstat(fd)
  local same = stat ~= nil and source ~= nil and same_bytes(uv, fd, source)
  uv.fs_close(fd)
  if not stat then return nil, "cannot be looked at" end
  local changed = stat.ctime
  return {
    stamp = ("%d:%d:%d:%d.%d"):format(stat.dev, stat.ino, stat.size, changed.sec, changed.nsec),
    uid = stat.uid, mode = stat.mode & PERMISSIONS, file = stat.type == "file",
    links = stat.nlink,
  }, same
end

local function is_ours(self, seen)
  return seen.file and seen.uid == self.app.ports.sys.getuid() and seen.mode == COPY_MODE
end

-- What an earlier start left at a path, when it can serve this one.
local function earlier(self, path, source)
  local own = self.app.ports.fs.lstat(path)
  if not own or own.type ~= "file" then return nil end
  local seen, same = inspect(self.app.ports.uv, path, source)
  return same and is_ours(self, seen) and seen.links == 1 and seen or nil
end

local function write_copy(ports, dir, source)
  local uv, fs = ports.uv, ports.fs
  local path, new = dir .. "/" .. NAME, ("%s/.%s.%d"):format(dir, NAME, ports.sys.getpid())
  local bytes, err = fs.read_file(source, MAX_BYTES)
  if not bytes then return nil, err end
  fs.unlink(new)
  local fd
  fd, err = uv.fs_open(new, "wx", COPY_MODE)
  if not fd then return nil, err end
  local written, ok
  written, err = uv.fs_write(fd, bytes)
  if written == #bytes then ok, err = uv.fs_fchmod(fd, COPY_MODE) end
  uv.fs_close(fd)
  if written ~= #bytes or not ok then
    fs.unlink(new)
    return nil, err or "short write"
  end
  ok, err = fs.rename(new, path)
  if not ok then return nil, err end
  return path
end

-- The copy in a directory, and what identifies it: that of an earlier start, or a new one.
local function copy_in(self, dir, source)
  local ports = self.app.ports
  local path = dir .. "/" .. NAME
  local ok, err = ports.fs.mkdirs(dir, DIR_MODE)
  if ok then ok, err = ports.fs.check_private_dir(dir) end
  local seen, same = ok and earlier(self, path, source) or nil, true
  if ok and not seen then
    ok, err = write_copy(ports, dir, source)
    if ok then seen, same = inspect(ports.uv, path, source) end
  end
  if not ok then return refuse("copy the launcher to %s: %s", dir, err) end
  if not same then return refuse("the copy %s differs from %s", path, source) end
  return path, seen
end

-- The copy, in the first root that can execute it.
local function install(self)
  local app = self.app
  local source, err, code = check_source(self)
  if not source then return nil, err, code end
  for _, root in ipairs({ "runtime", "data" }) do
    local copy, seen, why = copy_in(self, app.paths[root] .. "/bin", source)
    if not copy then return nil, seen, why end
    if app.ports.uv.fs_access(copy, "X") then
      self.copy, self.source, self.root, self.stamp = copy, source, root, seen.stamp
      return copy
    end
    app.ports.fs.unlink(copy)
  end
  return refuse("the launcher cannot be executed in %s or %s: both are noexec", app.paths.runtime,
    app.paths.data)
end

local function check_copy(self)
  local uv = self.app.ports.uv
  local seen, err = inspect(uv, self.copy)
  if not seen then return refuse("the launcher's copy %s is missing: %s", self.copy, err) end
  if not is_ours(self, seen) then
    return refuse("the launcher's copy %s was changed (owner or mode)", self.copy)
  end
  if seen.stamp == self.stamp then return true end
  local same
  -- The installed one is read again: it is large to be kept.
  seen, same = inspect(uv, self.copy, self.source)
  if not seen or not same then
    return refuse("the launcher's copy %s was changed", self.copy)
  end
  self.stamp = seen.stamp
  return true
end

---The launcher to run now, checked.
---@return string? path
---@return string? err
---@return string? code  EFR_SANDBOX
function Launcher:path()
  if self.in_place then return check_source(self) end
  if not self.copy then return install(self) end
  local place = M.writable_place(self.app, self.source)
  if place then
    return refuse("the launcher %s lies in %s, where a sandboxed command could change it",
      self.source, place)
  end
  local ok, err, code = check_copy(self)
  if not ok then return nil, err, code end
  return self.copy
end

---Where the launcher comes from, for efr status.
---@return {source: string?, copy: string?, warning: string?}
function Launcher:describe()
  local warning
  if self.root == "data" then
    warning = ("the launcher's copy lies in %s because %s is noexec"):format(self.copy,
      self.app.paths.runtime)
  end
  return { source = self.source or M.find(self.app.ports), copy = self.copy, warning = warning }
end

---@param app table  ports, paths, config, projects
---@param opts {in_place: boolean?}?  in_place: the installed one is used as it is (efr itself, for
---  its own checks)
---@return efr.sbx.Launcher
function M.new(app, opts)
  local self = setmetatable({ app = app, in_place = opts and opts.in_place }, Launcher)
  -- A failure is told by each use, which tries again.
  if not self.in_place then install(self) end
  return self
end

return M
