-- When the files of the config root change, and those that their links lead to: tells after 200 ms
-- of quiet.
-- Owns: which directories are watched, and which changes in them count. Must not know: what a
-- reload is. Main thread of efrd; nothing here waits.
--
-- An editor that writes in place, one that renames a new file over the old one, a link that gets
-- another target and a target that is written are all a change of a name in one of the watched
-- directories. After every change, after lost events and after a directory that went away, the
-- directories are looked up anew.

local M = {}

local QUIET_MS <const> = 200
local LONGEST_MS <const> = 2000 -- a file that never rests is read all the same
local LINKS_MAX <const> = 16
local ANY <const> = "/" -- no entry has this name

local function split(path)
  local dir, name = path:match("^(.*)/([^/]+)$")
  return dir == "" and "/" or dir, name
end

local function expect(dirs, dir, name)
  dirs[dir] = dirs[dir] or {}
  dirs[dir][name] = true
end

-- A directory that does not exist is awaited in the nearest one above it that does.
local function expect_below(fs, dirs, dir, name)
  while not fs.stat(dir) and dir ~= "/" do
    dir, name = split(dir)
  end
  expect(dirs, dir, name)
end

-- The names that a path depends on: itself, and each link on the way to its target.
local function follow(fs, dirs, path)
  for _ = 1, LINKS_MAX do
    local dir, name = split(path)
    expect_below(fs, dirs, dir, name)
    local to = fs.readlink(path)
    if not to then
      return
    end
    path = to:sub(1, 1) == "/" and to or dir .. "/" .. to
  end
end

--- The directories to watch and the names in them that count; "/" stands for every name.
--- @param fs table
--- @param paths string[] files, absolute
--- @param folders string[] directories in which everything counts, absolute
--- @return table<string, table<string, boolean>>
function M.directories(fs, paths, folders)
  local dirs = {}
  for _, path in ipairs(paths) do
    follow(fs, dirs, path)
  end
  for _, path in ipairs(folders) do
    follow(fs, dirs, path)
    local info = fs.stat(path)
    if info and info.type == "dir" then
      expect(dirs, path, ANY)
    end
  end
  return dirs
end

local Watcher = {}
Watcher.__index = Watcher

--- Looks up anew what is to be watched.
function Watcher:rearm()
  if self.closed then
    return
  end
  local wanted, names = M.directories(self.fs, self.paths, self.folders), {}
  for dir, set in pairs(wanted) do
    local id, err = self.watch:add(dir)
    if id then
      names[id] = names[id] or {}
      for name in pairs(set) do
        names[id][name] = true
      end
    else
      self.log:warn("%s: a change there is seen at SIGHUP or efr config reload only", err)
    end
  end
  for id in pairs(self.names) do
    if not names[id] then
      self.watch:remove(id) -- one that is gone already is no error
    end
  end
  self.names = names
end

local function settled(self)
  self.since = nil
  self:rearm()
  self.on_change()
  self:rearm() -- what the reload made, such as a first config root
end

local function wait_for_quiet(self)
  local now = self.uv.now()
  self.since = self.since or now
  local left = self.since + LONGEST_MS - now
  self.timer:start(math.max(0, math.min(QUIET_MS, left)), 0, function()
    settled(self)
  end)
end

local function on_event(self, id, kind, name)
  if kind == "overflow" then
    self.log:warn("changes of the settings were lost; they are read again")
  else
    local names = self.names[id]
    if not names or kind ~= "gone" and not names[name] and not names[ANY] then
      return
    end
  end
  wait_for_quiet(self)
end

--- Ends the watch.
function Watcher:close()
  if not self.closed then
    self.closed = true
    self.watch:close()
    self.timer:close()
  end
end

--- @class efr.daemon.WatchDeps
--- @field watch table efr.watch
--- @field fs table
--- @field uv table
--- @field log table
--- @field paths string[] files, absolute; they need not exist
--- @field folders string[] directories in which every change counts; they need not exist
--- @field on_change fun()

--- @param deps efr.daemon.WatchDeps
--- @return table|nil watcher, string|nil message, string|nil code
function M.new(deps)
  local self = setmetatable({
    fs = deps.fs, uv = deps.uv, log = deps.log, paths = deps.paths, folders = deps.folders,
    on_change = deps.on_change, names = {},
  }, Watcher)
  local err, code
  self.watch, err, code = deps.watch.open(function(id, kind, name)
    on_event(self, id, kind, name)
  end)
  if not self.watch then
    return nil, err, code
  end
  self.timer = assert(deps.uv.new_timer())
  self:rearm()
  return self
end

return M
