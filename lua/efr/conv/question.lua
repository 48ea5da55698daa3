-- Owns: waiting for the answer to a question of a turn.
-- Must not know: what is asked, who asks. Runs in efrd, in the turn's task; waits.
--
-- A question is {turn_id, answer (future), taken}. Who answers sets `taken` before the answer is
-- recorded; from then on time and interrupt (`late`) end it only when that answer could not be
-- recorded.

local async = require "efr.util.async"

local M = {}

---@param turn efr.Turn
---@return table question
function M.new(turn)
  return { turn_id = turn.id, answer = async.future(), taken = false }
end

---Ends a question without an answer of its own.
---@param question table
---@param why string
function M.give_up(question, why)
  if question.taken then
    question.late = question.late or why
  else
    question.answer:set(why)
  end
end

---Waits for the answer, "expired", "interrupted" or "away" (nobody answered while the user was
---away).
---@param turn efr.Turn
---@param question table
---@param secs integer?  nil: for ever
---@return any answer
function M.wait(turn, question, secs)
  local remove = turn.token:on_cancel(function() M.give_up(question, "interrupted") end)
  local there = turn.app.presence:wait(function() M.give_up(question, "away") end)
  if secs then
    local in_time = async.with_timeout(secs * 1000, function() question.answer:get() end)
    if not in_time then M.give_up(question, "expired") end
  end
  local answer = question.answer:get()
  remove()
  there()
  return answer
end

return M
