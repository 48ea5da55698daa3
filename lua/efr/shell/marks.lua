-- Scanner of shell marks (OSC 133 and OSC 7) in the bytes of one terminal.
--
-- Owns: where a mark begins and ends, and what its fields mean. Bytes that are no mark are handed
-- on unchanged and in order: the output of a command is what lies between its C and its D.
-- Must not know: PTYs, the shell, calls, what a mark decides. Pure. Loop thread of efrd.
--
-- Rules (ux.md 8.4): a string ends with BEL or ESC \; a body above 4096 bytes is no mark; marks
-- inside DCS, SOS, PM and APC do not count; ESC inside an OSC that is not followed by \ aborts it
-- and begins a new sequence; a doubled ESC is payload (tmux passes sequences through that way);
-- CAN and SUB abort; 8-bit C1 bytes mean nothing. A sequence may be split between calls at any
-- byte. At most one body is held, so memory is bounded.

local M = {}

local MAX_BODY <const> = 4096
local ESC <const> = "\27"

local OPTIONS <const> =
  { aid = true, k = true, cl = true, err = true, cmdline = true, cmdline_url = true }
local KINDS <const> =
  { A = true, B = true, C = true, D = true, P = true, N = true, L = true, I = true }
local STRING_INTRODUCERS <const> = { P = true, X = true, ["^"] = true, ["_"] = true }

---@class efr.shell.Mark
---@field kind string  "A" "B" "C" "D" "P" "N" "L" "I", "efr-sbx" or "cwd"
---@field status integer?  exit status, only in D
---@field nonce string?  only in efr-sbx: 32 hex digits
---@field path string?  only in cwd: absolute, exact bytes
---@field host string?  only in cwd
---@field aid string?  id of the call
---@field k string?  kind of prompt: "s" = continuation
---@field cl string?
---@field err string?
---@field cmdline string?
---@field cmdline_url string?

---@class efr.shell.MarkSink
---@field data fun(bytes: string)  bytes that are no mark, in order
---@field mark fun(mark: efr.shell.Mark)

local function percent_decode(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function parse_cwd(body)
  local host, path = body:match("^kitty%-shell%-cwd://([^/]*)(/.*)$")
  if not host then
    host, path = body:match("^file://([^/]*)(/.*)$")
    path = path and percent_decode(path)
  end
  if not path or path:find("%c") then return nil end
  return { kind = "cwd", host = host, path = path }
end

local function parse_prompt_mark(body)
  local nonce = body:match("^efr%-sbx;(%x+)$")
  if nonce then
    return #nonce == 32 and { kind = "efr-sbx", nonce = nonce } or nil
  end
  local kind, rest = body:match("^(%a)(.*)$")
  if not kind or not KINDS[kind] or not (rest == "" or rest:sub(1, 1) == ";") then return nil end
  local mark, first = { kind = kind }, true
  for field in rest:gmatch(";([^;]*)") do
    local name, value = field:match("^([%w_]+)=(.*)$")
    if name and OPTIONS[name] then
      mark[name] = value
    elseif first and kind == "D" and #field <= 10 and field:find("^%d+$") then
      mark.status = math.tointeger(tonumber(field))
    end
    first = false
  end
  return mark
end

---What the body of an OSC says, if it is a mark. Pure.
---@param body string  between "ESC ]" and the terminator
---@return efr.shell.Mark? mark
function M.parse(body)
  if #body > MAX_BODY or body:find("%c") then return nil end
  if body:sub(1, 4) == "133;" then return parse_prompt_mark(body:sub(5)) end
  if body:sub(1, 2) == "7;" then return parse_cwd(body:sub(3)) end
  return nil
end

---@class efr.shell.Scanner
---@field _sink efr.shell.MarkSink
---@field _state string
---@field _held string[]  bytes of a sequence that is not decided yet
---@field _held_len integer
local Scanner = {}
Scanner.__index = Scanner

---@param sink efr.shell.MarkSink
---@return efr.shell.Scanner
function M.new(sink)
  return setmetatable({ _sink = sink, _state = "ground", _held = {}, _held_len = 0 }, Scanner)
end

function Scanner:_emit(bytes)
  if bytes ~= "" then self._sink.data(bytes) end
end

function Scanner:_hold(bytes)
  self._held[#self._held + 1] = bytes
  self._held_len = self._held_len + #bytes
end

function Scanner:_take_held()
  local bytes = table.concat(self._held)
  self._held, self._held_len = {}, 0
  return bytes
end

-- The held bytes are no mark: hand them on and stand in `state`.
function Scanner:_release(state)
  self:_emit(self:_take_held())
  self._state = state
end

-- An OSC is complete; `terminator` is not in the held bytes yet.
function Scanner:_complete(terminator)
  local held = self:_take_held()
  local mark = M.parse(held:sub(3))
  self._state = "ground"
  if mark then
    self._sink.mark(mark)
  else
    self:_emit(held .. terminator)
  end
end

-- Each step reads from `pos` and returns the next position.
local steps = {}

function steps.ground(self, bytes, pos)
  local at = bytes:find(ESC, pos, true)
  if not at then
    self:_emit(bytes:sub(pos))
    return #bytes + 1
  end
  self:_emit(bytes:sub(pos, at - 1))
  self:_hold(ESC)
  self._state = "escape"
  return at + 1
end

-- After ESC, which is held.
function steps.escape(self, bytes, pos)
  local byte = bytes:sub(pos, pos)
  if byte == ESC then
    self:_release("escape")
    self:_hold(ESC)
    return pos + 1
  end
  self:_hold(byte)
  if byte == "]" then
    self._state = "osc"
  elseif STRING_INTRODUCERS[byte] then
    self:_release("string")
  else
    self:_release("ground")
  end
  return pos + 1
end

function steps.osc(self, bytes, pos)
  local at = bytes:find("[\7\24\26\27]", pos)
  local stop = at and at - 1 or #bytes
  if self._held_len + (stop - pos + 1) > MAX_BODY + 2 then
    self:_release("long_osc")
    return pos
  end
  if stop >= pos then self:_hold(bytes:sub(pos, stop)) end
  if not at then return #bytes + 1 end
  local byte = bytes:sub(at, at)
  if byte == "\7" then
    self:_complete(byte)
  elseif byte == ESC then
    self._state = "osc_escape"
  else
    self:_hold(byte)
    self:_release("ground")
  end
  return at + 1
end

-- ESC inside a string sequence; that ESC is not held yet. `back` is the state after a doubled ESC.
local function string_escape(self, bytes, pos, back, finish)
  local byte = bytes:sub(pos, pos)
  if byte == "\\" then
    finish()
    return pos + 1
  end
  if byte == ESC then
    self:_hold("\27\27")
    self._state = back
    return pos + 1
  end
  self:_release("escape")
  self:_hold(ESC)
  if byte == "\24" or byte == "\26" then
    self:_hold(byte)
    self:_release("ground")
    return pos + 1
  end
  return pos
end

function steps.osc_escape(self, bytes, pos)
  return string_escape(self, bytes, pos, "osc", function() self:_complete("\27\\") end)
end

-- Strings that hold no mark are handed on at once.
local function skip_string(self, bytes, pos, set)
  if self._held_len > 0 then self:_release(self._state) end
  local at = bytes:find(set, pos)
  if not at then
    self:_emit(bytes:sub(pos))
    return #bytes + 1
  end
  if bytes:sub(at, at) == ESC then
    self:_emit(bytes:sub(pos, at - 1))
    self._state = self._state .. "_escape"
  else
    self:_emit(bytes:sub(pos, at))
    self._state = "ground"
  end
  return at + 1
end

function steps.string(self, bytes, pos)
  return skip_string(self, bytes, pos, "[\24\26\27]")
end

function steps.long_osc(self, bytes, pos)
  return skip_string(self, bytes, pos, "[\7\24\26\27]")
end

local function end_skipped(self)
  self:_hold("\27\\")
  self:_release("ground")
end

function steps.string_escape(self, bytes, pos)
  return string_escape(self, bytes, pos, "string", function() end_skipped(self) end)
end

function steps.long_osc_escape(self, bytes, pos)
  return string_escape(self, bytes, pos, "long_osc", function() end_skipped(self) end)
end

---Read the next bytes of the terminal.
---@param bytes string
function Scanner:feed(bytes)
  local pos, last = 1, #bytes
  while pos <= last do
    pos = steps[self._state](self, bytes, pos)
  end
end

---Bytes that wait for the end of a sequence (at most 4098).
---@return integer
function Scanner:held_bytes()
  return self._held_len
end

return M
