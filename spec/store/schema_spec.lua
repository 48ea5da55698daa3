local support = require "spec.support.store"

local C <const> = "0199aaaa-0000-7000-8000-000000000001"
local T <const> = "0199aaaa-0000-7000-8000-000000000002"

local function uuid(n)
  return ("0199aaaa-0000-7000-8000-%012d"):format(n)
end

-- Random histories of a few conversations: only steps that a daemon could take.
local Walk = {}
Walk.__index = Walk

local function new_walk(random)
  return setmetatable({ random = random, conversations = {}, next_id = 100 }, Walk)
end

function Walk:id()
  self.next_id = self.next_id + 1
  return uuid(self.next_id)
end

local function pick(self, list)
  return #list > 0 and list[self.random(#list)] or nil
end

local STEPS = {}

function STEPS.create(self, out)
  local c = { id = self:id(), queued = {}, approvals = {}, shells = {} }
  self.conversations[#self.conversations + 1] = c
  out { kind = "conversation_created", conversation_id = c.id, origin = "cli",
    tty = self.random(2) == 1 and "/dev/pts/" .. self.random(3) or nil }
end

function STEPS.prompt(self, out, c)
  local turn = self:id()
  c.queued[#c.queued + 1] = turn
  out { kind = "prompt_queued", conversation_id = c.id, turn_id = turn, origin = "shell",
    text = ("word "):rep(self.random(30)), context = self.random(3) > 1 and {
      tty = "/dev/pts/" .. self.random(3), shell_pid = self.random(3) > 1 and 77 or nil } or nil }
end

function STEPS.withdraw(self, out, c)
  if #c.queued > 0 then
    out { kind = "prompt_withdrawn", conversation_id = c.id, turn_id = table.remove(c.queued),
      origin = self.random(2) == 1 and "cli" or "shell" }
  end
end

function STEPS.start(_, out, c)
  if not c.running and #c.queued > 0 then
    c.running = table.remove(c.queued, 1)
    out { kind = "turn_started", conversation_id = c.id, turn_id = c.running, cwd = "/w",
      scope = { kind = "path", value = "/w" } }
  end
end

function STEPS.finish(self, out, c)
  if c.running then
    local kinds = { "turn_completed", "turn_failed", "turn_interrupted", "turn_cancelled" }
    out { kind = pick(self, kinds), conversation_id = c.id, turn_id = c.running }
    c.running = nil
  end
end

function STEPS.ask(self, out, c)
  if c.running then
    local call = self:id()
    c.approvals[#c.approvals + 1] = call
    out { kind = "approval_requested", conversation_id = c.id, turn_id = c.running,
      call_id = call, summary = "s" }
  end
end

function STEPS.answer(self, out, c)
  local call = table.remove(c.approvals)
  if call then
    out { kind = self.random(3) == 1 and "approval_expired" or "approval_resolved",
      conversation_id = c.id, turn_id = c.running, call_id = call, decision = "deny",
      origin = "cli" }
  end
end

function STEPS.shell(self, out, c)
  if c.shells[1] then
    out { kind = "shell_exited", conversation_id = c.id, pty_id = table.remove(c.shells),
      exit_code = self.random(2) == 1 and 1 or nil }
  else
    c.shells[1] = self:id()
    out { kind = "shell_started", conversation_id = c.id, pty_id = c.shells[1], cwd = "/",
      pid = 9 }
  end
end

function STEPS.move(self, out, c)
  out { kind = "cwd_changed", conversation_id = c.id, pty_id = c.shells[1] or uuid(1),
    cwd = "/d" .. self.random(9), host = self.random(4) == 1 and "far" or nil }
end

function STEPS.other(self, out, c)
  out { kind = "something_new", conversation_id = c.id, turn_id = c.running, n = self.random(9) }
end

local NAMES = { "create", "prompt", "withdraw", "start", "finish", "ask", "answer", "shell",
  "move", "other", "prompt", "start", "other" }

local function random_batch(walk)
  local events = {}
  for _ = 1, walk.random(6) do
    local c = pick(walk, walk.conversations)
    local step = c and pick(walk, NAMES) or "create"
    STEPS[step](walk, function(event)
      events[#events + 1] = event
    end, c)
  end
  return events
end

describe("store.schema", function()
  local dir

  before_each(function()
    support.setup_async()
    dir = support.new_dir()
  end)

  after_each(function()
    support.remove_dir(dir)
  end)

  local function open(extra)
    return support.run(function()
      return support.open(dir, extra)
    end)
  end

  local function close(s)
    s.db:close()
  end

  -- The tree's newest migration, and the name of one that comes after it.
  local newest = #support.migrations()
  local function next_one(name) return ("%04d_%s"):format(newest + 1, name) end

  it("makes a new database without a backup", function()
    local s = assert(open())
    assert.equal(newest, s.db:read("PRAGMA user_version")[1].user_version)
    assert.equal("wal", s.db:read("PRAGMA journal_mode")[1].journal_mode)
    close(s)
    assert.is_nil(require("luv").fs_stat(dir .. "/backups"))
    close(assert(open()))
  end)

  it("backs up, migrates and rebuilds: every projection equals the one kept live", function()
    local seed = tonumber(os.getenv("EFR_TEST_SEED")) or os.time()
    math.randomseed(seed)
    local s = assert(open())
    local walk = new_walk(math.random)
    support.run(function()
      for _ = 1, 400 do
        local events = random_batch(walk)
        if #events > 0 then
          assert(s.log:append { events = events, durable = false })
        end
      end
    end)
    local live, last = support.projections(s), s.query:highest_seq()
    assert.is_true(last > 512) -- more than one page
    close(s)
    s = assert(open { [next_one("more")] = "CREATE TABLE more (a INTEGER) STRICT;"
      .. "UPDATE conversations SET title = 'wrong', status = 'idle', tty = NULL;" })
    assert.equal(live, support.projections(s), "seed " .. seed)
    assert.equal(last, s.query:highest_seq())
    assert.equal(newest + 1, s.db:read("PRAGMA user_version")[1].user_version)
    close(s)
    local backup = assert(require("luv").fs_stat(dir .. "/backups/efr.sqlite." .. newest))
    assert.equal(384, backup.mode & 511)
  end)

  it("goes on with a rebuild that was cut short", function()
    local s = assert(open())
    support.run(function()
      local events = { { kind = "conversation_created", conversation_id = C, origin = "cli" } }
      for i = 1, 1500 do
        events[#events + 1] = { kind = "note", conversation_id = C, n = i }
      end
      assert(s.log:append { events = events })
    end)
    local live = support.projections(s)
    close(s)
    local raw = assert(require("efr.store").open(dir .. "/efr.sqlite"))
    assert(raw:script("UPDATE projection_state SET rebuild_from = 1000"))
    raw:close()
    s = assert(open())
    assert.equal(live, support.projections(s))
    close(s)
  end)

  it("refuses a newer database with the backup's path and leaves it alone", function()
    local extra = { [next_one("more")] = "CREATE TABLE more (a INTEGER) STRICT;" }
    close(assert(open()))
    close(assert(open(extra)))
    local s, err, code = open()
    assert.is_nil(s)
    assert.equal("EFR_STORE", code)
    assert.truthy(err:find("newer", 1, true))
    assert.truthy(err:find(dir .. "/backups/efr.sqlite." .. newest, 1, true))
    close(assert(open(extra)))
  end)

  it("refuses a damaged file, a foreign database and a migration that fails", function()
    local path = dir .. "/efr.sqlite"
    local file = assert(io.open(path, "wb"))
    file:write(("garbage "):rep(1000))
    file:close()
    local s, err = open()
    assert.is_nil(s)
    assert.truthy(err:find("efr.sqlite", 1, true))
    os.remove(path)
    local raw = assert(require("efr.store").open(path))
    assert(raw:script("CREATE TABLE theirs (a)"))
    raw:close()
    s, err = open()
    assert.is_nil(s)
    assert.truthy(err:find("not a database of efr", 1, true))
    os.remove(path)
    close(assert(open()))
    s, err = open { [next_one("bad")] = "CREATE TABLE more (a INTEGER) STRICT; nonsense;" }
    assert.is_nil(s)
    assert.truthy(err:find(next_one("bad"), 1, true))
    close(assert(open()))
  end)

  it("refuses a database with damaged pages", function()
    local s = assert(open())
    support.run(function()
      local events = { { kind = "conversation_created", conversation_id = C, origin = "cli" } }
      for i = 1, 300 do
        events[#events + 1] = { kind = "note", conversation_id = C, n = i, t = ("x"):rep(200) }
      end
      assert(s.log:append { events = events, durable = true })
    end)
    close(s)
    local file = assert(io.open(dir .. "/efr.sqlite", "r+b"))
    file:seek("set", 4096 * 8)
    file:write(("\0\255"):rep(8192))
    file:close()
    local again, err = open()
    assert.is_nil(again)
    assert.truthy(err:find("damaged", 1, true))
  end)

  it("ends what the last run left open", function()
    local s = assert(open())
    local other = uuid(50)
    support.run(function()
      assert(s.log:append { events = {
        { kind = "conversation_created", conversation_id = C, origin = "shell" },
        { kind = "prompt_queued", conversation_id = C, turn_id = T, text = "a", origin = "shell" },
        { kind = "turn_started", conversation_id = C, turn_id = T, cwd = "/" },
        { kind = "approval_requested", conversation_id = C, turn_id = T, call_id = uuid(3),
          summary = "s" },
        { kind = "shell_started", conversation_id = C, pty_id = uuid(4), cwd = "/" },
        { kind = "prompt_queued", conversation_id = C, turn_id = uuid(5), text = "b",
          origin = "shell", context = { tty = "/dev/pts/9" } },
        { kind = "conversation_created", conversation_id = other, origin = "shell" },
      }, outbox = {
        { kind = "x", payload = { a = 1 }, replay_safe = false },
        { kind = "y", payload = { a = 1 }, replay_safe = true },
      } })
    end)
    close(s)
    s = assert(open())
    local seen = {}
    s.log:subscribe(nil, function(row)
      seen[#seen + 1] = row.kind
    end)
    local reconcile = require "efr.store.reconcile"
    local function run()
      return support.run(reconcile.run, { log = s.log, query = s.query, now_us = function()
        return 5
      end })
    end
    assert.same({ { tty = "/dev/pts/9", count = 1, conversation_id = C } }, run())
    assert.same({ "approval_expired", "turn_cancelled", "turn_cancelled", "shell_exited" }, seen)
    assert.equal("cancelled", s.query:turn(T).status)
    assert.equal("idle", s.query:conversation(C).status)
    local open_rows = s.db:read("SELECT kind FROM outbox WHERE cancelled_at IS NULL")
    assert.same({ { kind = "y" } }, open_rows)
    assert.same({}, run())
    assert.equal(4, #seen)
    close(s)
  end)

  it("wants migrations without a gap", function()
    local schema = require "efr.store.schema"
    assert.has_error(function()
      schema.migrations({ "0001_a", "0003_b" }, function() end)
    end)
    assert.has_error(function()
      schema.migrations({ "1_a" }, function() end)
    end)
  end)
end)
