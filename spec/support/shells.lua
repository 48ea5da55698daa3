-- Owns: real hidden shells for specs: throw-away home and runtime directories, tasks on the real
-- loop with a limit, checks for what is left. Needs efr-lua, zsh. Test help only.
local after = require "efr.util.after"
local async = require "efr.util.async"
local pool = require "efr.shell.pool"

local M = {}

local LIMIT_MS <const> = os.getenv("EFR_TEST_SIZE") == "long" and 1500000 or 110000

---Path of efr-worker.
M.WORKER = (os.getenv("EFR_BIN") or "build/bin") .. "/efr-worker" ---@type string

local ports = {
  uv = require "luv", pty = require "efr.pty", fs = require "efr.fs", sys = require "efr.sys",
  proc = require "efr.proc",
}
-- From the tree, so that the spec sees the files as they are.
ports.assets = {
  get = function(path)
    local file = assert(io.open((os.getenv("EFR_SOURCE") or ".") .. "/" .. path, "rb"))
    local text = file:read("a")
    file:close()
    return text
  end,
}
M.ports = ports
---Path of efr-sbx.
M.KEEPER = assert(ports.fs.realpath((os.getenv("EFR_BIN") or "build/bin") .. "/efr-sbx"))

---Runs fn in a task until it ends; raises its error.
function M.run(fn)
  local failed
  async.setup {
    timer = after(ports.uv), traceback = debug.traceback,
    on_error = function(text) failed = failed or text end,
  }
  local uv = ports.uv
  local limit = uv.new_timer()
  limit:start(LIMIT_MS, 0, function()
    failed = failed or "the spec did not end in time"
    uv.stop()
  end)
  local done, running = false, false
  async.spawn(function()
    local ok, err = xpcall(fn, debug.traceback)
    if not ok then failed = failed or err end
    done = true
    if running then uv.stop() end
  end)
  running = true
  if not done then uv.run() end
  limit:close()
  uv.run("nowait")
  if failed then error(failed, 0) end
end

---How many live processes belong to a session.
function M.in_session(session)
  local count = 0
  for _, entry in ipairs(ports.fs.readdir("/proc")) do
    local stat = entry.name:find("^%d+$")
      and ports.fs.read_file("/proc/" .. entry.name .. "/stat", 4096)
    local state, sid = (stat or ""):match("^.*%) (%a) %d+ %d+ (%d+)")
    if sid == tostring(session) and state ~= "Z" then count = count + 1 end
  end
  return count
end

local World = {}
World.__index = World

function World:write(name, text)
  local path = self.home .. "/" .. name
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

function World:read(name)
  local file = io.open(self.home .. "/" .. name, "rb")
  local text = file and file:read("a")
  if file then file:close() end
  return text
end

---A shell of this world; events go to self.events.
function World:shell(id, had_shell)
  return assert(self.pool:get(id or "c1", {
    had_shell = had_shell,
    cwd = self.home,
    on_event = function(kind, fields)
      self.events[#self.events + 1] = { kind = kind, fields = fields }
    end,
  }))
end

---A call directory as sbx.calls makes it, with a program in the place of the launcher.
function World:contained(launcher, result)
  local dir = self.root .. "/call" .. math.random(1, 1 << 40)
  assert(ports.fs.mkdirs(dir, 448))
  return {
    dir = dir, launcher = launcher, launch = "contained",
    nonce = (ports.sys.random(16):gsub(".", function(c) return ("%02x"):format(c:byte()) end)),
    result = function()
      if type(result) == "function" then return result() end
      return result
    end,
    has_started = function() return ports.fs.stat(dir .. "/started") ~= nil end,
    cleanup = function() end,
  }
end

---Home and runtime directories with `rc` as .zshrc, a pool on them, and fn(world) in a task.
---Afterwards no process of a shell's session may be left.
---@param opts {rc: string?, zshenv: string?, keeper: string?, config: table?, before: fun(world: table)?}
function M.world(opts, fn)
  local root = os.tmpname()
  os.remove(root)
  local self = setmetatable({ root = root, home = root .. "/home", events = {} }, World)
  assert(ports.fs.mkdirs(self.home, 448))
  assert(ports.fs.mkdirs(root .. "/run", 448))
  self:write(".zshrc", opts.rc or "")
  if opts.zshenv then self:write(".zshenv", opts.zshenv) end
  local sys = setmetatable({
    environ = function()
      return { HOME = self.home, PATH = os.getenv("PATH"), LANG = "C.UTF-8", EFR_X = "1",
        USER = "u", TMUX = "x" }
    end,
  }, { __index = ports.sys })
  local world_ports = setmetatable({ sys = sys }, { __index = ports })
  self.pool = pool.new {
    ports = world_ports, paths = { runtime = root .. "/run", data = root .. "/data" },
    worker = M.WORKER, keeper = opts.keeper or M.KEEPER, config = opts.config,
  }
  local pids = {}
  local ok, err = pcall(M.run, function()
    local fine, why = xpcall(fn, debug.traceback, self)
    for pid in pairs(self.pool:pids()) do pids[pid] = true end
    self.pool:close_all()
    assert(fine, why)
  end)
  ports.fs.rmtree(root)
  assert(ok, err)
  for pid in pairs(pids) do
    assert(not ports.sys.kill(pid, 0), "a shell is left")
  end
end

return M
