-- Owns: the description of one contained call, from which sbx/plan makes the launch plan: what the
-- settings, the projects, the conversation and the disk say at this moment.
-- Must not know: the plan's format, how a call is started or what became of it.
-- Runs in efrd on the loop thread.

local backend = require "efr.sbx.backend"
local git_records = require "efr.sbx.git_records"
local globs = require "efr.sbx.globs"
local list = require "efr.util.list"
local paths = require "efr.perm.paths"
local returns = require "efr.sbx.returns"

local M = {}

local DIR_MODE <const> = 448 -- 0700
local TMP_MODE <const> = 1023 -- 01777
local PASSWD_BYTES <const> = 1024 * 1024
local SETTLED_S <const> = 2
local MAX_SCANNED <const> = 4096 -- entries of a directory whose links may be floors
local MAX_LINKS <const> = 40 -- as the kernel follows
local PLACES <const> = {
  "sandbox.write_roots", "sandbox.caches", "sandbox.mask", "sandbox.protect",
  "permissions.secret_paths",
}
local ZSH <const> = { "/usr/bin/zsh", "/bin/zsh", "/usr/local/bin/zsh" }

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

-- Names of the links in a directory, for floors behind links.
local function links_in(fs, dir)
  local out = {}
  for i, entry in ipairs(fs.readdir(dir) or {}) do
    if i > MAX_SCANNED then break end
    if entry.type == "link" then out[#out + 1] = entry.name end
  end
  table.sort(out)
  return out
end

---The links on the way to a path, each by the real directory that it lies in.
---@param fs table
---@param path string
---@return string[]
function M.trace(fs, path)
  local out, done, rest = {}, "", path
  while rest ~= "" and #out <= MAX_LINKS do
    local part, after = rest:match("^/*([^/]+)(.*)$")
    if not part then break end
    local at = done .. "/" .. part
    if part == ".." then
      done = done:match("^(.*)/[^/]*$") or ""
    elseif part ~= "." then
      local own = fs.lstat(at)
      local target = own and own.type == "link" and fs.readlink(at)
      if target then
        out[#out + 1] = at
        if target:sub(1, 1) == "/" then done = "" end
        after = target .. after
      else
        done = at
      end
    end
    rest = after
  end
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

---Makes a directory of efr's own, mode 0700, with what is missing above it.
---@param fs table
---@param path string
---@return string? real  its real path
---@return string? err
---@return string? code
function M.make_dir(fs, path)
  local ok, err, code = fs.mkdirs(path, DIR_MODE)
  if not ok then return nil, err, code end
  local real
  real, err, code = fs.realpath(path)
  return real, err, code
end

---The zsh that runs lines.
---@param fs table
---@return string? path
---@return string? err
---@return string? code
function M.find_zsh(fs)
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

local function child_argv(self, spec)
  local zsh, err, code = M.find_zsh(self.app.ports.fs)
  if not zsh then return nil, err, code end
  local inside = spec.xrt .. "/efr-sbx"
  return { zsh, "-f", inside .. "/child.zsh", inside }
end

-- The conversation's directory below the state root, and the backing of /tmp in it.
local function conversation_dirs(self, conversation_id)
  local fs = self.app.ports.fs
  local dir, err, code = M.make_dir(fs,
    ("%s/sandbox/%s/tmp"):format(self.app.paths.state, conversation_id))
  if not dir then return nil, err, code end
  local ok
  ok, err, code = fs.chmod(dir, TMP_MODE)
  if not ok then return nil, err, code end
  return { tmp = dir, base = dir:match("^(.*)/tmp$") }
end

local function settings_of(config, name)
  return table.concat(config:get(name) or {}, "\0")
end

-- Files of the registered projects, and of what this call may write, that are hidden for their
-- names, and what was hidden before (sbx.hidden). What a search found of directories that did not
-- change serves the next one. The second value: the roots of it.
local function hidden_files(self, opts)
  local app, out, kept = self.app, {}, {}
  if opts.only_own then return out, {} end
  local patterns = app.config:get("sandbox.mask_globs") or {}
  local key = table.concat(patterns, "\0")
  local old = self.searched.key == key and self.searched or {}
  local disk = { list = app.ports.fs.readdir, stamp = stamp_of(app.ports) }
  local matches, roots = globs.matcher(patterns), {}
  local function seen(path) return look(app.ports.fs, path) end
  self.hidden:patterns(table.concat({ key, settings_of(app.config, "sandbox.mask"),
    settings_of(app.config, "permissions.secret_paths") }, "\0\0"))
  local function search(path)
    local real = path and app.ports.fs.realpath(path)
    if not real or real == "/" or kept[real] then return end
    local found
    found, kept[real] = globs.scan(real, matches, disk, old[real])
    found = self.hidden:add(real, globs.targets(found, seen), function(name)
      return #globs.targets({ name }, seen) > 0
    end)
    table.move(found, 1, #found, #out + 1, out)
    roots[real] = true
  end
  search(opts.project_root)
  for _, project in ipairs(app.projects and app.projects:list() or {}) do search(project.root) end
  for _, path in ipairs(opts.extra_write or {}) do search(path) end
  for _, grant in ipairs(opts.grants or {}) do
    if grant.kind == "write" then search(grant.path) end
  end
  kept.key = key
  self.searched = kept
  return out, roots
end

-- Real roots of the registered projects.
local function project_roots(app)
  local out = {}
  for _, project in ipairs(app.projects and app.projects:list() or {}) do
    local real = app.ports.fs.realpath(project.root)
    if real and real ~= "/" then out[#out + 1] = real end
  end
  return out
end

-- The recorded git directories of the projects that a call may write, and what the user should
-- know of those that are not taken.
local function git_roots(app, spec)
  local deps = { fs = app.ports.fs, json = app.ports.json, state = app.paths.state }
  local out, notes, done = {}, {}, {}
  local function add(root)
    if not root or done[root] then return end
    done[root] = true
    local record, note = git_records.read(deps, root)
    notes[#notes + 1] = note
    if not record then return end
    out[#out + 1] = { path = record.common_dir, work_tree = root }
    if not paths.within(record.git_dir, record.common_dir) then
      out[#out + 1] = { path = record.git_dir, work_tree = root }
    end
  end
  add(spec.project_root and app.ports.fs.realpath(spec.project_root))
  for _, root in ipairs(spec.other_projects) do add(root) end
  return out, notes
end

-- Projects that are writable beside the turn's, as sandbox.write_projects says.
local function other_projects(app, projects, opts, cwd)
  local mode = app.config:get("sandbox.write_projects")
  if mode == "all" then return projects end
  if mode ~= "named" then return {} end
  return list.filter(projects, function(root)
    local named = paths.within(cwd, root)
    for _, path in ipairs(opts.named or {}) do named = named or paths.within(path, root) end
    return named
  end)
end

-- 0 is no limit of efr's own. A limit of memory needs a cgroup; the one of processes holds root
-- only in one (before Linux 6.14). The second value: the cgroup of the call, where it needs one.
local function limits_of(app, opts)
  local config, root = app.config, app.ports.sys.getuid() == 0
  local memory = (config:get("sandbox.max_memory_mib") or 0) << 20
  local cgroup = (memory > 0 or root) and app.cgroup
    and app.cgroup:of_call(opts.conversation_id .. "-" .. opts.call_id) or nil
  return {
    processes = config:get("sandbox.max_processes"),
    memory_bytes = cgroup and memory or 0,
    file_bytes = (config:get("sandbox.max_file_gib") or 0) << 30,
    open_files = config:get("sandbox.max_open_files"),
  }, cgroup
end

-- Projects of the call. One may lie on a mount that does not answer, so a probe looks at none.
local function add_projects(app, spec, opts)
  spec.projects = opts.only_own and {} or project_roots(app)
  spec.other_projects = {}
  if opts.read_only then
    spec.project_root, spec.write_roots = nil, nil
  else
    spec.other_projects = other_projects(app, spec.projects, opts, spec.cwd)
  end
end

---The places outside of efr's own roots that the description of a call looks at.
---@param app table
---@param opts efr.sbx.CallOptions
---@return string[] places
---@return string[] projects  with opts.only_own; else they are among the places
function M.places(app, opts)
  local out, projects = { opts.cwd }, {}
  out[#out + 1] = opts.project_root
  for _, path in ipairs(opts.extra_write or {}) do out[#out + 1] = path end
  for _, grant in ipairs(opts.grants or {}) do out[#out + 1] = grant.path end
  for _, name in ipairs(PLACES) do
    for _, path in ipairs(app.config:get(name) or {}) do out[#out + 1] = path end
  end
  for _, project in ipairs(app.projects and app.projects:list() or {}) do
    table.insert(opts.only_own and projects or out, project.root)
  end
  return out, projects
end

---The whole description of a contained call.
---@param self table  the calls of the daemon
---@param opts efr.sbx.CallOptions
---@param nonce string  32 hex digits
---@param assets string?  directory shown to a call with a line
---@return efr.sbx.Spec?
---@return string? err
---@return string? code
function M.spec(self, opts, nonce, assets)
  local app = self.app
  local fs, config, uid = app.ports.fs, app.config, app.ports.sys.getuid()
  local cwd, err = fs.realpath(opts.cwd)
  if not cwd then return nil, ("the directory %s: %s"):format(opts.cwd, err), "EFR_SANDBOX" end
  local dirs, bwrap, code
  bwrap, err, code = backend.path(app)
  if err then return nil, err, code end
  dirs, err, code = conversation_dirs(self, opts.conversation_id)
  if not dirs then return nil, err, code end
  local hidden, searched = hidden_files(self, opts)
  if opts.line then
    cwd = returns.inside_cwd(self, opts.conversation_id, opts.cwd, dirs.tmp) or cwd
  end
  local spec = {
    uid = uid, nonce = nonce, cwd = cwd, home = self.home, env = app.env, paths = app.paths,
    tmp = dirs.tmp, layers = dirs.base, layers_name = opts.call_id,
    xrt = runtime_place(self), project_root = opts.project_root,
    scratch = opts.scratch, extra_write = opts.extra_write,
    write_roots = config:get("sandbox.write_roots"), masks = config:get("sandbox.mask"),
    secret_paths = config:get("permissions.secret_paths"), protect = config:get("sandbox.protect"),
    hidden_files = hidden, hidden_roots = searched,
    caches = config:get("sandbox.caches"), spare_cache = opts.spare_cache,
    cache_mode = opts.cache_mode or config:get("sandbox.cache_mode"),
    keep_downloads = config:get("sandbox.keep_downloads"),
    env_deny = config:get("sandbox.env_deny"), env_keep = config:get("sandbox.env_keep"),
    env_pass = opts.env_pass, env_set = opts.env_set, grants = opts.grants,
    dry = opts.dry, offline_hints = config:get("sandbox.offline_hints"),
    bwrap = bwrap, homes = uid == 0 and all_homes(fs) or nil,
    program_dir = app.ports.sys.exe_path():match("^(.+)/[^/]*$"),
    look = function(path) return look(fs, path) end,
    list = function(path) return names_in(fs, path) end,
    entries = function(path) return fs.readdir(path) or {} end,
    links = function(path) return links_in(fs, path) end,
    trace = function(path) return M.trace(fs, path) end,
    read = function(path, max) return (fs.read_real(path, max)) end,
  }
  add_projects(app, spec, opts)
  spec.limits, spec.cgroup = limits_of(app, opts)
  spec.git_roots, spec.notes = git_roots(app, spec)
  if opts.argv then
    spec.argv = opts.argv
    return spec
  end
  spec.records, spec.assets = true, assets
  local replay = self.state:replay_dir(opts.conversation_id)
  spec.replay = replay and fs.realpath(replay)
  spec.argv, err, code = child_argv(self, spec)
  if not spec.argv then return nil, err, code end
  return spec
end

return M
