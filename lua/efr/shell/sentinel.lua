-- A line for a shell inside of the hidden one (ssh, sudo -i, bash), and what it gave.
--
-- Owns: the one line that is typed, how its beginning and end are told from its output. Must not
-- know: terminals, runs. Pure. Loop thread of efrd.
--
-- Another user's or another machine's shell cannot read efrd's files, so this is the one case of a
-- typed line. What it evaluates is written in characters that no line editor gives a meaning to:
-- everything else stands as octal. The typed text never holds a whole marker, so its echo is none.
-- Whoever runs inside sees the token and can forge the end: results of such a shell are its word.

local output = require "efr.shell.output"

local M = {}

---The longest line that is typed, in bytes: a terminal in line mode takes 4095.
M.MAX_BYTES = 4000 ---@type integer
local LINE_MAX <const> = 8192

local TYPED <const> = [[ printf '__efr_%%s_b\n' %s; eval "$(printf %%b '%s')"; ]]
  .. [[printf '\n__efr_%%s_e:%%s:%%s\n' %s "$?" "$PWD"]]

---The line to type, without its end.
---@param token string  hex digits
---@param text string
---@return string? typed  nil: it would be too long
function M.line(token, text)
  local encoded = text:gsub("[^%w _./,:=+@^~#<>|&;(){}%[%]$\"*?%%%-]", function(c)
    return ("\\0%03o"):format(c:byte())
  end)
  local typed = TYPED:format(token, encoded, token)
  return #typed <= M.MAX_BYTES and typed or nil
end

---@class efr.shell.Sentinel
---@field output efr.shell.Output  what came between the marks
---@field status integer?  once it has ended
---@field cwd string?  as the shell names it
local Sentinel = {}
Sentinel.__index = Sentinel

---@param token string
---@return efr.shell.Sentinel
function M.new(token)
  return setmetatable({
    output = output.new(), _begin = "__efr_" .. token .. "_b", _held = "",
    _end = "^__efr_" .. token .. "_e:(%d+):(.-)\r*$",
  }, Sentinel)
end

-- The end's own line feed is no output.
local function put(self, line)
  if self._feed then self.output:feed(self._feed) end
  self._feed = line:match("\r*\n$")
  self.output:feed(self._feed and line:sub(1, -#self._feed - 1) or line)
end

local function take_line(self, line)
  local text = line:gsub("\r*\n$", "")
  if not self._begun then
    self._begun = text:sub(-#self._begin) == self._begin or nil
    return
  end
  local status, cwd = text:match(self._end)
  if status then
    self.status, self.cwd, self._held = math.tointeger(tonumber(status)), cwd, ""
  else
    put(self, line)
  end
end

---What the terminal showed next. After the end nothing counts.
---@param bytes string
function Sentinel:feed(bytes)
  local held, from = self._held .. bytes, 1
  while not self.status do
    local at = held:find("\n", from, true)
    if not at then break end
    take_line(self, held:sub(from, at))
    from = at + 1
  end
  if self.status then return end
  held = held:sub(from)
  -- A row without an end is no mark.
  if #held > LINE_MAX then
    if self._begun then put(self, held) end
    held = ""
  end
  self._held = held
end

---Whether the shell began to evaluate the line.
---@return boolean
function Sentinel:has_begun()
  return self._begun == true
end

return M
