-- Owns: the user's examples for `efr rules test`: describe, it, before_each, expect and judge, and
-- the run of what they collected.
-- Must not know: messages, files, terminals. Runs in the rules process.

local bytes = require "efr.rules.bytes"
local judge = require "efr.rules.judge"
local line = require "efr.rules.line"
local list = require "efr.util.list"

local M = {}

local MAX_TEXT <const> = 300
local MAX_NAME <const> = 200
local MAX_TESTS <const> = 2000
local ORDER <const> = { allow = 1, ask = 2, deny = 3 }

local function show(value)
  if type(value) == "string" then return ("%q"):format(bytes.shown(value, MAX_TEXT)) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for key, item in pairs(value) do
    parts[#parts + 1] = type(key) == "string" and key .. " = " .. show(item) or show(item)
    if #parts == 20 then break end
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

local function holds(value, item)
  if type(value) == "string" then return value:find(item, 1, true) ~= nil end
  for _, found in pairs(value) do
    if list.same(found, item) then return true end
  end
  return false
end

local EXPECT <const> = {
  equal = { list.same, "to equal" },
  contain = { holds, "to contain" },
  match = { function(value, pattern) return tostring(value):find(pattern) ~= nil end, "to match" },
  be_truthy = { function(value) return not not value end, "to be true" },
  be_falsy = { function(value) return not value end, "to be false or nil" },
}

-- expect(value).to.equal(x), expect(value).never.to.equal(x)
local function expect(value)
  local function checks(wanted)
    local out = {}
    for name, check in pairs(EXPECT) do
      out[name] = function(other)
        if check[1](value, other) == wanted then return end
        local what = name:find("^be_") and "" or " " .. show(other)
        local no = wanted and "" or " not"
        error(("expected %s%s %s%s"):format(show(value), no, check[2], what), 2)
      end
    end
    return out
  end
  return { to = checks(true), never = { to = checks(false) } }
end

-- The effect of a line: of each subject the last match, of all subjects the strictest.
local function verdict(entries, answer)
  local last, order = {}, {}
  for _, match in ipairs(answer.rules) do
    local key = match.path and match.action .. match.path or tostring(match.at)
    if not last[key] then order[#order + 1] = key end
    last[key] = match
  end
  local best
  for _, key in ipairs(order) do
    local entry = entries[last[key].entry]
    if not best or ORDER[entry.effect] > ORDER[entries[best.entry].effect] then best = last[key] end
  end
  return best
end

local function result_of(entries, answer)
  local out = { matched = {}, reads = {}, writes = {}, hints = {}, network = false,
    interactive = false }
  for i, match in ipairs(answer.rules) do
    local entry = entries[match.entry]
    out.matched[i] = entry.id or ("%s:%d"):format(entry.file, entry.line)
  end
  local best = verdict(entries, answer)
  if best then
    local entry = entries[best.entry]
    out.effect, out.why = entry.effect, best.why
    out.rule = entry.id or ("%s:%d"):format(entry.file, entry.line)
  end
  for _, effect in ipairs(answer.effects) do
    if effect.path then
      table.insert(effect.kind == "read" and out.reads or out.writes, effect.path)
    else
      out[effect.kind] = true
    end
  end
  for i, hint in ipairs(answer.hints) do out.hints[i] = hint.text end
  return out
end

local Suite = {}
Suite.__index = Suite

local DEFAULTS <const> = {
  cwd = "/home/user", home = "/home/user", mode = "cautious", tool = "shell", origin = "shell",
}

-- judge(line, {cwd=, mode=, ...}): what the rules say of a line.
function Suite:judge(text, more)
  if type(text) ~= "string" then error("judge() takes a line", 3) end
  local parsed, parse = pcall(self.parse, text)
  if not parsed then error("this efr cannot read lines: " .. tostring(parse), 0) end
  local question = { line = text, parse = parse, opaque = parse == nil }
  question.commands = line.commands(parse)
  for key, value in pairs(DEFAULTS) do question[key] = value end
  for key, value in pairs(more or {}) do question[key] = value end
  local ok, answer = pcall(judge.run, self.native, self.entries, question)
  -- From here on the example is what takes time, no rule.
  local test = self.running
  if test then self.native.note(("%s:%d"):format(test.file or "?", test.line or 0)) end
  if ok then return result_of(self.entries, answer) end
  local failure = type(answer) == "table" and answer.failure or { message = tostring(answer) }
  error(("%s:%s: %s"):format(failure.file or "?", failure.line or "?", failure.message), 0)
end

local function add_functions(self, env)
  local names, before = {}, { false }
  function env.describe(name, fn)
    names[#names + 1] = tostring(name)
    before[#before + 1] = false
    fn()
    names[#names], before[#before] = nil, nil
  end
  function env.before_each(fn)
    before[#before] = fn
  end
  function env.it(name, fn)
    if #self.tests >= MAX_TESTS then error("too many examples", 2) end
    local file, at = self.native.where(1)
    self.tests[#self.tests + 1] = {
      name = table.concat(names, " ") .. (#names > 0 and " " or "") .. tostring(name), fn = fn,
      file = file, line = at, before = table.move(before, 1, #before, 1, {}),
    }
  end
  env.expect = expect
  function env.judge(text, more)
    return self:judge(text, more)
  end
end

---@param deps {native: table, entries: table[], env: table, parse: fun(line: string): table?}
function M.new(deps)
  local self = setmetatable({
    native = deps.native, entries = deps.entries, parse = deps.parse, tests = {},
  }, Suite)
  self.env = setmetatable({}, { __index = deps.env, __metatable = false })
  add_functions(self, self.env)
  return self
end

---The examples that the files collected.
---@return {name: string, file: string, line: integer}[]
function Suite:list()
  local out = {}
  for i, test in ipairs(self.tests) do
    out[i] = { name = bytes.shown(test.name, MAX_NAME), file = test.file, line = test.line }
  end
  return out
end

---Runs one example.
---@param at integer  its place in list()
---@return {ok: boolean, message: string?, file: string, line: integer}
function Suite:run(at)
  local test = self.tests[at]
  local function body()
    for _, fn in ipairs(test.before) do
      if fn then fn() end
    end
    test.fn()
  end
  self.running = test
  local ok, err = pcall(judge.guarded, self.native, test, body)
  if ok then return { ok = true, file = test.file, line = test.line } end
  local failure = type(err) == "table" and err.failure or { message = tostring(err) }
  return { ok = false, message = failure.message, file = failure.file, line = failure.line }
end

return M
