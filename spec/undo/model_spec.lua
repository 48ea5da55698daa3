-- Undo against a model: random edits of calls and of the user, undos and redos; after each the disk is
-- what the model says. Without edits of the user everything must be as before, to the last bit of a
-- mode. EFR_TEST_SIZE=long runs more. Needs efr's own Lua state and the launcher.
if not package.preload["efr.tree"] then return end

local snap = require "spec.support.snap"
local world = require "spec.undo.world"

local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"
local ROUNDS <const> = LONG and 250 or 4
local TURNS <const> = 5 -- of a round

describe("undo against a model", function()
  local w, fs, seed, n

  setup(snap.setup)
  before_each(function()
    w = world.new("model")
    fs = w.app.ports.fs
    seed = tonumber(os.getenv("EFR_TEST_SEED")) or os.time()
    math.randomseed(seed)
    n = 0
  end)
  after_each(function() w.remove() end)

  local NAMES <const> = { "a", "b", "c\nd", "\255", "git~1", "x.txt", "\1m600" }
  local DIRS <const> = { "d", "e", ".GIT" }
  local MODES <const> = { 420, 493, 384, 448, 416 }
  local DIR_MODES <const> = { 493, 448, 488 }

  local function pick(list) return list[math.random(#list)] end

  local function some_path()
    local parts = {}
    for _ = 1, math.random(0, 2) do parts[#parts + 1] = pick(DIRS) end
    parts[#parts + 1] = pick(math.random(6) == 1 and DIRS or NAMES)
    return table.concat(parts, "/")
  end

  -- Makes the place for a path; files in the way go.
  local function make_way(path)
    local at = w.project
    for part in path:gmatch("([^/]+)/") do
      at = at .. "/" .. part
      local info = fs.lstat(at)
      if info and info.type ~= "dir" then fs.unlink(at) end
      if not info or info.type ~= "dir" then assert(fs.mkdir(at, pick(DIR_MODES))) end
    end
  end

  local function write(path, bytes, mode)
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    file:close()
    if mode then assert(fs.chmod(path, mode)) end
  end

  local edits = {}
  function edits.write(path, full)
    make_way(path)
    local info = fs.lstat(full)
    if info and info.type ~= "file" then fs.rmtree(full) end
    n = n + 1
    write(full, ("%d\r\n"):format(n % 3 == 0 and 0 or n), not info and pick(MODES) or nil)
  end
  function edits.remove(_, full) fs.rmtree(full) end
  function edits.chmod(_, full)
    local info = fs.lstat(full)
    if info and info.type == "file" then fs.chmod(full, pick(MODES)) end
    if info and info.type == "dir" then fs.chmod(full, pick(DIR_MODES)) end
  end
  function edits.link(path, full)
    make_way(path)
    fs.rmtree(full)
    fs.symlink(pick(NAMES), full)
  end
  function edits.mkdir(path, full)
    make_way(path)
    if not fs.lstat(full) then fs.mkdir(full, pick(DIR_MODES)) end
  end
  function edits.rename(_, full)
    local other = some_path()
    local to = w.project .. "/" .. other
    if not fs.lstat(full) or to:sub(1, #full) == full or full:sub(1, #to) == to then return end
    make_way(other)
    if fs.lstat(full) then
      fs.rmtree(to)
      fs.rename(full, to)
    end
  end
  local KINDS <const> = { "write", "write", "write", "remove", "chmod", "link", "mkdir", "rename" }

  local function edit(count)
    for _ = 1, count do
      local path = some_path()
      edits[pick(KINDS)](path, w.project .. "/" .. path)
    end
  end

  local function call(turn_id) w.call(turn_id, function() edit(math.random(1, 4)) end) end

  local function failed(what)
    return ("%s; EFR_TEST_SEED=%d"):format(what, seed)
  end

  local function same(a, b) -- without a look at what a mere touch changed
    for path, word in pairs(a) do if b[path] ~= word then return false end end
    for path in pairs(b) do if a[path] == nil then return false end end
    return true
  end

  it("is as before after each undo, and as after each redo", function()
    for round = 1, ROUNDS do
      local states, ids = {}, {}
      for i = 1, TURNS do
        states[i] = w.look()
        ids[i] = ("r%d-%d"):format(round, i)
        for _ = 1, math.random(1, 2) do call(ids[i]) end
      end
      states[TURNS + 1] = w.look()
      local at = TURNS
      for _ = 1, TURNS * 2 do
        while at > 0 and same(states[at], states[at + 1]) do at = at - 1 end
        if at == 0 then break end
        local done, err = w.undo { turn_id = ids[at] }
        assert(done, failed(tostring(err)))
        assert.same(states[at], w.look(), failed("undo of " .. ids[at]))
        if math.random(3) == 1 then
          assert(w.undo { redo = true, turn_id = ids[at] }, failed("redo"))
          assert.same(states[at + 1], w.look(), failed("redo of " .. ids[at]))
        else
          at = at - 1
        end
      end
    end
    assert.same({}, w.errors)
  end)

  local function files_of(look)
    local out = {}
    for path, word in pairs(look) do
      if word:sub(1, 3) ~= "dir" then out[path] = word end
    end
    return out
  end

  -- What the policy says of files, from what the disk was around each call.
  local function expected(spans, now)
    local sum = {}
    for _, span in ipairs(spans) do
      local paths = {}
      for path in pairs(span.before) do paths[path] = true end
      for path in pairs(span.after) do paths[path] = true end
      for path in pairs(paths) do
        local old, new = span.before[path], span.after[path]
        local known = sum[path]
        if old ~= new and not known then
          sum[path] = { old = old, new = new }
        elseif old ~= new then
          known.broken = known.broken or known.new ~= old
          known.new = new
        end
      end
    end
    local out, acts = {}, 0
    for path, word in pairs(now) do out[path] = word end
    for path, change in pairs(sum) do
      if now[path] == change.new and not change.broken and change.old ~= change.new then
        out[path] = change.old
        acts = acts + 1
      end
    end
    return out, acts
  end

  it("leaves what the user changed, and nothing else", function()
    for round = 1, ROUNDS * 2 do
      local id, spans = "u" .. round, {}
      for _ = 1, 2 do
        edit(math.random(0, 2))
        local before = files_of(w.look())
        call(id)
        spans[#spans + 1] = { before = before, after = files_of(w.look()) }
      end
      edit(math.random(0, 3))
      local now = files_of(w.look())
      local wanted, acts = expected(spans, now)
      local done, err, code = w.undo { turn_id = id }
      local after = files_of(w.look())
      if acts == 0 and not done then
        assert(code == "conflict" or code == "not_found", failed(tostring(err)))
        assert.same(now, after, failed("nothing changes"))
      else
        assert(done, failed(tostring(err)))
        -- A file whose directory's place is taken stays away, and is told.
        for _, path in ipairs(done.skipped) do
          local short = path:sub(#w.project + 2)
          wanted[short] = after[short]
        end
        assert.same(wanted, after, failed("round " .. round))
      end
    end
    assert.same({}, w.errors)
  end)
end)
