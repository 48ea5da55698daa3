-- Owns: a small world with real contained calls for specs: a home, a project, the daemon's part of
-- the sandbox, the launcher. Needs efr-lua and zsh. Test help only.
local calls = require "efr.sbx.calls"

local M = {}

local source = os.getenv("EFR_SOURCE") or "."
local DIR_MODE <const> = 448

local ports = {
  fs = require "efr.fs", sys = require "efr.sys", json = require "efr.json", uv = require "luv",
  proc = require "efr.proc", text = require "efr.text", reach = require "efr.reach",
  assets = {
    get = function(path)
      local file = assert(io.open(source .. "/" .. path, "rb"))
      local bytes = file:read("a")
      file:close()
      return bytes
    end,
  },
}
M.ports = ports

---Where the programs of this build are.
M.BIN = os.getenv("EFR_BIN") or (os.getenv("EFR_BUILD") or "build") .. "/bin" ---@type string

local World = {}
World.__index = World

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end
M.quoted = quoted

---Makes a file of the world and the directories above it.
---@param path string  absolute, or below the base directory
---@param bytes string?
function World:file(path, bytes)
  if path:sub(1, 1) ~= "/" then path = self.base .. "/" .. path end
  assert(ports.fs.mkdirs(path:match("^(.*)/"), DIR_MODE))
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes or "x\n"))
  assert(file:close())
  return path
end

---Prepares a call; the project is the place unless opts say something else.
function World:prepare(opts)
  self.count = self.count + 1
  local options = {
    conversation_id = "c1", call_id = "k" .. self.count, cwd = self.base .. "/home/p",
    project_root = self.base .. "/home/p", launch = "contained",
  }
  for key, value in pairs(opts) do options[key] = value end
  return self.sandbox:prepare(options)
end

---Runs the launcher of a prepared call; env is the text of assignments before it.
function World:launch(call, env)
  local pipe = assert(io.popen(("env -i PATH=/usr/bin:/bin HOME=%s %s %s run --call-dir %s 2>&1 </dev/null")
    :format(quoted(self.base .. "/home"), env or "", quoted(call.launcher), quoted(call.dir))))
  local output = pipe:read("a")
  pipe:close()
  return output
end

---Runs a line (or opts.argv) contained. Raises when it cannot be prepared.
---@return table result
---@return string output
function World:run(line, opts)
  local options = { line = line }
  for key, value in pairs(opts or {}) do options[key] = value end
  local call = assert(self:prepare(options))
  local output = self:launch(call, options.env)
  local result, err = call:result()
  assert(call:cleanup())
  return assert(result, err), output
end

---Why a call cannot be prepared, nil when it can.
function World:refusal(opts)
  local options = { line = "true" }
  for key, value in pairs(opts or {}) do options[key] = value end
  local call, err = self:prepare(options)
  if call then
    call:cleanup()
    return nil
  end
  return err
end

---Another daemon on the same directories.
function World:restart()
  self.sandbox = calls.new(self.app)
end

function World:close()
  ports.fs.rmtree(self.base)
end

---A new world. `settings` holds values of the configuration by their keys.
---@param settings table?
function M.new(settings)
  local home = os.getenv("HOME")
  if ports.sys.getuid() == 0 then home = "/var/lib" end -- /root may be closed to a call's user
  local base = ("%s/efr-contained.%d.%s"):format(home, ports.sys.getpid(),
    ports.sys.uuid7():sub(-6))
  for _, name in ipairs({ "home/p", "home/.ssh", "config", "data", "state", "runtime" }) do
    assert(ports.fs.mkdirs(base .. "/" .. name, DIR_MODE))
  end
  local self = setmetatable({ base = base, count = 0, settings = settings or {} }, World)
  self.app = {
    ports = setmetatable({
      sys = setmetatable({
        exe_path = function() return self.exe or M.BIN .. "/efrd" end,
      }, { __index = ports.sys }),
    }, { __index = ports }),
    env = { PATH = "/usr/bin:/bin", HOME = base .. "/home" },
    paths = {
      config = base .. "/config", data = base .. "/data", state = base .. "/state",
      runtime = base .. "/runtime",
    },
    config = { get = function(_, key) return self.settings[key] end },
    projects = { list = function() return self.projects or {} end },
  }
  self:restart()
  return self
end

return M
