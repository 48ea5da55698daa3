-- Owns: the user's Lua rules as efrd and efr see them: which version is in force, the process that
-- runs it, its restarts, and one judgement as data.
-- Must not know: what an answer changes (perm/engine), the wire, terminals.
-- Runs in efrd and efr, on the loop thread; judge, start and reload wait in a task.
--
-- Policy: a judgement waits at most 50 ms by the wall clock. No answer, an
-- error or a dead process is `failed`, which counts as `ask` of the user's own. The process is then
-- killed and started again; three failures within a minute turn the rules off until the files are
-- read again, and each judgement is `failed` meanwhile. A version that does not load changes
-- nothing: the last good one stays, from memory or from the state root; with none, each
-- judgement is `failed`. Only without any file is there nothing to say.
--
-- client:judge(question) -> answer | nil (nil: the user has no rules)
--   question = {
--     line = "git push -f"?, parse = AST?     what the shell grammar made of it; nil: opaque
--     commands = {...}?                       as rules/line gives them, if the caller knows better
--     requirements = {{kind = "read"|"write", path =, tree =}...},
--     exits = {{kind =, target =, source =}...}?,
--     cwd =, mode =, tool =, origin =, project =, scratch =, home =  strings or nil }
--   answer = {
--     rules = {{effect = "allow"|"ask"|"deny", on = "command"|"line"|"path", at = index of the
--       command, pos =, stop =, action = "read"|"write", path =, id =, why =, file =, line =,
--       text =}...}   in the order of the files: behind [[permissions.rules]], the last match wins
--     exits = {{at = index of the exit, effect =, id =, why =, file =, line =, text =}...},
--     effects = {{kind = "read"|"write"|"network"|"interactive", path =, at =, file =, line =,
--       text =}...}   requirements to add
--     hints = {{text =, file =, line =}...},
--     failed = {text =, file =, line =}? }    then all lists are empty
-- The answer comes from a process that the user's code may have taken over, so it is only what the
-- engine bounds: `allow` counts where a rule of config.toml could allow.

local async = require "efr.util.async"
local bytes = require "efr.rules.bytes"
local examples = require "efr.rules.examples"
local line = require "efr.rules.line"
local process = require "efr.rules.process"
local sources = require "efr.rules.sources"

local M = {}

M.JUDGE_MS = 50 ---@type integer
M.LOAD_MS = 2000 ---@type integer
M.MAX_FAILURES = 3 ---@type integer
M.FAILURE_SPAN_US = 60000000 ---@type integer

local QUESTION_MAX <const> = 512 * 1024
local TEXT_MAX <const> = 400
local KINDS <const> = { rules = "rule", exits = "exit", effects = "program", hints = "hint" }
local LISTS <const> = { "rules", "exits", "effects", "hints" }
local EFFECT_KINDS <const> = { read = true, write = true, network = true, interactive = true }

local Client = {}
Client.__index = Client

---A problem in one line: "rules.lua:12: ...".
---@param problem efr.rules.Problem
---@return string
function M.text_of(problem)
  local file = problem.file or "rules.lua"
  local place = problem.line and ("%s:%d"):format(file, problem.line) or file
  return place .. ": " .. problem.message
end

local function failed(problem)
  return {
    rules = {}, exits = {}, effects = {}, hints = {},
    failed = { text = M.text_of(problem), file = problem.file, line = problem.line },
  }
end

-- ---- the process ----

-- Starts a process with these files. Returns it and its entries, or nil and the problem.
local function load(self, files)
  local started, err = process.start { ports = self.ports, efrd = self.efrd }
  if not started then return nil, { message = err } end
  local packed = bytes.pack({ id = 0, op = "load", files = files }, math.maxinteger)
  local answer, problem = started:request(packed, M.LOAD_MS)
  if answer and not answer.failure and type(answer.entries) == "table" then
    return started, answer
  end
  started:close()
  return nil, problem or answer.failure or { message = "the answer has no entries" }
end

local function set_ready(self, running, answer)
  self.process, self.entries, self.printed = running, answer.entries, answer.printed
  self.wants_parse = false
  for _, entry in ipairs(self.entries) do
    self.wants_parse = self.wants_parse or entry.parse == true
  end
  running.on_fail = function(problem) self:on_failure(problem) end
  if self.ready then self.ready:set() end
  self.ready = nil
end

local function count_failure(self, problem)
  local now = self.ports.sys.mono_us()
  local recent = {}
  for _, at in ipairs(self.failures) do
    if now - at < M.FAILURE_SPAN_US then recent[#recent + 1] = at end
  end
  recent[#recent + 1] = now
  self.failures, self.last_failure = recent, problem
  self.log:warn("%s", M.text_of(problem))
end

-- Starts the version in force again, as often as it may fail.
local function restart(self)
  self.ready = async.future()
  while not self.closed and #self.failures < M.MAX_FAILURES do
    local running, answer = load(self, self.files)
    if running then return set_ready(self, running, answer) end
    count_failure(self, answer)
  end
  self.ready:set()
  self.ready = nil
  if self.closed then return end
  self.state = "off"
  self.log:error("the rules failed %d times in a minute and are off: everything asks",
    M.MAX_FAILURES)
  self.on_notice(("the rules are off after %d failures: %s"):format(M.MAX_FAILURES,
    M.text_of(self.last_failure)))
end

---Called once for each process that failed.
---@param problem efr.rules.Problem
function Client:on_failure(problem)
  self.process = nil
  if self.closed then return end
  count_failure(self, problem)
  async.spawn(restart, self)
end

-- ---- versions ----

local function retire(self)
  local old = self.process
  self.process = nil
  if old then old:close() end
end

local function put_in_force(self, files, running, answer)
  retire(self)
  self.files, self.failures, self.state = files, {}, "on"
  set_ready(self, running, answer)
end

local function nothing(self)
  retire(self)
  self.files, self.state, self.problem, self.sha256 = nil, "none", nil, nil
  if self.keep then self.ports.fs.unlink(self.good) end
  return true
end

local function accept(self, files, running, answer)
  put_in_force(self, files, running, answer)
  self.problem = nil
  if self.keep then
    local sum, err = sources.keep(self.ports.fs, self.good, files)
    self.sha256 = sum
    if not sum then self.log:error("keep the last good rules: %s", err) end
  end
  self.log:info("%d rules files in force, %d entries", #files, #answer.entries)
  return true
end

-- The files are broken: what is in force stays, else the kept version, else nothing answers.
local function refuse(self, problem)
  local text = M.text_of(problem)
  if not self.problem or M.text_of(self.problem) ~= text then
    self.on_notice("the rules have an error; the last good version stays: " .. text)
  end
  self.problem = problem
  self.log:error("%s", text)
  if self.files and self.state == "on" then return nil, problem end
  local files, sum
  if self.files then
    files, sum = self.files, self.sha256
  elseif self.good then
    files, sum = sources.good(self.ports.fs, self.good)
  end
  local running, answer
  if files and files[1] then running, answer = load(self, files) end
  if running then
    put_in_force(self, files, running, answer)
    self.sha256 = sum
  else
    retire(self)
    self.state = "broken"
  end
  return nil, problem
end

local function read_again(self)
  local files, problem = sources.read(self.ports.fs, self.dir)
  if files and not files[1] then return nothing(self) end
  if files and self.state == "on" and self.process and sources.equal(files, self.files) then
    self.problem = nil
    return true
  end
  local running, answer
  if files then
    running, answer = load(self, files)
    problem = answer
  end
  if self.closed then
    if running then running:close() end
    return nil, { message = "closed" }
  end
  if running then return accept(self, files, running, answer) end
  return refuse(self, problem)
end

---Reads the files, also for the first time, and puts them in force when they load. Calls never
---interleave.
---@return true? ok
---@return efr.rules.Problem? problem  the last good version stays
function Client:reload()
  while self.reading do self.reading:get() end
  self.reading = async.future()
  local ok, problem = read_again(self)
  local reading = self.reading
  self.reading = nil
  reading:set()
  return ok, problem
end

-- ---- judgements ----

local function integer(value, max)
  return math.type(value) == "integer" and value >= 1 and value <= max
end

local CHECKS = {}

function CHECKS.rules(self, item, question)
  local entry = self.entries[item.entry]
  local on = entry.on
  if on == "command" then
    if not integer(item.at, #question.commands) then return nil end
    local command = question.commands[item.at]
    return { on = on, at = item.at, pos = command.pos, stop = command.stop }
  end
  if on == "line" then return { on = on } end
  local action = item.action
  if type(item.path) ~= "string" or action ~= "read" and action ~= "write" then return nil end
  return { on = on, path = item.path, action = action }
end

function CHECKS.exits(_, item, question)
  if not integer(item.at, #(question.exits or {})) then return nil end
  return { at = item.at }
end

function CHECKS.effects(_, item, question)
  if not EFFECT_KINDS[item.kind] or not integer(item.at, #question.commands) then return nil end
  local needs_path = item.kind == "read" or item.kind == "write"
  if needs_path and (type(item.path) ~= "string" or item.path:sub(1, 1) ~= "/") then return nil end
  return { kind = item.kind, at = item.at, path = needs_path and item.path or nil }
end

function CHECKS.hints()
  return {}
end

-- One answer with the words of its entry; nil when it is none.
local function checked(self, list, item, question)
  local entry = type(item) == "table" and self.entries[item.entry]
  if not entry or entry.kind ~= KINDS[list] then return nil end
  local out = CHECKS[list](self, item, question)
  if not out then return nil end
  out.effect, out.id, out.file, out.line = entry.effect, entry.id, entry.file, entry.line
  local words = list == "hints" and item.text or item.why
  out.why = type(words) == "string" and bytes.shown(words, TEXT_MAX) or nil
  if list == "hints" then
    out.text, out.why = out.why, nil
    return out.text and out
  end
  local name = entry.kind .. (entry.id and " " .. entry.id or "")
  out.text = ("%s of %s:%d%s"):format(name, out.file, out.line, out.why and ": " .. out.why or "")
  return out
end

local function read_answer(self, reply, question)
  local out = {}
  for _, list in ipairs(LISTS) do
    if type(reply[list]) ~= "table" then return nil end
    out[list] = {}
    for i, item in ipairs(reply[list]) do
      out[list][i] = checked(self, list, item, question)
      if not out[list][i] then return nil end
    end
  end
  return out
end

-- What goes over the socket.
local function message_of(self, question)
  local sent = {}
  for _, key in ipairs { "line", "cwd", "mode", "tool", "origin", "project", "scratch", "home",
    "commands", "requirements", "exits" } do
    sent[key] = question[key]
  end
  sent.opaque = question.line ~= nil and question.parse == nil
  if self.wants_parse then sent.parse = question.parse end
  return bytes.pack({ op = "judge", question = sent }, QUESTION_MAX)
end

local function why_not(self)
  if self.state == "broken" then return self.problem end
  if self.state == "off" then
    local last = self.last_failure
    return { message = "the rules are off after three failures: " .. last.message, file = last.file,
      line = last.line }
  end
  return { message = "the rules are starting", file = self.files and self.files[1].name }
end

-- The running process; waits for one that is on its way.
local function await_process(self, ms)
  if not self.process and self.ready then
    local ready = self.ready
    async.with_timeout(ms, function() ready:get() end)
  end
  return self.process
end

---Asks the rules about one call. Never raises, and never waits longer than 50 ms.
---@param question table  see above
---@return table? answer
function Client:judge(question)
  if self.state == "none" then return nil end
  local from = self.ports.sys.mono_us()
  if self.state == "new" and self.reading then
    async.with_timeout(M.JUDGE_MS, function() self.reading:get() end)
    if self.state == "none" then return nil end
  end
  local running = self.state == "on" and await_process(self, M.JUDGE_MS)
  if not running then return failed(why_not(self)) end
  if not self.entries[1] then return { rules = {}, exits = {}, effects = {}, hints = {} } end
  question = setmetatable({
    commands = question.commands or line.commands(question.parse),
  }, { __index = question })
  local message = message_of(self, question)
  if not message then
    return failed { message = "the line is too large to be judged", file = self.entries[1].file }
  end
  local left = M.JUDGE_MS - (self.ports.sys.mono_us() - from) // 1000
  local reply, problem = running:request(message, math.max(left, 1))
  if not reply then return failed(problem) end
  if reply.failure then
    problem = reply.failure
    running:fail(tostring(problem.message), problem.file, problem.line)
    return failed(problem)
  end
  local answer = read_answer(self, reply, question)
  if answer then return answer end
  running:fail("an answer is not of the agreed form")
  return failed(running.problem)
end

-- ---- the rest ----

---The running process; waits for one that is on its way.
---@param ms integer
---@return table? process
function Client:running(ms)
  return await_process(self, ms)
end

---Runs example files in the process of the version in force.
---@param files efr.rules.Source[]
---@return {results: table[], printed: string[]}?
---@return efr.rules.Problem?
function Client:test(files)
  if not self.process then return nil, why_not(self) end
  return examples.run(self, files)
end

---Whether a version in force has an entry of this kind: rule, exit, program, preset, hint. Without
---one in force, anything may be there.
---@param kind string
---@return boolean
function Client:has(kind)
  if self.state == "none" then return false end
  if self.state ~= "on" then return true end
  for _, entry in ipairs(self.entries) do
    if entry.kind == kind then return true end
  end
  return false
end

local function entries_of(self, kind, fields_of)
  local out = {}
  for _, entry in ipairs(self.state == "on" and self.entries or {}) do
    local fields = entry.kind == kind and fields_of(entry)
    if fields then
      fields.file, fields.line = entry.file, entry.line
      out[#out + 1] = fields
    end
  end
  return out
end

-- What the process says is only data, and may be of any form.
local function texts(list)
  local out = {}
  for i, text in ipairs(type(list) == "table" and list or {}) do
    out[i] = bytes.shown(tostring(text), TEXT_MAX)
  end
  return out
end

---Hosts that the files name, as presets.
---@return {name: string, hosts: string[], file: string, line: integer}[]
function Client:presets()
  return entries_of(self, "preset", function(entry)
    return { name = bytes.shown(tostring(entry.name), TEXT_MAX), hosts = texts(entry.hosts) }
  end)
end

---Words for the reviewer. some_lines: it is asked line by line whether they count.
---@return {text: string, some_lines: boolean, file: string, line: integer}[]
function Client:hints()
  return entries_of(self, "hint", function(entry)
    return { text = bytes.shown(tostring(entry.text), TEXT_MAX), some_lines = entry.asks == true }
  end)
end

---What the user should see: state is "none" (no files), "new" (not read yet), "on", "broken" (no
---version loads) or "off" (failed too often); problem says why the files are not in force.
---@return {state: string, problem: efr.rules.Problem?, files: string[], sha256: string?}
function Client:status()
  local names = {}
  for i, file in ipairs(self.files or {}) do names[i] = file.name end
  return {
    state = self.state, files = names, sha256 = self.sha256,
    problem = self.state == "off" and why_not(self) or self.problem,
  }
end

---The files for a person: those in force, and those that have an error.
---@return {path: string, active: boolean, error: {message: string, line: integer?}?}[]
function Client:file_states()
  local out, wrong = {}, self:status().problem
  local problem_shown = not wrong
  for i, file in ipairs(self.files or {}) do
    out[i] = { path = self.dir .. "/" .. file.name, active = self.state == "on" }
    if wrong and wrong.file == file.name then
      out[i].error = { message = wrong.message, line = wrong.line }
      problem_shown = true
    end
  end
  if not problem_shown then
    out[#out + 1] = {
      path = self.dir .. "/" .. (wrong.file or "rules.lua"), active = false,
      error = { message = wrong.message, line = wrong.line },
    }
  end
  return out
end

---Ends the process.
function Client:close()
  self.closed = true
  retire(self)
end

---@class efr.rules.ClientDeps
---@field ports table  uv proc sys json fs
---@field efrd string  the program that runs the role
---@field dir string  config root
---@field good string?  file of the last good version; nil: none is read or kept
---@field keep boolean?  false: the file is only read
---@field log table  error, warn, info
---@field on_notice fun(text: string)?  one line for the user

---@param deps efr.rules.ClientDeps
function M.new(deps)
  return setmetatable({
    ports = deps.ports, efrd = deps.efrd, dir = deps.dir, good = deps.good, log = deps.log,
    keep = deps.good ~= nil and deps.keep ~= false,
    on_notice = deps.on_notice or function() end, state = "new", failures = {}, entries = {},
    printed = {},
  }, Client)
end

return M
