-- The frozen example messages of protocol version 1: each file is a session, `C` lines are sent and
-- the `S` lines must come back byte for byte. A line `# append {...}` records an event.
local daemon = require "spec.support.daemon"
local store = require "spec.support.store"

local DIR <const> = (os.getenv("EFR_SOURCE") or ".") .. "/tests/golden/protocol/v1/"
local SESSIONS <const> = { "hello", "errors", "conversations", "subscribe", "snapshot" }

local function read_lines(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

describe("protocol v1", function()
  local dir, app, client

  before_each(function()
    store.setup_async()
    dir = store.new_dir()
    app = store.run(function()
      return daemon.app(dir)
    end)
    app.paths = { data = "/home/u/.local/share/efr" }
    client = daemon.client(app)
    client:pause()
    client.lines = {}
    client.pipe:read_start(function(_, chunk)
      client.rest = client.rest .. (chunk or "")
      for line in client.rest:gmatch("([^\n]*)\n") do
        client.lines[#client.lines + 1] = line
      end
      client.rest = client.rest:match("[^\n]*$")
      client.ended = chunk == nil
    end)
  end)

  after_each(function()
    client:close()
    daemon.wait(function()
      return next(app.server.sessions) == nil
    end)
    app.db:close()
    store.remove_dir(dir)
  end)

  local steps = {
    C = function(rest)
      client:raw(rest .. "\n")
    end,
    S = function(rest, where)
      daemon.wait(function()
        return client.lines[1] or client.ended
      end, where)
      assert.equal(rest, table.remove(client.lines, 1), where)
    end,
    ["# append"] = function(rest)
      local event = assert(app.ports.json.decode(rest))
      store.run(function()
        assert(app.store:append { events = { event } })
      end)
    end,
    ["# draft"] = function(rest)
      daemon.wait(function()
        return app.drafts[1]
      end)
      app.drafts[1](assert(app.ports.json.decode(rest)))
    end,
    ["# end"] = function()
      client:wait_end()
    end,
  }

  for _, name in ipairs(SESSIONS) do
    it(name, function()
      for number, line in ipairs(read_lines(DIR .. name .. ".session")) do
        local kind, rest = line:match("^(# %a+)%s*(.*)$")
        if not kind then
          kind, rest = line:match("^(%u) (.*)$")
        end
        local step = steps[kind]
        assert.truthy(step, name .. ":" .. number .. ": " .. line)
        step(rest, name .. ":" .. number)
      end
      assert.same({}, client.lines)
    end)
  end
end)
