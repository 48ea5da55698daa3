-- Owns: what a contained call sends back on descriptor 3, and the sandbox state of a conversation
-- that grows from it: exports, functions, aliases for later contained calls.
-- Must not know: files or processes.
-- Runs in efrd. Pure.
--
-- Policy: every byte was chosen inside the sandbox. The stream is taken whole or not at all: any
-- defect, unknown kind or missing end drops everything. What it holds is only ever replayed inside
-- the sandbox; what the hidden shell may take over is decided in sbx.promote.

local environment = require "efr.sbx.environment"
local promote = require "efr.sbx.promote"

local M = {}

local MAX_BYTES <const> = 256 * 1024
local MAX_RECORDS <const> = 4096
local MAX_NAME <const> = 128
M.MAX_STATE_BYTES = 4 * 1024 * 1024

-- kind = number of fields after it
local FIELDS <const> = {
  cwd = 1, export = 2, unset = 1, func = 2, unfunc = 1, alias = 2, unalias = 1,
}
-- The child shell never sends these; a stream that holds one was not written by it.
local NEVER <const> = {
  PWD = true, OLDPWD = true, SHLVL = true, _ = true, EFR_SANDBOX = true,
}

local function is_name(name)
  return name ~= "" and #name <= MAX_NAME and not name:match("^_efr_")
end

local CHECK <const> = {
  cwd = function(path) return path:sub(1, 1) == "/" and #path <= 4095 end,
  export = function(name) return promote.is_variable(name) and not NEVER[name] end,
  unset = function(name) return promote.is_variable(name) and not NEVER[name] end,
  func = is_name, unfunc = is_name, alias = is_name, unalias = is_name,
}

local function split(bytes)
  local out = {}
  for field in bytes:gmatch("([^\0]*)\0") do out[#out + 1] = field end
  return out
end

-- One record that starts at a field. Returns the record and the next place, or nil, err.
local function read_record(fields, at)
  local kind = fields[at]
  local count = FIELDS[kind]
  if not count then return nil, "unknown record" end
  local first, second = fields[at + 1], fields[at + 2]
  if not first or (count == 2 and not second) then return nil, "a record is cut off" end
  if not CHECK[kind](first) then return nil, kind .. " with a bad name" end
  return { kind = kind, name = first, value = count == 2 and second or nil }, at + 1 + count
end

local function read_end(fields, at)
  local status = fields[at + 1]
  if #fields ~= at + 1 or not status or not status:match("^%d%d?%d?$") then
    return nil, "a bad end"
  end
  return tonumber(status)
end

---@class efr.sbx.Records
---@field status integer?  exit status of the line
---@field setup_error string?
---@field list {kind: string, name: string, value: string?}[]

---Parses the stream of one call.
---@param bytes string
---@return efr.sbx.Records?
---@return string? err  why everything is dropped
function M.parse(bytes)
  if #bytes > MAX_BYTES then return nil, "more than 256 KiB" end
  if bytes:sub(-1) ~= "\0" then return nil, "the last field has no end" end
  local fields = split(bytes)
  if fields[1] ~= "efr-records" or fields[2] ~= "v1" then return nil, "a bad header" end
  if fields[3] == "setup-error" and #fields == 4 then
    return { setup_error = fields[4], list = {} }
  end
  local out, at = { list = {} }, 3
  while fields[at] do
    if fields[at] == "end" then
      local status, err = read_end(fields, at)
      if not status then return nil, err end
      out.status = status
      return out
    end
    if #out.list >= MAX_RECORDS then return nil, "more than 4096 records" end
    local record, next_at = read_record(fields, at)
    if not record then return nil, next_at end
    out.list[#out.list + 1] = record
    at = next_at
  end
  return nil, "no end"
end

---@class efr.sbx.State  sandbox state of a conversation
---@field exports table<string, string|false>  false: unset although the environment has it
---@field functions table<string, string|false>
---@field aliases table<string, string|false>

---@return efr.sbx.State
function M.new_state()
  return { exports = {}, functions = {}, aliases = {} }
end

local TARGET <const> = {
  export = "exports", unset = "exports", func = "functions", unfunc = "functions",
  alias = "aliases", unalias = "aliases",
}

local function state_bytes(state)
  local total = 0
  for key in pairs(M.new_state()) do
    for name, value in pairs(state[key]) do total = total + #name + #(value or "") + 10 end
  end
  return total
end

---The state after a call. The old one is left as it is. What the hidden shell takes over is not
---kept: a later call gets it from there.
---@param state efr.sbx.State
---@param list {kind: string, name: string, value: string?}[]
---@param promoted table<string, string>?
---@return efr.sbx.State? state  its field `changed` says whether it differs
---@return string? err  over the size limit: the old state stays
function M.apply(state, list, promoted)
  local new = M.new_state()
  for key in pairs(new) do
    for name, value in pairs(state[key]) do new[key][name] = value end
  end
  local changed = false
  for _, record in ipairs(list) do
    local target, name = TARGET[record.kind], record.name
    if target and not (target == "exports" and environment.matches(promote.DROPPED, name)) then
      local value = record.value or false
      if record.kind == "export" and promoted and promoted[name] == value then value = nil end
      changed = changed or new[target][name] ~= value
      new[target][name] = value
    end
  end
  if state_bytes(new) > M.MAX_STATE_BYTES then return nil, "the sandbox state is over 4 MiB" end
  new.changed = changed
  return new
end

local function sorted_names(map)
  local out = {}
  for name in pairs(map) do out[#out + 1] = name end
  table.sort(out)
  return out
end

---The state as the child shell reads it: NUL-separated fields, data and never code.
---@param state efr.sbx.State
---@return string
function M.encode_state(state)
  local out = {}
  local function add(map, set, unset)
    for _, name in ipairs(sorted_names(map)) do
      out[#out + 1] = map[name] and set or unset
      out[#out + 1] = name
      out[#out + 1] = map[name] or ""
    end
  end
  add(state.exports, "export", "unset")
  add(state.functions, "func", "unfunc")
  add(state.aliases, "alias", "unalias")
  return #out > 0 and table.concat(out, "\0") .. "\0" or ""
end

local SET <const> = { export = true, func = true, alias = true }

---A state from its encoded form.
---@param bytes string
---@return efr.sbx.State? state  nil: damaged
function M.decode_state(bytes)
  local fields, state = split(bytes), M.new_state()
  if #fields % 3 ~= 0 or (bytes ~= "" and bytes:sub(-1) ~= "\0") then return nil end
  for i = 1, #fields, 3 do
    local kind, name, value = fields[i], fields[i + 1], fields[i + 2]
    if not TARGET[kind] or not CHECK[kind](name) then return nil end
    state[TARGET[kind]][name] = SET[kind] and value or false
  end
  return state_bytes(state) <= M.MAX_STATE_BYTES and state or nil
end

---The last directory that the call reported.
---@param list {kind: string, name: string}[]
---@return string?
function M.cwd(list)
  local last
  for _, record in ipairs(list) do
    if record.kind == "cwd" then last = record.name end
  end
  return last
end

return M
