-- A place with a project, efr's own directories and real git for the specs of snapshots and undo.
-- Needs efr's own Lua state (C modules) and the launcher.
local M = {}

local async = require "efr.util.async"

local build = os.getenv("EFR_BIN") or (os.getenv("EFR_BUILD") or "build") .. "/bin"

M.ports = {
  fs = require "efr.fs", sys = require "efr.sys", uv = require "luv", json = require "efr.json",
  proc = require "efr.proc", text = require "efr.text", dir = require "efr.dir",
  tree = require "efr.tree", store = require "efr.store",
}

--- Tasks wait on the real loop.
function M.setup()
  async.setup { timer = function(ms, fn)
    local timer = M.ports.uv.new_timer()
    timer:start(ms, 0, function()
      timer:close()
      fn()
    end)
    return function() if not timer:is_closing() then timer:close() end end
  end, on_error = function() end }
end

--- Runs fn in a task until it ends.
function M.wait(fn, ...)
  local out
  local task = async.spawn(function(...) out = table.pack(fn(...)) end, ...)
  while not out and not task.err do M.ports.uv.run("once") end
  assert(out, tostring(task.err))
  return table.unpack(out, 1, out.n)
end

--- A new place: base, project, app, settings (changed at will). base: of one that is there.
function M.place(name, base)
  local ports, place = M.ports, { settings = {}, errors = {} }
  local top = ports.sys.getuid() == 0 and "/var/lib" or os.getenv("HOME")
  place.base = base or ("%s/efr-%s-spec.%d"):format(assert(ports.fs.realpath(top)), name,
    ports.sys.getpid())
  place.project = place.base .. "/project"
  for _, dir in ipairs { "project", "home", "config", "data", "state", "runtime" } do
    assert(ports.fs.mkdirs(place.base .. "/" .. dir, 448))
  end
  for _, section in ipairs { "sandbox", "snapshot", "undo" } do
    for _, key in ipairs(require("efr.config.sections." .. section).keys) do
      place.settings[section .. "." .. key.name] = key.default
    end
  end
  local function note(_, fmt, ...) place.errors[#place.errors + 1] = fmt:format(...) end
  local log = { error = note, warn = note, info = function() end, debug = function() end }
  log.part = function() return log end
  place.app = {
    ports = setmetatable({
      sys = setmetatable({ exe_path = function() return build .. "/efrd" end },
        { __index = ports.sys }),
    }, { __index = ports }),
    env = { PATH = "/usr/bin:/bin", HOME = place.base .. "/home" },
    paths = { config = place.base .. "/config", data = place.base .. "/data",
      state = place.base .. "/state", runtime = place.base .. "/runtime" },
    config = { get = function(_, key) return place.settings[key] end },
    log = log,
  }
  place.app.git = require("efr.sbx.git").new(place.app)
  --- Runs a line in the project (or another directory of the place).
  function place.shell(line, dir)
    local quoted = line:gsub("'", "'\\''")
    assert(os.execute(("cd '%s' && { HOME='%s/home' GIT_CONFIG_NOSYSTEM=1 sh -ec '%s'; } "
      .. ">/dev/null 2>&1"):format(dir or place.project, place.base, quoted)), "failed: " .. line)
  end
  function place.remove()
    os.execute(("chmod -R u+rwX '%s'"):format(place.base))
    assert(ports.fs.rmtree(place.base))
  end
  return place
end

return M
