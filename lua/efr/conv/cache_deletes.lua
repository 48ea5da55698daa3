-- Owns: the question whether what a contained line deleted in its view of a cache is deleted in the
-- real one as well, and what is said of it afterwards.
-- Must not know: how deletes are found, checked or made (sbx.deletes), how a question reaches a
-- person. Runs in efrd, in the turn's task; waits.
--
-- Policy: a list is asked about as a whole, while somebody follows who can answer, and once: a list
-- that nobody allowed stays private, and its paths are not raised again in the conversation. Less
-- than MIN_BYTES is no question: programs trim logs and indexes of their caches all the time.

local async = require "efr.util.async"
local events = require "efr.conv.events"
local question_of = require "efr.conv.question"

local M = {}

M.MIN_BYTES = 1 << 20 ---@type integer

local WAIT_SECS <const> = 300
local SHOWN <const> = 20

local function size_text(bytes)
  local value, unit = bytes, "B"
  for _, next_unit in ipairs({ "kB", "MB", "GB", "TB" }) do
    if value < 1000 then break end
    value, unit = value / 1000, next_unit
  end
  return unit == "B" and ("%d B"):format(value) or ("%.1f %s"):format(value, unit)
end

local function short(path, home)
  return home and path:sub(1, #home + 1) == home .. "/" and "~" .. path:sub(#home + 1) or path
end

-- The directory that holds all paths of a list, or its only path.
local function place_of(list)
  local common = list.names[1]
  for _, name in ipairs(list.names) do
    while common ~= "" and (name .. "/"):sub(1, #common + 1) ~= common .. "/" do
      common = common:match("^(.*)/[^/]*$") or ""
    end
  end
  return list.cache .. (common == "" and "" or "/" .. common)
end

---"1.2 GB in ~/.cache/go-build (12 paths)"
---@param list efr.sbx.Deletes
---@param bytes integer
---@param count integer
---@param home string?
---@return string
function M.words(list, bytes, count, home)
  return ("%s in %s (%d %s)"):format(size_text(bytes), short(place_of(list), home), count,
    count == 1 and "path" or "paths")
end

local function summary(item, home)
  local list = item.list
  local out = { "delete " .. M.words(list, item.bytes, #list.names, home) }
  for i = 1, math.min(#list.names, SHOWN) do
    out[#out + 1] = short(list.cache .. "/" .. list.names[i], home)
  end
  if #list.names > SHOWN then out[#out + 1] = ("... and %d more"):format(#list.names - SHOWN) end
  return table.concat(out, "\n")
end

-- Ends the question when nobody can answer it.
local function watch_people(turn, question)
  async.spawn(function()
    turn.app.answering:wait(turn.conv.id, function() return question.answer.done end)
    if not question.answer.done then question_of.give_up(question, "nobody") end
  end)
end

-- "allow", or why not.
local function ask(turn, item)
  local conv, id = turn.conv, turn.app.ports.sys.uuid7()
  local question = question_of.new(turn)
  conv.approvals[id] = question
  local recorded = turn:record({ events.make("approval_requested", {
    call_id = id, tool = "cache_delete", summary = summary(item, turn.app.env.HOME),
    reasons = turn.app.ports.json.array({
      "the command deleted this in its own view of the cache; the real files are still there",
    }),
  }) })
  local answer = "failed"
  if recorded then
    watch_people(turn, question)
    answer = question_of.wait(turn, question,
      turn.app.config:get("conversation.approval_timeout_secs") or WAIT_SECS)
    turn.app.answering:wake(conv.id)
    if answer ~= "allow" and answer ~= "deny" then
      turn:record({ events.make("approval_expired", { call_id = id }) })
    end
  end
  conv.approvals[id] = nil
  return answer
end

local function refused(item, answer)
  local who = answer == "deny" and "the user did not allow" or "nobody allowed"
  return ("[%s deleting %d %s in %s for real: the real cache still has them]"):format(who,
    #item.list.names, #item.list.names == 1 and "path" or "paths", place_of(item.list))
end

local function carry_out(turn, call, prepared, item)
  local count, bytes, err = prepared:apply_deletes(item.list)
  if err then turn.app.log:warn("deletes in %s: %s", item.list.cache, err) end
  if count == 0 then return "[efr could not delete in the real cache: " .. tostring(err) .. "]" end
  local words = "freed " .. M.words(item.list, bytes, count, turn.app.env.HOME)
  call.freed = call.freed or turn.app.ports.json.array({})
  call.freed[#call.freed + 1] = words
  return ("[efr %s%s]"):format(words, err and "; some could not be deleted" or "")
end

---Asks about what a finished call deleted from caches. What was freed stands in call.freed.
---@param turn efr.Turn
---@param call table
---@param prepared table  the call of sbx.calls
---@return string[] notes  for the model
function M.offer(turn, call, prepared)
  local notes = {}
  for _, item in ipairs(prepared:deletes()) do
    if turn.token.cancelled then break end
    if item.bytes >= M.MIN_BYTES then
      local answer = ask(turn, item)
      if answer == "allow" then
        notes[#notes + 1] = carry_out(turn, call, prepared, item)
      else
        prepared:refuse_deletes(item.list)
        notes[#notes + 1] = refused(item, answer)
      end
    end
  end
  return notes
end

return M
