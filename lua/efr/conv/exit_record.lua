-- Owns: what is kept and shown of the exits of one call: the record (protocol.md, ExitRecord) and
-- what a question says (ExitInfo).
-- Must not know: who decides, how a question reaches a person. Runs in efrd. Pure but for the
-- turn's own data.
--
-- Policy: everything here is efr's own finding or the user's own words. What the model said stands
-- apart, in `model_reason`, and is in no record.

local exit_grants = require "efr.conv.exit_grants"
local exit_who = require "efr.perm.exit_who"
local list = require "efr.util.list"
local named = require "efr.perm.named"
local paths = require "efr.perm.paths"

local M = {}

local VERSION <const> = 1
local USER_BYTES <const> = 24 * 1024
local TURNS_MAX <const> = 32
local NAMING_TURNS <const> = 4 -- before this one
local FACTS_MAX <const> = 32

-- The record -------------------------------------------------------------------------------------

-- What the user wrote in this turn; the prompt of `efr allow-last` is efr's, with a line of the
-- model's in it.
local function own_text(turn)
  return not turn.prompt.allow_once and turn.prompt.text or nil
end

-- What the user wrote in earlier turns that ran, newest first.
local function earlier(turn)
  local query, out = turn.app.query, {}
  local rows = query:turns(turn.conv.id) or {}
  for i = #rows, math.max(1, #rows - TURNS_MAX), -1 do
    local row = rows[i]
    local events = row.id ~= turn.id and row.started_at
      and query:events(turn.conv.id, { after = row.queued_seq - 1, limit = 1 })
    local event = events and events[1] and events[1].event
    local own = event and type(event.text) == "string" and not event.allow_once
    if own then out[#out + 1] = event.text end
  end
  return out
end

-- The user's own words, oldest first; the oldest go when they are too many.
local function user_messages(turn)
  local all = earlier(turn)
  local own = own_text(turn)
  if own then table.insert(all, 1, turn.app.ports.text.clean(own)) end
  local out, bytes = turn.app.ports.json.array({}), 0
  for _, words in ipairs(all) do
    bytes = bytes + #words
    if bytes > USER_BYTES then break end
    table.insert(out, 1, words)
  end
  return out
end

-- Text that goes into an event: words of a line and names of files are bytes.
local function cleaner(turn)
  local clean = turn.app.ports.text.clean
  return function(value) return value and clean((value:gsub("%z", "?"))) or nil end
end

local function exit_of(exit, clean, array)
  return {
    kind = exit.kind, target = clean(exit.target), source = exit.source, who = exit.approver,
    grants = array(list.map(exit.grants, function(one) return clean(exit_who.grant_text(one)) end)),
  }
end

local IS_PATH <const> = list.set {
  "write", "persistence", "synced_write", "above_root", "masked_read", "secret", "config", "device",
}

local function in_write_root(turn, path)
  local roots = list.copy(turn.app.config:get("sandbox.write_roots") or {})
  roots[#roots + 1] = turn.project_root
  roots[#roots + 1] = turn.scratch
  for _, root in ipairs(roots) do
    if paths.within(path, root) then return true end
  end
  return nil
end

-- The words of the newest turns, which alone can name something.
local function naming_words(turn)
  local out = { own_text(turn) }
  for i, words in ipairs(earlier(turn)) do
    if i > NAMING_TURNS then break end
    out[#out + 1] = words
  end
  return table.concat(out, "\n\n")
end

-- Other names that lead to a path.
local function links_to(call, path)
  local out = {}
  for name, real in pairs(call.facts and call.facts.reals or {}) do
    if real == path then out[#out + 1] = name end
  end
  return out
end

local function targets_of(turn, call, exits, clean)
  local out = turn.app.ports.json.array({})
  local known = call.facts and call.facts.targets or {}
  local words = naming_words(turn)
  for _, exit in ipairs(exits) do
    local path = IS_PATH[exit.kind] and exit.target:sub(1, 1) == "/" and exit.target
    if path then
      local ok, class = pcall(paths.class, path, call.machine)
      out[#out + 1] = {
        path = clean(path), class = ok and class or nil, in_write_root = in_write_root(turn, path),
        floor = exit.kind == "persistence" or nil, synced = exit.kind == "synced_write" or nil,
        exists = known[path] ~= nil and known[path] ~= "missing" or nil,
        named_in_user_messages = named.path(words, path, {
          home = turn.home, floor = exit.group, links = links_to(call, path),
        }) or nil,
      }
    end
  end
  return out
end

local function hosts_of(turn, exits, clean)
  local out = turn.app.ports.json.array({})
  for _, exit in ipairs(exits) do
    if exit.host then
      out[#out + 1] = { host = clean(exit.host), port = exit.port,
        named_in_user_messages = named.host(naming_words(turn), exit.host) or nil }
    end
  end
  return out
end

---The programs of a call, as the record and a question name them.
---@param turn efr.Turn
---@param call table
---@return table[]
function M.programs(turn, call)
  local clean = cleaner(turn)
  local programs = call.facts and call.facts.programs or {}
  return turn.app.ports.json.array(list.map(programs, function(one)
    return {
      word = clean(one.word), resolved = clean(one.resolved), builtin = one.builtin,
      untrusted = clean(one.untrusted), in_write_root = one.in_write_root,
      changed_this_turn = one.changed,
    }
  end))
end

local function source_of(exits)
  for _, exit in ipairs(exits) do
    if exit.source == "needs" then return "needs" end
  end
  return "predicted"
end

local function names_of_exports(turn)
  local state = turn.app.sandbox.state
  local kept = state and state:get(turn.conv.id)
  return list.keys(kept and kept.exports or {})
end

---The record of the exits of one call.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return table record
function M.record(turn, call, decision)
  local json, clean = turn.app.ports.json, cleaner(turn)
  local uploads = json.array({})
  for _, exit in ipairs(decision.exits) do
    if exit.kind == "upload" then uploads[#uploads + 1] = clean(exit.why) end
  end
  return {
    version = VERSION,
    user_messages = user_messages(turn),
    action = {
      tool = call.name, line = clean(call.input.command), cwd = clean(call.ctx.cwd),
      scope = turn.scope, source = source_of(decision.exits),
      exits = json.array(list.map(decision.exits, function(exit)
        return exit_of(exit, clean, json.array)
      end)),
      grants = exit_grants.for_wire(json, decision.grants),
    },
    facts = {
      targets = targets_of(turn, call, decision.exits, clean),
      hosts = hosts_of(turn, decision.exits, clean),
      programs = M.programs(turn, call), upload_patterns = uploads,
      repo_surface_changed_this_turn = next(turn.touched) ~= nil or nil,
      sandbox_export_names = json.array(list.map(names_of_exports(turn), clean)),
      previous_exits_this_turn = json.array(list.copy(turn.exits)),
      refusals_in_a_row = turn.refusals > 0 and turn.refusals or nil,
    },
  }
end

---The event of the request.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return table fields  of exit_requested
function M.request(turn, call, decision)
  local json = turn.app.ports.json
  return {
    call_id = call.id, kinds = M.kinds(turn, decision), source = source_of(decision.exits),
    grants = exit_grants.for_wire(json, decision.grants), record = M.record(turn, call, decision),
  }
end

---The kinds of the exits, each once, in their order.
---@param turn efr.Turn
---@param decision efr.Decision
---@return string[]
function M.kinds(turn, decision)
  local out, seen = turn.app.ports.json.array({}), {}
  for _, exit in ipairs(decision.exits) do
    if not seen[exit.kind] then out[#out + 1], seen[exit.kind] = exit.kind, true end
  end
  return out
end

-- The question -----------------------------------------------------------------------------------

local STATE <const> = {
  dir = "is a directory", file = "exists", other = "is no file and no directory",
  missing = "does not exist yet",
}

local function path_fact(call, exit)
  local path = exit.target
  if not IS_PATH[exit.kind] or path:sub(1, 1) ~= "/" then return nil end
  local facts = call.facts or {}
  local state = STATE[facts.targets and facts.targets[path]]
  local real = facts.reals and facts.reals[path]
  local out = path
  if real then out = ("%s leads to %s"):format(out, real) end
  if state then out = ("%s%s %s"):format(out, real and ", which" or "", state) end
  return (real or state) and out or nil
end

-- What would do in place of a run outside, as far as efr sees the line.
local function narrower(decision)
  if decision.launch ~= "unsandboxed" then return nil end
  local asked, grants = false, {}
  for _, exit in ipairs(decision.exits) do
    if exit.kind == "outside" and exit.source == "needs" then
      asked = true
    elseif exit.launch ~= "contained" then
      return nil
    end
    for _, grant in ipairs(exit.grants) do grants[#grants + 1] = exit_who.grant_text(grant) end
  end
  if not asked then return nil end
  if #grants == 0 then return "efr sees nothing in this line that needs to run outside" end
  return "as far as efr sees, this would do in the sandbox: " .. table.concat(grants, ", ")
end

local function grant_fact(grant)
  if grant.open_network then
    return "the call gets this machine's whole network; a grant of one host needs the network proxy"
  elseif grant.network_view then
    return "the call gets this machine's whole network"
  end
  return nil
end

---Whether only the user may decide.
---@param decision efr.Decision
---@return boolean
function M.user_only(decision)
  for _, exit in ipairs(decision.exits) do
    if exit.approver == "user" then return true end
  end
  return false
end

local function facts_of(turn, call, decision)
  local out, seen, clean = turn.app.ports.json.array({}), {}, cleaner(turn)
  local paused = turn.reviewer and turn.reviewer.paused
  local function add(words)
    if not words or seen[words] or #out >= FACTS_MAX then return end
    out[#out + 1], seen[words] = clean(words), true
  end
  for _, exit in ipairs(decision.exits) do add(path_fact(call, exit)) end
  for _, grant in ipairs(decision.grants) do add(grant_fact(grant)) end
  add(narrower(decision))
  add(paused and ("the reviewer is paused for this turn: it refused %s"):format(paused))
  if M.user_only(decision) then add("only you can allow this") end
  return out
end

-- Why, for each exit: in a person's words.
local function reasons_of(call, decision, clean, array)
  local out, types = array({}), false
  for _, item in ipairs(call.requirements) do
    types = types or item.kind == "may_prompt" or item.kind == "interactive"
  end
  for i, exit in ipairs(decision.exits) do
    local begins = exit.why:sub(1, #exit.target) == exit.target
    local words = begins and exit.why or ("%s: %s"):format(exit.target, exit.why)
    local outside = decision.launch == "unsandboxed"
    if outside and (types or exit.kind == "privilege") then
      words = words .. " (you may need to type your password)"
    end
    out[i] = clean(words)
  end
  return out
end

local function model_reason(call)
  for _, item in ipairs(call.requirements) do
    if item.kind == "needs" and item.needs.reason then return item.needs.reason end
  end
  return nil
end

---What a question shows of the exits.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@param judged table?  what a reviewer said when it was unsure
---@return table info  ExitInfo
---@return string[] reasons
function M.info(turn, call, decision, judged)
  local clean, json = cleaner(turn), turn.app.ports.json
  local launch = { kind = M.launch(call, decision) }
  local grants = exit_grants.for_wire(json, decision.grants)
  if launch.kind == "contained" then launch.grants = grants end
  local reason = model_reason(call)
  return {
    kinds = M.kinds(turn, decision), launch = launch, grants = grants,
    facts = facts_of(turn, call, decision), programs = M.programs(turn, call),
    model_reason = reason and clean(reason) or nil, judged = judged,
    user_only = M.user_only(decision) or nil,
  }, reasons_of(call, decision, clean, json.array)
end

---How a decided call runs, in the protocol's word: a tool other than the shell is efrd itself.
---@param call table
---@param decision efr.Decision
---@return string "direct"|"contained"|"unsandboxed"
function M.launch(call, decision)
  if call.name ~= "shell" then return "direct" end
  return decision.launch
end

return M
