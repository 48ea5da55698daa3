-- The listening socket: taken from systemd, or made in a private staging directory and renamed into
-- place, so that no moment exists with a wider mode.
-- Knows nothing of what is spoken on it. Main thread of efrd; open waits for a connect and runs in
-- a coroutine.
local async = require "efr.util.async"

local M = {}

local PATH_MAX <const> = 107
local BACKLOG <const> = 128

local Socket = {}
Socket.__index = Socket

--- A path that the kernel could not hold is refused before anything is made.
--- @return true|nil, string|nil message, string|nil code
function M.check_path(path)
  if #path > PATH_MAX then
    return nil, ("socket path %s is longer than %d bytes; set EFR_RUNTIME_DIR or EFR_HOME to a"
      .. " shorter directory"):format(path, PATH_MAX), "EFR_SOCKET"
  end
  return true
end

-- Does somebody answer there? true / false
local function answers(uv, path)
  local pipe = assert(uv.new_pipe(false))
  local connected = async.await(function(resume)
    local ok = pipe:connect(path, function(err)
      resume(err == nil)
    end)
    if not ok then
      resume(false)
    end
  end)
  pipe:close()
  return connected
end

-- What lies at the final path must be nothing, or a socket on which nobody answers.
local function clear_way(ports, path)
  local stat = ports.fs.lstat(path)
  if not stat then
    return true
  elseif stat.type ~= "socket" then
    return nil, path .. " exists and is no socket; move it away", "EFR_SOCKET"
  elseif answers(ports.uv, path) then
    return nil, "another efrd answers on " .. path, "EFR_RUNNING"
  end
  return true
end

local function bind_staged(ports, path)
  local dir = path:match("^(.*)/[^/]+$")
  local staging = ("%s/.s%d"):format(dir, ports.sys.getpid())
  ports.fs.rmtree(staging)
  local ok, err, code = ports.fs.mkdir(staging, 448) -- 0700
  if not ok then
    return nil, err, code
  end
  local inner = staging .. "/s"
  local pipe = assert(ports.uv.new_pipe(false))
  local function give_up(message, name)
    pipe:close()
    ports.fs.rmtree(staging)
    return nil, ("socket %s: %s"):format(path, message), name or "EFR_SOCKET"
  end
  ok, err = pipe:bind(inner)
  if not ok then
    return give_up(err)
  end
  ok, err, code = ports.fs.chmod(inner, 384) -- 0600
  if not ok then
    return give_up(err, code)
  end
  ok, err, code = ports.fs.rename(inner, path)
  if not ok then
    return give_up(err, code)
  end
  ports.fs.rmdir(staging)
  return pipe
end

--- Opens the listening socket at `path` (or takes the one that systemd passed).
--- @param ports table uv, fs, sys
--- @return table|nil socket, string|nil message, string|nil code
function M.open(ports, path)
  local passed = ports.sys.listen_fds()
  if passed and passed[1] then
    local pipe = assert(ports.uv.new_pipe(false))
    local ok, err = pipe:open(passed[1])
    if not ok then
      return nil, "the socket from systemd: " .. tostring(err), "EFR_SOCKET"
    end
    return setmetatable({ ports = ports, path = path, pipe = pipe, passed = true }, Socket)
  end
  local ok, err, code = M.check_path(path)
  if ok then
    ok, err, code = clear_way(ports, path)
  end
  if not ok then
    return nil, err, code
  end
  local pipe
  pipe, err, code = bind_staged(ports, path)
  if not pipe then
    return nil, err, code
  end
  local stat = ports.fs.lstat(path)
  return setmetatable({
    ports = ports, path = path, pipe = pipe, dev = stat and stat.dev, ino = stat and stat.ino,
  }, Socket)
end

--- Starts to accept; `fn` gets each connected pipe.
--- @param fn fun(pipe: table)
--- @param on_error fun(message: string)
function Socket:listen(fn, on_error)
  return self.pipe:listen(BACKLOG, function(err)
    local client = not err and assert(self.ports.uv.new_pipe(false))
    local ok, why
    if client then
      ok, why = self.pipe:accept(client)
    end
    if ok then
      return fn(client)
    elseif client then
      client:close()
    end
    on_error("accept: " .. tostring(err or why))
  end)
end

--- Stops accepting and removes the file, when it still is the one that was bound.
function Socket:close()
  if self.closed then
    return
  end
  self.closed = true
  self.pipe:close()
  local stat = not self.passed and self.ports.fs.lstat(self.path)
  if stat and stat.dev == self.dev and stat.ino == self.ino then
    self.ports.fs.unlink(self.path)
  end
end

return M
