-- Owns: the calls of the daemon: a directory for each, its plan, its result, the sandbox state of
-- each conversation, and whether the sandbox works on this machine.
-- Must not know: how a line is typed or shown, or who decided that it is contained.
-- Runs in efrd on the loop thread; status waits.
--
-- A call's directory, mode 0700, below the runtime root: `plan`, `in/` (shown to the command:
-- line, state, child.zsh), and what the launcher leaves: started, records, result. The nonce is
-- known to efrd and the launcher only, so nothing inside can write a result that counts.

local async = require "efr.util.async"
local globs = require "efr.sbx.globs"
local plan = require "efr.sbx.plan"
local records = require "efr.sbx.records"

local M = {}

local DIR_MODE <const> = 448 -- 0700
local FILE_MODE <const> = 384 -- 0600
local TMP_MODE <const> = 1023 -- 01777
local NONCE_BYTES <const> = 16
local RESULT_BYTES <const> = 1024 * 1024
local RECORDS_BYTES <const> = 256 * 1024 + 1
local PASSWD_BYTES <const> = 1024 * 1024
local PROBE_MS <const> = 10000
local SETTLED_S <const> = 2
local RETRY_US <const> = 10 * 1000000 -- a failed probe is tried again after this
local NAME <const> = "^[%w][%w_.-]*$"
local ZSH <const> = { "/usr/bin/zsh", "/bin/zsh", "/usr/local/bin/zsh" }

local Calls = {}
Calls.__index = Calls
local Call = {}
Call.__index = Call

-- Files ----------------------------------------------------------------------------------------

-- No sync: after a crash of the machine no call goes on.
local function write_new(uv, path, bytes)
  local fd, err, code = uv.fs_open(path, "wx", FILE_MODE)
  if not fd then return nil, err, code end
  local written
  written, err, code = uv.fs_write(fd, bytes)
  uv.fs_close(fd)
  if written ~= #bytes then return nil, err or "short write of " .. path, code or "EIO" end
  return true
end

local function look(fs, path)
  local own = fs.lstat(path)
  local real = own and fs.realpath(path)
  if not real then return nil end
  if own.type ~= "link" then return { real = real, name = real, link = false, type = own.type } end
  local target = fs.stat(path)
  local dir, base = path:match("^(.*)/([^/]+)$")
  local parent = fs.realpath(dir == "" and "/" or dir)
  if not target or not parent then return nil end
  local name = (parent == "/" and "" or parent) .. "/" .. base
  return { real = real, name = name, link = true, type = target.type }
end

local function names_in(fs, dir)
  local out = {}
  for i, entry in ipairs(fs.readdir(dir) or {}) do out[i] = entry.name end
  return out
end

-- Whether a directory changed: by its change time, which no program can set. A change within the
-- same tick of the clock would not show, so only old ones count.
local function stamp_of(ports)
  local now = ports.sys.now_us() // 1000000
  return function(dir)
    local stat = ports.uv.fs_lstat(dir)
    if not stat or stat.type ~= "directory" then return nil end
    local changed = stat.ctime
    local stamp = ("%d:%d:%d.%d"):format(stat.dev, stat.ino, changed.sec, changed.nsec)
    return stamp, now - changed.sec > SETTLED_S
  end
end

-- Home directories of all users, for root's masks.
local function all_homes(fs)
  local out, seen = {}, {}
  for line in (fs.read_file("/etc/passwd", PASSWD_BYTES) or ""):gmatch("[^\n]+") do
    local home = line:match("^[^:]*:[^:]*:[^:]*:[^:]*:[^:]*:(/[^:]+):")
    if home and not seen[home] and fs.stat(home) then
      seen[home] = true
      out[#out + 1] = home
    end
  end
  return out
end

local function make_dir(fs, path)
  local ok, err, code = fs.mkdirs(path, DIR_MODE)
  if not ok then return nil, err, code end
  local real
  real, err, code = fs.realpath(path)
  return real, err, code
end

-- The programs -----------------------------------------------------------------------------------

local function find_launcher(ports)
  local dir = ports.sys.exe_path():match("^(.*)/[^/]*$")
  for _, path in ipairs({ dir .. "/efr-sbx", dir .. "/../lib/efr/efr-sbx" }) do
    local real = ports.fs.realpath(path)
    if real then return real end
  end
  return nil, "efr-sbx is not installed beside efrd", "EFR_SANDBOX"
end

local function find_zsh(fs)
  for _, path in ipairs(ZSH) do
    if fs.stat(path) then return path end
  end
  return nil, "zsh is not installed", "EFR_SANDBOX"
end

-- Where the call sees its runtime directory: where the user's is, else below efr's own.
local function runtime_place(self)
  local fs, home = self.app.ports.fs, self.home
  local uid = self.app.ports.sys.getuid()
  for _, path in ipairs({ self.app.env.XDG_RUNTIME_DIR or "", ("/run/user/%d"):format(uid) }) do
    local seen = path:sub(1, 1) == "/" and look(fs, path)
    local real = seen and seen.type == "dir" and seen.real
    local wide = real and (home == real or (home .. "/"):sub(1, #real + 1) == real .. "/")
    if real and not wide and real ~= "/" and real ~= "/tmp" and real ~= "/var/tmp" then
      return real
    end
  end
  return (fs.realpath(self.app.paths.runtime) or self.app.paths.runtime) .. "/xrt"
end

-- Preparing --------------------------------------------------------------------------------------

local function child_argv(self, spec)
  local zsh, err, code = find_zsh(self.app.ports.fs)
  if not zsh then return nil, err, code end
  local inside = spec.xrt .. "/efr-sbx"
  return { zsh, "-f", inside .. "/child.zsh", inside }
end

-- Files that the command sees, for a call with a line.
local function write_inside(self, dir, opts)
  local ports = self.app.ports
  local ok, err, code = ports.fs.mkdir(dir .. "/in", DIR_MODE)
  if not ok then return nil, err, code end
  local state = self.states[opts.conversation_id]
  local files = {
    line = opts.line,
    state = state and records.encode_state(state) or "",
    ["child.zsh"] = assert(ports.assets.get("zsh/efr-child.zsh"), "no child shell is embedded"),
  }
  for name, bytes in pairs(files) do
    ok, err, code = write_new(ports.uv, dir .. "/in/" .. name, bytes)
    if not ok then return nil, err, code end
  end
  return dir .. "/in"
end

local function private_tmp(self, conversation_id)
  local fs = self.app.ports.fs
  local dir, err, code = make_dir(fs,
    ("%s/sandbox/%s/tmp"):format(self.app.paths.state, conversation_id))
  if not dir then return nil, err, code end
  local ok
  ok, err, code = fs.chmod(dir, TMP_MODE)
  if not ok then return nil, err, code end
  return dir
end

-- Files of the registered projects, and of what this call may write, that are hidden for their
-- names. What a search found of directories that did not change serves the next one.
local function hidden_files(self, opts)
  local app, out, kept = self.app, {}, {}
  local patterns = app.config:get("sandbox.mask_globs") or {}
  local key = table.concat(patterns, "\0")
  local old = self.searched.key == key and self.searched or {}
  local disk = { list = app.ports.fs.readdir, stamp = stamp_of(app.ports) }
  local matches = globs.matcher(patterns)
  local function search(path)
    local real = path and app.ports.fs.realpath(path)
    if not real or real == "/" or kept[real] then return end
    local found
    found, kept[real] = globs.scan(real, matches, disk, old[real])
    table.move(found, 1, #found, #out + 1, out)
  end
  search(opts.project_root)
  for _, project in ipairs(app.projects and app.projects:list() or {}) do search(project.root) end
  for _, path in ipairs(opts.extra_write or {}) do search(path) end
  kept.key = key
  self.searched = kept
  return globs.targets(out, function(path) return look(app.ports.fs, path) end)
end

-- The whole description of a contained call, but its arguments.
local function describe(self, opts, dir, nonce)
  local app = self.app
  local fs, config, uid = app.ports.fs, app.config, app.ports.sys.getuid()
  local cwd, err = fs.realpath(opts.cwd)
  if not cwd then return nil, ("the directory %s: %s"):format(opts.cwd, err), "EFR_SANDBOX" end
  local tmp, code
  tmp, err, code = private_tmp(self, opts.conversation_id)
  if not tmp then return nil, err, code end
  local spec = {
    uid = uid, nonce = nonce, cwd = cwd, home = self.home, env = app.env, paths = app.paths,
    tmp = tmp, xrt = runtime_place(self), project_root = opts.project_root,
    scratch = opts.scratch, extra_write = opts.extra_write,
    write_roots = config:get("sandbox.write_roots"), masks = config:get("sandbox.mask"),
    secret_paths = config:get("permissions.secret_paths"), protect = config:get("sandbox.protect"),
    hidden_files = hidden_files(self, opts),
    env_deny = config:get("sandbox.env_deny"), env_keep = config:get("sandbox.env_keep"),
    homes = uid == 0 and all_homes(fs) or nil,
    look = function(path) return look(fs, path) end,
    list = function(path) return names_in(fs, path) end,
  }
  if opts.argv then
    spec.argv = opts.argv
    return spec
  end
  spec.records = true
  spec.assets, err, code = write_inside(self, dir, opts)
  if not spec.assets then return nil, err, code end
  spec.argv, err, code = child_argv(self, spec)
  if not spec.argv then return nil, err, code end
  return spec
end

local function write_plan(self, opts, call)
  local spec, err, code = describe(self, opts, call.dir, call.nonce)
  if not spec then return nil, err, code end
  local fields, bytes
  fields, err, code, call.mounts = plan.build(spec)
  if not fields then return nil, err, code end
  bytes, err, code = plan.encode(fields)
  if not bytes then return nil, err, code end
  return write_new(self.app.ports.uv, call.dir .. "/plan", bytes)
end

local function make_call_dir(self, opts)
  local parent = ("%s/sbx/%s"):format(self.app.paths.runtime, opts.conversation_id)
  local fs = self.app.ports.fs
  local real, err, code = make_dir(fs, parent)
  if not real then return nil, err, code end
  local dir = real .. "/" .. opts.call_id
  local ok
  ok, err, code = fs.mkdir(dir, DIR_MODE)
  if not ok then return nil, err, code end
  return dir
end

local function fill(self, opts, call)
  if opts.launch == "direct" then
    return write_new(self.app.ports.uv, call.line_path, opts.line)
  end
  return write_plan(self, opts, call)
end

local function check_options(opts)
  for _, key in ipairs({ "conversation_id", "call_id" }) do
    assert(type(opts[key]) == "string" and opts[key]:match(NAME), key .. " is no plain name")
  end
  assert(opts.launch == "contained" or opts.launch == "direct", "launch is contained or direct")
  assert((opts.line == nil) ~= (opts.argv == nil), "a call has a line or arguments")
end

---@class efr.sbx.CallOptions
---@field conversation_id string
---@field call_id string
---@field line string?  one of line and argv
---@field argv string[]?
---@field cwd string
---@field launch string  "contained" or "direct"
---@field project_root string?
---@field scratch string?
---@field extra_write string[]?  more write roots of this call

---Makes the directory of a call: with a plan when it is contained, with the line alone when it
---runs directly in the hidden shell.
---@param opts efr.sbx.CallOptions
---@return efr.sbx.Call?
---@return string? err  why the call cannot run; it must not run in another way then
---@return string? code
function Calls:prepare(opts)
  check_options(opts)
  local launcher, err, code = find_launcher(self.app.ports)
  if not launcher then return nil, err, code end
  local dir
  dir, err, code = make_call_dir(self, opts)
  if not dir then return nil, err, code end
  local nonce = self.app.ports.sys.random(NONCE_BYTES):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
  local call = setmetatable({
    calls = self, conversation_id = opts.conversation_id, dir = dir, nonce = nonce,
    launch = opts.launch, launcher = launcher,
    line_path = dir .. (opts.launch == "direct" and "/line" or "/in/line"),
  }, Call)
  local ok
  ok, err, code = fill(self, opts, call)
  if not ok then
    call:cleanup()
    return nil, err, code
  end
  return call
end

-- Results ----------------------------------------------------------------------------------------

---@class efr.sbx.Call
---@field dir string
---@field nonce string  32 hex digits
---@field launch string  "contained" or "direct"
---@field line_path string
---@field launcher string  path of efr-sbx

local NUMBERS <const> = { started = true, exit_code = true, signal = true, landlock_abi = true }
local TEXTS <const> = { nonce = true, setup_error = true, launch_error = true }

---Parses a result file. Strict: any defect is an error.
---@param bytes string
---@param nonce string
---@return table? result
---@return string? err
function M.parse_result(bytes, nonce)
  local fields = {}
  if bytes:sub(-1) ~= "\0" then return nil, "the result is cut off" end
  for field in bytes:gmatch("([^\0]*)\0") do fields[#fields + 1] = field end
  if fields[1] ~= "efr-result" or fields[2] ~= "1" or fields[#fields] ~= "end"
    or #fields % 2 == 0 then
    return nil, "not a result"
  end
  local out = {}
  for i = 3, #fields - 1, 2 do
    local key, value = fields[i], fields[i + 1]
    if NUMBERS[key] then value = value:match("^%d+$") and math.tointeger(tonumber(value)) end
    if not value or out[key] ~= nil or not (NUMBERS[key] or TEXTS[key]) then
      return nil, "a bad field in the result"
    end
    out[key] = value
  end
  if out.nonce ~= nonce then return nil, "the result has another nonce" end
  out.started = out.started == 1
  return out
end

-- What the child shell reported: the state for later calls, the directory and exports for now.
local function take_records(self, out)
  local calls = self.calls
  local bytes = calls.app.ports.fs.read_file(self.dir .. "/records", RECORDS_BYTES)
  local parsed = bytes and records.parse(bytes)
  if not parsed then return end
  out.setup_error = out.setup_error or parsed.setup_error
  out.cwd, out.exports = records.cwd(parsed.list), records.promotable(parsed.list)
  -- A directory of the call's own means nothing to the shell outside.
  local cwd = out.cwd
  if cwd and not (plan.is_shared(self.mounts, cwd) and calls.app.ports.fs.stat(cwd)) then
    out.cwd = nil
  end
  local id = self.conversation_id
  local state = records.apply(calls.states[id] or records.new_state(), parsed.list)
  if state then calls.states[id] = state end
end

---@class efr.sbx.Result
---@field started boolean  the command was executed
---@field exit_code integer?
---@field signal integer?
---@field setup_error string?  the sandbox was not built; nothing ran
---@field launch_error string?  the command could not be executed
---@field landlock_abi integer?
---@field cwd string?  where the line ended
---@field exports table<string, string>?  what the hidden shell may take over

---What became of the call, or nil while there is no result (the launcher was killed, or it still
---runs). cwd and exports were chosen inside the sandbox.
---@return efr.sbx.Result?
---@return string? err
---@return string? code
function Call:result()
  if self.kept then return self.kept end
  local bytes = self.calls.app.ports.fs.read_file(self.dir .. "/result", RESULT_BYTES)
  if not bytes then return nil, "the launcher left no result", "EFR_SANDBOX" end
  local out, err = M.parse_result(bytes, self.nonce)
  if not out then return nil, err, "EFR_SANDBOX" end
  if not out.setup_error then take_records(self, out) end
  self.kept = out
  return out
end

---Removes the directory of the call.
function Call:cleanup()
  return self.calls.app.ports.fs.rmtree(self.dir)
end

---Forgets what a conversation kept in its sandbox.
---@param conversation_id string
function Calls:forget(conversation_id)
  self.states[conversation_id] = nil
end

-- The probe --------------------------------------------------------------------------------------

local function run_launcher(self, call)
  local child
  local ok, code = async.with_timeout(PROBE_MS, function()
    return async.await(function(resume)
      local err
      child, err = self.app.ports.proc.spawn({
        path = call.launcher, argv = { "efr-sbx", "run", "--call-dir", call.dir },
        env = { "PATH=/usr/bin:/bin" }, cwd = "/", fds = { [0] = "null", "null", "null" },
        on_exit = resume,
      })
      if not child then resume(nil, err) end
    end)
  end)
  if not ok and child then child:kill(self.app.ports.sys.SIGKILL) end
  return ok and code
end

local function probe(self)
  local app = self.app
  self.probes = self.probes + 1
  local call, err = self:prepare({
    conversation_id = "probe", cwd = "/", launch = "contained", argv = { "true" },
    call_id = ("%d-%d"):format(app.ports.sys.getpid(), self.probes),
  })
  if not call then return { available = false, reason = err } end
  local code = run_launcher(self, call)
  local result
  result, err = call:result()
  call:cleanup()
  if code == 0 and result and result.started then
    return { available = true, backend = "native", landlock_abi = result.landlock_abi }
  end
  local reason = result and (result.setup_error or result.launch_error) or err
  return { available = false, reason = reason, landlock_abi = result and result.landlock_abi }
end

---Whether contained calls work here: one real launch, remembered; a failure is tried again after
---a while. Waits.
---@return {available: boolean, reason: string?, backend: string?, landlock_abi: integer?}
function Calls:status()
  if self.app.config:get("sandbox.enabled") == false then
    return { available = false, reason = "sandbox.enabled is false" }
  end
  local now = self.app.ports.sys.mono_us()
  local old = self.last
  if old and (old.available or now - self.last_at < RETRY_US) then return old end
  if self.running then return self.running:get() end
  self.running = async.future()
  local ok, status = pcall(probe, self)
  if not ok then
    status = { available = false, reason = "the probe failed: " .. tostring(status) }
  end
  self.last, self.last_at = status, self.app.ports.sys.mono_us()
  local waiting = self.running
  self.running = nil
  waiting:set(status)
  return status
end

---@param app table  the daemon
---@return table calls
function M.new(app)
  local home = app.env.HOME or app.ports.sys.user_info().home
  return setmetatable({
    app = app, home = home, states = {}, searched = {}, runs = {}, probes = 0,
  }, Calls)
end

return M
