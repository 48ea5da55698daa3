-- Tasks on coroutines: a task reads top to bottom and waits with await. Owns no clock and no loop:
-- setup() receives a timer and the place where errors go, so specs can run tasks by hand. No C
-- module. Runs on the loop thread.
--
-- A resume that happens while another task runs is put in a queue and done as soon as that task
-- waits or ends, so chains of tasks that wake each other do not nest. await, sleep, get and pop
-- work only inside a task, and not across a coroutine that the task made itself.
local M = {}

local unpack <const> = table.unpack
local pack <const> = table.pack

local config = {
  timer = function()
    error("async.setup was not called: no timer", 3)
  end,
  on_error = function(text)
    error(text, 0)
  end,
  traceback = function(_, message)
    return tostring(message)
  end,
}

local raw_debug = rawget(_G, "debug")
if raw_debug then
  config.traceback = raw_debug.traceback
end

---@class efr.AsyncSetup
---@field timer? fun(ms: integer, cb: fun()): fun()  starts a one-shot timer, returns what stops it
---@field on_error? fun(traceback: string)  receives the error of a task that nobody waits for
---@field traceback? fun(co: thread, message: any): string  text of a dead coroutine

---Connects tasks to the loop. Called once by boot, and by specs.
---@param ports efr.AsyncSetup
function M.setup(ports)
  for name, fn in pairs(ports) do
    config[name] = fn
  end
end

local tasks = setmetatable({}, { __mode = "k" }) -- coroutine -> task
-- Resumes that wait for the running task: { co, values }.
local ready, ready_first, ready_last = {}, 1, 0
local depth = 0

---@class efr.Task
---@field done boolean
---@field values? table  packed results, only when it ended well
---@field err? string  message with traceback, only when it failed
---@field _waiters function[]
---@field _owned? boolean  somebody takes its error, though no task waits for it yet
local Task = {}
Task.__index = Task

local function finish(task, values, err)
  task.done = true
  task.values = values
  task.err = err
  local waiters = task._waiters
  task._waiters = {}
  if err and #waiters == 0 and not task._owned then
    config.on_error(err)
  end
  for _, wake in ipairs(waiters) do
    wake()
  end
end

local function run(co, values)
  depth = depth + 1
  local result = pack(coroutine.resume(co, unpack(values, 1, values.n)))
  depth = depth - 1
  if coroutine.status(co) ~= "dead" then
    return
  end
  local task = tasks[co]
  if result[1] then
    if task then
      finish(task, pack(unpack(result, 2, result.n)))
    end
    return
  end
  local text = config.traceback(co, result[2])
  coroutine.close(co)
  if task then
    finish(task, nil, text)
  else
    config.on_error(text)
  end
end

local function drain()
  while ready_first <= ready_last do
    local entry = ready[ready_first]
    ready[ready_first] = nil
    ready_first = ready_first + 1
    run(entry.co, entry.values)
  end
end

local function resume(co, values)
  if depth > 0 then
    ready_last = ready_last + 1
    ready[ready_last] = { co = co, values = values }
    return
  end
  run(co, values)
  drain()
end

local function start_task(fn, owned, ...)
  local co = coroutine.create(fn)
  local task = setmetatable({ done = false, _waiters = {}, _owned = owned }, Task)
  tasks[co] = task
  run(co, pack(...))
  if depth == 0 then
    drain()
  end
  return task
end

---Starts fn in a task of its own; it runs at once until its first wait.
---@param fn function
---@param ... any  arguments of fn
---@return efr.Task
function M.spawn(fn, ...)
  return start_task(fn, false, ...)
end

---Waits until resume is called and gives its values. start gets resume, which may be called at
---once; later calls are ignored.
---@param start fun(resume: fun(...))
---@return any ...
function M.await(start)
  local co, is_main = coroutine.running()
  if is_main then
    error("await outside of a task", 2)
  end
  local called, waiting, values = false, false, nil
  start(function(...)
    if called then
      return
    end
    called = true
    if waiting then
      resume(co, pack(...))
    else
      values = pack(...)
    end
  end)
  if called then
    return unpack(values, 1, values.n)
  end
  waiting = true
  return coroutine.yield()
end

---Waits for the end of the task.
---@return boolean? ok  true, then the results of the task; nil with its error text
---@return any ...
function Task:wait()
  if not self.done then
    M.await(function(wake)
      self._waiters[#self._waiters + 1] = wake
    end)
  end
  if self.err then
    return nil, self.err, "EFR_TASK"
  end
  return true, unpack(self.values, 1, self.values.n)
end

---Waits for some milliseconds.
---@param ms integer
function M.sleep(ms)
  M.await(function(wake)
    config.timer(ms, wake)
  end)
end

---@class efr.Future
---@field done boolean
local Future = {}
Future.__index = Future

---A value that comes later: set once, read by any number of tasks.
---@return efr.Future
function M.future()
  return setmetatable({ done = false, _waiters = {} }, Future)
end

---Sets the values and wakes the waiting tasks. Later calls are ignored.
---@return boolean set  false when it was set before
function Future:set(...)
  if self.done then
    return false
  end
  self.done = true
  self._values = pack(...)
  local waiters = self._waiters
  self._waiters = {}
  for _, wake in ipairs(waiters) do
    wake()
  end
  return true
end

---Waits for the values.
---@return any ...
function Future:get()
  if not self.done then
    M.await(function(wake)
      self._waiters[#self._waiters + 1] = wake
    end)
  end
  return unpack(self._values, 1, self._values.n)
end

---@class efr.Signal
local Signal = {}
Signal.__index = Signal

---Wakes one task that waits for news. It carries nothing: the task looks again at what it waits
---for, in a loop, and waits again.
---@return efr.Signal
function M.signal()
  return setmetatable({}, Signal)
end

---Wakes the waiting task; with none waiting it does nothing.
function Signal:notify()
  local wake = self._waiter
  self._waiter = nil
  if wake then
    wake()
  end
end

---Waits for the next notify. One task at a time.
function Signal:wait()
  assert(not self._waiter, "a signal has one waiting task")
  M.await(function(wake)
    self._waiter = wake
  end)
end

---@class efr.Queue
local Queue = {}
Queue.__index = Queue

---A queue between tasks. Without a limit it never refuses.
---@param limit? integer
---@return efr.Queue
function M.queue(limit)
  return setmetatable({
    _limit = limit or math.maxinteger,
    _first = 1,
    _last = 0,
    _items = {},
    _waiters = {},
    _closed = false,
  }, Queue)
end

---@param value any  not nil
---@return boolean taken  false when the queue is full or closed
function Queue:push(value)
  assert(value ~= nil, "push of nil")
  if self._closed then
    return false
  end
  local wake = table.remove(self._waiters, 1)
  if wake then
    wake(value)
    return true
  end
  if self:len() >= self._limit then
    return false
  end
  self._last = self._last + 1
  self._items[self._last] = value
  return true
end

---Waits for the next value.
---@return any? value  nil when the queue is closed and empty
function Queue:pop()
  if self:len() > 0 then
    local value = self._items[self._first]
    self._items[self._first] = nil
    self._first = self._first + 1
    return value
  end
  if self._closed then
    return nil
  end
  return M.await(function(wake)
    self._waiters[#self._waiters + 1] = wake
  end)
end

---@return integer
function Queue:len()
  return self._last - self._first + 1
end

---Ends the queue: what is in it can still be read, waiting tasks get nil.
function Queue:close()
  self._closed = true
  local waiters = self._waiters
  self._waiters = {}
  for _, wake in ipairs(waiters) do
    wake(nil)
  end
end

---@class efr.Token
---@field cancelled boolean
---@field reason? any
local Token = {}
Token.__index = Token

---A cancellation that can be asked and listened to.
---@return efr.Token
function M.token()
  return setmetatable({ cancelled = false, _listeners = {} }, Token)
end

---Cancels; later calls are ignored.
---@param reason any
function Token:cancel(reason)
  if self.cancelled then
    return
  end
  self.cancelled = true
  self.reason = reason
  local listeners = self._listeners
  self._listeners = {}
  for _, entry in ipairs(listeners) do
    if entry.fn then
      entry.fn(reason)
    end
  end
end

---Calls fn(reason) once when the token is cancelled, at once when it already is.
---@param fn fun(reason: any)
---@return fun() remove
function Token:on_cancel(fn)
  if self.cancelled then
    fn(self.reason)
    return function() end
  end
  local entry = { fn = fn }
  local listeners = self._listeners
  listeners[#listeners + 1] = entry
  return function()
    entry.fn = nil
    for i, other in ipairs(listeners) do
      if other == entry and self._listeners == listeners then
        table.remove(listeners, i)
        return
      end
    end
  end
end

---Runs fn in a task and waits at most ms for it. After a timeout fn goes on, but its results are
---dropped. An error of fn is raised here.
---@param ms integer
---@param fn function
---@return boolean? ok  true, then the results of fn
---@return any ...  "timeout", "EFR_TIMEOUT" when it took too long
function M.with_timeout(ms, fn)
  local stop
  local task
  local timed_out = M.await(function(wake)
    task = start_task(fn, true)
    if task.done then
      return wake(false)
    end
    task._waiters[#task._waiters + 1] = function()
      if stop then
        stop()
      end
      wake(false)
    end
    stop = config.timer(ms, function()
      task._owned, task._waiters = false, {} -- from now on its error goes to on_error
      wake(true)
    end)
  end)
  if timed_out then
    return nil, "timeout", "EFR_TIMEOUT"
  end
  if task.err then
    error(task.err, 0)
  end
  return true, unpack(task.values, 1, task.values.n)
end

return M
