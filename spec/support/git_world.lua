-- Owns: what the specs with real git share: the ports, timers on luv's loop, a base directory outside
-- of /tmp, and the part of the daemon that runs git. Needs efr-lua. Test help only.
local async = require "efr.util.async"

local M = {}

local DIR_MODE <const> = 448

local ports = {
  fs = require "efr.fs", sys = require "efr.sys", uv = require "luv", json = require "efr.json",
  proc = require "efr.proc", text = require "efr.text", dir = require "efr.dir",
}
M.ports = ports

---Where the programs of this build are.
M.BIN = os.getenv("EFR_BIN") or (os.getenv("EFR_BUILD") or "build") .. "/bin" ---@type string

---Tasks wait on luv's loop from now on.
function M.timers()
  async.setup { timer = function(ms, fn)
    local timer = ports.uv.new_timer()
    timer:start(ms, 0, function()
      timer:close()
      fn()
    end)
    return function() if not timer:is_closing() then timer:close() end end
  end }
end

---Runs fn in a task until it ends, and gives its results.
function M.wait(fn, ...)
  local out
  local task = async.spawn(function(...) out = table.pack(fn(...)) end, ...)
  while not out and not task.err do ports.uv.run("once") end
  assert(out, tostring(task.err))
  return table.unpack(out, 1, out.n)
end

---Makes a base directory of this process with these directories in it; git of the system may not be
---given what lies in /tmp or /root.
---@param name string
---@param dirs string[]
---@return string base
function M.base(name, dirs)
  local top = ports.sys.getuid() == 0 and "/var/lib" or os.getenv("HOME")
  local base = ("%s/efr-%s.%d"):format(assert(ports.fs.realpath(top)), name, ports.sys.getpid())
  for _, dir in ipairs(dirs) do assert(ports.fs.mkdirs(base .. "/" .. dir, DIR_MODE)) end
  return base
end

---The daemon's part that runs git, with its roots below base.
---@param base string
---@param settings table  values by their keys; may change later
---@param env table?
---@return table app
function M.app(base, settings, env)
  return {
    ports = setmetatable({
      sys = setmetatable({ exe_path = function() return M.BIN .. "/efrd" end },
        { __index = ports.sys }),
    }, { __index = ports }),
    env = env or { PATH = "/usr/bin:/bin", HOME = base .. "/home" },
    paths = { config = base .. "/config", data = base .. "/data", state = base .. "/state",
      runtime = base .. "/runtime" },
    config = { get = function(_, key) return settings[key] end },
  }
end

return M
