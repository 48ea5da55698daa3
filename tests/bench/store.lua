-- Events a second of efr.store: batched (one event a batch, many on their way) and durable one by
-- one, beside the price of a bare fsync on the same disk. Usage: efr-lua tests/bench/store.lua
-- [DIR]; the directory decides which disk is measured.
local store = require "efr.store"
local uv = require "luv"

local EVENTS <const> = 100000
local ON_THE_WAY <const> = 512
local DURABLE <const> = 200

local SCHEMA <const> = [[
CREATE TABLE events (seq INTEGER PRIMARY KEY, conversation_id TEXT, turn_id TEXT,
  kind TEXT NOT NULL, payload TEXT NOT NULL CHECK (json_valid(payload)),
  created_at INTEGER NOT NULL) STRICT;
CREATE INDEX events_conversation ON events(conversation_id, seq);
CREATE TABLE conversations (id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL) STRICT;
INSERT INTO conversations VALUES ('01930000-0000-7000-8000-000000000000', 0);
]]
local INSERT <const> = "INSERT INTO events (seq, conversation_id, turn_id, kind, payload,"
  .. " created_at) VALUES (?, ?, ?, ?, ?, ?)"
local UPDATE <const> = "UPDATE conversations SET last_seq = ? WHERE id = ?"
local ID <const> = "01930000-0000-7000-8000-000000000000"
local PAYLOAD <const> = '{"kind":"assistant_text","text":"a few words of a model, as they come"}'

local function batch(seq)
  return {
    { INSERT, { seq, ID, ID, "assistant_text", PAYLOAD, 1700000000000000 + seq },
      expect_changes = 1 },
    { UPDATE, { seq, ID }, expect_changes = 1 },
  }
end

local function seconds(fn)
  local start = uv.hrtime()
  fn()
  return (uv.hrtime() - start) / 1e9
end

-- Keeps `width` batches on their way until `count` are committed.
local function write_all(db, first, count, width, durable)
  local sent, done = 0, 0
  local function send()
    while sent < count and sent - done < width do
      sent = sent + 1
      assert(db:write(batch(first + sent), durable, function(err)
        assert(not err, err)
        done = done + 1
        send()
      end))
    end
  end
  send()
  while done < count do
    uv.run("once")
  end
end

local function fsyncs(dir)
  local path = dir .. "/probe"
  local fd = assert(uv.fs_open(path, "w", 384))
  local time = seconds(function()
    for i = 0, DURABLE - 1 do
      assert(uv.fs_write(fd, PAYLOAD, i * #PAYLOAD))
      assert(uv.fs_fdatasync(fd))
    end
  end)
  uv.fs_close(fd)
  uv.fs_unlink(path)
  return time
end

local dir = assert(uv.fs_mkdtemp((arg[1] or "/var/tmp") .. "/efr-bench-store-XXXXXX"))
local path = dir .. "/db.sqlite"
local db = assert(store.open(path))
assert(db:script(SCHEMA))
assert(db:start())
local batched = seconds(function()
  write_all(db, 0, EVENTS, ON_THE_WAY, false)
end)
local durable = seconds(function()
  write_all(db, EVENTS, DURABLE, 1, true)
end)
db:close()
local bare = fsyncs(dir)
for _, name in ipairs { "", "-wal", "-shm" } do
  uv.fs_unlink(path .. name)
end
assert(uv.fs_rmdir(dir))

print(("store: %.0f events a second batched (target 20000)"):format(EVENTS / batched))
print(("store: a durable append takes %.2f ms, a bare write and fdatasync %.2f ms (x %.1f)")
  :format(durable / DURABLE * 1000, bare / DURABLE * 1000, durable / bare))
