-- Owns: what a finished contained call leaves: for the hidden shell its directory and some
-- exports, for later contained calls everything else.
-- Must not know: how the hidden shell takes it over.
-- Runs in efrd on the loop thread.

local paths = require "efr.perm.paths"
local plan = require "efr.sbx.plan"
local promote = require "efr.sbx.promote"
local records = require "efr.sbx.records"
local text = require "efr.util.text"

local M = {}

local RECORDS_BYTES <const> = 256 * 1024 + 1
-- Places of a plan where a contained call can put files.
local WRITABLE <const> = {
  private = true, runtime = true, overlay = true, root = true, pin = true, grant = true,
}
local SHARED_TMP <const> = { "/tmp", "/var/tmp" }

-- The real form of a path of which the last parts may be missing.
local function real_of(fs, path)
  local rest = ""
  while path ~= "" do
    local real = fs.realpath(path)
    if real then return (real == "/" and "" or real) .. rest end
    local dir, name = path:match("^(.*)/([^/]+)$")
    if not dir then return path .. rest end
    path, rest = dir, "/" .. name .. rest
  end
  return rest
end

-- Whether a path, as a value of the call names it, leads to what contained calls can write.
local function is_own_of(call, cwd)
  local app = call.calls.app
  local own = { table.unpack(SHARED_TMP) }
  own[#own + 1] = ("%s/sandbox/%s"):format(app.paths.state, call.conversation_id)
  for _, mount in ipairs(call.mounts) do
    if WRITABLE[mount.kind] then own[#own + 1] = mount.path end
  end
  return function(part)
    if part:match("^~[^/]") then return true end -- somebody's home: nobody needs it
    local path = part:gsub("^~", (call.calls.home:gsub("%%", "%%%%")))
    if path:sub(1, 1) ~= "/" then path = (cwd or "/") .. "/" .. path end
    path = text.fold_path(path)
    local real = real_of(app.ports.fs, path)
    for _, dir in ipairs(own) do
      if paths.within(path, dir) or paths.within(real, dir) then return true end
    end
    return false
  end
end

-- A directory in the private /tmp exists only inside, so only later calls can use it, and only
-- while the shell outside has not gone elsewhere.
local function keep_inside_cwd(call, cwd)
  local own = cwd and plan.kind_over(call.mounts, cwd) == "private"
  call.calls.inside_cwds[call.conversation_id] = own and { cwd = cwd, shell = call.cwd } or nil
end

---Where a call starts: in the private directory that the last one ended in, when the shell still
---stands where it stood then.
---@param calls table  the calls of the daemon
---@param conversation_id string
---@param shell_cwd string
---@param tmp string  backing directory of the private /tmp
---@return string? cwd
function M.inside_cwd(calls, conversation_id, shell_cwd, tmp)
  local kept = calls.inside_cwds[conversation_id]
  if not kept or kept.shell ~= shell_cwd then return nil end
  local below = kept.cwd:match("^/tmp(.*)$") or kept.cwd:match("^/var/tmp(.*)$")
  local fs = calls.app.ports.fs
  local stat = below and fs.lstat(tmp .. below)
  -- What lies there was made inside: a link may lead anywhere, so it does not count.
  if not stat or stat.type ~= "dir" or fs.realpath(tmp .. below) ~= tmp .. below then return nil end
  return kept.cwd
end

---The exports of a call that the hidden shell may take over.
---@param call table
---@param list {kind: string, name: string, value: string?}[]
---@param cwd string?  where the line ended
---@return table<string, string>
function M.exports(call, list, cwd)
  local config = call.calls.app.config
  return promote.exports(list, {
    promote = config:get("sandbox.promote_env"), deny = config:get("sandbox.export_deny"),
    is_own = is_own_of(call, cwd),
  })
end

---Reads the records of a finished call into its result, and keeps the state for later calls.
---@param call table
---@param out efr.sbx.Result
function M.take(call, out)
  local calls, fs = call.calls, call.calls.app.ports.fs
  local bytes = fs.read_file(call.dir .. "/records", RECORDS_BYTES)
  local parsed = bytes and records.parse(bytes)
  if not parsed then return end
  out.setup_error = out.setup_error or parsed.setup_error
  local cwd = records.cwd(parsed.list)
  keep_inside_cwd(call, cwd)
  out.exports = M.exports(call, parsed.list, cwd)
  -- A directory of the call's own means nothing to the shell outside.
  if cwd and plan.is_shared(call.mounts, cwd) and fs.stat(cwd) then out.cwd = cwd end
  local id = call.conversation_id
  local state, err = records.apply(calls.state:get(id), parsed.list, out.exports)
  local ok = state
  if state and state.changed then ok, err = calls.state:put(id, state) end
  if not ok then out.state_error = err end
end

return M
