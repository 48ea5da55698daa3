-- Owns: the calls of the daemon: a directory for each, its plan, its result, the sandbox state of
-- each conversation, and whether the sandbox works on this machine.
-- Must not know: how a line is typed or shown, or who decided that it is contained.
-- Runs in efrd on the loop thread; status waits.
--
-- A call's directory, mode 0700, below the runtime root: `plan`, `in/` (shown to the command:
-- line, editor, child.zsh), and what the launcher leaves: started, records, result. The nonce is
-- known to efrd and the launcher only, so nothing inside can write a result that counts.

local async = require "efr.util.async"
local caches = require "efr.sbx.caches"
local deletes = require "efr.sbx.deletes"
local describe = require "efr.sbx.describe"
local explain = require "efr.sbx.explain"
local hidden = require "efr.sbx.hidden"
local launcher_of = require "efr.sbx.launcher"
local layers = require "efr.sbx.layers"
local plan = require "efr.sbx.plan"
local probe = require "efr.sbx.probe"
local reach = require "efr.sbx.reach"
local returns = require "efr.sbx.returns"
local state_of = require "efr.sbx.state"

local M = {}

local DIR_MODE <const> = 448 -- 0700
local FILE_MODE <const> = 384 -- 0600
local MODES <const> = { editor = 448 } -- of files in `in/`
local NONCE_BYTES <const> = 16
local RESULT_BYTES <const> = 1024 * 1024
local DELETES_BYTES <const> = 384 * 1024
local TIDY_US <const> = 6 * 3600 * 1000000
local NAME <const> = "^[%w][%w_.-]*$"

local Calls = {}
Calls.__index = Calls
local Call = {}
Call.__index = Call

-- Files ----------------------------------------------------------------------------------------

-- No sync: after a crash of the machine no call goes on.
local function write_new(uv, path, bytes, mode)
  local fd, err, code = uv.fs_open(path, "wx", mode or FILE_MODE)
  if not fd then return nil, err, code end
  local written
  written, err, code = uv.fs_write(fd, bytes)
  uv.fs_close(fd)
  if written ~= #bytes then return nil, err or "short write of " .. path, code or "EIO" end
  return true
end

-- Preparing --------------------------------------------------------------------------------------

-- Files that the command sees, for a call with a line.
local function write_inside(self, dir, opts)
  local ports = self.app.ports
  local ok, err, code = ports.fs.mkdir(dir .. "/in", DIR_MODE)
  if not ok then return nil, err, code end
  local files = {
    line = opts.line,
    editor = assert(ports.assets.get("zsh/hidden/editor"), "no editor is embedded"),
    ["child.zsh"] = assert(ports.assets.get("zsh/efr-child.zsh"), "no child shell is embedded"),
  }
  if opts.plain then files.plain = table.concat(opts.plain, "\n") .. "\n" end
  for name, bytes in pairs(files) do
    ok, err, code = write_new(ports.uv, dir .. "/in/" .. name, bytes, MODES[name])
    if not ok then return nil, err, code end
  end
  -- The place of the sandbox state.
  ok, err, code = ports.fs.mkdir(dir .. "/in/replay", DIR_MODE)
  if not ok then return nil, err, code end
  return dir .. "/in"
end

local function write_plan(self, opts, call)
  local assets, spec, err, code
  if opts.line then
    assets, err, code = write_inside(self, call.dir, opts)
    if not assets then return nil, err, code end
  end
  call.opts, call.assets = opts, assets
  spec, err, code = describe.spec(self, opts, call.nonce, assets)
  if not spec then return nil, err, code end
  call.notes, call.cgroup = spec.notes, spec.cgroup
  local fields, bytes
  fields, err, code, call.mounts = plan.build(spec)
  if not fields then return nil, err, code end
  self.hidden:add_masks(spec.hidden_roots, call.mounts)
  call.hold, err, code = self.hidden:hold(spec.hidden_roots)
  if not call.hold then return nil, err, code end
  local ok
  ok, err, code = caches.prepare(self.app.ports.fs, spec.layers, call.mounts)
  if not ok then return nil, err, code end
  call.keeps = caches.keeps(call.mounts)
  call.layer = ("%s/layers/%s"):format(spec.layers, opts.call_id)
  self.live[opts.conversation_id] = (self.live[opts.conversation_id] or 0) + 1
  layers.used(self.app.ports.uv, self.app.ports.sys.now_us(), spec.layers)
  bytes, err, code = plan.encode(fields)
  if not bytes then return nil, err, code end
  return write_new(self.app.ports.uv, call.dir .. "/plan", bytes)
end

local function make_call_dir(self, opts)
  local parent = ("%s/sbx/%s"):format(self.app.paths.runtime, opts.conversation_id)
  local fs = self.app.ports.fs
  local real, err, code = describe.make_dir(fs, parent)
  if not real then return nil, err, code end
  local dir = real .. "/" .. opts.call_id
  local ok
  ok, err, code = fs.mkdir(dir, DIR_MODE)
  if not ok then return nil, err, code end
  return dir
end

-- The roots of this efr, where they are not the usual ones: a line outside may use `efr`.
local ROOTS <const> = {
  "EFR_HOME", "EFR_CONFIG_DIR", "EFR_DATA_DIR", "EFR_STATE_DIR", "EFR_RUNTIME_DIR",
}

local function roots_of(env)
  local fields = {}
  for _, name in ipairs(ROOTS) do
    local value = env[name]
    if value and value ~= "" then fields[#fields + 1] = name .. "\0" .. value .. "\0" end
  end
  return table.concat(fields)
end

-- What `efr-sbx outside` reads: docs/protocol.md, "A line outside".
local function write_outside(self, opts, call)
  local ports = self.app.ports
  local zsh, err, code = describe.find_zsh(ports.fs)
  if not zsh then return nil, err, code end
  local files = {
    line = opts.line, environment = roots_of(self.app.env),
    ["outside.zsh"] = assert(ports.assets.get("zsh/efr-outside.zsh"), "no shell is embedded"),
    outside = table.concat({ "efr-outside", "1", "nonce", call.nonce, "shell", zsh, "end", "" },
      "\0"),
  }
  for name, bytes in pairs(files) do
    local ok
    ok, err, code = write_new(ports.uv, call.dir .. "/" .. name, bytes)
    if not ok then return nil, err, code end
  end
  return true
end

local function fill(self, opts, call)
  if opts.launch == "direct" then
    return write_new(self.app.ports.uv, call.line_path, opts.line)
  elseif opts.launch == "outside" then
    return write_outside(self, opts, call)
  end
  return write_plan(self, opts, call)
end

local LAUNCHES <const> = { contained = true, direct = true, outside = true }

local function check_options(opts)
  for _, key in ipairs({ "conversation_id", "call_id" }) do
    assert(type(opts[key]) == "string" and opts[key]:match(NAME), key .. " is no plain name")
  end
  assert(LAUNCHES[opts.launch], "launch is contained, direct or outside")
  assert((opts.line == nil) ~= (opts.argv == nil), "a call has a line or arguments")
end

---@class efr.sbx.CallOptions
---@field conversation_id string
---@field call_id string
---@field line string?  one of line and argv
---@field argv (string[]|fun(mounts: table[]): string[])?  a function gets what was planned
---@field cwd string
---@field launch string  "contained"; "direct" in the hidden shell; "outside": alone, as a tree
---@field project_root string?
---@field scratch string?
---@field extra_write string[]?  more write roots of this call
---@field grants efr.sbx.Grant[]?  decided by the caller
---@field plain string[]?  words that are no alias and no function in the line
---@field env_pass string[]?  variables of the launcher that the call gets whatever their names
---@field env_set string[][]?  {name, value}: more variables of the call
---@field named string[]?  paths that the call declared, for sandbox.write_projects = "named"
---@field spare_cache string?  in place of sandbox.caches when none of them exists
---@field cache_mode string?  "tmp", "overlay" or "readonly", in place of sandbox.cache_mode
---@field read_only boolean?  neither projects nor sandbox.write_roots can be written
---@field dry boolean?  what it may write is an overlay; the caller does something with the layers
---@field only_own boolean?  nothing of the projects is looked at (the probe)

---Whether every place that a contained call is made of answers, without a wait of the loop for a
---mount whose server is gone. To be asked before anything looks at them. Projects of which
---opts.only_own takes no notice are asked, too, so that a dead one is known. Waits.
---@param opts efr.sbx.CallOptions
---@return true? ok
---@return string? err  names the place
---@return string? code
function Calls:answers(opts)
  local places, projects = describe.places(self.app, opts)
  return self.reach:answers(places, projects)
end

---Makes the directory of a call: with a plan when it is contained, with the line alone when it
---runs directly in the hidden shell or in a shell of its own outside of the sandbox.
---@param opts efr.sbx.CallOptions
---@return efr.sbx.Call?
---@return string? err  why the call cannot run; it must not run in another way then
---@return string? code
function Calls:prepare(opts)
  check_options(opts)
  local launcher, dir, err, code
  if opts.launch ~= "direct" then
    launcher, err, code = self.launcher:path()
    if not launcher then return nil, err, code end
  end
  dir, err, code = make_call_dir(self, opts)
  if not dir then return nil, err, code end
  local nonce = self.app.ports.sys.random(NONCE_BYTES):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
  local call = setmetatable({
    calls = self, conversation_id = opts.conversation_id, dir = dir, nonce = nonce,
    cwd = opts.cwd, launch = opts.launch, launcher = launcher,
    line_path = dir .. (opts.launch == "contained" and "/in/line" or "/line"),
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
---@field launch string
---@field line_path string
---@field launcher string?  path of efr-sbx; a direct call has none
---@field notes string[]?  what this call cannot do, for its result

local NUMBERS <const> = {
  started = true, exit_code = true, signal = true, landlock_abi = true, landlock_erratum = true,
  survivors = true,
}
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

---@class efr.sbx.Result
---@field started boolean  the command was executed
---@field exit_code integer?
---@field signal integer?
---@field setup_error string?  the sandbox was not built; nothing ran
---@field launch_error string?  the command could not be executed
---@field landlock_abi integer?
---@field landlock_erratum integer?  number of one that is open on this kernel
---@field survivors integer?  processes of a line outside that could not be ended
---@field cwd string?  where the line ended
---@field exports table<string, string>?  what the hidden shell may take over
---@field state_error string?  why the state for later calls is the old one

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
  if not out.setup_error and self.launch == "contained" then returns.take(self, out) end
  self.kept = out
  return out
end

---Whether the command was executed, also when the launcher left no result.
---@return boolean
function Call:has_started()
  if self.kept and self.kept.started then return true end
  return self.calls.app.ports.fs.lstat(self.dir .. "/started") ~= nil
end

local function deletes_env(calls)
  return { open = calls.app.ports.dir.open, pause = function() async.sleep(1) end }
end

-- A list, checked against what the settings and the disk say now.
local function check_deletes(call, found)
  local calls = call.calls
  local spec, err = describe.spec(calls, call.opts, call.nonce, call.assets)
  if not spec then return nil, err end
  local fields, mounts, _
  fields, err, _, mounts = plan.build(spec)
  if not fields then return nil, err end
  return deletes.check(found, mounts, calls.app.ports.text.is_utf8)
end

---What the call deleted in its view of caches that is still there, each {list, bytes}; without what
---was refused before, and without lists that must not be carried out. Waits.
---@return {list: efr.sbx.Deletes, bytes: integer}[]
function Call:deletes()
  local calls, out = self.calls, {}
  local bytes = calls.app.ports.fs.read_file(self.dir .. "/deletes", DELETES_BYTES)
  local refused = calls.refused[self.conversation_id] or {}
  for _, found in ipairs(bytes and deletes.parse(bytes) or {}) do
    local names = {}
    for _, name in ipairs(found.names) do
      if not refused[found.cache .. "/" .. name] then names[#names + 1] = name end
    end
    found.names = names
    local list, err = check_deletes(self, found)
    if list then
      local there, size = deletes.measure(deletes_env(calls), list)
      if #there.names > 0 then out[#out + 1] = { list = there, bytes = size } end
    else
      calls.app.log:part("sandbox"):info("deletes in %s stay private: %s", found.cache, err)
    end
  end
  return out
end

---Deletes what was allowed in the real cache. Waits.
---@param list efr.sbx.Deletes
---@return integer count
---@return integer bytes
---@return string? err  the first failure
function Call:apply_deletes(list)
  local checked, err = check_deletes(self, list)
  if not checked then return 0, 0, err end
  return deletes.apply(deletes_env(self.calls), checked)
end

---Notes that a list was not allowed: it is not raised again in the conversation.
---@param list efr.sbx.Deletes
function Call:refuse_deletes(list)
  local all = self.calls.refused
  local refused = all[self.conversation_id] or {}
  all[self.conversation_id] = refused
  for _, name in ipairs(list.names) do refused[list.cache .. "/" .. name] = true end
end

---Removes the directory of the call and its layers, and the conversation's when nothing else is
---kept there.
function Call:cleanup()
  local calls, id = self.calls, self.conversation_id
  if self.hold then
    local ok, err = calls.hidden:release(self.hold)
    if not ok then calls.app.log:part("sandbox"):error("hidden files are not noted: %s", err) end
    self.hold = nil
  end
  if self.layer then
    calls.app.ports.fs.rmtree(self.layer)
    calls.live[id] = calls.live[id] > 1 and calls.live[id] - 1 or nil
    self.layer = nil
    if self.keeps then calls:tidy() end
  end
  if self.cgroup then calls.app.cgroup:remove(self.cgroup) end
  local fs = calls.app.ports.fs
  local ok, err, code = fs.rmtree(self.dir)
  fs.rmdir(self.dir:match("^(.*)/"))
  return ok, err, code
end

---Forgets what a conversation kept in its sandbox.
---@param conversation_id string
function Calls:forget(conversation_id)
  self.state:forget(conversation_id)
  self.inside_cwds[conversation_id], self.refused[conversation_id] = nil, nil
end

---Cleans up what calls kept, in the background: at the start, and at most every 6 hours.
function Calls:tidy()
  local ports, config = self.app.ports, self.app.config
  local now = ports.sys.mono_us()
  if self.tidied_at and now - self.tidied_at < TIDY_US then return end
  self.tidied_at = now
  async.spawn(layers.collect, {
    fs = ports.fs, uv = ports.uv, sys = ports.sys, log = self.app.log:part("sandbox"),
    now_us = ports.sys.now_us(), pause = function() async.sleep(1) end,
    is_live = function(id) return self.live[id] ~= nil end,
  }, self.app.paths.state .. "/sandbox", {
    days = config:get("sandbox.cache_days"), gib = config:get("sandbox.cache_max_gib"),
  })
end

---Whether contained calls work here (probe.status). Waits.
---@return efr.sbx.Report
function Calls:status()
  return probe.status(self)
end

---What is known of it without a wait.
---@return efr.sbx.Report? report
---@return boolean checking  a probe runs
function Calls:known()
  return probe.known(self)
end

---Looks again in the background: at the start, and after a launch that failed.
function Calls:check_again()
  probe.again(self)
end

---What a call of these options would find at a path, and why. Prepares and runs nothing.
---@param opts efr.sbx.CallOptions  conversation_id, call_id, cwd, argv, project_root
---@param path string  absolute and normal
---@return efr.sbx.Explanation?
---@return string? err  no call could run
---@return string? code
function Calls:explain(opts, path)
  local spec, err, code = describe.spec(self, opts, ("0"):rep(2 * NONCE_BYTES))
  if not spec then return nil, err, code end
  local fields, mounts
  fields, err, code, mounts = plan.build(spec)
  if not fields then return nil, err, code end
  local points = explain.mount_points(self.app.ports.fs.read_file("/proc/self/mountinfo") or "")
  return explain.path(spec, mounts, path, points)
end

-- What a probe's result depends on.
local function settings_key(app)
  local parts = {}
  for _, entry in ipairs(app.config:all()) do
    if entry.name:match("^sandbox%.") or entry.name == "permissions.secret_paths" then
      local value = app.ports.json.encode({ entry.value }, { sort = true })
      parts[#parts + 1] = entry.name .. "=" .. value
    end
  end
  for _, project in ipairs(app.projects:list()) do parts[#parts + 1] = project.root end
  return table.concat(parts, "\0")
end

---To be called after each reload: a change of [sandbox] or the projects makes a new probe.
function Calls:settings_read()
  local key = settings_key(self.app)
  local changed = self.settings_key ~= nil and self.settings_key ~= key
  self.settings_key = key
  if changed then self:check_again() end
end

---@param app table  the daemon
---@param opts {in_place: boolean?}?  in_place: no trusted copy of the launcher (efr sandbox check)
---@return table calls
function M.new(app, opts)
  local home = app.env.HOME or app.ports.sys.user_info().home
  return setmetatable({
    app = app, home = home, searched = {}, runs = {}, dry_runs = {}, live = {}, refused = {},
    probes = 0, wanted = 0, state = state_of.new(app.ports, app.paths.runtime), inside_cwds = {},
    launcher = launcher_of.new(app, opts),
    reach = app.reach or reach.new(app.ports),
    hidden = hidden.new(app.ports, app.paths.state .. "/hidden-files"),
  }, Calls)
end

return M
