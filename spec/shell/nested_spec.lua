-- Specs of a shell that stays inside of the hidden one: bash, sh and zsh for real, lines in them, their
-- end, interrupts, time; and of the line that is typed. Not covered: ssh, sudo (they show the same).
local async = require "efr.util.async"
local sentinel = require "efr.shell.sentinel"
local shells = require "spec.support.shells"

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms, opts.shell_line = line, opts.timeout_ms or 30000, true
  if opts.nested == nil then opts.nested = true end
  return world:shell():run(opts)
end

describe("a shell inside the hidden shell", function()
  for _, program in ipairs { "bash --norc", "sh", "zsh -f", "PS1='' sh" } do
    it("runs lines: " .. program, function()
      shells.world({}, function(world)
        local opened = run(world, program)
        assert.equal("nested", opened.outcome, opened.setup_error or opened.output)
        assert.is_true(opened.left_running)
        assert.is_true(world:shell():has_nested())
        local result = run(world, "x='a  b'; echo \"$x\"; cd /usr; (exit 7)")
        assert.equal("finished", result.outcome, result.setup_error)
        assert.equal("a  b\n", result.output)
        assert.equal(7, result.exit_code)
        assert.same({ line = program, cwd = "/usr" }, result.nested)
        assert.equal(world.home, result.cwd)
        -- What a line editor or a history would give a meaning to.
        result = run(world, "printf '%s|' 'it'\\''s' '!!' \"$x\" '\\\\' '\tx' 'ü' '\1'\nprintf end")
        assert.equal("it's|!!|a  b|\\\\|\tx|ü||end", result.output)
        result = run(world, "echo " .. ("'\\''"):rep(2) .. ("y"):rep(5000))
        assert.equal("too_long", result.outcome)
        result = run(world, "exit 3")
        assert.equal("nested_ended", result.outcome)
        assert.is_false(world:shell():has_nested())
        assert.equal("fine\n", run(world, "echo fine", { nested = false }).output)
      end)
    end)
  end

  it("keeps other calls out, and is stopped with its line", function()
    shells.world({}, function(world)
      assert.equal("nested", run(world, "bash --norc").outcome)
      local busy = run(world, "echo no", { nested = false })
      assert.equal("busy", busy.outcome)
      assert.truthy(busy.setup_error:find("nested_shell", 1, true))
      local token = async.token()
      local seen = async.spawn(function()
        local result = run(world, "echo go; sleep 1000", { token = token })
        assert.equal("interrupted", result.outcome)
        assert.truthy(result.output:find("^go\n"))
      end)
      world:shell():_wait(world:shell():_now_ms() + 20000, nil, function()
        local inner = world:shell()._run.inner
        return inner and inner.output.total_bytes >= 2
      end)
      token:cancel("test")
      assert.is_true((seen:wait()))
      assert.equal("again\n", run(world, "echo again").output)
      -- A line that goes on, then ends.
      local slow = run(world, "mkfifo f; read x <f; echo $x", { timeout_ms = 300 })
      assert.equal("timeout", slow.outcome)
      assert.equal("busy", run(world, "echo no", { timeout_ms = 300 }).outcome)
      local fifo = assert(io.open(world.home .. "/f", "w"))
      fifo:write("x\n")
      fifo:close()
      assert.equal("later\n", run(world, "echo later").output)
    end)
  end)

  it("that does not stay is a command like any other", function()
    shells.world({}, function(world)
      local result = run(world, "bash -c 'echo out; exit 4'")
      assert.equal("finished", result.outcome)
      assert.equal("out\n", result.output)
      assert.equal(4, result.exit_code)
    end)
  end)

  it("can neither end the hidden shell's run nor move it", function()
    shells.world({}, function(world)
      run(world, "bash --norc")
      local result = run(world, "printf '\\033]133;D;0\\007\\033]7;kitty-shell-cwd://h/etc\\007'; echo x")
      assert.equal("x\n", result.output)
      assert.equal(world.home, world:shell().cwd)
      assert.is_true(world:shell():has_nested())
    end)
  end)
end)

describe("the line that is typed", function()
  it("is one row of plain characters, and holds no whole marker", function()
    local bytes = {}
    for i = 1, 255 do bytes[i] = string.char(i) end
    local typed = assert(sentinel.line("ab12", table.concat(bytes)))
    assert.is_nil(typed:find("[^ -~]"))
    assert.is_nil(typed:find("!", 1, true))
    assert.is_nil(typed:find("__efr_ab12", 1, true))
    assert.is_nil(sentinel.line("ab12", ("x"):rep(4000)))
    assert.truthy(sentinel.line("ab12", ("x"):rep(3800)))
  end)

  it("is told from its echo, and its end from output, at any cut", function()
    local text = "$ echo\r\n__efr_ab12_b\r\none\r\n__efr_ab12_e: no\r\n two__efr_ab12_e:1:/\r\n\r\n"
      .. "__efr_ab12_e:42:/a b\r\n$ late\r\n"
    for cut = 0, #text do
      local one = sentinel.new("ab12")
      one:feed(text:sub(1, cut))
      one:feed(text:sub(cut + 1))
      assert.equal(42, one.status)
      assert.equal("/a b", one.cwd)
      assert.equal("one\n__efr_ab12_e: no\n two__efr_ab12_e:1:/\n", (one.output:finish()))
    end
  end)

  it("keeps output without an end of line", function()
    local one = sentinel.new("ab12")
    one:feed("__efr_ab12_b\r\n" .. ("x"):rep(20000))
    one:feed("tail\n\n__efr_ab12_e:0:/\n")
    assert.equal(("x"):rep(20000) .. "tail\n", (one.output:finish()))
  end)
end)
