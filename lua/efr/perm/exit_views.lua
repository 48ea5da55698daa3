-- Owns: which lines may see a part of the host inside the sandbox without an exit: its network, its
-- mounts, its processes.
-- Must not know: how a view is made; facts say which views this machine has.
-- Runs in efrd and efr. Pure.
--
-- Policy: every command of the line must be one of the list; more work in the line keeps the exit.
-- A view that the machine does not have leaves the line with its exit.

local list = require "efr.util.list"
local words = require "efr.perm.exit_words"

local M = {}

local FILTERS <const> = list.set {
  "grep", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "column", "cat", "echo", "printf",
  "date", "sleep", ":", "true", "tee",
}
local AROUND <const> = list.set { "watch", "timeout" }
local PROCESSES <const> = list.set {
  "ps", "pgrep", "pidof", "pstree", "uptime", "free", "vmstat", "w", "who",
}
local IP_OBJECTS <const> = list.set {
  "a", "addr", "address", "l", "link", "r", "route", "n", "neigh", "neighbour", "rule", "maddr",
  "maddress", "addrlabel", "netconf",
}
local IP_VERBS <const> = list.set { "show", "list", "ls", "lst", "get" }
local SS_WRITES <const> = { "-K", "--kill", "-D", "--diag", "-N", "--net" }

-- Network ---------------------------------------------------------------------------------------

local function ip_reads(args)
  for _, arg in ipairs(args) do
    if arg:find("^%-b") or arg:find("^%-n") or arg:find("^%-%-?all$") or arg:find("^%-al?l?$") then
      return false
    end
  end
  local object = words.first_operand(args, { ["-f"] = true, ["-family"] = true })
  local verb = words.first_operand(args, { ["-f"] = true, ["-family"] = true }, 2)
  return object ~= nil and IP_OBJECTS[object] == true and (verb == nil or IP_VERBS[verb] == true)
end

local NETWORK <const> = {
  ss = function(args) return not words.any(args, SS_WRITES) end,
  ip = ip_reads,
  nstat = function(args) return not words.any(args, { "-d", "--scan" }) end,
}

local READERS <const> = list.set { "cat", "head", "tail", "grep", "wc" }

local function reads_proc_net(cmd)
  if not READERS[cmd.name] then return false end
  for _, arg in ipairs(cmd.args) do
    if arg:find("^/proc/net/.") or arg:find("^/proc/[%w]+/net/.") then return true end
  end
  return false
end

-- Whether all commands are of a kind, and one is more than a filter.
local function all_are(commands, is_reader)
  local any = false
  for _, cmd in ipairs(commands) do
    if cmd.unread or not cmd.name or words.has_unknown(cmd.args) then return false end
    if is_reader(cmd) then
      any = true
    elseif not FILTERS[cmd.name] and not AROUND[cmd.name] then
      return false
    end
  end
  return any
end

local function reads_network(cmd)
  local reads = NETWORK[cmd.name]
  return reads ~= nil and reads(cmd.args) or reads_proc_net(cmd)
end

local function lists_processes(cmd)
  return PROCESSES[cmd.name] == true or cmd.name == "top" and words.any(cmd.args, { "-b" })
end

-- Mounts ----------------------------------------------------------------------------------------

local DF_FLAGS <const> = "^%-[ahHiklPT]+$"
local DF_VALUES <const> = { ["-B"] = true, ["-t"] = true, ["-x"] = true }
local FINDMNT_REAL <const> = { "-F", "-N", "-k", "-s", "-p", "-x", "-m" }

local function df_is_simple(args)
  local i = 1
  while i <= #args do
    local arg = args[i]
    if DF_VALUES[arg] then
      i = i + 1
    elseif arg == "--" then
      return i == #args
    elseif not (arg:find(DF_FLAGS) or arg:find("^%-[Btx].") or arg:find("^%-%-total$")
      or arg:find("^%-%-output") or arg:find("^%-%-no%-sync$") or arg:find("^%-%-sync$")) then
      return false
    end
    i = i + 1
  end
  return true
end

local MOUNTS <const> = {
  df = df_is_simple,
  findmnt = function(args) return not words.any(args, FINDMNT_REAL) end,
}

local function is_bare(cmd)
  local path = cmd.words[1] and cmd.words[1].text
  if path ~= cmd.name then return false end
  for _, wrapper in ipairs(cmd.wrappers) do
    if wrapper ~= "time" then return false end
  end
  return true
end

-- "view", "outside", or nil for a line that means a place of its own and runs the real program.
local function mounts_of(call, cmd)
  local simple = MOUNTS[cmd.name]
  if not simple or not simple(cmd.args) then return nil end
  if is_bare(cmd) and call.facts.mount_view then return "view" end
  return "outside"
end

-- Lines -----------------------------------------------------------------------------------------

local function view(name, why)
  return { name = name, why = why }
end

local function mount_views(call, commands, emit, out)
  local seen, outside = false, false
  for _, cmd in ipairs(commands) do
    local what = mounts_of(call, cmd)
    seen = seen or what == "view"
    if what == "outside" then
      outside = true
      emit("outside", { target = cmd.name, read_only = true,
        why = cmd.name .. " shows the sandbox's mounts inside" })
    end
  end
  if seen and not outside then
    out[#out + 1] = view("mount", "it only lists mounts, from a snapshot")
  end
end

---Adds the views of a line, and reports the exits that a missing view leaves.
---@param call table  call.network_view is set when the line has the network view
---@param commands efr.perm.Seen[]
---@param emit fun(kind: string, detail: table)
---@param out {name: string, why: string}[]
function M.of_line(call, commands, emit, out)
  call.network_view = call.facts.netview == true and all_are(commands, reads_network)
  if call.network_view then
    out[#out + 1] = view("network", "every command of the line only reads the network")
  end
  if call.facts.process_view and all_are(commands, lists_processes) then
    out[#out + 1] = view("process", "every command of the line only lists processes")
  end
  mount_views(call, commands, emit, out)
end

---Adds the view that an exit became, when that is one.
---@param exit table  an exit that the sandbox serves
---@param out {name: string, why: string}[]
function M.of_exit(exit, out)
  if exit.kind ~= "bus" then return end
  local name = exit.target .. " bus"
  for _, known in ipairs(out) do
    if known.name == name then return end
  end
  out[#out + 1] = view(name, "it is a read form that the bus filter serves")
end

return M
