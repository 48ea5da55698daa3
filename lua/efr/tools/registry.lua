-- Owns: the list of tools, and what holds for the result of each: text, and not too much of it.
-- Must not know: what a tool does, or who decides whether it runs.
-- Runs in efrd, on the loop thread.
--
-- A tool is a module lua/efr/tools/NAME.lua that returns
--   name, description, schema (JSON schema of its input), and
--   declare(input, ctx) -> requirements | nil, err     what the call touches; err goes to the model
--   preview(input, ctx) -> text | nil                  what the user sees before deciding
--   run(input, ctx) -> result                          may wait; only after a decision
-- A requirement is a plain table as in perm/requirements; a tool never requires perm.

local text = require "efr.util.text"

local M = {}

local PREFIX <const> = "efr.tools."
local OUTPUT_MAX_BYTES <const> = 32 * 1024

---@class efr.ToolResult
---@field output string  for the model: UTF-8, at most 32 KiB
---@field is_error boolean
---@field truncated boolean?  whether a part of the output was left out
---@field exit_code integer?
---@field changes table?  {files = {{path, path_b64, kind, added, removed, binary}}, added, removed}
---@field diff string?  of the changes, for people

---@class efr.ToolContext
---@field cwd string  where relative paths start
---@field home string
---@field scratch string?
---@field project_root string?
---@field mode string
---@field launch string?  "direct" or "contained", once decided
---@field fs table  port
---@field text table  port
---@field token table?  cancelled when the turn is interrupted
---@field conversation_id string
---@field call_id string
---@field shell fun(opts: table): table  runs a line in the hidden shell
---@field on_output fun(tail: string, bytes: integer)?

local Registry = {}
Registry.__index = Registry

-- Models send null for what they leave out. JSON's null is the only userdata in an input.
local function without_nulls(input)
  local out = {}
  for key, value in pairs(input) do
    if type(value) ~= "userdata" then out[key] = value end
  end
  return out
end

local function declared(tool)
  return function(input, ctx)
    return tool.declare(without_nulls(input), ctx)
  end
end

local function finished(tool, clean)
  return function(input, ctx)
    local result = tool.run(without_nulls(input), ctx)
    local output, cut = text.cut_middle(clean(result.output), OUTPUT_MAX_BYTES)
    result.output = output
    result.truncated = result.truncated or cut or nil
    result.diff = result.diff and clean(result.diff)
    return result
  end
end

local function previewed(tool, clean)
  if not tool.preview then return nil end
  return function(input, ctx)
    local shown = tool.preview(without_nulls(input), ctx)
    return shown and clean(shown)
  end
end

---Finds the tools by folder.
---@param ports { modules: { list: fun(prefix: string): string[] }, text: table }
---@return table registry
function M.new(ports)
  local self = setmetatable({ _tools = {}, _by_name = {} }, Registry)
  for _, module in ipairs(ports.modules.list(PREFIX)) do
    local rest = module:sub(#PREFIX + 1)
    local tool = not rest:find(".", 1, true) and rest ~= "registry" and require(module)
    if tool then
      assert(tool.name:find("^[%w_.-]+$") and #tool.name <= 64, module)
      local entry = {
        name = tool.name, description = tool.description, schema = tool.schema,
        declare = declared(tool), preview = previewed(tool, ports.text.clean),
        run = finished(tool, ports.text.clean),
      }
      self._tools[#self._tools + 1] = entry
      self._by_name[entry.name] = entry
    end
  end
  table.sort(self._tools, function(a, b) return a.name < b.name end)
  return self
end

---The tools, sorted by name.
---@return table[]
function Registry:list()
  return self._tools
end

---@param name string
---@return table? tool
function Registry:get(name)
  return self._by_name[name]
end

return M
