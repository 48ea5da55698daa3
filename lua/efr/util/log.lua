-- Owns: the log as Lua code sees it: parts, levels and the filter of the key `log`.
-- Must not know: where lines go (a write function is given) or any other part of efr but redact.
-- Runs in efrd and efr, on the loop thread.

local redact = require "efr.util.redact"
local text = require "efr.util.text"

local M = {}

local LEVELS <const> = { error = 1, warn = 2, info = 3, debug = 4, trace = 5 }

local Log = {}
Log.__index = Log

---Reads a filter such as `info` or `warn,store=debug`.
---@param filter string
---@return { default: integer, parts: table<string, integer> }?
---@return string? err
function M.parse_filter(filter)
  local out = { default = LEVELS.info, parts = {} }
  for _, word in ipairs(text.split(filter, ",")) do
    word = text.trim(word)
    local part, level = word:match("^([%w_.-]+)=(%a+)$")
    local value = LEVELS[level or word]
    if not value then
      return nil, ("'%s' is no level (error, warn, info, debug, trace) and no part=level")
        :format(word)
    end
    if part then out.parts[part] = value else out.default = value end
  end
  return out
end

---A logger. Secrets are taken out of each line before it is written.
---@param write fun(level: string, line: string)
---@param filter string?  default `info`; a filter that cannot be read counts as `info`
---@return table log
function M.new(write, filter)
  local parsed = M.parse_filter(filter or "info") or { default = LEVELS.info, parts = {} }
  return setmetatable({ _shared = { write = write, filter = parsed }, _part = nil }, Log)
end

---The same log for one part: its lines start with the name, and the filter can name it.
---@param name string
---@return table log
function Log:part(name)
  return setmetatable({ _shared = self._shared, _part = name }, Log)
end

---Takes a new filter, for all parts.
---@param filter string
---@return boolean? ok
---@return string? err
function Log:set_filter(filter)
  local parsed, err = M.parse_filter(filter)
  if not parsed then return nil, err end
  self._shared.filter = parsed
  return true
end

---Whether a line of this level would be written: lets callers skip costly text.
---@param level string
---@return boolean
function Log:enabled(level)
  local filter = self._shared.filter
  return LEVELS[level] <= (filter.parts[self._part or ""] or filter.default)
end

-- A log call never raises: a wrong format would turn a diagnostic into a failure.
local function format(fmt, ...)
  if select("#", ...) == 0 then return tostring(fmt) end
  local ok, line = pcall(string.format, fmt, ...)
  return ok and line or tostring(fmt) .. " (" .. tostring(line) .. ")"
end

for level in pairs(LEVELS) do
  Log[level] = function(self, fmt, ...)
    if not self:enabled(level) then return end
    local line = redact.text(format(fmt, ...))
    if self._part then line = self._part .. ": " .. line end
    self._shared.write(level, line)
  end
end

return M
