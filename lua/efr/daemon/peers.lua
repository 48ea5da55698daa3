-- Who is on the other end of a connection: is the peer a process of the model? It is when it
-- descends from a hidden shell, shares the session of one, or is already gone.
-- Knows nothing of the wire. Reads /proc/PID/stat through a function. Main thread of efrd.
local M = {}

local MAX_DEPTH <const> = 4096
local TRIES <const> = 3

--- The fields of a stat line that matter here. The name may hold blanks and parentheses.
--- @return {ppid: integer, session: integer, start: integer}|nil
function M.parse_stat(text)
  local rest = text and text:match("^%d+ %(.*%) (.+)$")
  if not rest then
    return nil
  end
  local fields = {}
  for word in rest:gmatch("%S+") do
    fields[#fields + 1] = word
  end
  -- fields[1] is the state, field 3 of the line
  local ppid = math.tointeger(tonumber(fields[2]))
  local session = math.tointeger(tonumber(fields[4]))
  local start = math.tointeger(tonumber(fields[20]))
  return ppid and session and { ppid = ppid, session = session, start = start } or nil
end

-- true / false, or nil when a process on the way vanished.
local function walk(pid, shells, read_stat)
  for _ = 1, MAX_DEPTH do
    if shells[pid] then
      return true
    elseif pid <= 1 then
      return false
    end
    local stat = M.parse_stat(read_stat(pid))
    if not stat then
      return nil
    elseif shells[stat.session] then
      return true
    end
    pid = stat.ppid
  end
  return true
end

--- @param pid integer            of SO_PEERCRED; 0 = not visible from here
--- @param shells table<integer, boolean>  pids and sessions of the hidden shells
--- @param read_stat fun(pid: integer): string|nil
--- @return boolean
function M.is_model_side(pid, shells, read_stat)
  for _ = 1, TRIES do
    if pid <= 0 or not M.parse_stat(read_stat(pid)) then
      return true
    end
    local verdict = walk(pid, shells, read_stat)
    if verdict ~= nil then
      return verdict
    end
  end
  return true
end

return M
