-- Owns: the surface guard: what a contained call did to the settings and hooks of git, and to files
-- that run code later; moving to quarantine what it planted, and putting it back.
-- Must not know: who is asked, how a call runs. Runs in efrd, on the loop thread; before and after
-- wait, in a task.
--
-- Policy: what can be pinned is read-only in a call (sbx.roots); the guard is for what did not
-- exist before, for repositories inside a project, and for what git reads in places that nobody
-- thinks of. It compares before and after each call and looks again after it moved something, so
-- that what is put there meanwhile is found too. What was read-only in the call is not the call's
-- doing and stays: a user who edits his own settings while a call runs does not lose them.

local async = require "efr.util.async"
local compare = require "efr.sbx.guard.compare"
local git_keys = require "efr.perm.git_keys"
local look = require "efr.sbx.guard.look"
local paths = require "efr.perm.paths"
local quarantine = require "efr.sbx.guard.quarantine"
local record = require "efr.sbx.guard.record"
local repo_of = require "efr.sbx.guard.repo"
local surface = require "efr.sbx.guard.surface"

local M = {}

M.ROUNDS = 3 ---@type integer
M.MAX_CHANGES = 64 ---@type integer

local LIST_MS <const> = 30000 -- no answer is a quarantine, so a busy machine gets time
local MAX_LISTED <const> = 1024 * 1024 -- bytes of settings whose listings are kept
local MAX_KEPT <const> = 8
-- Git starts there to list settings that it gets on standard input; there is no repository.
local NOWHERE <const> = "/usr"
local WRITABLE <const> = { root = true, pin = true, grant = true }
local ROOTS <const> = { root = true, grant = true }

local Guard = {}
Guard.__index = Guard
local Watch = {}
Watch.__index = Watch

-- Listing settings --------------------------------------------------------------------------------

-- git itself reads the very bytes that the guard read, so nothing can be swapped in between.
local function ask_git(self, bytes)
  local result, err = self.app.git:run {
    root = NOWHERE, args = { "config", "--file", "-", "--list", "--no-includes", "-z" },
    stdin = bytes, timeout_ms = LIST_MS,
  }
  if not result then return nil, err end
  if result.code ~= 0 then return nil, "git cannot read it" end
  return git_keys.parse(result.out)
end

local function list_settings(self, bytes)
  local known = self.listings[bytes]
  if known then return known end
  local entries, err = ask_git(self, bytes)
  if not entries then return nil, err end
  if self.listed + #bytes > MAX_LISTED then self.listings, self.listed = {}, 0 end
  self.listings[bytes], self.listed = entries, self.listed + #bytes
  return entries
end

local function list_code(self, item)
  if not item or item.code or not compare.is_config(item) then return end
  local entries = list_settings(self, item.bytes)
  item.code = entries and git_keys.code(entries)
end

-- Records -----------------------------------------------------------------------------------------

local function keep(self, key, found)
  for i, entry in ipairs(self.kept) do
    if entry.key == key then
      table.remove(self.kept, i)
      break
    end
  end
  table.insert(self.kept, 1, { key = key, record = found })
  self.kept[MAX_KEPT + 1] = nil
end

local function kept(self, key)
  for _, entry in ipairs(self.kept) do
    if entry.key == key then return entry.record end
  end
  return nil
end

local function take(watch, cwd)
  local self = watch.guard
  local app = self.app
  local found = record.take {
    roots = watch.roots, cwd = cwd and app.ports.fs.realpath(cwd), home = self.home,
    ports = app.ports, is_surface = watch.is_surface, old = kept(self, watch.key),
    pause = function() async.sleep(0) end,
    list = function(bytes) return list_settings(self, bytes) end,
  }
  keep(self, watch.key, found)
  return found
end

---Records the state before a contained call. Waits.
---@param call {conversation_id: string, call_id: string, mounts: table[], cwd: string}
---  mounts: as planned for the call, sorted
---@return table watch
function Guard:before(call)
  local roots = {}
  for _, mount in ipairs(call.mounts) do
    if ROOTS[mount.kind] then roots[#roots + 1] = mount.path end
  end
  local patterns = self.app.config:get("sandbox.surface_files") or {}
  local watch = setmetatable({
    guard = self, call = call, roots = roots, looks = 0, is_surface = surface.matcher(patterns),
    key = table.concat(roots, "\0") .. "\0\0" .. table.concat(patterns, "\0"),
  }, Watch)
  local id = call.conversation_id
  self.since[id] = self.since[id] or self.app.ports.sys.now_us() * 1000
  watch.first = take(watch, call.cwd)
  return watch
end

-- After a call ------------------------------------------------------------------------------------

-- Whether the call could not write there: what lies deepest over a path decides.
local function is_protected(watch, path)
  local kind
  for _, mount in ipairs(watch.call.mounts) do
    if paths.within(path, mount.path) then kind = mount.kind end
  end
  return not WRITABLE[kind]
end

-- Whether the work tree that a file `gitdir` names is there and names it, too. One that lies
-- outside of the roots was not moved there by the call.
local function leads_back(watch, item)
  local ports, own = watch.guard.app.ports, item.path:match("^(.*)/")
  local file = item.type == "file" and (item.bytes or ""):match("^(/[^\r\n]+)[\r\n]*$")
  for _, root in ipairs(file and watch.roots or {}) do
    if paths.below(file, root) then
      local top <close> = ports.dir.open(root)
      local text = top and top:read(file:sub(#root + 2), look.MAX_BYTES)
      local named = text and repo_of.named(text, file:match("^(.*)/"))
      if named and ports.fs.realpath(named) == own then return true end
    end
  end
  return false
end

local function hits_of(watch, now)
  local self = watch.guard
  local changed = compare.changed(watch.first, now, self.since[watch.call.conversation_id])
  for _, change in ipairs(changed) do
    list_code(self, change.before)
    list_code(self, change.after)
  end
  return compare.hits(watch.first, now, changed, {
    is_protected = function(path) return is_protected(watch, path) end,
    leads_back = function(item) return leads_back(watch, item) end,
    since_ns = self.since[watch.call.conversation_id],
  })
end

local function place_of(watch)
  if watch.place then return watch.place end
  local app, call = watch.guard.app, watch.call
  local name = watch.looks == 1 and call.call_id or call.call_id .. "-" .. watch.looks
  local place, err, code = quarantine.open(app.ports, ("%s/sandbox/%s/quarantine/%s"):format(
    app.paths.state, call.conversation_id, name))
  watch.place = place
  return place, err, code
end

-- Puts back what stood there before the call, as far as it is known.
local function put_old(watch, hit, change, place)
  local old = hit.before
  if not old or not old.bytes or old.type ~= "file" and old.type ~= "link" then return true end
  local ok, err = quarantine.put_old(watch.guard.app.ports, place, hit.path, old)
  change.restored, change.error = ok or nil, not ok and err or nil
  if not ok then watch.guard.app.log:error("put back %s: %s", hit.path, err) end
  return ok
end

-- Moves one hit away, and puts back what it stands in place of. The change says what came of it.
local function settle(watch, hit, change)
  if hit.item.type == "missing" then return put_old(watch, hit, change) end
  local place, err = place_of(watch)
  local ok
  if place then ok, err = quarantine.take(watch.guard.app.ports, place, hit.path) end
  change.quarantined, change.error = ok or nil, not ok and err or nil
  if not ok then
    watch.guard.app.log:error("quarantine %s: %s", hit.path, err)
  else
    put_old(watch, hit, change, place)
  end
  return ok
end

-- Deals with the hits of one round. Returns whether something moved, so that it must look again.
-- In the last look nothing is moved any more: what is there then came back each time.
local function deal_with(watch, hits, report, is_last)
  local moved = false
  for _, hit in ipairs(hits) do
    local name = hit.rule .. "\0" .. hit.path
    local change = report.by_name[name]
    if not change then
      change = { path = hit.path, rule = hit.rule, key = hit.key }
      report.by_name[name], report.changes[#report.changes + 1] = change, change
    end
    if hit.quarantine and is_last then
      change.quarantined, change.error = nil, "it comes back as often as it is moved"
    elseif hit.quarantine and settle(watch, hit, change) then
      moved = true
    end
  end
  return moved
end

local function note_surface(watch, now)
  local function touch(path, before)
    if watch.touched[path] == nil then watch.touched[path] = before or false end
  end
  for path, item in pairs(now.surface) do
    local before = watch.first.surface[path]
    if look.differs(before, item) then touch(path, before) end
  end
  for path, before in pairs(watch.first.surface) do
    if not now.surface[path] then touch(path, before) end
  end
end

---@class efr.sbx.guard.Change
---@field path string
---@field rule string
---@field key string?  of a config: what would run a program
---@field quarantined boolean?
---@field restored boolean?  what stood there before the call is back
---@field error string?  why it could not be moved

---@class efr.sbx.guard.Report
---@field changes efr.sbx.guard.Change[]
---@field more integer?  changes beyond the limit
---@field place efr.sbx.guard.Quarantine?  where something was moved; for restore
---@field touched table<string, efr.sbx.guard.Item|false>  files that run code later, as they were

---Looks at what the call did, and moves what it planted to quarantine. Waits. May be called again
---when a command ends that went on after its call.
---@param cwd string?  where the shell stands now
---@return efr.sbx.guard.Report
function Watch:after(cwd)
  local report = { changes = {}, by_name = {} }
  self.touched, self.place, self.looks = {}, nil, self.looks + 1
  local now
  for round = 1, M.ROUNDS + 1 do
    now = take(self, cwd or self.call.cwd)
    if not deal_with(self, hits_of(self, now), report, round > M.ROUNDS) then break end
  end
  if now.unsure and not self.first.unsure then
    table.insert(report.changes, { path = self.roots[1], rule = "too_much_to_check" })
  end
  note_surface(self, now)
  self.first = now
  local count = #report.changes
  for i = count, M.MAX_CHANGES + 1, -1 do report.changes[i] = nil end
  local place = self.place
  return {
    changes = report.changes, more = count > M.MAX_CHANGES and count - M.MAX_CHANGES or nil,
    place = place and #place.entries > 0 and place or nil, touched = self.touched,
  }
end

---Puts everything of a quarantine directory back to where it was.
---@param place efr.sbx.guard.Quarantine
---@return {path: string, reason: string}[] failed  what stays in quarantine
function Guard:restore(place)
  return quarantine.restore(self.app.ports, place)
end

-- The end of a turn -------------------------------------------------------------------------------

local function look_again(ports, path)
  local above, name = path:match("^(.*)/([^/]+)$")
  local dir <close> = above and ports.dir.open(above == "" and "/" or above)
  return dir and look.at(dir, name, path, {
    now_ns = ports.sys.now_us() * 1000, max = surface.MAX_BYTES,
  })
end

---The files that run code later and are others now than they were, sorted by path.
---@param touched table<string, efr.sbx.guard.Item|false>  of all calls; false: there was none
---@return {path: string, detail: string?}[]
function Guard:report(touched)
  local ports, out = self.app.ports, {}
  for path, before in pairs(touched) do
    local now = look_again(ports, path)
    if now and look.differs(before or nil, now) then
      local detail = surface.detail(path, before and before.bytes, now.bytes, ports.json)
      out[#out + 1] = { path = path, detail = detail }
    end
  end
  table.sort(out, function(a, b) return a.path < b.path end)
  return out
end

---Whether a path is one of a file that runs code later.
---@param path string
---@return boolean
function Guard:is_surface(path)
  return surface.matcher(self.app.config:get("sandbox.surface_files") or {})(path)
end

---Lets go of what is kept for later calls.
function Guard:rest()
  self.kept, self.listings, self.listed = {}, {}, 0
end

---@param app table  the daemon: ports, config, env, paths, log, git
---@return table guard
function M.new(app)
  local home = app.env.HOME or app.ports.sys.user_info().home
  return setmetatable({
    app = app, home = app.ports.fs.realpath(home) or home, since = {},
    kept = {}, listings = {}, listed = 0,
  }, Guard)
end

return M
