-- Loaded by busted before every spec: makes require find the modules of this source tree (efr.x.y
-- in lua/, efr.cli.x in cli/), also under plain lua5.4, and offers fakes. Knows no module.
local M = {}

local root = os.getenv("EFR_SOURCE") or "."

local function readable(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("a")
  file:close()
  return text
end

local function find(name)
  local path = name:gsub("%.", "/")
  if name:match("^efr%.cli%.") then
    path = path:gsub("^efr/", "")
  elseif name:match("^efr%.") then
    path = "lua/" .. path
  else
    return nil, "not a module of efr"
  end
  local base = root .. "/" .. path
  local text = readable(base .. ".lua")
  if text then
    return assert(load(text, "@" .. base .. ".lua"))
  end
  text = readable(base .. ".sql")
  if text then
    return function()
      return text
    end
  end
  return nil, "no file " .. base .. ".lua"
end

table.insert(package.searchers, 2, function(name)
  local loader, reason = find(name)
  return loader or reason
end)

-- Plain lua5.4 has no efr.modules: the same answers from the tree.
if not package.preload["efr.modules"] then
  package.preload["efr.modules"] = function()
    return {
      list = function(prefix)
        local find_files = "cd '" .. root .. "' && find lua cli -name '*.lua' -o -name '*.sql'"
        local pipe = assert(io.popen(find_files))
        local names = {}
        for line in pipe:lines() do
          local path = line:gsub("^lua/", ""):gsub("^cli/", "efr/cli/"):gsub("%.%w+$", "")
          local name = path:gsub("/", ".")
          if name:sub(1, #prefix) == prefix and not name:match("^efr%.meta%.") then
            names[#names + 1] = name
          end
        end
        pipe:close()
        table.sort(names)
        return names
      end,
      native = function()
        return {}
      end,
    }
  end
end

---A clock that moves only by hand, as the timer port of efr.util.async.
function M.fake_timer()
  local fake = { now = 0, entries = {}, errors = {} }
  function fake.timer(ms, fn)
    local entry = { at = fake.now + ms, fn = fn }
    table.insert(fake.entries, entry)
    return function()
      entry.fn = nil
    end
  end
  ---Lets time pass: runs what is due, in order.
  function fake.advance(ms)
    local limit = fake.now + ms
    while true do
      table.sort(fake.entries, function(a, b)
        return a.at < b.at
      end)
      local entry = fake.entries[1]
      if not entry or entry.at > limit then
        break
      end
      table.remove(fake.entries, 1)
      fake.now = entry.at
      if entry.fn then
        entry.fn()
      end
    end
    fake.now = limit
  end
  ---Timers that were started and neither ran nor were stopped.
  function fake.pending()
    local count = 0
    for _, entry in ipairs(fake.entries) do
      count = count + (entry.fn and 1 or 0)
    end
    return count
  end
  function fake.on_error(text)
    table.insert(fake.errors, text)
  end
  return fake
end

---Connects efr.util.async to a fake clock and returns both.
function M.async()
  local async = require("efr.util.async")
  local clock = M.fake_timer()
  async.setup({ timer = clock.timer, on_error = clock.on_error })
  return async, clock
end

package.loaded["spec.helper"] = M
return M
