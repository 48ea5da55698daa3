-- Owns: the surface guard around `efr run`: the look before and after, what is told of it, and the
-- answer whether what lies in quarantine is put back.
-- Must not know: what the guard looks for, how a run is prepared. Main thread of efrd; begin,
-- finish and answer wait.
--
-- Policy: a client that goes away without telling the end gets no question; what its command
-- planted until then lies in quarantine all the same, and the log says so.

local async = require "efr.util.async"

local M = {}

-- Questions that a client may still answer, at most.
local MAX_OPEN <const> = 64

local function log_changes(app, report)
  for _, change in ipairs(report.changes) do
    app.log:warn("efr run: %s: %s%s", change.rule, change.path,
      change.quarantined and ", moved to quarantine" or "")
  end
end

-- The client went away: what was done until now is looked at.
local function watch_client(app, session, call)
  session:at_close(function()
    if call.surface_watch then
      local watch = call.surface_watch
      call.surface_watch = nil
      async.spawn(function() log_changes(app, watch:after()) end)
    end
  end)
end

---Looks at what there is before the command.
---@param app table
---@param session table
---@param call table  of sbx.calls; keeps the watch
---@param opts {conversation_id: string, run_id: string, cwd: string}
function M.begin(app, session, call, opts)
  call.surface_watch = app.guard:before({
    conversation_id = opts.conversation_id, call_id = opts.run_id, mounts = call.mounts or {},
    cwd = opts.cwd,
  })
  watch_client(app, session, call)
end

local function remember(app, run_id, place)
  local open = app.run_questions or { order = {}, places = {} }
  app.run_questions = open
  open.places[run_id] = place
  open.order[#open.order + 1] = run_id
  if #open.order > MAX_OPEN then open.places[table.remove(open.order, 1)] = nil end
end

---Looks at what the command did.
---@param app table
---@param call table
---@param run_id string
---@return {surface_changes: table?, quarantined: table?, files: table?} told
function M.finish(app, call, run_id)
  local watch = call.surface_watch
  if not watch then return {} end
  call.surface_watch = nil
  local array, report = app.ports.json.array, watch:after()
  local told = { files = array(app.guard:report(report.touched)) }
  if #told.files == 0 then told.files = nil end
  if #report.changes == 0 then return told end
  log_changes(app, report)
  told.surface_changes, told.more = array(report.changes), report.more
  if report.place then
    told.quarantined = array({})
    for i, entry in ipairs(report.place.entries) do
      told.quarantined[i] = { from = entry.from, to = report.place.dir .. "/" .. entry.to,
        restored = entry.old and true or nil }
    end
    remember(app, run_id, report.place)
  end
  return told
end

---The answer to the question of a run; once.
---@param app table
---@param params {command_id: string, question_id: string, keep: boolean?}
---@return table? result  {failed?}
---@return string? message
---@return string? code
function M.answer(app, params)
  local open = app.run_questions
  local place = open and open.places[params.question_id]
  if not place then return nil, "no such question waits", "not_found" end
  open.places[params.question_id] = nil
  local failed = params.keep and app.guard:restore(place) or {}
  local result = { failed = #failed > 0 and app.ports.json.array(failed) or nil }
  local seqs, message, code = app.store:append({
    events = {},
    receipt = { command_id = params.command_id, method = "sandbox.surface_respond",
      result = result },
  })
  if not seqs then return nil, message, code end
  return result
end

return M
