-- Owns: the sandbox state of conversations on disk: exports, functions and aliases that contained
-- calls made and later ones get back.
-- Must not know: what a call is, or what the values mean.
-- Runs in efrd on the loop thread.
--
-- In the directory of a conversation below the runtime root: `.state`, all of it, so that a new
-- efrd has it too; and `.replay`, what the child shell reads, at its own path inside. There each
-- function is a file of its own that zsh loads when it is called: a thousand functions then cost a
-- call 3 ms, where defining them costs 45. A body that only defines a function of its own name, or
-- a name that is no plain file name, is defined at once.

local records = require "efr.sbx.records"

local M = {}

local DIR_MODE <const> = 448 -- 0700
local FILE_MODE <const> = 384 -- 0600
local PLAIN <const> = "^[%w_][%w_.:+-]*$"

local State = {}
State.__index = State

-- Without a sync: after a crash of the machine the runtime root is gone with its conversations.
local function write(ports, path, bytes)
  local uv, new = ports.uv, path .. ".new"
  local fd, err, code = uv.fs_open(new, "w", FILE_MODE)
  if not fd then return nil, err, code end
  local written
  written, err, code = uv.fs_write(fd, bytes)
  uv.fs_close(fd)
  if written ~= #bytes then return nil, err or "short write of " .. path, code or "EIO" end
  return ports.fs.rename(new, path)
end

-- Whether a function can wait in a file until it is called.
local function is_lazy(name, body)
  return name:match(PLAIN) ~= nil and not body:find(name, 1, true)
end

function State:_place(id)
  return ("%s/sbx/%s"):format(self._runtime, id)
end

---The state of a conversation; new and empty when it has none, or what is kept is damaged.
---@param id string
---@return efr.sbx.State
function State:get(id)
  local state = self._states[id]
  if state then return state end
  local bytes = self._ports.fs.read_file(self:_place(id) .. "/.state",
    2 * records.MAX_STATE_BYTES)
  state = bytes and records.decode_state(bytes) or records.new_state()
  self._states[id] = state
  return state
end

-- Files of the functions that changed.
local function write_functions(ports, dir, old, new)
  for name, body in pairs(new) do
    if body ~= old[name] and body and is_lazy(name, body) then
      local ok, err, code = write(ports, dir .. "/" .. name, body)
      if not ok then return nil, err, code end
    end
  end
  return true
end

-- What the child shell reads: names of functions to load, and everything else as fields.
local function split(state)
  local lazy, rest = {}, {}
  for name, body in pairs(state.functions) do
    if body and is_lazy(name, body) then
      lazy[#lazy + 1] = name
    else
      rest[name] = body
    end
  end
  table.sort(lazy)
  return table.concat(lazy, "\n"), records.encode_state({
    exports = state.exports, functions = rest, aliases = state.aliases,
  })
end

---Keeps a state. Fails as a whole: then the old one stays.
---@param id string
---@param state efr.sbx.State
---@return true? ok
---@return string? err
---@return string? code
function State:put(id, state)
  local place, fs = self:_place(id), self._ports.fs
  local replay = place .. "/.replay"
  local old = self._written[id] or {}
  local names, fields = split(state)
  local ok, err, code = fs.mkdirs(replay .. "/functions", DIR_MODE)
  if ok then
    ok, err, code = write_functions(self._ports, replay .. "/functions", old, state.functions)
  end
  local files = {
    [replay .. "/names"] = names, [replay .. "/state"] = fields,
    [place .. "/.state"] = records.encode_state(state),
  }
  for path, bytes in pairs(files) do
    if ok then ok, err, code = write(self._ports, path, bytes) end
  end
  if not ok then return nil, err, code end
  self._states[id], self._written[id] = state, state.functions
  return true
end

---The directory that the child shell reads, nil when there is nothing to replay.
---@param id string
---@return string?
function State:replay_dir(id)
  if next(self:get(id).exports) or next(self:get(id).functions) or next(self:get(id).aliases) then
    return self:_place(id) .. "/.replay"
  end
  return nil
end

---Forgets the state of a conversation.
---@param id string
function State:forget(id)
  self._states[id], self._written[id] = nil, nil
  self._ports.fs.unlink(self:_place(id) .. "/.state")
  self._ports.fs.rmtree(self:_place(id) .. "/.replay")
  self._ports.fs.rmdir(self:_place(id)) -- stays while a call has its directory there
end

---@param ports table  fs, uv
---@param runtime string  efr's runtime root
---@return table
function M.new(ports, runtime)
  return setmetatable({ _ports = ports, _runtime = runtime, _states = {}, _written = {} }, State)
end

return M
