-- Owns: the surface guard in a turn: around each contained line, the question whether what it
-- planted stays, and the report of files that run code later.
-- Must not know: what the guard looks for, how a question reaches a person. Runs in efrd, in the
-- turn's task; waits.
--
-- Policy: without a watch a contained line does not run, and a guard that fails ends the turn. What
-- is in quarantine stays there unless a person says that it is kept; the question is no approval of
-- a call, and comes before the next call or at the end of the turn. It is asked only while somebody
-- follows who can answer, and not for ever.

local async = require "efr.util.async"
local events = require "efr.conv.events"
local question_of = require "efr.conv.question"

local M = {}

M.MAX_FILES = 50 ---@type integer

local WAIT_SECS <const> = 300

-- Around a line -----------------------------------------------------------------------------------

-- Runs fn in a task of its own, so that an error in it is logged and told apart.
local function guarded(app, what, fn, ...)
  local found = table.pack(async.spawn(fn, ...):wait())
  if found[1] then return table.unpack(found, 2, found.n) end
  app.log:error("surface guard, %s: %s", what, found[2])
  return nil
end

---Looks at what there is before a contained line.
---@param turn efr.Turn
---@param call table
---@param prepared table  the call of sbx.calls
---@return table? watch
---@return string? message  the line must not run
function M.before(turn, call, prepared)
  local app = turn.app
  local watch = guarded(app, "before " .. call.id, app.guard.before, app.guard, {
    conversation_id = turn.conv.id, call_id = call.id, mounts = prepared.mounts or {},
    cwd = turn.conv.shell_cwd,
  })
  if not watch then return nil, "the check of git settings before it failed" end
  return watch
end

local function words_for_model(report)
  local moved, told = {}, {}
  for _, change in ipairs(report.changes) do
    local list = change.quarantined and moved or told
    list[#list + 1] = ("%s (%s)"):format(change.path, change.key or change.rule)
  end
  local notes = {}
  if #moved > 0 then
    notes[1] = ("[efr moved to quarantine what could make git run code: %s; the user is asked "
      .. "whether it stays]"):format(table.concat(moved, ", "))
  end
  if #told > 0 then
    notes[#notes + 1] = ("[efr tells the user of changed settings: %s]"):format(
      table.concat(told, ", "))
  end
  return notes
end

-- What is recorded of a report.
local function change_event(turn, call_id, report)
  local array = turn.app.ports.json.array
  local changes, quarantined = array({}), array({})
  for i, change in ipairs(report.changes) do
    changes[i] = { path = change.path, rule = change.rule, key = change.key,
      quarantined = change.quarantined, restored = change.restored, error = change.error }
  end
  for i, entry in ipairs(report.place and report.place.entries or {}) do
    quarantined[i] = { from = entry.from, to = report.place.dir .. "/" .. entry.to,
      restored = entry.old and true or nil }
  end
  return events.make("sandbox_surface_changed", {
    call_id = call_id, changes = changes, more = report.more,
    quarantined = #quarantined > 0 and quarantined or nil,
  })
end

local function remember(turn, call_id, report)
  for path, before in pairs(report.touched) do
    if turn.touched[path] == nil then turn.touched[path] = before end
  end
  if not report.place then return end
  local asked = {}
  for _, change in ipairs(report.changes) do
    if change.quarantined then asked[#asked + 1] = change end
  end
  table.insert(turn.conv.quarantined, { call_id = call_id, changes = asked, place = report.place })
end

---Looks at what a contained line did. What is to be recorded stands in call.surface afterwards.
---@param turn efr.Turn
---@param call table
---@param watch table
---@param cwd string?  where the shell stands
---@return string[] notes  for the model
function M.after(turn, call, watch, cwd)
  local report = guarded(turn.app, "after " .. call.id, watch.after, watch, cwd)
  if not report then
    turn:fail("internal", "the check of git settings after a command failed; see the log of efrd")
    return { "[efr could not check what this command did to git settings]" }
  end
  remember(turn, call.id, report)
  if #report.changes == 0 then return {} end
  call.surface = change_event(turn, call.id, report)
  return words_for_model(report)
end

---Looks again when a command ends that went on after its call. Waits for nobody.
---@param turn efr.Turn
---@param call table
---@param watch table
---@param cwd string?
function M.late(turn, call, watch, cwd)
  async.spawn(function()
    local report = guarded(turn.app, "end of " .. call.id, watch.after, watch, cwd)
    if not report then return end
    remember(turn, call.id, report)
    if #report.changes == 0 then return end
    local event = change_event(turn, call.id, report)
    event.turn_id = turn.id
    local ok, message = turn.conv:append({ events = { event } })
    if not ok then turn.app.log:error("surface guard: %s", message) end
  end)
end

---Counts the files that a tool of efr's own changed, in auto.
---@param turn efr.Turn
---@param changes {files: {path: string}[]}?
function M.add_changes(turn, changes)
  if turn.settings.mode ~= "auto" then return end
  for _, file in ipairs(changes and changes.files or {}) do
    if turn.touched[file.path] == nil and turn.app.guard:is_surface(file.path) then
      turn.touched[file.path] = false
    end
  end
end

-- The question ------------------------------------------------------------------------------------

local function put_back(turn, pending)
  local failed = turn.app.guard:restore(pending.place)
  for _, change in ipairs(pending.changes) do
    turn.kept[change.path] = { path = change.path, detail = change.key }
  end
  if #failed == 0 then return end
  local changes = turn.app.ports.json.array({})
  for i, item in ipairs(failed) do
    turn.kept[item.path] = nil
    changes[i] = { path = item.path, rule = "not_put_back", quarantined = true,
      error = item.reason }
  end
  turn:record({ events.make("sandbox_surface_changed", {
    call_id = pending.call_id, changes = changes,
  }) })
end

-- Ends the question when nobody can answer it.
local function watch_people(turn, question)
  local people = turn.app.answering
  async.spawn(function()
    people:wait(turn.conv.id, function() return question.answer.done end)
    if not question.answer.done then question_of.give_up(question, "nobody") end
  end)
end

local function ask(turn, pending)
  local conv = turn.conv
  local question, id = question_of.new(turn), turn.app.ports.sys.uuid7()
  conv.surface_questions[id] = question
  local recorded = turn:record({ events.make("surface_question_requested", {
    call_id = pending.call_id, question_id = id,
    changes = turn.app.ports.json.array(pending.changes),
  }) })
  if recorded then
    watch_people(turn, question)
    local secs = turn.app.config:get("conversation.approval_timeout_secs") or WAIT_SECS
    local answer = question_of.wait(turn, question, secs)
    turn.app.answering:wake(conv.id)
    if answer == "keep" then
      put_back(turn, pending)
    elseif answer ~= "leave" then
      turn:record({ events.make("surface_question_answered", { question_id = id }) })
    end
  end
  conv.surface_questions[id] = nil
end

---Asks about everything that lies in quarantine since the last question.
---@param turn efr.Turn
function M.ask(turn)
  local conv = turn.conv
  while #conv.quarantined > 0 and not turn.token.cancelled do
    ask(turn, table.remove(conv.quarantined, 1))
  end
  if turn.token.cancelled then conv.quarantined = {} end
end

-- The end of a turn -------------------------------------------------------------------------------

local function shown(turn, path)
  local root = turn.project_root
  if root and path:sub(1, #root + 1) == root .. "/" then return path:sub(#root + 2) end
  return path
end

---What the end of a turn says of files that run code later, or nil.
---@param turn efr.Turn
---@return table? event
function M.report(turn)
  local files = turn.app.ports.json.array({})
  local found = turn.started and guarded(turn.app, "report", turn.app.guard.report, turn.app.guard,
    turn.touched) or {}
  for _, kept in pairs(turn.kept) do found[#found + 1] = kept end
  table.sort(found, function(a, b) return a.path < b.path end)
  for i = 1, math.min(#found, M.MAX_FILES) do
    files[i] = { path = shown(turn, found[i].path), detail = found[i].detail }
  end
  if #found == 0 then return nil end
  return events.make("turn_surface_report", {
    turn_id = turn.id, files = files, more = #found > M.MAX_FILES and #found - M.MAX_FILES or nil,
  })
end

return M
