-- The screen of one terminal: an efr-worker in its locked room, as efrd sees it.
--
-- Owns: the worker's process, what it was sent and has read, questions to it and their answers.
-- Must not know: shells, runs, marks. Methods that wait run in a coroutine. Loop thread of efrd.
--
-- Policy: the worker is hostile as soon as the output is. It can cost its screen and nothing else:
-- an answer that is no frame, an answer that does not come and a death all end it, whoever waits
-- gets nil, and output goes on without a screen. What waits for it is bounded: of a flood of plain
-- text only the newest part waits, since the rest would have scrolled away; above 1 MiB of anything
-- else the terminal is to wait (on_full), for 10 s without progress at most.

local async = require "efr.util.async"
local frames = require "efr.shell.frames"

local M = {}

local AHEAD_BYTES <const> = 256 << 10
local PLAIN_BYTES <const>, FULL_BYTES <const> = 256 << 10, 1 << 20
local FLUSH_BYTES <const>, FLUSH_MS <const> = 16384, 5
local STALL_MS <const> = 5000
local ANSWER_MS <const> = 5000
local TEXT_MAX <const>, ROWS_MAX <const> = 8 << 20, 2000
local REPLAY_ROWS <const>, REPLAY_LINES <const> = 200, 4000
local SPLIT_MIN <const> = 4096

---@class efr.shell.ScreenOptions
---@field ports table  proc, sys, uv
---@field program string  path of efr-worker
---@field cols integer
---@field rows integer
---@field on_reply fun(bytes: string)  the terminal's answer to a query in its output
---@field on_full fun(full: boolean)  whether the terminal has to wait
---@field on_end fun(message: string)  once, unless it was closed

---@class efr.shell.Screen
---@field ended boolean?
local Screen = {}
Screen.__index = Screen

local function send(self, kind, payload)
  self._pipe:write(frames.encode(kind, payload))
end

-- ---- flow ----

-- Whether the worker has as much to read as it should.
local function is_behind(self)
  return self._sent - self._consumed >= AHEAD_BYTES
end

local function watch_stall(self)
  self._timer:stop()
  if not is_behind(self) then return end
  -- Twice: after a loop that was busy the timer comes before what the worker said meanwhile.
  self._timer:start(STALL_MS, 0, function()
    self._timer:start(STALL_MS, 0, function() self:_fail("it reads nothing") end)
  end)
end

local function set_full(self, full)
  if full == self._full then return end
  self._full = full
  self._opts.on_full(full)
end

local function write(self, bytes)
  local was_behind = is_behind(self)
  self._sent = self._sent + #bytes
  send(self, "F", bytes)
  if not was_behind then watch_stall(self) end
end

-- The oldest piece in the queue that only printed, if another one follows.
local function find_plain(queue)
  for i = 1, #queue - 1 do
    if not queue[i]:find("[\7\24\26\27]") then return i end
  end
  return nil
end

-- Plain text that later text scrolls away leaves the queue; what is left of it is bounded by making
-- the terminal wait. A sequence that a piece would have ended takes some characters more.
local function trim(self)
  local queue = self._queue
  while self._queued > PLAIN_BYTES do
    local i = find_plain(queue)
    if not i then break end
    self._queued = self._queued - #table.remove(queue, i)
  end
  if self._queued > FULL_BYTES then set_full(self, true) end
end

-- Sends what waits, all of it or as much as the worker should have.
local function drain(self, all)
  local queue = self._queue
  while queue[1] and (all or not is_behind(self)) do
    local bytes = table.remove(queue, 1)
    self._queued = self._queued - #bytes
    write(self, bytes)
  end
  if self._queued <= FULL_BYTES // 2 then set_full(self, false) end
end

-- The pieces that were held back become one.
local function flush(self)
  local held = self._held
  if #held == 0 then return end
  self._held, self._held_bytes = {}, 0
  self._flush_timer:stop()
  local bytes = table.concat(held)
  self._queue[#self._queue + 1] = bytes
  self._queued = self._queued + #bytes
  drain(self, false)
  trim(self)
end

---What the terminal showed next; at most 64 KiB. Small pieces wait for each other a moment: a
---prompt is several, and each would wake the worker.
---@param bytes string
function Screen:feed(bytes)
  if self.ended then return end
  if self._held_bytes + #bytes > frames.MAX_BYTES then flush(self) end
  self._held[#self._held + 1] = bytes
  self._held_bytes = self._held_bytes + #bytes
  if self._held_bytes >= FLUSH_BYTES then
    flush(self)
  elseif #self._held == 1 then
    self._flush_timer:start(FLUSH_MS, 0, function() flush(self) end)
  end
end

---@param cols integer
---@param rows integer
function Screen:resize(cols, rows)
  self._cols = cols
  if self.ended then return end
  flush(self)
  drain(self, true)
  send(self, "S", string.pack("<I2I2", cols, rows))
end

-- ---- answers ----

local on_frame = {}

function on_frame.P(self, frame)
  if frame.consumed < self._consumed or frame.consumed > self._sent then return nil end
  self._consumed = frame.consumed
  watch_stall(self)
  drain(self, false)
  return true
end

function on_frame.R(self, frame)
  self._opts.on_reply(frame.bytes)
  return true
end

-- The question that a frame answers. One that nobody waits for any more is read and dropped.
local function question_of(self, frame, kind)
  local question = self._questions[frame.id]
  return question and question.kind == kind and question or nil
end

function on_frame.H(self, frame)
  local question = question_of(self, frame, "snapshot")
  if question then question.head = frame end
  return question
end

function on_frame.L(self, frame)
  local question = question_of(self, frame, "snapshot")
  if not question or not question.head or #question.rows >= ROWS_MAX then return nil end
  question.rows[#question.rows + 1] = frame
  return true
end

function on_frame.T(self, frame)
  local question = question_of(self, frame, "replay")
  if not question then return nil end
  question.bytes = question.bytes + #frame.text
  if question.bytes > TEXT_MAX then return nil end
  question.text[#question.text + 1] = frame.text
  return true
end

local function answer(self, frame, kind, last)
  local question = question_of(self, frame, kind)
  if not question then return nil end
  self._questions[frame.id] = nil
  question.last = last
  question.done:set(question)
  return true
end

function on_frame.Z(self, frame) return answer(self, frame, "snapshot", frame) end
function on_frame.X(self, frame) return answer(self, frame, "replay", frame) end

local function on_bytes(self, bytes)
  local ok, err = self._decoder:feed(bytes)
  if not ok and not self.ended then self:_fail(err) end
end

-- Sends a question; its answer, or nil.
local function ask(self, question, put)
  if self.ended then return nil end
  self._last_id = (self._last_id + 1) & 0xffffffff
  local id = self._last_id
  question.done = async.future()
  self._questions[id] = question
  flush(self)
  drain(self, true)
  put(id)
  local in_time, got = async.with_timeout(ANSWER_MS, function() return question.done:get() end)
  if not in_time then self:_fail("no answer") end
  return in_time and got or nil
end

-- ---- replays ----

local function replay_once(self, bytes)
  return ask(self, { kind = "replay", text = {}, bytes = 0 }, function(id)
    send(self, "B", string.pack("<I2I2I2", self._cols, REPLAY_ROWS, REPLAY_LINES))
    for at = 1, #bytes, frames.MAX_BYTES do
      send(self, "D", bytes:sub(at, at + frames.MAX_BYTES - 1))
    end
    send(self, "E", string.pack("<I4", id))
  end)
end

---What a terminal of this width would show after `bytes`: the lines, without the end of the last.
---Output of more lines than a screen keeps is replayed in halves. Waits.
---@param bytes string
---@return string? text  nil: there is no screen
function Screen:replay(bytes)
  local got = replay_once(self, bytes)
  if not got then return nil end
  if not got.last.lost then return table.concat(got.text) end
  local middle = bytes:find("\n", #bytes // 2, true)
  if #bytes < SPLIT_MIN or not middle or middle == #bytes then return nil end
  local first = self:replay(bytes:sub(1, middle))
  local second = first and self:replay(bytes:sub(middle + 1))
  return second and first .. "\n" .. second or nil
end

-- ---- snapshots ----

-- A row that was seen before is the same table again.
local function row_of(frame, seen)
  local key = (frame.wrapped and "w" or "-") .. frame.runs
  local row = seen and (seen.old[key] or seen.new[key])
  if not row then
    local cells = frames.cells(frame.runs)
    row = cells and { cells = cells, wrapped = frame.wrapped }
  end
  if seen then seen.new[key] = row end
  return row
end

---The screen as the protocol's ScreenSnapshot, its title as bytes. Waits.
---@param history_rows integer?  rows of scrollback, default 0
---@param seen {old: table, new: table}?  rows of the one before, by their bytes, and of this one
---@return table? snapshot  nil: there is no screen
function Screen:snapshot(history_rows, seen)
  local got = ask(self, { kind = "snapshot", rows = {} }, function(id)
    send(self, "G", string.pack("<I4I2", id, math.min(history_rows or 0, 1000)))
  end)
  if not got then return nil end
  local head = got.head
  local snapshot = {
    size = { cols = head.cols, rows = head.rows }, alternate_screen = head.alternate,
    cursor = { row = head.row, col = head.col, hidden = head.hidden }, rows = {}, scrollback = {},
    title = head.title ~= "" and head.title or nil,
    application_keys = head.application_keys or nil,
  }
  for _, frame in ipairs(got.rows) do
    local row = row_of(frame, seen)
    if not row then return self:_fail("a row is no row") end
    local list = frame.history and snapshot.scrollback or snapshot.rows
    list[#list + 1] = row
  end
  return snapshot
end

-- ---- life ----

local function spawn(self)
  local ports = self._opts.ports
  local pair, err = ports.uv.socketpair(nil, nil, { nonblock = true }, { nonblock = false })
  if not pair then return nil, err end
  self._pipe = assert(ports.uv.new_pipe(false))
  assert(self._pipe:open(pair[1]))
  self._timer, self._flush_timer = ports.uv.new_timer(), ports.uv.new_timer()
  local child
  child, err = ports.proc.spawn {
    path = self._opts.program, argv = { "efr-worker", "screen" }, env = {}, cwd = "/",
    fds = { [0] = pair[2], [2] = 2 },
    on_exit = function(code, signal)
      self:_fail(("it ended with %s %d"):format(signal ~= 0 and "signal" or "code",
        signal ~= 0 and signal or code))
    end,
  }
  ports.sys.close_fd(pair[2])
  self._child = child
  return child and true, err
end

---Starts a worker.
---@param opts efr.shell.ScreenOptions
---@return efr.shell.Screen?
---@return string? err
function M.start(opts)
  local self = setmetatable({
    _opts = opts, _sent = 0, _consumed = 0, _full = false, _questions = {}, _last_id = 0,
    _held = {}, _held_bytes = 0, _queue = {}, _queued = 0,
  }, Screen)
  local ok, err = spawn(self)
  if not ok then
    self:close()
    return nil, err
  end
  self._decoder = frames.decoder(function(kind, payload)
    if self.ended then return end
    local frame = frames.parse(kind, payload)
    if not frame or not on_frame[kind](self, frame) then self:_fail("it sent no answer of ours") end
  end)
  self._pipe:read_start(function(_, bytes)
    -- The end of the process says why the socket ended.
    if bytes and not self.ended then on_bytes(self, bytes) end
  end)
  self:resize(opts.cols, opts.rows)
  return self
end

function Screen:_fail(message)
  if self.ended then return nil end
  self.ended = true
  self._opts.on_end(message)
  self:_release()
  return nil
end

---Ends the worker; whoever waits gets nil.
function Screen:close()
  if self.ended then return end
  self.ended = true
  self:_release()
end

function Screen:_release()
  if self._child then
    self._child:kill(self._opts.ports.sys.SIGKILL)
    self._child:close()
  end
  if self._pipe then self._pipe:close() end
  if self._timer then self._timer:close() end
  if self._flush_timer then self._flush_timer:close() end
  set_full(self, false)
  local questions = self._questions
  self._questions = {}
  for _, question in pairs(questions) do question.done:set(nil) end
end

---Pid of the worker.
---@return integer
function Screen:pid()
  return self._child.pid
end

return M
