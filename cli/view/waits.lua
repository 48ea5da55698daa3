-- Waits of commands in the state of a followed turn.
-- Owns: blocks of kind input, the notes that stand for them where nobody can type. Must not know:
-- rows, keys, the wire. Pure; runs in `efr`.

local input = require "efr.cli.view.input"

local M = {}

M.SILENT_MS = 10000 ---@type integer

--- A wait of a call is over; what was typed at it goes nowhere.
--- @param call table
function M.finish(call)
  local wait = call.wait
  call.wait = nil
  if wait and wait.state == "open" then
    wait.state, wait.typed = "over", nil
  end
end

--- A command began to wait, waits for something else, or does not wait any more.
--- @param turn efr.cli.turn
--- @param call table
--- @param event table {input, looks_secret}
function M.change(turn, call, event)
  M.finish(call)
  local kind, secret = event.input, event.looks_secret == true
  if kind ~= "visible" and kind ~= "hidden" then
    return
  end
  if call.contained and (secret or kind == "hidden") then
    turn:note(input.SANDBOX, "warning")
  elseif turn.answers then
    call.wait = turn:_add({
      kind = "input", state = "open", wait = kind, looks_secret = secret, call = call,
      call_id = call.call_id, late = call.state ~= "running", prompt = call.tail or call.output,
    })
  elseif not call.told and not turn.past then
    call.told = true
    turn:note(input.unasked(kind))
  end
end

--- Whether a person may be offered to type at a call, though it is not known to wait.
--- @param call table
--- @param now_ms number
function M.is_offered(call, now_ms)
  return call.manual and call.state == "running" and not call.wait
    and now_ms - call.heard_ms >= M.SILENT_MS
end

--- The call at which a person is offered to type.
--- @param turn efr.cli.turn
--- @param now_ms number
--- @return table? call
function M.offered(turn, now_ms)
  for _, block in ipairs(turn.blocks) do
    if block.kind == "call" and M.is_offered(block, now_ms) then
      return turn.answers and block or nil
    end
  end
  return nil
end

--- The person took the offer.
--- @param turn efr.cli.turn
--- @param call table
function M.type_by_hand(turn, call)
  call.wait = turn:_add({
    kind = "input", state = "open", wait = "manual", call = call, call_id = call.call_id,
  })
end

--- The person gave it back.
--- @param item table a block of kind input
function M.cancel(item)
  item.state, item.call.wait = "cancelled", nil
end

--- The wait that can be answered here, oldest first.
--- @param turn efr.cli.turn
--- @return table? block
function M.open(turn)
  for _, block in ipairs(turn.blocks) do
    if block.kind == "input" and block.state == "open" then
      return block
    end
  end
  return nil
end

return M
