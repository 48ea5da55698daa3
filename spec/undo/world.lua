-- A project with snapshots, undo and a real database for the specs of undo. Calls are lines of a
-- shell. Needs efr's own Lua state (C modules) and the launcher. Test help only.
local snap = require "spec.support.snap"
local snapshot = require "efr.store.snapshot"
local store = require "spec.support.store"
local undo = require "efr.undo.undo"

local M = {}

--- A new place with app.snapshots and app.undo, or the one that is at base.
function M.new(name, base)
  local place = snap.place(name, base)
  local app = place.app
  place.calls = 0

  local function open()
    local opened = snap.wait(function() return assert(store.open(place.base .. "/data")) end)
    app.db, app.store, app.query = opened.db, opened.log, opened.query
    app.ports.store, app.ports.text = opened.ports.store, opened.ports.text
  end
  open()

  -- A daemon that starts anew on what lies on the disk.
  function place.restart()
    app.snapshots = assert(snapshot.new {
      ports = app.ports, git = app.git, db = app.db, config = app.config, log = app.log,
      paths = app.paths, ignored = function() end, home = place.base .. "/home",
      hidden = function()
        return function(path) return path:find("/hidden$") ~= nil end
      end,
    })
    app.undo = undo.new(app)
  end
  place.restart()

  --- Begins a call of a turn.
  function place.begin(turn_id, opts)
    opts = opts or {}
    place.calls = place.calls + 1
    return assert(snap.wait(app.snapshots.begin, app.snapshots, {
      turn_id = turn_id, call_id = "k" .. place.calls, conversation_id = opts.conversation_id,
      roots = opts.roots or { place.project }, may_skip = opts.may_skip or false,
      home = opts.home,
    }))
  end

  function place.finish(call, opts)
    assert(snap.wait(call.finish, call, opts))
    return call
  end

  --- A whole call: the line runs between its trees.
  function place.call(turn_id, line, opts)
    local call = place.begin(turn_id, opts)
    if type(line) == "function" then line() else place.shell(line) end
    return place.finish(call, opts)
  end

  function place.plan(where) return snap.wait(app.undo.plan, app.undo, where or {}) end
  function place.undo(where) return snap.wait(app.undo.apply, app.undo, where or {}) end

  --- What lies on the disk below a directory: path -> type, mode and content.
  function place.look(dir)
    local out, ports = {}, app.ports
    local function walk(at, prefix)
      for _, entry in ipairs(assert(ports.fs.readdir(at))) do
        local path, full = prefix .. entry.name, at .. "/" .. entry.name
        local stat = assert(ports.fs.lstat(full))
        local word = ("%s %03o"):format(stat.type, stat.mode & 511)
        if stat.type == "file" then word = word .. " " .. assert(ports.fs.read_file(full)) end
        if stat.type == "link" then word = "link " .. assert(ports.fs.readlink(full)) end
        out[path] = word
        if stat.type == "dir" then walk(full, path .. "/") end
      end
    end
    walk(dir or place.project, "")
    return out
  end

  --- Lets go of everything, runs fn, and opens it again.
  function place.without(fn)
    app.snapshots:close()
    app.db:close()
    fn()
    open()
    place.restart()
  end

  local remove = place.remove
  function place.remove()
    app.snapshots:close()
    app.db:close()
    remove()
  end
  return place
end

return M
