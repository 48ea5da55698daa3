-- Owns: one judgement: which entries of the user's files match a question, and what they say.
-- Must not know: messages, files, how an answer is applied. Runs in the rules process.
--
-- Each call of the user's code is guarded: efr first notes where it is, so that whoever has to
-- kill the process knows the place. The first error ends the judgement, since half an answer could
-- be the looser half.

local bytes = require "efr.rules.bytes"
local view = require "efr.rules.view"

local M = {}

local MAX_TEXT <const> = 300
local MAX_PATH <const> = 4096
local MAX_ANSWERS <const> = 1000

local Judgement = {}
Judgement.__index = Judgement

---@class efr.rules.Failure
---@field message string
---@field file string?
---@field line integer?

-- Set by note_place: where the last error was raised.
local where, file, line

local function note_place(err)
  file, line = where(1)
  if type(err) == "string" or type(err) == "number" then return tostring(err) end
  return "an error that is a " .. type(err)
end

---Runs a function of the user. Raises a table {failure = ...} instead of its error.
---@param native table
---@param place {file: string?, line: integer?, place: string?}  place: both in one
---@param fn function
---@return any result
function M.guarded(native, place, fn, ...)
  where, file, line = native.where, nil, nil
  native.note(place.place or ("%s:%d"):format(place.file or "?", place.line or 0))
  local ok, result = xpcall(fn, note_place, ...)
  if ok then return result end
  local message = type(result) == "string" and result or "an error without a text"
  -- An error of the api names its own place.
  local at, number, rest = message:match("^([%w._/-]+%.lua):(%d+): (.*)$")
  if at then file, line, message = at, math.tointeger(tonumber(number)), rest end
  error({ failure = {
    message = bytes.shown(message, MAX_TEXT), file = file or place.file, line = line or place.line,
  } }, 0)
end

local function wrong(entry, message)
  error({ failure = { message = message, file = entry.file, line = entry.line } }, 0)
end

-- true, or a text: the reason. Anything else but false and nil is a mistake of the file.
function Judgement:matches(entry, ...)
  if not entry.when then return true end
  local result = M.guarded(self.native, entry, entry.when, ...)
  if result == nil or result == false then return false end
  if result == true then return true end
  if type(result) == "string" then return true, bytes.shown(result, MAX_TEXT) end
  wrong(entry, "when must return true, false or a text, not a " .. type(result))
end

function Judgement:answer(list, value)
  self.count = self.count + 1
  if self.count > MAX_ANSWERS then
    error({ failure = { message = ("more than %d answers"):format(MAX_ANSWERS) } }, 0)
  end
  list[#list + 1] = value
end

function Judgement:absolute(entry, path)
  if type(path) ~= "string" or path == "" or #path > MAX_PATH or path:find("\0", 1, true) then
    wrong(entry, "reads and writes must give paths")
  end
  if path:sub(1, 1) == "/" then return path end
  local q = self.question
  if path == "~" or path:sub(1, 2) == "~/" then return (q.home or "") .. path:sub(2) end
  if not q.cwd then wrong(entry, "a path is relative, and the directory is not known") end
  return q.cwd:gsub("/$", "") .. "/" .. path
end

function Judgement:paths(entry, key, command)
  local value = entry[key]
  if type(value) == "function" then
    value = M.guarded(self.native, entry, value, command.view, self.ctx)
  end
  if value == nil or value == false then return end
  if type(value) == "string" then value = { value } end
  if type(value) ~= "table" then wrong(entry, key .. " must give a path or a list of paths") end
  for i = 1, #value do
    self:answer(self.effects, {
      entry = entry.index, at = command.at, kind = key == "reads" and "read" or "write",
      path = self:absolute(entry, value[i]),
    })
  end
end

function Judgement:flag(entry, key, command)
  local value = entry[key]
  if type(value) == "function" then
    value = M.guarded(self.native, entry, value, command.view, self.ctx)
    if value ~= nil and type(value) ~= "boolean" then
      wrong(entry, key .. " must give true or false")
    end
  end
  if value then self:answer(self.effects, { entry = entry.index, at = command.at, kind = key }) end
end

local KINDS = {}

function KINDS.program(self, entry)
  for _, command in ipairs(self.commands) do
    if entry.names[command.name] then
      self:paths(entry, "reads", command)
      self:paths(entry, "writes", command)
      self:flag(entry, "network", command)
      self:flag(entry, "interactive", command)
    end
  end
end

local SUBJECTS = {}

function SUBJECTS.command(self)
  return self.commands
end

function SUBJECTS.line(self)
  return self.line and { self.line } or {}
end

-- Also the paths that program knowledge added.
function SUBJECTS.path(self)
  local out = {}
  for _, list in ipairs { self.question.requirements or {}, self.effects } do
    for _, item in ipairs(list) do
      if item.kind == "read" or item.kind == "write" then
        out[#out + 1] = { view = view.path(item), action = item.kind, path = item.path }
      end
    end
  end
  return out
end

function KINDS.rule(self, entry)
  for _, subject in ipairs(SUBJECTS[entry.on](self)) do
    if not entry.names or entry.names[subject.name] then
      local yes, why = self:matches(entry, subject.view, self.ctx)
      if yes then
        self:answer(self.rules, {
          entry = entry.index, why = why or entry.why, at = subject.at, action = subject.action,
          path = subject.path,
        })
      end
    end
  end
end

function KINDS.exit(self, entry)
  for at, exit in ipairs(self.question.exits or {}) do
    if not entry.names or entry.names[exit.kind] then
      local yes, why = self:matches(entry, view.of(exit), self.ctx)
      if yes then
        self:answer(self.exits, { entry = entry.index, at = at, why = why or entry.why })
      end
    end
  end
end

-- A hint with `when` is about lines; a call without one has no such hints.
function KINDS.hint(self, entry)
  if entry.when and not self.line then return end
  local yes, text = self:matches(entry, self.line and self.line.view, self.ctx)
  if yes then self:answer(self.hints, { entry = entry.index, text = text or entry.text }) end
end

local function prepare(self)
  local q, views = self.question, {}
  self.commands = {}
  for at, command in ipairs(q.commands or {}) do
    local shown, name = view.command(command, q.line)
    self.commands[at] = { view = shown, name = name, at = at }
    views[at] = shown
  end
  self.ctx = view.of({
    cwd = q.cwd, mode = q.mode, tool = q.tool, origin = q.origin, project = q.project,
    scratch = q.scratch, home = q.home, line = q.line, commands = views, parse = q.parse,
  })
  if q.line then
    self.line = { view = view.of({ text = q.line, commands = views, opaque = q.opaque == true }) }
  end
end

---Asks every entry. Raises {failure = efr.rules.Failure} for an error of the user's code.
---@param native table
---@param entries table[]
---@param question table  see client.lua
---@return {rules: table[], exits: table[], effects: table[], hints: table[]}
function M.run(native, entries, question)
  local self = setmetatable({
    native = native, question = question, rules = {}, exits = {}, effects = {}, hints = {},
    count = 0,
  }, Judgement)
  prepare(self)
  -- Program knowledge first: path rules also judge what it adds.
  for _, entry in ipairs(entries) do
    if entry.kind == "program" then KINDS.program(self, entry) end
  end
  for _, entry in ipairs(entries) do
    if entry.kind ~= "program" and entry.kind ~= "preset" then KINDS[entry.kind](self, entry) end
  end
  return { rules = self.rules, exits = self.exits, effects = self.effects, hints = self.hints }
end

return M
