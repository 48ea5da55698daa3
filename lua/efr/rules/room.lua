-- Owns: the messages of the rules process: load the user's files, judge a question, run examples.
-- Must not know: who asks, how an answer is applied, sockets. Runs in the rules process.
--
-- A message is {id, op = "load", files = {{name, text}...}}, {id, op = "judge", question},
-- {id, op = "examples", files}, which collects them, or {id, op = "example", at}, which runs one.
-- The answer is {id, ...} or {id, failure = {message, file, line}}.

local api = require "efr.rules.api"
local bytes = require "efr.rules.bytes"
local judge = require "efr.rules.judge"
local suite = require "efr.rules.suite"

local M = {}

local MAX_TEXT <const> = 300

local Room = {}
Room.__index = Room

---@param deps {native: table, json: table, lpeg: table, parse: fun(line: string): table?}
function M.new(deps)
  return setmetatable({
    native = deps.native, json = deps.json, parse = deps.parse,
    api = api.new { native = deps.native, lpeg = deps.lpeg },
  }, Room)
end

-- Compiles all files before one runs, so that all faults of syntax show at once.
local function run_files(self, files, env)
  local chunks, failures = {}, {}
  for i, file in ipairs(files) do
    local message
    chunks[i], message = self.native.compile(file.text, "@" .. file.name, env)
    if not chunks[i] then
      local line, rest = message:match("^[^:]*:(%d+): (.*)$")
      failures[#failures + 1] = {
        message = bytes.shown(rest or message, MAX_TEXT), file = file.name,
        line = math.tointeger(tonumber(line)),
      }
    end
  end
  if failures[1] then
    failures[1].others = table.move(failures, 2, #failures, 1, {})
    error({ failure = failures[1] }, 0)
  end
  for i, file in ipairs(files) do
    judge.guarded(self.native, { file = file.name, line = 1 }, chunks[i])
  end
end

local OPS = {}

-- What efrd must know of an entry; functions stay here.
local function described(entry)
  return {
    kind = entry.kind, file = entry.file, line = entry.line, id = entry.id, effect = entry.effect,
    on = entry.on, parse = entry.parse, why = entry.why and bytes.shown(entry.why, MAX_TEXT),
    name = entry.kind == "preset" and entry.name or nil,
    text = entry.kind == "hint" and bytes.shown(entry.text, MAX_TEXT) or nil,
    asks = entry.kind == "hint" and entry.when ~= nil or nil,
    hosts = entry.kind == "preset" and bytes.pack(
      type(entry.hosts) == "table" and entry.hosts or { entry.hosts }, 65536) or nil,
  }
end

function OPS.load(self, message)
  run_files(self, message.files, self.api.env)
  self.api:close()
  local entries = {}
  for i, entry in ipairs(self.api.entries) do entries[i] = described(entry) end
  return { entries = entries, printed = self.api.printed }
end

function OPS.judge(self, message)
  return judge.run(self.native, self.api.entries, message.question)
end

-- What print wrote since the last answer.
local function printed(self)
  local all = self.api.printed
  local out = table.move(all, (self.shown or 0) + 1, #all, 1, {})
  self.shown = #all
  return out
end

function OPS.examples(self, message)
  self.suite = suite.new {
    native = self.native, entries = self.api.entries, env = self.api.env, parse = self.parse,
  }
  self.shown = #self.api.printed
  run_files(self, message.files, self.suite.env)
  return { examples = self.suite:list(), printed = printed(self) }
end

function OPS.example(self, message)
  return { result = self.suite:run(message.at), printed = printed(self) }
end

local function failure_of(err)
  if type(err) == "table" and err.failure then return err.failure end
  return { message = bytes.shown(tostring(err), MAX_TEXT) }
end

---Answers one message.
---@param text string
---@return string
function Room:answer(text)
  local message = bytes.unpack(assert(self.json.decode(text, { max_depth = 256 })))
  local ok, result = pcall(OPS[message.op], self, message)
  if not ok then result = { failure = failure_of(result) } end
  result.id = message.id
  local out, err = self.json.encode(bytes.pack(result, math.maxinteger))
  return out or assert(self.json.encode { id = message.id, failure = { message = err } })
end

return M
