-- The first Lua code of the role `rules` of efrd: puts the parts of the room together. host/rules.c
-- calls start once, locks the process, and then gives each message to the function that start
-- returned. Knows no rule. A process of its own, without a loop.
local json = require "efr.json"
local lpeg = require "lpeg"
local room = require "efr.rules.room"

local M = {}

-- Only the examples of a user need the grammar here; judged lines come parsed.
local function parse(line)
  return require("efr.perm.shell").parse(line)
end

---@param native table  note, where, compile of host/rules.c
---@return fun(message: string): string
function M.start(native)
  getmetatable("").__metatable = false -- else the user's code reaches the string library of ours
  local self = room.new { native = native, json = json, lpeg = lpeg, parse = parse }
  return function(message)
    return self:answer(message)
  end
end

return M
