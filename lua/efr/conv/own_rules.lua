-- Owns: asking the user's Lua rules about a tool call, and what their answer adds to it.
-- Must not know: the process, how the engine decides. Runs in efrd, in the turn's task; waits at
-- most 50 ms for each question.

local apply = require "efr.rules.apply"
local perm_line = require "efr.perm.line"

local M = {}

local function line_of(call)
  for _, item in ipairs(call.requirements) do
    if item.kind == "line" then return call.lines[item.text], item.cwd end
  end
  return nil
end

local function question_of(turn, call, exits)
  local line, cwd = line_of(call)
  return apply.question({
    requirements = call.requirements, line = line, found = line and perm_line.found(line),
    exits = exits,
  }, {
    cwd = cwd or call.ctx.cwd, mode = turn.settings.mode, tool = call.name,
    origin = turn.prompt.origin, project = turn.project_root, scratch = turn.scratch,
    home = turn.home,
  })
end

---Sets call.lua, the engine's input, and gives the requirements that program knowledge adds.
---@param turn efr.Turn
---@param call table  with requirements and lines
---@return table[] added
function M.ask(turn, call)
  local rules = turn.app.rules
  if not rules then return {} end
  local question = question_of(turn, call)
  local answer = rules:judge(question)
  call.lua = apply.input(answer, question)
  return apply.requirements(answer)
end

---Asks about the exits of a decision. False when there is nothing to ask; else call.lua has the
---answer and the engine must decide once more.
---@param turn efr.Turn
---@param call table
---@param exits efr.Exit[]
---@return boolean asked
function M.ask_exits(turn, call, exits)
  local rules = turn.app.rules
  if not rules or #exits == 0 or not rules:has("exit") then return false end
  local question = question_of(turn, call, exits)
  local answer = apply.input(rules:judge(question), question)
  if not answer then return false end
  call.lua = call.lua or { rules = {}, exits = {} }
  call.lua.exits = answer.exits
  call.lua.failure = call.lua.failure or answer.failure
  return true
end

return M
