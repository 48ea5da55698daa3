-- The event log: gives sequence numbers, turns a batch of events into one transaction (events,
-- projections, receipt, outbox rows, turn messages) and announces it after the commit.
-- Knows nothing of what events mean beyond store/projections.lua, nothing of the wire.
-- Main thread of efrd; append waits for the commit and runs in a coroutine.
local async = require "efr.util.async"
local exact = require "efr.util.exact"
local projections = require "efr.store.projections"

local M = {}

-- Batches handed to the writer at once; later ones wait here, in order.
local IN_FLIGHT_MAX <const> = 256

local INSERT_EVENT <const> = "INSERT INTO events (seq, conversation_id, turn_id, kind, payload,"
  .. " created_at) VALUES (?, ?, ?, ?, ?, ?)"
local INSERT_RECEIPT <const> = "INSERT INTO receipts (command_id, method, outcome, result, seq,"
  .. " created_at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
local INSERT_MESSAGE <const> = "INSERT INTO turn_messages (conversation_id, turn_id, position,"
  .. " provider, model, message, turn_seq) VALUES (?, ?, ?, ?, ?, ?, ?)"
local INSERT_OUTBOX <const> = "INSERT INTO outbox (kind, payload, replay_safe, created_at)"
  .. " VALUES (?, ?, ?, ?)"

local Log = {}
Log.__index = Log

--- @class efr.store.LogDeps
--- @field db table           efr.store database, writer started
--- @field json table         efr.json
--- @field text table         efr.text
--- @field now_us fun(): integer
--- @field null any           efr.store.null
--- @field last_seq integer   the highest sequence number that was ever given
--- @field on_error fun(traceback: string)|nil  an error raised by a subscriber
--- @field traceback fun(err: any): string|nil   message handler that adds the traceback

--- @param deps efr.store.LogDeps
function M.new(deps)
  local self = setmetatable({
    db = deps.db, json = deps.json, text = deps.text, now_us = deps.now_us, null = deps.null,
    on_error = deps.on_error or function() end,
    traceback = deps.traceback or tostring,
    next_seq = deps.last_seq + 1,
    announced_seq = deps.last_seq,
    waiting = { first = 1, last = 0 }, in_flight = { first = 1, last = 0 },
    subscribers = {}, next_subscriber = 1,
  }, Log)
  self.projections = projections.new {
    null = deps.null,
    encode = function(value)
      return assert(self.json.encode(value, { sort = true }))
    end,
  }
  return self
end

local function cleaned(self, value)
  return exact.clean(value, self.text)
end

local function encode(self, value)
  return self.json.encode(value, { sort = true })
end

local function statement(out, expect, sql, ...)
  out[#out + 1] = { sql, { ... }, expect_changes = expect }
end

-- One row of `events`: its number, time, ids, cleaned event and encoded text.
local function make_row(self, event, at)
  assert(type(event.kind) == "string", "an event needs a kind")
  local conversation_id = event.conversation_id
  local body = cleaned(self, event)
  body.conversation_id = nil -- stands in the envelope
  local payload, err = encode(self, body)
  if not payload then
    return nil, "encode event " .. event.kind .. ": " .. err, "EFR_JSON"
  end
  return {
    at = at, kind = body.kind, conversation_id = conversation_id,
    turn_id = body.turn_id, event = body, payload = payload,
  }
end

local function make_rows(self, events, at)
  local rows = {}
  for i, event in ipairs(events) do
    local row, err, code = make_row(self, event, at)
    if not row then
      return nil, err, code
    end
    rows[i] = row
  end
  return rows
end

local function add_receipt(self, out, receipt, seqs, at)
  local result = self.json.encode(cleaned(self, receipt.result or {}), { sort = true })
  local seq = receipt.seq_event and seqs[receipt.seq_event] or self.null
  statement(out, 1, INSERT_RECEIPT, receipt.command_id, receipt.method,
    receipt.outcome or "accepted", assert(result), seq, at)
end

local function add_messages(self, out, messages, last_seq)
  for _, m in ipairs(messages) do
    local text = type(m.message) == "string" and m.message
      or assert(encode(self, cleaned(self, m.message)))
    statement(out, nil, INSERT_MESSAGE, m.conversation_id, m.turn_id, m.position, m.provider,
      m.model, text, last_seq)
  end
end

local function is_durable(batch)
  if batch.durable ~= nil then
    return batch.durable
  end
  if batch.receipt then
    return true
  end
  for _, event in ipairs(batch.events or {}) do
    if projections.TERMINAL[event.kind] then
      return true
    end
  end
  return false
end

local function guard_statements(guards)
  local out = {}
  for i, guard in ipairs(guards) do
    local expect = guard.expect == nil and 1 or guard.expect or nil
    out[i] = { guard.sql, guard.params or {}, expect_changes = expect }
  end
  return out
end

-- The statements of a batch, in the order in which they run. Numbers are given here and nowhere
-- else, right before the batch takes its place in the line.
local function build(self, batch, rows, at)
  local out, seqs = guard_statements(batch.guards or { batch.guard }), {}
  for i, row in ipairs(rows) do
    row.seq = self.next_seq
    self.next_seq = self.next_seq + 1
    seqs[i] = row.seq
    statement(out, 1, INSERT_EVENT, row.seq, row.conversation_id or self.null,
      row.turn_id or self.null, row.kind, row.payload, at)
    self.projections:event(out, row)
  end
  self.projections:close(out, rows)
  if batch.receipt then
    add_receipt(self, out, batch.receipt, seqs, at)
  end
  add_messages(self, out, batch.turn_messages or {}, seqs[#seqs] or self.next_seq - 1)
  for _, row in ipairs(batch.outbox or {}) do
    statement(out, nil, INSERT_OUTBOX, row.kind, assert(encode(self, cleaned(self, row.payload))),
      row.replay_safe and 1 or 0, at)
  end
  return out, seqs
end

local function call_subscriber(self, fn, row)
  local ok, traceback = xpcall(fn, self.traceback, row)
  if not ok then
    self.on_error("log subscriber: " .. tostring(traceback))
  end
end

-- Announces a committed row. A subscriber that goes away during the round is not called.
local function announce(self, row)
  self.announced_seq = row.seq
  local ids = {}
  for id, sub in pairs(self.subscribers) do
    if not sub.conversation_id or sub.conversation_id == row.conversation_id then
      ids[#ids + 1] = id
    end
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    local sub = self.subscribers[id]
    if sub then
      call_subscriber(self, sub.fn, row)
    end
  end
end

local function push(line, item)
  line.last = line.last + 1
  line[line.last] = item
end

local function shift(line)
  line[line.first] = nil
  line.first = line.first + 1
end

-- Finished batches leave in the order in which they were handed over, whatever the order of the
-- callbacks: commit order is sequence order.
local function drain(self)
  local line = self.in_flight
  while line[line.first] and line[line.first].outcome do
    local job = line[line.first]
    shift(line)
    if job.outcome.err then
      job.resume(nil, job.outcome.err, job.outcome.code)
    else
      for _, row in ipairs(job.rows) do
        announce(self, row)
      end
      job.resume(job.seqs)
    end
  end
end

local submit_waiting

local function submit(self, job)
  push(self.in_flight, job)
  local answered = false
  local function finished(err, code)
    if not answered then
      answered = true
      job.outcome = { err = err, code = code }
      drain(self)
      submit_waiting(self)
    end
  end
  local ok, err, code = self.db:write(job.statements, job.durable, finished)
  if ok == nil and err then
    finished(err, code)
  end
end

function submit_waiting(self)
  local line, flight = self.waiting, self.in_flight
  while line[line.first] and flight.last - flight.first + 1 < IN_FLIGHT_MAX do
    local job = line[line.first]
    shift(line)
    submit(self, job)
  end
end

--- Appends one batch: all of it or nothing. Waits for the commit.
---   events         list of {kind=, conversation_id=?, turn_id=?, ...fields of the payload}
---   receipt        {command_id=, method=, result=table, seq_event=index into events}
---   turn_messages  list of {conversation_id, turn_id, position, provider, model, message}
---   outbox         list of {kind, payload, replay_safe}
---   guard, guards  {sql=, params=, expect=1}: a statement that runs first and must change
---                  `expect` rows (false = any number)
---   durable        default: true with a receipt or a terminal event of a turn
--- Subscribers have seen the events when it returns.
--- @return integer[]|nil seqs, string|nil message, string|nil code
---   EFR_CONFLICT: a guard, a projection (unknown conversation, approval that is not pending, ...)
---   or an existing receipt refused the batch
function Log:append(batch)
  if self.closed then
    return nil, "the store is closed", "EFR_CLOSED"
  end
  local at = self.now_us()
  local rows, err, code = make_rows(self, batch.events or {}, at)
  if not rows then
    return nil, err, code
  end
  local statements, seqs = build(self, batch, rows, at)
  return async.await(function(resume)
    push(self.waiting, {
      statements = statements, durable = is_durable(batch), rows = rows, seqs = seqs,
      resume = resume,
    })
    submit_waiting(self)
  end)
end

--- Keeps a refusal (invalid, not_found, conflict) as the answer to a command id.
--- @param refusal {command_id: string, method: string, error: table}
function Log:reject(refusal)
  return self:append { receipt = {
    command_id = refusal.command_id, method = refusal.method, outcome = "rejected",
    result = refusal.error,
  } }
end

--- Calls `fn` with each committed row, in commit order, on the loop: {seq, at (us), kind,
--- conversation_id, turn_id, event (cleaned), payload (its JSON text)}. The row is shared, so it
--- is read only.
--- @param conversation_id string|nil nil = all events
--- @return fun() unsubscribe
function Log:subscribe(conversation_id, fn)
  local id = self.next_subscriber
  self.next_subscriber = id + 1
  self.subscribers[id] = { conversation_id = conversation_id, fn = fn }
  return function()
    self.subscribers[id] = nil
  end
end

--- Takes no further batch. Those that were handed over still end (the database drains at close).
function Log:close()
  self.closed = true
end

return M
