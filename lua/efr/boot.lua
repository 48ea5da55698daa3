-- The first Lua code of a program: seals the globals, connects tasks to the loop, makes the table
-- of ports, and runs the entry module of the role in a task until it returns an exit code. Knows no
-- feature. Loop thread.
local strict = require("efr.strict")

local M = {}

local ENTRY <const> = {
  daemon = { module = "efr.daemon.main", program = "efrd" },
  cli = { module = "efr.cli.main", program = "efr" },
}

-- EX_SOFTWARE of sysexits(3): a bug of ours.
local EXIT_BUG <const> = 70

-- The ports: C modules by their short name and luv as "uv", loaded at the first use, so that a
-- short command pays only for what it needs.
local function make_ports(native)
  local names = { uv = "luv" }
  for _, name in ipairs(native) do
    names[name:match("^efr%.(.+)$") or name] = name
  end
  return setmetatable({}, {
    __index = function(ports, key)
      local name = names[key]
      if not name then
        return nil
      end
      local module = require(name)
      rawset(ports, key, module)
      return module
    end,
  })
end

local function setup_tasks(ports)
  local async = require("efr.util.async")
  local start_timer
  async.setup({
    timer = function(ms, fn)
      start_timer = start_timer or require("efr.util.after")(ports.uv)
      return start_timer(ms, fn)
    end,
    on_error = function(text)
      ports.sys.log_write("error", text)
    end,
    traceback = function(co, message)
      return ports.sys.traceback(co, tostring(message))
    end,
  })
  return async
end

local function report(program, sys, text)
  sys.write_fd(2, program .. ": " .. tostring(text) .. "\n")
end

-- Runs the entry module and turns what it does into an exit code.
local function run_entry(entry, ports, args)
  local sys = ports.sys
  local function trace(message)
    return sys.traceback(coroutine.running(), tostring(message))
  end
  local main = require(entry.module)
  local ok, result, message = xpcall(main.run, trace, ports, args)
  if ok and result then
    return result
  end
  report(entry.program, sys, ok and (message or "failed") or result)
  return ok and 1 or EXIT_BUG
end

---Runs a program. The entry module's run(ports, args) returns an exit code, or nil and a message.
---@param role "daemon"|"cli"
---@param args string[]
---@return integer exit_code
function M.start(role, args)
  strict.seal(_G)
  local entry = assert(ENTRY[role], "unknown role")
  local ports = make_ports(require("efr.modules").native())
  local async = setup_tasks(ports)
  local code
  local task = async.spawn(function()
    code = run_entry(entry, ports, args)
    if rawget(ports, "uv") then
      ports.uv.stop()
    end
  end)
  if not task.done then
    ports.uv.run()
  end
  if not task.done then
    report(entry.program, ports.sys, "stopped while waiting for something that cannot come")
  end
  return code or EXIT_BUG
end

return M
