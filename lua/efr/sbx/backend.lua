-- Owns: which backend builds contained calls, where its bubblewrap is, and whether that can do what
-- is needed.
-- Must not know: how a plan becomes its options (sbx/bwrap_args.c).
-- Runs in efrd and efr on the loop thread; `inspect` waits.
--
-- Policy: `auto` is the launcher of efr. With `sandbox.backend = "bwrap"` no call falls back to it:
-- a bubblewrap that is missing, old or not to be trusted refuses the call. It and every directory
-- above must belong to root alone, since efrd executes it to ask for its options (distributions
-- mend old versions); the launcher checks the program once more, on the descriptor that it
-- executes.

local async = require "efr.util.async"
local launcher = require "efr.sbx.launcher"

local M = {}

local CODE <const> = "EFR_SANDBOX"
local NAME <const> = "bwrap"
local LIMIT_MS <const> = 5000
local MAX_BYTES <const> = 65536
local FILE_MODE <const> = 384
local SINCE <const> = "0.10.0"
-- What sbx/bwrap_args.c and sbx/bwrap.c use and an old one may lack.
M.OPTIONS = {
  "--args", "--as-pid-1", "--disable-userns", "--bind-fd", "--ro-bind-fd", "--ro-bind-data",
  "--json-status-fd", "--perms", "--remount-ro", "--unshare-cgroup", "--cap-drop",
}

local OTHERS_WRITE <const> = 18 -- group and others
local OWN_RIGHTS <const> = 3072 -- set-user-id, set-group-id

-- Whether nobody but root can change what a real path names.
local function check_trust(app, path)
  local stat = app.ports.fs.stat(path)
  if not stat or stat.type ~= "file" then return nil, "is not a program" end
  if stat.mode & OWN_RIGHTS ~= 0 then
    return nil, "has rights of its own (set-user-id); the unprivileged build is needed"
  end
  local at = path
  while at do
    stat = app.ports.fs.stat(at)
    if not stat or stat.uid ~= 0 then return nil, "does not belong to root" end
    if stat.mode & OTHERS_WRITE ~= 0 then return nil, "can be changed by others" end
    at = at ~= "/" and (at:match("^(/.+)/[^/]+$") or "/") or nil
  end
  local place = launcher.writable_place(app, path)
  if place then return nil, "can be changed by others: it lies in " .. place end
  return true
end

local function trusted(app, path)
  local ok, err = check_trust(app, path)
  if ok then return path end
  return nil, ("bubblewrap: %s %s"):format(path, err), CODE
end

---The bubblewrap that the settings name.
---@param app table  ports, config, env
---@return string? path  resolved; nil without err: the backend is efr's own
---@return string? err
---@return string? code
function M.path(app)
  if app.config:get("sandbox.backend") ~= "bwrap" then return nil end
  local named = app.config:get("sandbox.bwrap")
  if named then
    local real, err = app.ports.fs.realpath(named)
    if real then return trusted(app, real) end
    return nil, ("bubblewrap: %s: %s"):format(named, err), CODE
  end
  for dir in (app.env.PATH or "/usr/bin:/bin"):gmatch("[^:]+") do
    local real = dir:sub(1, 1) == "/" and app.ports.fs.realpath(dir .. "/" .. NAME)
    if real then return trusted(app, real) end
  end
  return nil, "bubblewrap: it is not installed", CODE
end

---What a bubblewrap says of itself. Pure.
---@param version string  of --version
---@param help string  of --help
---@return string? number  "0.8.0"
---@return string? err  it is none, or lacks something
function M.judge(version, help)
  local number = version:match("^bubblewrap ([%d.]+)%s*$")
  if not number then return nil, "bubblewrap: it does not tell its version" end
  local listed, missing = {}, {}
  for option in help:gmatch("\n%s*(%-%-[%w-]+)") do listed[option] = true end
  for _, option in ipairs(M.OPTIONS) do
    if not listed[option] then missing[#missing + 1] = option end
  end
  if #missing == 0 then return number end
  return nil, ("bubblewrap: version %s lacks %s (%s has all)"):format(number,
    table.concat(missing, ", "), SINCE)
end

-- What the program prints for one option, through a file in dir.
local function ask(app, path, dir, option)
  local uv, fs = app.ports.uv, app.ports.fs
  local file = dir .. "/" .. NAME
  local fd, err = uv.fs_open(file, "wx", FILE_MODE)
  if not fd then return nil, err end
  local child
  local done = async.with_timeout(LIMIT_MS, function()
    return async.await(function(resume)
      child, err = app.ports.proc.spawn({
        path = path, argv = { NAME, option }, env = {}, cwd = "/",
        fds = { [0] = "null", fd, "null" }, on_exit = resume,
      })
      if not child then resume(nil) end
    end)
  end)
  uv.fs_close(fd)
  if child and not done then child:kill(app.ports.sys.SIGKILL) end
  local text = child and done and fs.read_file(file, MAX_BYTES)
  fs.unlink(file)
  return text, err or "no answer"
end

---Whether a bubblewrap can build calls. Waits.
---@param app table
---@param path string
---@param dir string  a private directory, for what it prints
---@return string? version
---@return string? err
function M.inspect(app, path, dir)
  local said = {}
  for i, option in ipairs({ "--version", "--help" }) do
    local text, err = ask(app, path, dir, option)
    if not text then return nil, ("bubblewrap: %s %s: %s"):format(path, option, err) end
    said[i] = text
  end
  return M.judge(said[1], said[2])
end

return M
