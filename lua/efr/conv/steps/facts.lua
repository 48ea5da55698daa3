-- Step facts: which tool a call names, whether its input can be read, what it and its command line
-- require, and what the engine must know about the machine.
-- Must not know: what the engine makes of it. Runs in efrd, in the turn's task; waits.

local call_facts = require "efr.conv.call_facts"
local machine = require "efr.conv.machine"
local needs = require "efr.perm.needs"
local own_rules = require "efr.conv.own_rules"
local refuse = require "efr.conv.refuse"
local shell_call = require "efr.conv.shell_call"

local M = {}

local EDIT_TOOLS <const> = { edit = "apply_patch", apply_patch = "edit" }

local function no_such_tool(turn, name)
  local other = EDIT_TOOLS[name]
  if other and turn.tool_by_name[other] then
    return ("This model has no %s tool, and the call did not run. Use the %s tool to change a "
      .. "file."):format(name, other)
  end
  local names = {}
  for i, tool in ipairs(turn.tools) do names[i] = tool.name end
  return ("There is no tool named %s, and the call did not run. The tools are: %s."):format(name,
    table.concat(names, ", "))
end

-- Models send null for a parameter that they leave out. The history keeps the input as it came.
local function without_nulls(input, null)
  local out = {}
  for name, value in pairs(input) do
    if value ~= null then out[name] = value end
  end
  return out
end

-- What a tool is given. `launch` is set by step decide.
local function context_of(turn, call)
  local ports = turn.app.ports
  local ctx = {
    cwd = turn.conv.shell_cwd,
    home = turn.home,
    scratch = turn.scratch,
    project_root = turn.project_root,
    mode = turn.settings.mode,
    fs = ports.fs,
    json = ports.json,
    text = ports.text,
    token = turn.token,
    conversation_id = turn.conv.id,
    call_id = call.id,
  }
  function ctx.shell(opts)
    return shell_call.run(turn, call, opts)
  end
  return ctx
end

-- What of the hidden shell decides about a line: the PATH by which it will find programs, and the
-- variables that git reads. What is missing is not known.
local function add_shell(turn, call, requirements)
  for _, item in ipairs(requirements) do
    if item.kind == "line" then
      local hidden = turn.conv:shell()
      call.search_path = hidden and hidden:search_path(turn.token)
      call.git_env = hidden and hidden:git_environment()
      call.other_shell = hidden and hidden:is_unmarked() or nil
      return
    end
  end
end

-- Why what the model asks for cannot be read, or nil.
local function bad_needs(requirements)
  for _, item in ipairs(requirements) do
    if item.kind == "needs" then
      local ok, err = needs.check(item.needs)
      if not ok then return err .. "." end
    end
  end
  return nil
end

---@param turn efr.Turn
---@param call table
---@return true|nil
function M.run(turn, call)
  local tool = turn.tool_by_name[call.name]
  if not tool then
    return refuse.call(turn, call, no_such_tool(turn, call.name),
      { kind = "input", reason = "no such tool" })
  end
  if not call.input then
    return refuse.call(turn, call, call.error or "The arguments are no JSON object.",
      { kind = "input", reason = "the arguments are no JSON object" })
  end
  call.input = without_nulls(call.input, turn.app.ports.json.null)
  call.tool = tool
  call.ctx = context_of(turn, call)
  local requirements, message = tool.declare(call.input, call.ctx)
  if requirements then message = bad_needs(requirements) end
  if message then
    return refuse.call(turn, call, message, { kind = "input", reason = message })
  end
  call.machine = machine.facts(turn.app, turn)
  add_shell(turn, call, requirements)
  call_facts.collect(turn, call, requirements)
  local added = own_rules.ask(turn, call)
  if #added > 0 then
    requirements = table.move(requirements, 1, #requirements, #added + 1, added)
    call_facts.collect(turn, call, requirements)
  end
  call.declared = requirements
  return true
end

return M
