-- Snapshots before and after a call, beside `git status` and `git stash create` on the same tree:
-- a call that changed nothing (the watch stands for the walk, and a walk each time), and one that
-- changed 10 files; the first snapshot of all, beside `git add -A`; how the store grows over 1000
-- turns. Sizes: 1000 and 50000 files, or those that are given.
-- Usage: efr-lua tests/bench/snapshot.lua [FILES]...
package.path = (os.getenv("EFR_SOURCE") or ".") .. "/?.lua;" .. package.path
dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/helper.lua")
local snap = require "spec.support.snap"
local uv = require "luv"
local world = require "spec.undo.world"

local ROUNDS <const> = 7
local TURNS <const> = 1000
local SIZES <const> = #arg > 0 and arg or { "1000", "50000" }

local function ms(fn)
  local start = uv.hrtime()
  fn()
  return (uv.hrtime() - start) / 1e6
end

local function median(fn)
  local list = {}
  for i = 1, ROUNDS do list[i] = ms(function() fn(i) end) end
  table.sort(list)
  return list[(ROUNDS + 1) // 2]
end

local function make_tree(w, count)
  local fs = w.app.ports.fs
  for i = 0, count - 1 do
    local dir = ("%s/d%d/s%d"):format(w.project, i // 500, i // 10 % 50)
    if i % 10 == 0 then assert(fs.mkdirs(dir, 493)) end
    local file = assert(io.open(("%s/f%d.txt"):format(dir, i), "w"))
    file:write(("file %d\n"):format(i):rep(20))
    file:close()
  end
end

local function row(name, value, yardstick)
  print(("  %-46s %9.1f ms   %6.2f x git status"):format(name, value, value / yardstick))
end

local function kib(dir)
  local pipe = assert(io.popen(("du -sk '%s'"):format(dir)))
  local size = tonumber(pipe:read("a"):match("^%d+"))
  pipe:close()
  return size
end

local function bench(count)
  local w = world.new("bench")
  w.settings["snapshot.max_files"] = 1000000
  make_tree(w, count)
  print(("snapshots, %d files"):format(count))
  local first = ms(function() w.call("first", "true") end)
  w.shell("git init -q . && git config gc.auto 0")
  local add = ms(function() w.shell("git add -A") end)
  w.shell("git -c user.name=a -c user.email=a@b commit -qm one")
  w.call("git", "true")
  local status = median(function() w.shell("git status --porcelain") end)
  local function call(opts, line)
    return function(i)
      local started = w.begin("t", opts)
      if line then w.shell(line:format(i)) end
      w.finish(started)
    end
  end
  local shell = median(function() w.shell("true") end)
  row("the first snapshot of all", first, status)
  row("git add -A, for the first time", add, status)
  row("a call that changed nothing, watched", median(call { may_skip = true }), status)
  row("a call that changed nothing, walked", median(call {}), status)
  local ten = "for i in 0 1 2 3 4 5 6 7 8 9; do echo %d > d0/s0/f$i.txt; done"
  row("a call that changed 10 files", median(call({ may_skip = true }, ten)) - shell, status)
  row("git stash create, 10 files changed", median(function(i)
    w.shell(ten:format(i + 100))
    w.shell("git -c user.name=a -c user.email=a@b stash create")
  end) - shell, status)
  row("git status", status, status)
  if count == 1000 then
    local before = kib(w.base .. "/data/snapshots")
    for i = 1, TURNS do w.call("g" .. i, ten:format(i + 1000)) end
    local after = kib(w.base .. "/data/snapshots")
    w.settings["snapshot.keep_turns"] = 10000
    snap.wait(w.app.snapshots.collect, w.app.snapshots)
    print(("  the store grew by %d KiB over %d turns of 10 files; packed by %d KiB"):format(
      after - before, TURNS, kib(w.base .. "/data/snapshots") - before))
  end
  w.remove()
end

snap.setup()
for _, size in ipairs(SIZES) do bench(tonumber(size)) end
