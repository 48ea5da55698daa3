-- The hidden shell: round trips, long lines, a flood, the first call. The yardstick is a `true`
-- that the same machine starts through sh in the same run.
dofile((os.getenv("EFR_SOURCE") or ".") .. "/spec/helper.lua")
local shells = require "spec.support.shells"

local function now_ms() return shells.ports.sys.mono_us() / 1000 end

local function time(times, fn)
  local samples = {}
  for i = 1, times do
    local start = now_ms()
    fn(i)
    samples[i] = now_ms() - start
  end
  table.sort(samples)
  return samples[(times + 1) // 2], samples[math.max(1, math.floor(times * 0.95))]
end

local function row(name, median, p95, note)
  print(("%-44s %9.2f ms %9.2f ms  %s"):format(name, median, p95, note or ""))
end

local function run(world, line)
  local result = world:shell():run { line = line, timeout_ms = 25000 }
  assert(result.outcome == "finished", result.setup_error or result.output)
  return result
end

print(("%-44s %12s %12s"):format("hidden shell", "median", "p95"))
local bare = time(100, function() os.execute("/bin/true") end)
row("sh -c /bin/true, the yardstick", bare, bare)

for _, rc in ipairs { { "plain rc", "" }, { "rc of 1 s", "sleep 1" } } do
  row("first call, " .. rc[1], time(3, function()
    shells.world({ rc = rc[2] }, function(world) run(world, ":") end)
  end))
end

shells.world({}, function(world)
  run(world, ":")
  local median, p95 = time(300, function() run(world, ":") end)
  row("round trip of :", median, p95, ("%.2f x"):format(median / bare))
  median, p95 = time(300, function() run(world, "/bin/true") end)
  row("round trip of /bin/true", median, p95, ("%.2f x"):format(median / bare))
  for _, size in ipairs { 16384, 1048576 } do
    local line = ": " .. ("word "):rep(size // 5)
    row(("line of %d KiB"):format(size // 1024), time(10, function() run(world, line) end))
  end
  local bytes = 50000000
  median, p95 = time(3, function() run(world, ("yes some text | head -c %d"):format(bytes)) end)
  row("flood of 50 MB", median, p95, ("%.0f MB/s"):format(bytes / median / 1000))
end)
