-- A process of spec/undo/kill_spec.lua: BASE TURN AT. Undoes the turn, and ends itself with SIGKILL before
-- write AT, of files or of rows. Test help only.
dofile "spec/helper.lua"

local faults = require "spec.undo.faults"
local snap = require "spec.support.snap"
local world = require "spec.undo.world"

local left = tonumber(arg[3])
local sys = snap.ports.sys

local function count(dir, name, args)
  left = left - 1
  if left == 0 then
    if dir then faults.half(dir, name, args) end
    sys.kill(sys.getpid(), 9)
  end
  return true
end

snap.setup()
local w = world.new("kill", arg[1])
w.app.ports.dir = faults.port(snap.ports.dir, count)
local db = w.app.db
local function counted(self, ...)
  count()
  return self.write(db, ...)
end
w.app.db = setmetatable({ write = function(_, ...) return counted(db, ...) end }, {
  __index = function(_, name)
    return function(_, ...) return db[name](db, ...) end
  end,
})
local append = w.app.store.append
function w.app.store.append(...)
  count()
  return append(...)
end
w.restart()
assert(w.undo { turn_id = arg[2] })
w.app.snapshots:close()
db:close()
