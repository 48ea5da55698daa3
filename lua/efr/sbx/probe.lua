-- Owns: whether contained calls work on this machine: one real launch, remembered.
-- Must not know: what a call is for.
-- Runs in efrd on the loop thread; status waits.

local async = require "efr.util.async"

local M = {}

local PROBE_MS <const> = 10000
local RETRY_US <const> = 10 * 1000000 -- a failed probe is tried again after this

local function run_launcher(calls, call)
  local child
  local ok, code = async.with_timeout(PROBE_MS, function()
    return async.await(function(resume)
      local err
      child, err = calls.app.ports.proc.spawn({
        path = call.launcher, argv = { "efr-sbx", "run", "--call-dir", call.dir },
        env = { "PATH=/usr/bin:/bin" }, cwd = "/", fds = { [0] = "null", "null", "null" },
        on_exit = resume,
      })
      if not child then resume(nil, err) end
    end)
  end)
  if not ok and child then child:kill(calls.app.ports.sys.SIGKILL) end
  return ok and code
end

local function probe(calls)
  local app = calls.app
  calls.probes = calls.probes + 1
  local call, err = calls:prepare({
    conversation_id = "probe", cwd = "/", launch = "contained", argv = { "true" },
    call_id = ("%d-%d"):format(app.ports.sys.getpid(), calls.probes),
  })
  if not call then return { available = false, reason = err } end
  local code = run_launcher(calls, call)
  local result
  result, err = call:result()
  call:cleanup()
  if code == 0 and result and result.started then
    return { available = true, backend = "native", landlock_abi = result.landlock_abi }
  end
  local reason = result and (result.setup_error or result.launch_error) or err
  return { available = false, reason = reason, landlock_abi = result and result.landlock_abi }
end

---Whether contained calls work here: one real launch, remembered; a failure is tried again after
---a while. Waits.
---@param calls table  the calls of the daemon
---@return {available: boolean, reason: string?, backend: string?, landlock_abi: integer?}
function M.status(calls)
  if calls.app.config:get("sandbox.enabled") == false then
    return { available = false, reason = "sandbox.enabled is false" }
  end
  local now = calls.app.ports.sys.mono_us()
  local old = calls.last
  if old and (old.available or now - calls.last_at < RETRY_US) then return old end
  if calls.running then return calls.running:get() end
  calls.running = async.future()
  local ok, status = pcall(probe, calls)
  if not ok then
    status = { available = false, reason = "the probe failed: " .. tostring(status) }
  end
  calls.last, calls.last_at = status, calls.app.ports.sys.mono_us()
  local waiting = calls.running
  calls.running = nil
  waiting:set(status)
  return status
end

return M
