-- Owns: the call of a conversation that was refused last and that its user may let run once
-- afterwards: finding it, the prompt that asks the model to call again, and whether a call is it.
-- Must not know: how a call is decided, the wire. Runs in efrd.
--
-- Policy: only what a person, the reviewer or the silence of an absent user refused; a floor stays
-- one. The permission holds in the one turn that it starts, for one call with the same tool, the
-- same arguments and the same exits. Everything else of that call goes its usual way.

local exit_who = require "efr.perm.exit_who"

local M = {}

local EVENTS_MAX <const> = 500
local REFUSED <const> = { user = true, reviewer = true, expired = true }

---@class efr.RefusedCall
---@field call_id string
---@field turn_id string
---@field tool string
---@field input table
---@field exits table<string, boolean>  what left the sandbox, as `key` has it
---@field reason string
---@field context table?  of its prompt
---@field settings table?

local function key(kind, target, grants)
  return ("%s\0%s\0%s"):format(kind, target, table.concat(grants, "\0"))
end

-- The newest refusal, unless its user let it run already.
local function newest(app, conversation_id)
  local rows, err, code = app.query:events(conversation_id, { limit = EVENTS_MAX })
  if not rows then return nil, err, code end
  local used = {}
  for i = #rows, 1, -1 do
    local event = rows[i].event
    if event.kind == "prompt_queued" and event.allow_once then used[event.allow_once] = true end
    local refusal = event.kind == "tool_call_completed" and event.refusal
    if refusal and REFUSED[refusal.kind] then
      if not used[event.call_id] then return event, rows[i].turn_id end
      return nil, "the call that was refused last was allowed once already", "conflict"
    end
  end
  return nil, "no call of this conversation was refused", "not_found"
end

---The call that was refused last.
---@param app table
---@param conversation_id string
---@return efr.RefusedCall?
---@return string? err
---@return string? code
function M.find(app, conversation_id)
  local event, turn_id, code = newest(app, conversation_id)
  if not event then return nil, turn_id, code end
  local rows, err
  rows, err, code = app.query:turn_events(conversation_id, turn_id)
  if not rows then return nil, err, code end
  local out = { call_id = event.call_id, turn_id = turn_id, exits = {},
    reason = event.refusal.reason }
  for _, row in ipairs(rows) do
    local one = row.event
    local own = one.call_id == event.call_id
    if one.kind == "prompt_queued" then
      out.context, out.settings = one.context, one.settings
    elseif own and one.kind == "tool_call_started" then
      out.tool, out.input = one.tool, one.input
    elseif own and one.kind == "exit_requested" then
      for _, exit in ipairs(one.record.action.exits) do
        out.exits[key(exit.kind, exit.target, exit.grants)] = true
      end
    end
  end
  if not out.tool then return nil, "the call that was refused last is not known", "not_found" end
  return out
end

-- The arguments as one text, whatever the order of their names.
local function arguments(app, input)
  return app.ports.json.encode(input, { sort = true })
end

---The prompt that asks the model to call again.
---@param app table
---@param refused efr.RefusedCall
---@return string
function M.prompt(app, refused)
  return ("I allow the %s call that was refused, once. Call it again now with exactly these "
    .. "arguments: %s"):format(refused.tool, arguments(app, refused.input))
end

---Whether a call is the one that the prompt of its turn allows. Once.
---@param turn efr.Turn
---@param call table
---@param decision efr.Decision
---@return boolean
function M.takes(turn, call, decision)
  local once = turn.prompt.allow_once
  if not once or once.taken or once.tool ~= call.name then return false end
  local json, clean = arguments(turn.app, call.input), turn.app.ports.text.clean
  if not json or json ~= arguments(turn.app, once.input) then return false end
  for _, exit in ipairs(decision.exits) do
    local grants = {}
    for i, grant in ipairs(exit.grants) do grants[i] = clean(exit_who.grant_text(grant)) end
    if not once.exits[key(exit.kind, clean(exit.target), grants)] then return false end
  end
  once.taken = true
  return true
end

return M
