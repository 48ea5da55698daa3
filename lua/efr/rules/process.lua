-- Owns: one rules process: its start, its messages with a time limit for each, its end.
-- Must not know: files, what messages mean, when a process is started again.
-- Runs in efrd and efr, on the loop thread; request waits in a task and never blocks the loop.
--
-- Policy: whatever goes wrong ends the process: no answer in time, an answer that is no JSON, too
-- long or to nothing that was asked, an end of its own. It is killed, all that wait get the
-- failure, and the place in it ("rules.lua", 12) is what it noted last in shared memory.

local async = require "efr.util.async"
local bytes = require "efr.rules.bytes"

local M = {}

local PAGE_BYTES <const> = 4096
local PLACE_BYTES <const> = 256
local ANSWER_MAX <const> = 1 << 20

---@class efr.rules.Problem
---@field message string
---@field file string?
---@field line integer?
---@field others efr.rules.Problem[]?  more files that cannot be read

local Process = {}
Process.__index = Process

local function place_of(text)
  local file, line = text:match("^([%g ]-):(%d+)$")
  return file, line and math.tointeger(tonumber(line)) or nil
end

-- What the process noted last.
local function read_place(self)
  local text = self.ports.uv.fs_read(self.page, PLACE_BYTES, 0)
  if not text then return nil end
  return place_of(bytes.shown(text:match("^%Z*"), PLACE_BYTES))
end

local function take_answer(self, line)
  local message, err = self.ports.json.decode(line, { max_depth = 16 })
  if type(message) ~= "table" then
    return self:fail("an answer is no JSON: " .. tostring(err))
  end
  local waiting = self.waiting[message.id]
  if not waiting then return self:fail("an answer that nobody asked for") end
  self.waiting[message.id] = nil
  waiting:set(bytes.unpack(message))
end

local function on_bytes(self, chunk)
  self.rest[#self.rest + 1] = chunk
  self.rest_bytes = self.rest_bytes + #chunk
  if chunk:find("\n", 1, true) then
    local text = table.concat(self.rest)
    local from = 1
    for line, next_at in text:gmatch("([^\n]*)\n()") do
      if self.ended then return end
      from = next_at
      take_answer(self, line)
    end
    self.rest = { text:sub(from) }
    self.rest_bytes = #self.rest[1]
  end
  if self.rest_bytes > ANSWER_MAX then self:fail("an answer is too long") end
end

local function end_text(code, signal)
  if signal ~= 0 then return ("the process ended by signal %d"):format(signal) end
  return ("the process ended with code %d"):format(code)
end

-- The descriptors of both sides; after a failure none is left open.
local function spawn(self)
  local ports = self.ports
  local page, err = ports.sys.memfd("efr-rules", PAGE_BYTES)
  if not page then return nil, err end
  local pair
  pair, err = ports.uv.socketpair(nil, nil, { nonblock = true }, { nonblock = false })
  if not pair then
    ports.sys.close_fd(page)
    return nil, err
  end
  self.page, self.pipe = page, assert(ports.uv.new_pipe(false))
  assert(self.pipe:open(pair[1]))
  local child
  child, err = ports.proc.spawn {
    path = self.efrd, argv = { "efrd", "--role", "rules" }, env = {}, cwd = "/",
    fds = { [2] = 2, [3] = pair[2], [4] = page },
    on_exit = function(code, signal) self:fail(end_text(code, signal)) end,
  }
  ports.sys.close_fd(pair[2])
  if not child then
    self:close()
    return nil, err
  end
  self.child = child
  return true
end

---Starts a process.
---@param deps {ports: table, efrd: string, on_fail: fun(problem: efr.rules.Problem)?}
---@return table? process
---@return string? err
function M.start(deps)
  local self = setmetatable({
    ports = deps.ports, efrd = deps.efrd, on_fail = deps.on_fail, waiting = {}, rest = {},
    rest_bytes = 0, next_id = 0,
  }, Process)
  local ok, err = spawn(self)
  if not ok then return nil, "start the rules process: " .. err end
  -- Where the socket ends, the end of the process, or the time, says more.
  self.pipe:read_start(function(_, chunk)
    if chunk and not self.ended then on_bytes(self, chunk) end
  end)
  return self
end

-- Waits for the answer, at most ms. The loop's clock stands while Lua runs, so it is put right
-- before; and after a stop of the loop the answer may lie in the socket while the time is over
-- already, so one more turn reads it.
local function await_answer(self, future, ms)
  self.ports.uv.update_time()
  async.with_timeout(ms, function() future:get() end)
  if not future.done then async.sleep(0) end
  if future.done then return true, future:get() end
  return false
end

---Sends a message and waits for its answer.
---@param message table  without an id
---@param ms integer
---@return table? answer
---@return efr.rules.Problem? problem  then the process has ended
function Process:request(message, ms)
  if self.ended then return nil, self.problem end
  self.next_id = self.next_id + 1
  message.id = self.next_id
  local text, err = self.ports.json.encode(message)
  if not text then return nil, { message = err } end
  local future = async.future()
  self.waiting[message.id] = future
  self.pipe:write(text .. "\n")
  local in_time, answer, problem = await_answer(self, future, ms)
  if not in_time then
    self:fail(("no answer within %d ms"):format(ms))
    return nil, self.problem
  end
  return answer, problem
end

---Ends the process as failed: those who wait get the problem, and on_fail is called once.
---@param message string
---@param file string?  default: what the process noted last
---@param line integer?
function Process:fail(message, file, line)
  if self.ended then return end
  if not file then file, line = read_place(self) end
  self.problem = { message = message, file = file, line = line }
  self:close()
  if self.on_fail then self.on_fail(self.problem) end
end

---Ends the process.
function Process:close()
  if self.ended then return end
  self.ended = true
  self.problem = self.problem or { message = "the rules process was ended" }
  if self.child then
    self.child:kill(self.ports.sys.SIGKILL)
    self.child:close()
  end
  self.pipe:close()
  self.ports.sys.close_fd(self.page)
  local waiting = self.waiting
  self.waiting = {}
  for _, future in pairs(waiting) do future:set(nil, self.problem) end
end

return M
