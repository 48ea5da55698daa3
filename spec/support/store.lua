-- Owns: a real database in a directory of its own for specs, with the log, the queries and the loop
-- that they need. Needs efr-lua (efr.store, luv). Test help only.
local async = require "efr.util.async"
local query = require "efr.store.query"
local schema = require "efr.store.schema"
local store_log = require "efr.store.log"

local M = {}

local LIMIT_MS <const> = 20000

M.quiet = {}
for _, level in ipairs { "error", "warn", "info", "debug" } do
  M.quiet[level] = function() end
end
function M.quiet.part()
  return M.quiet
end

--- The C modules that specs use, with stand-ins where this build lacks one.
function M.ports()
  local ports = { uv = require "luv", store = require "efr.store" }
  local ok, json = pcall(require, "efr.json")
  ports.json = ok and json or require "spec.support.json"
  local text
  ok, text = pcall(require, "efr.text")
  ports.text = ok and text or {
    is_utf8 = function(s)
      return utf8.len(s) ~= nil
    end,
    clean = function(s)
      return utf8.len(s) and s or (s:gsub("[\128-\255]", "\u{FFFD}"))
    end,
  }
  return ports
end

--- Connects tasks to the loop.
function M.setup_async()
  local uv = require "luv"
  async.setup {
    timer = function(ms, fn)
      local timer = assert(uv.new_timer())
      local function stop()
        if not timer:is_closing() then
          timer:close()
        end
      end
      timer:start(ms, 0, function()
        stop()
        fn()
      end)
      return stop
    end,
    on_error = function(text)
      error(text, 0)
    end,
  }
end

--- Runs `fn` in a task and the loop until it has ended; gives its results.
function M.run(fn, ...)
  local uv = require "luv"
  local results
  local args = table.pack(...)
  async.spawn(function()
    results = table.pack(xpcall(fn, debug.traceback, table.unpack(args, 1, args.n)))
  end)
  local late = false
  local timer = assert(uv.new_timer())
  timer:start(LIMIT_MS, 0, function()
    late = true
  end)
  while not results and not late do
    uv.run("once")
  end
  timer:close()
  assert(results, "the task did not end within the limit")
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

--- A directory for a spec.
function M.new_dir()
  local base = os.getenv("HOME") .. "/.cache/efr-tests"
  os.execute("mkdir -p '" .. base .. "'")
  return assert(require("luv").fs_mkdtemp(base .. "/spec-XXXXXX"))
end

function M.remove_dir(dir)
  assert(dir:find("/efr%-tests/spec%-"))
  os.execute("rm -rf '" .. dir .. "'")
end

-- A few calls of efr.fs, enough for store/schema.
local function small_fs(uv)
  return {
    stat = function(path)
      return uv.fs_stat(path)
    end,
    readdir = function(path)
      local handle = uv.fs_scandir(path)
      local list = {}
      while handle do
        local name, kind = uv.fs_scandir_next(handle)
        if not name then
          break
        end
        list[#list + 1] = { name = name, type = kind }
      end
      return list
    end,
    mkdirs = function(path)
      os.execute("mkdir -p -m 700 '" .. path .. "'")
      return true
    end,
  }
end

--- The migrations of the tree, and `extra` ones {name = sql} after them.
function M.migrations(extra)
  local names, texts = {}, extra or {}
  local prefix = "efr.store.migrations."
  for _, module in ipairs(require("efr.modules").list(prefix)) do
    names[#names + 1] = module:sub(#prefix + 1)
  end
  for name in pairs(texts) do
    names[#names + 1] = name
  end
  return schema.migrations(names, function(name)
    return texts[name] or require(prefix .. name)
  end)
end

--- Opens the database below dir. Call it in a task.
--- @return table|nil {db, log, query, ports, deps}, string|nil message
function M.open(dir, extra)
  local ports = M.ports()
  local deps = {
    store = ports.store, fs = small_fs(ports.uv), log = M.quiet, json = ports.json,
    null = ports.store.null, path = dir .. "/efr.sqlite", data_dir = dir,
    migrations = M.migrations(extra),
  }
  local db, err, code = schema.open(deps)
  if not db then
    return nil, err, code
  end
  assert(db:start())
  assert(schema.rebuild(deps, db))
  local self = { db = db, ports = ports, deps = deps, errors = {} }
  self.query = query.new { db = db, json = ports.json }
  local clock = 1700000000000000
  self.log = store_log.new {
    db = db, json = ports.json, text = ports.text, null = ports.store.null,
    now_us = function()
      clock = clock + 1
      return clock
    end,
    last_seq = assert(self.query:highest_seq()),
    on_error = function(text)
      self.errors[#self.errors + 1] = text
    end,
  }
  return self
end

--- Every projection row as text, to compare.
function M.projections(self)
  local out = {}
  for _, name in ipairs(require("efr.store.projections").TABLES) do
    for _, row in ipairs(assert(self.db:read("SELECT * FROM " .. name .. " ORDER BY 1"))) do
      local keys = {}
      for key in pairs(row) do
        keys[#keys + 1] = key
      end
      table.sort(keys)
      for i, key in ipairs(keys) do
        keys[i] = key .. "=" .. tostring(row[key])
      end
      out[#out + 1] = name .. ": " .. table.concat(keys, " ")
    end
  end
  return table.concat(out, "\n")
end

return M
