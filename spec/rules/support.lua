-- Owns: a rules client with the real efrd for specs: directories of its own, the real loop, ports.
-- Knows nothing of rules.

local async = require "efr.util.async"
local client = require "efr.rules.client"
local loop = require "spec.host.loop"

local M = {}

-- For answers that must come, however slow the machine is.
M.SLOW_MS = 10000

local JUDGE_MS <const> = client.JUDGE_MS

local function ports()
  return {
    uv = require "luv", proc = require "efr.proc", sys = require "efr.sys", json = require "efr.json",
    fs = require "efr.fs", text = require "efr.text",
  }
end

local function timer(uv)
  return function(ms, fn)
    local handle = uv.new_timer()
    local function stop()
      if handle then handle:close() end
      handle = nil
    end
    handle:start(ms, 0, function()
      stop()
      fn()
    end)
    return stop
  end
end

---Runs fn in a task on the real loop and gives its results.
function M.run(fn, ...)
  local task = async.spawn(fn, ...)
  loop.wait_until(function() return task.done end)
  if task.err then error(task.err, 0) end
  return table.unpack(task.values, 1, task.values.n)
end

local World = {}
World.__index = World

---A config root and a state root, and a client for them.
function M.new()
  local self = setmetatable({ ports = ports(), notices = {}, logged = {} }, World)
  async.setup { timer = timer(self.ports.uv), on_error = function(text) error(text, 0) end }
  self.root = assert(self.ports.uv.fs_mkdtemp("/tmp/efr-rules-XXXXXX"))
  self.dir, self.good = self.root .. "/config", self.root .. "/state/rules/good"
  assert(self.ports.fs.mkdirs(self.dir .. "/rules.d"))
  self.client = self:open()
  client.JUDGE_MS = M.SLOW_MS
  return self
end

---One more client for the same directories.
function World:open()
  local function log(_, fmt, ...) self.logged[#self.logged + 1] = fmt:format(...) end
  return client.new {
    ports = self.ports, dir = self.dir, good = self.good,
    efrd = assert(os.getenv("EFR_BIN"), "EFR_BIN is not set") .. "/efrd",
    log = { error = log, warn = log, info = log },
    on_notice = function(text) self.notices[#self.notices + 1] = text end,
  }
end

---Writes a file below the config root.
function World:write(name, text)
  assert(self.ports.fs.write_atomic(self.dir .. "/" .. name, text))
end

---Writes rules.lua and reads the files.
function World:load(text)
  self:write("rules.lua", text)
  return M.run(self.client.reload, self.client)
end

local DEFAULTS <const> = { cwd = "/home/u/p", home = "/home/u", mode = "auto", tool = "shell",
  origin = "shell" }

---Asks about a line of plain words.
function World:judge(text, more)
  local words = {}
  for word in text:gmatch("%S+") do words[#words + 1] = word end
  local question = {
    line = text, parse = { kind = "list" },
    commands = { { words = words, pos = 1, stop = #text } },
  }
  for key, value in pairs(DEFAULTS) do question[key] = value end
  for key, value in pairs(more or {}) do question[key] = value end
  return M.run(self.client.judge, self.client, question)
end

---Waits until the client has a process again, or is off.
function World:settle()
  loop.wait_until(function()
    return self.client.process ~= nil or self.client.state ~= "on"
  end)
end

function World:close()
  client.JUDGE_MS = JUDGE_MS
  self.client:close()
  self.ports.fs.rmtree(self.root)
end

return M
