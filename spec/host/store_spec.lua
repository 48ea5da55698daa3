-- efr.store under our own state: the binding, its callbacks and errors. The behaviour of the
-- writer itself is tested in tests/unit/test_store.c.
local loop = require "spec.host.loop"
local store = require "efr.store"
local uv = require "luv"

describe("efr.store", function()
  local dir, path, db

  before_each(function()
    dir = assert(uv.fs_mkdtemp("/tmp/efr-spec-store-XXXXXX"))
    path = dir .. "/db.sqlite"
  end)

  after_each(function()
    if db then
      db:close()
      db = nil
    end
    uv.run("nowait")
    for _, name in ipairs { "db.sqlite", "db.sqlite-wal", "db.sqlite-shm", "copy.sqlite" } do
      uv.fs_unlink(dir .. "/" .. name)
    end
    assert(uv.fs_rmdir(dir)) -- nothing else is left
  end)

  local function open_with_table()
    db = assert(store.open(path))
    assert(db:script("CREATE TABLE t (id INTEGER PRIMARY KEY, v ANY) STRICT;"))
    assert(db:start())
  end

  -- Writes one batch and waits: err, code, changes.
  local function write(statements, durable)
    local result
    assert(db:write(statements, durable or false, function(...)
      result = table.pack(...)
    end))
    loop.wait_until(function()
      return result
    end)
    return table.unpack(result, 1, 3)
  end

  it("writes a batch and reads it back with exact values", function()
    open_with_table()
    local err, code, changes = write({
      { "INSERT INTO t (id, v) VALUES (?, ?)", { 1, "text\0with NUL" }, expect_changes = 1 },
      { "INSERT INTO t (id, v) VALUES (?, ?)", { 2, math.maxinteger } },
      { "INSERT INTO t (id, v) VALUES (?, ?), (4, 0.5)", { 3, store.null } },
      { "UPDATE t SET v = v" },
    }, true)
    assert.is_nil(err)
    assert.is_nil(code)
    assert.same({ 1, 1, 2, 4, last_rowid = 4 }, changes)
    local rows = assert(db:read("SELECT id, v FROM t WHERE id >= ? ORDER BY id", { 1 }))
    assert.same({
      { id = 1, v = "text\0with NUL" }, { id = 2, v = math.maxinteger }, { id = 3 },
      { id = 4, v = 0.5 },
    }, rows)
    assert.equal("integer", math.type(rows[2].v))
    assert.same({}, db:read("SELECT id FROM t WHERE id > 99"))
  end)

  it("reports a conflict and keeps nothing of the batch", function()
    open_with_table()
    local err, code = write {
      { "INSERT INTO t (id) VALUES (1)" },
      { "UPDATE t SET v = 1 WHERE id = 7", {}, expect_changes = 1 },
    }
    assert.equal("EFR_CONFLICT", code)
    assert.matches("statement 2", err)
    assert.same({ { n = 0 } }, db:read("SELECT count(*) AS n FROM t"))
  end)

  it("reports in the order of the calls, failures too", function()
    open_with_table()
    local seen = {}
    for i = 1, 100 do
      local tab = i % 10 == 0 and "nowhere" or "t"
      local batch = { { "INSERT INTO " .. tab .. " (id) VALUES (?)", { i } } }
      assert(db:write(batch, i % 7 == 0, function(_, code)
        seen[#seen + 1] = { i, code }
      end))
    end
    loop.wait_until(function()
      return #seen == 100
    end)
    for i = 1, 100 do
      assert.same({ i, i % 10 == 0 and "EFR_SQL" or nil }, seen[i])
    end
    assert.same({ { n = 90 } }, db:read("SELECT count(*) AS n FROM t"))
  end)

  it("lives on after an error in a callback", function()
    open_with_table()
    local done = false
    db:write({ { "INSERT INTO t (id) VALUES (1)" } }, false, function()
      error("planted by the spec")
    end)
    db:write({ { "INSERT INTO t (id) VALUES (2)" } }, false, function()
      done = true
    end)
    loop.wait_until(function()
      return done
    end)
  end)

  it("can write and close from a callback", function()
    open_with_table()
    local seen = {}
    db:write({ { "INSERT INTO t (id) VALUES (1)" } }, false, function()
      db:write({ { "INSERT INTO t (id) VALUES (2)" } }, false, function(err)
        seen[#seen + 1] = err or "kept"
      end)
      db:close()
      seen[#seen + 1] = "closed"
      seen[#seen + 1] = select(3, db:write({}, false, print))
    end)
    loop.wait_until(function()
      return #seen == 3
    end)
    assert.same({ "kept", "closed", "EFR_CLOSED" }, seen)
  end)

  it("drains at close and can be reopened", function()
    open_with_table()
    local n = 0
    for i = 1, 50 do
      assert(db:write({ { "INSERT INTO t (id) VALUES (?)", { i } } }, false, function(err)
        n = n + (err and 0 or 1)
      end))
    end
    db:close()
    assert.equal(50, n)
    db:close() -- twice is fine
    assert.same({ nil, "closed", "EFR_CLOSED" }, { db:read("SELECT 1") })
    db = assert(store.open(path))
    assert.same({ { n = 50 } }, db:read("SELECT count(*) AS n FROM t"))
  end)

  it("keeps a database with work on its way alive", function()
    open_with_table()
    local weak = setmetatable({ db }, { __mode = "v" })
    local done = false
    db:write({ { "INSERT INTO t (id) VALUES (1)" } }, false, function(err)
      done = not err
    end)
    db = nil
    collectgarbage()
    assert.is_not_nil(weak[1])
    loop.wait_until(function()
      return done
    end)
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
  end)

  it("reads one snapshot between begin_read and end_read", function()
    open_with_table()
    assert(db:begin_read())
    assert.equal("EFR_STATE", select(3, db:begin_read()))
    assert.is_nil((write { { "INSERT INTO t (id) VALUES (1)" } }))
    assert.same({ { n = 0 } }, db:read("SELECT count(*) AS n FROM t"))
    assert(db:end_read())
    assert.same({ { n = 1 } }, db:read("SELECT count(*) AS n FROM t"))
  end)

  it("names what is wrong with a query", function()
    open_with_table()
    local rows, err, code = db:read("SELECT nothing FROM t")
    assert.is_nil(rows)
    assert.matches("nothing", err)
    assert.equal("EFR_SQL", code)
    assert.equal("EFR_SQL", select(3, db:read("SELECT ?", {})))
    assert.equal("EFR_SQL", select(3, db:read("SELECT 1; SELECT 2")))
  end)

  it("raises on misuse and takes nothing", function()
    open_with_table()
    for _, batch in ipairs {
      { "no table" }, { {} }, { { 1 } }, { { "SELECT ?", { true } } },
      { { "SELECT ?", { {} } } }, { { "SELECT 1", "x" } },
      { { "SELECT 1", {}, expect_changes = -1 } },
    } do
      assert.has_error(function()
        db:write(batch, false, print)
      end)
    end
    assert.has_error(function()
      db:write({}, nil, print)
    end)
    assert.has_error(function()
      db:write({}, false)
    end)
    assert.has_error(function()
      db:read("SELECT ?", { false })
    end)
    assert.is_nil((write { { "INSERT INTO t (id) VALUES (1)" } }))
  end)

  it("backs up, checks, and refuses what is no database", function()
    open_with_table()
    assert.is_nil((write { { "INSERT INTO t (id) VALUES (1)" } }))
    assert.is_true(db:check())
    assert.is_true(db:backup(dir .. "/copy.sqlite"))
    assert.equal(384, uv.fs_stat(dir .. "/copy.sqlite").mode & 511) -- 0600
    db:close()
    local file = assert(io.open(path, "wb"))
    file:write(("junk "):rep(2000))
    file:close()
    local bad, err, code = store.open(path)
    assert.is_nil(bad)
    assert.matches("not a database", err)
    assert.equal("EFR_DAMAGED", code)
  end)
end)
