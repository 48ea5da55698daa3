-- Specs of a hidden shell without the integration: another shell as shell.program, a start-up file that
-- executes one, one that keeps every shell away. Real shells on a real terminal. Not covered: the
-- line that is typed (nested_spec.lua).
local async = require "efr.util.async"
local shells = require "spec.support.shells"

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 30000
  if opts.unmarked == nil then opts.unmarked = true end
  return world:shell():run(opts)
end

local function output(world, line, exit_code)
  local result = run(world, line)
  assert.equal("finished", result.outcome, result.setup_error or result.output)
  assert.equal(exit_code or 0, result.exit_code, result.output)
  return result.output
end

local function with_program(path)
  return { config = { get = function(_, key) return key == "shell.program" and path or nil end } }
end

-- A shell in this world, with a short patience for the first prompt.
local function impatient(world)
  world:shell()._opts.first_prompt_ms = 500
end

local function works(world)
  assert.equal("a  b\n", output(world, "x='a  b'; echo \"$x\""))
  assert.equal("a  b|it's\n", output(world, "echo \"$x|it's\"; (exit 7)", 7))
  output(world, "cd /usr")
  assert.equal("/usr", world:shell().cwd)
  assert.is_true(world:shell():set_cwd(world.home))
  assert.equal(world.home .. "\n", output(world, "pwd"))
  assert.equal("late\n", output(world, "printf '\\033]133;D;0\\007\\033]133;B\\007'; echo late"))
end

describe("a hidden shell without marks", function()
  for _, program in ipairs { "/bin/bash", "/bin/sh" } do
    it("runs lines: shell.program = " .. program, function()
      shells.world(with_program(program), works)
    end)
  end

  it("runs lines: a start-up file that executes bash", function()
    shells.world({ rc = "exec bash --norc" }, function(world)
      impatient(world)
      works(world)
      assert.equal("exited", run(world, "exit 3").outcome)
      assert.equal("again\n", output(world, "echo again"))
    end)
  end)

  it("is interrupted, and goes on after a timeout", function()
    shells.world(with_program("/bin/bash"), function(world)
      local token = async.token()
      local result = run(world, "echo go; sleep 1000; echo never", {
        token = token, on_output = function() token:cancel("test") end,
      })
      assert.equal("interrupted", result.outcome)
      assert.truthy(result.output:find("^go\n"))
      assert.is_nil(result.left_running)
      assert.equal("fine\n", output(world, "echo fine"))
      local slow = run(world, "mkfifo f; cat f", { timeout_ms = 500 })
      assert.equal("timeout", slow.outcome)
      assert.equal("busy", run(world, "echo no", { timeout_ms = 300 }).outcome)
      local fifo = assert(io.open(world.home .. "/f", "w"))
      fifo:write("x\n")
      fifo:close()
      assert.equal("later\n", output(world, "echo later"))
    end)
  end)

  it("refuses what needs the integration, and too long lines", function()
    shells.world(with_program("/bin/bash"), function(world)
      local call = world:contained("/bin/true", { exit_code = 0 })
      for what, opts in pairs {
        launcher = { call = call, launch = "contained" }, nested_shell = { nested = true },
        ["what sudo"] = { forget_sudo = "both" }, PATH = { search_path = "/bin" },
        decided = { unmarked = false },
      } do
        local result = run(world, "echo ran >ran", opts)
        assert.equal("setup_failed", result.outcome, what)
        assert.truthy((result.setup_error or ""):find(what, 1, true), what)
      end
      assert.equal("too_long", run(world, "echo ran >ran; : " .. ("x"):rep(4000)).outcome)
      assert.is_nil(world:read("ran"))
      assert.equal("fine\n", output(world, "echo fine"))
    end)
  end)

  it("is not used when what reads is no such shell, or asks without echo", function()
    for _, rc in ipairs {
      "exec python3 -i -q", "stty -echo; exec cat", "trap '' INT; read -s x",
    } do
      shells.world({ rc = rc }, function(world)
        impatient(world)
        local result = run(world, "echo ran >ran")
        assert.equal("setup_failed", result.outcome, rc)
        assert.is_nil(world:read("ran"))
      end)
    end
  end)
end)
