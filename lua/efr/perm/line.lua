-- Owns: a command line read once: its AST and the readings that the engine asks for, each made when
-- it is first needed.
-- Must not know: rules, modes, what a reading means for a decision.
-- Runs in efrd and efr. Pure.

local lenient = require "efr.perm.lenient"
local list = require "efr.util.list"
local read_only = require "efr.perm.read_only"
local shell = require "efr.perm.shell"
local strict = require "efr.perm.strict"

local M = {}

---@class efr.perm.Line
---@field text string
---@field ast table?  nil: the line is opaque
---@field why string?  why it is opaque
---@field commands table[]?  the strict reading; nil: a construct keeps the rules from seeing it
---@field construct string?
---@field closed string?  why its reading was forgotten

---Reads a line.
---@param text string
---@return efr.perm.Line
function M.read(text)
  local ast, why = shell.parse(text)
  local line = { text = text, ast = ast, why = why }
  if ast then
    line.commands, line.construct = strict.commands(ast)
  else
    line.construct = "unreadable (" .. tostring(why) .. ")"
  end
  return line
end

-- A row for each command of the strict reading, which knows every word that the wider one knows.
local function rows_of(commands, facts)
  local parts = {}
  for i, command in ipairs(commands) do
    local row = read_only.row(command, facts)
    if not row then return nil end
    parts[i] = { row = row, command = command }
  end
  return parts
end

---Whether the rows of read-only commands take the whole line.
---@param line efr.perm.Line
---@param facts table?
---@return table[]? parts  {row, command} of each simple command
---@return string? why
function M.read_only(line, facts)
  if not line.ast then return nil, line.closed or "it cannot be read" end
  local strictly = line.commands and rows_of(line.commands, facts)
  if strictly then return strictly end
  local ok, parts = read_only.judge(line.ast, facts)
  if ok then return parts end
  return nil, parts
end

---Whether a program of the line runs as another user.
---@param line efr.perm.Line
---@return boolean
function M.is_privileged(line)
  if not line.commands then return strict.names_privileged(line.text) end
  for _, command in ipairs(line.commands) do
    if command.privileged then return true end
  end
  return false
end

-- Every program named anywhere in a line that cannot be read, with arguments that are not known.
local function scan(text)
  local out = {}
  for _, name in ipairs(list.keys(lenient.programs(text))) do
    local words = { { text = name, shape = name }, { shape = "\0" } }
    out[#out + 1] = { words = words, program = name, name = name, cwd_lost = true }
  end
  return out
end

---Forgets the reading of a line that another shell than zsh will run: there it may mean anything.
---@param line efr.perm.Line
---@param why string
function M.close(line, why)
  line.ast, line.commands, line.lenient = nil, nil, nil
  line.why, line.construct, line.closed = why, why, why
end

---The commands that the lenient reading finds; it prefers one too many.
---@param line efr.perm.Line
---@return table[]
function M.found(line)
  if not line.lenient then
    line.lenient = line.ast and lenient.commands(line.ast) or scan(line.text)
  end
  return line.lenient
end

---The source text of a node.
---@param line efr.perm.Line
---@param node table?
---@return string?
function M.source(line, node)
  return node and node.pos and line.text:sub(node.pos, node.stop) or nil
end

return M
