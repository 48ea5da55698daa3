-- The hidden shells of all conversations.
--
-- Owns: one shell for each conversation, their directories in the runtime root, the integration's
-- files there. Must not know: what runs in them. Loop thread of efrd.

local async = require "efr.util.async"
local env = require "efr.shell.env"
local hidden = require "efr.shell.hidden"
local recording = require "efr.shell.recording"

local M = {}

local PRIVATE_DIR <const>, PRIVATE_FILE <const>, PROGRAM <const> = 448, 384, 448
-- Embedded asset -> name and mode in the assets directory.
local ASSETS <const> = {
  { "zsh/hidden/zshenv", ".zshenv", PRIVATE_FILE },
  { "zsh/hidden/integration.zsh", "integration.zsh", PRIVATE_FILE },
  { "zsh/hidden/user-options.zsh", "user-options.zsh", PRIVATE_FILE },
  { "zsh/hidden/editor", "editor", PROGRAM },
}
local MINUTE_MS <const> = 60000
local USUAL <const> = { "/usr/bin/zsh", "/bin/zsh", "/usr/local/bin/zsh" }

---@class efr.shell.Pool
local Pool = {}
Pool.__index = Pool

-- A program of ours: beside efrd, or where it is installed.
local function find_program(ports, name)
  local dir = ports.sys.exe_path():match("^(.*)/[^/]*$")
  for _, path in ipairs { dir .. "/" .. name, dir .. "/../lib/efr/" .. name } do
    local real = ports.fs.realpath(path)
    if real then return real end
  end
  return nil
end

---@param app table  ports (pty fs sys uv proc assets), paths.runtime, paths.data?, db?, config?,
---  log?, worker?, keeper? (paths of efr-worker and efr-sbx)
---@return efr.shell.Pool
function M.new(app)
  local dir = app.paths.runtime .. "/shell"
  local self = setmetatable({ _app = app, _shells = {}, _dir = dir }, Pool)
  self._log = app.log and app.log:part("shell")
  self._keeper = app.keeper or find_program(app.ports, "efr-sbx")
  self._worker = app.worker or find_program(app.ports, "efr-worker")
  if not self._worker then self:_warn("efr-worker is not installed beside efrd: no screens") end
  return self
end

function Pool:_warn(message)
  if self._log then self._log:warn("%s", message) end
end

-- The recording of a new terminal; without one the shell works all the same.
function Pool:_record(pty_id)
  local app = self._app
  if not app.paths.data then return nil end
  local made, err = recording.new {
    ports = app.ports, dir = app.paths.data .. "/recordings", pty_id = pty_id,
    warn = function(message) self:_warn(message) end,
    write = app.db and function(statement)
      app.db:write({ statement }, false, function(why)
        if why then self:_warn("recording_segments: " .. why) end
      end)
    end,
  }
  if not made then self:_warn("no recording of a terminal: " .. err) end
  return made
end

function Pool:_install()
  if self._assets then return true end
  local fs, assets = self._app.ports.fs, self._dir .. "/zsh"
  local ok, err, code = fs.mkdirs(assets, PRIVATE_DIR)
  if not ok then return nil, err, code end
  for _, asset in ipairs(ASSETS) do
    local text = assert(self._app.ports.assets.get(asset[1]), asset[1])
    ok, err, code = fs.write_atomic(assets .. "/" .. asset[2], text, asset[3])
    if not ok then return nil, err, code end
  end
  self._assets = assets
  return true
end

local function is_program(fs, path)
  local stat = path and path:sub(1, 1) == "/" and fs.stat(path)
  return stat and stat.type == "file" and stat.mode & 73 ~= 0
end

-- The setting, the user's own shell if it is a zsh, the first zsh on PATH, the usual places.
local function find_zsh(app, user, environ)
  local fs = app.ports.fs
  local configured = app.config and app.config:get("shell.program")
  if configured then return configured end
  if user.shell and user.shell:find("/zsh$") and is_program(fs, user.shell) then
    return user.shell
  end
  for dir in (environ.PATH or ""):gmatch("[^:]+") do
    if is_program(fs, dir .. "/zsh") then return dir .. "/zsh" end
  end
  for _, path in ipairs(USUAL) do
    if is_program(fs, path) then return path end
  end
  return nil
end

---Whether there is a zsh for a hidden shell.
---@return boolean
function Pool:has_zsh()
  local sys = self._app.ports.sys
  return find_zsh(self._app, sys.user_info(), sys.environ()) ~= nil
end

function Pool:_make(id, opts)
  local app = self._app
  local ok, err, code = self:_install()
  if not ok then return nil, "write the shell's files: " .. err, code end
  local control = ("%s/%s"):format(self._dir, id)
  ok, err, code = app.ports.fs.mkdirs(control, PRIVATE_DIR)
  if not ok then return nil, err, code end
  -- The daemon's own, the same for all shells.
  self._user = self._user or app.ports.sys.user_info()
  self._environ = self._environ or app.ports.sys.environ()
  local user, environ = self._user, self._environ
  local program = find_zsh(app, user, environ)
  if not program then return nil, "zsh is not installed", "ENOENT" end
  if not self._keeper then return nil, "efr-sbx is not installed beside efrd", "ENOENT" end
  local login = app.config and app.config:get("shell.login")
  return hidden.new {
    ports = app.ports, program = program, login = login ~= false, control = control,
    cwd = opts.cwd or user.home, home = user.home, on_event = opts.on_event,
    had_shell = opts.had_shell,
    worker = self._worker, keeper = self._keeper,
    recording = function(pty_id) return self:_record(pty_id) end,
    warn = function(message) self:_warn(message) end,
    env = function(cwd)
      return env.build {
        environ = environ, user = user, assets = self._assets, control = control, cwd = cwd,
        scratch = opts.scratch,
      }
    end,
  }
end

---The shell of a conversation. It starts with its first command.
---@param conversation_id string  a file name
---@param opts {cwd: string?, scratch: string?, had_shell: boolean?,
---  on_event: fun(kind: string, fields: table)?}  had_shell: its commands knew another one
---@return efr.Hidden?
---@return string? err
---@return string? code
function Pool:get(conversation_id, opts)
  if self._closed then return nil, "efrd is stopping", "EFR_CLOSED" end
  self:_watch_idle()
  local shell = self._shells[conversation_id]
  if shell then return shell end
  local err, code
  shell, err, code = self:_make(conversation_id, opts or {})
  if not shell then return nil, err, code end
  self._shells[conversation_id] = shell
  return shell
end

---End the shell of a conversation, and all that runs in its session; waits.
---@param conversation_id string
function Pool:close_conversation(conversation_id)
  local shell = self._shells[conversation_id]
  if not shell then return end
  self._shells[conversation_id] = nil
  shell:close()
  self._app.ports.fs.rmtree(("%s/%s"):format(self._dir, conversation_id))
end

---End all shells at once; waits. No shell starts afterwards.
function Pool:close_all()
  self._closed = true
  self:_stop_timer()
  local tasks = {}
  for id in pairs(self._shells) do
    tasks[#tasks + 1] = async.spawn(function() self:close_conversation(id) end)
  end
  for _, task in ipairs(tasks) do task:wait() end
end

---The shell of a conversation that has had one.
---@param conversation_id string
---@return efr.Hidden?
function Pool:of_conversation(conversation_id)
  return self._shells[conversation_id]
end

---The running shell with this terminal.
---@param pty_id string
---@return efr.Hidden?
function Pool:of_pty(pty_id)
  for _, shell in pairs(self._shells) do
    if shell:pty_id() == pty_id then return shell end
  end
  return nil
end

---End the shells that have been idle as long as the setting says; a command starts a new one.
function Pool:close_idle()
  local minutes = self._app.config and self._app.config:get("shell.idle_minutes") or 0
  if minutes == 0 then return end
  for _, shell in pairs(self._shells) do
    local idle = shell:idle_ms()
    if idle and idle >= minutes * MINUTE_MS then async.spawn(shell.close, shell) end
  end
end

-- Looks at the shells each minute while one runs.
function Pool:_watch_idle()
  if self._timer then return end
  self._timer = self._app.ports.uv.new_timer()
  self._timer:start(MINUTE_MS, MINUTE_MS, function()
    self:close_idle()
    if self:count() == 0 then self:_stop_timer() end
  end)
end

function Pool:_stop_timer()
  if self._timer then self._timer:close() end
  self._timer = nil
end

---Pids of the running shells; each is the id of its session too.
---@return table<integer, boolean>
function Pool:pids()
  local pids = {}
  for _, shell in pairs(self._shells) do
    local pid = shell:pid()
    if pid then pids[pid] = true end
  end
  return pids
end

---How many shells run.
---@return integer
function Pool:count()
  local count = 0
  for _, shell in pairs(self._shells) do
    count = count + (shell:pid() and 1 or 0)
  end
  return count
end

return M
