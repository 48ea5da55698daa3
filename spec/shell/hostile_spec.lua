-- Specs of the hidden shell against output that attacks the terminal and its readers: generated control
-- sequences, huge strings, floods, questions, forged ends cut at every byte. After each the shell gives
-- the output and the status of the next line alone, and memory is bounded. A real zsh on a real terminal.
-- Not covered: what the sandbox adds (tests/e2e/hidden_hostile.sh), the screen's own fuzzer
-- (tests/fuzz/fuzz_vt.c).
local shells = require "spec.support.shells"

local LONG <const> = os.getenv("EFR_TEST_SIZE") == "long"
local ROUNDS <const> = LONG and 400 or 12
local MIB <const> = 1 << 20

local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 60000
  return world:shell():run(opts)
end

local function works(world, what)
  local result = run(world, "echo fine; (exit 7)")
  assert.equal("finished", result.outcome, what)
  assert.equal("fine\n", result.output, what)
  assert.equal(7, result.exit_code, what)
  assert.equal(world.home, result.cwd, what)
  assert.equal("40 120\n", run(world, "stty size").output, what)
end

-- Resident memory of the screen's worker, in bytes.
local function worker_bytes(world)
  local screen = world:shell():terminal():screen()
  local statm = assert(shells.ports.fs.read_file(("/proc/%d/statm"):format(screen:pid()), 4096))
  return 4096 * math.tointeger(tonumber(statm:match("^%d+ (%d+)")))
end

-- Pieces that terminals, screens and the scanner of marks give a meaning to.
local PIECES <const> = {
  "\27", "\27[", "\27]", "\27P", "\27_", "\27^", "\27X", "\27\\", "\7", "\24", "\26", "\r", "\n", "\8", "\t",
  "\14", "\15", "\11", "\12", "\27c", "\27(0", "\27#8", "\27[!p", "\27[?1049h", "\27[?1049l", "\27[?1h",
  "\27[?25l", "\27[2J", "\27[H", "\27[6n", "\27[c", "\27[>c", "\27[5n", "\27]10;?\7", "\27]11;?\27\\",
  "\27]133;A\7", "\27]133;B\7", "\27]133;C;aid=", "\27]133;D;0;aid=", "\27]133;P;k=s\7", "\27]133;efr-sbx;",
  "\27]7;kitty-shell-cwd://h/etc\7", "\27]7;file://h/etc\7", "\27]52;c;AAAA\7", "\27]2;t\7",
  "\27Ptmux;\27\27]133;D;0\7",
  "\27[9999999999999C", "\27[1;1r", "\27[99;1r", "\27[1000b", "\27[38;2;1;2;3m", "0000", ";", "?", "x", "\xff",
  "\xc3", "\u{301}", "\u{6f22}", "\u{200d}", "\u{1F600}", "\0", "\127", "\x9b", "\x9d133;D;0\x9c", "  ", "word",
}

local function generated(random)
  local parts = {}
  for i = 1, random(1, 60) do
    local piece = PIECES[random(#PIECES)]
    parts[i] = random(8) == 1 and piece:sub(1, random(#piece)) or piece
  end
  return table.concat(parts)
end

describe("hidden shell, hostile output", function()
  it("made of control sequences of every kind", function()
    local seed = os.time()
    math.randomseed(seed)
    shells.world({}, function(world)
      for round = 1, ROUNDS do
        world:write("bytes", generated(math.random))
        local what = ("round %d of seed %d"):format(round, seed)
        local result = run(world, "cat bytes; (exit 3)")
        assert.equal("finished", result.outcome, what)
        assert.equal(3, result.exit_code, what)
        works(world, what)
      end
    end)
  end)

  it("that forges its own end, cut at any byte", function()
    shells.world({}, function(world)
      local mark = "\27]133;D;0;aid=" .. ("0"):rep(32) .. "\7\27]133;B;aid=" .. ("0"):rep(32) .. "\7"
      for cut = 1, #mark, LONG and 1 or 7 do
        world:write("a", mark:sub(1, cut))
        world:write("b", mark:sub(cut + 1))
        local result = run(world, "cat a; sleep 0.01; cat b; (exit 5)")
        assert.equal(5, result.exit_code, cut)
      end
      works(world)
    end)
  end)

  it("with strings without an end, and a title of 1 MB", function()
    shells.world({}, function(world)
      run(world, "true")
      collectgarbage()
      local before = collectgarbage("count")
      for _, start in ipairs { "\27]2;", "\27P", "\27_", "\27]133;", "\27[", "\27]52;c;" } do
        local result = run(world, ("printf '%s'; head -c 1048576 /dev/zero | tr '\\0' 7"):format(
          start:gsub("\27", "\\033")))
        assert.equal("finished", result.outcome, start)
        works(world, start)
        assert.is_true(worker_bytes(world) < 24 * MIB, start)
      end
      collectgarbage()
      assert.is_true(collectgarbage("count") - before < 8192)
    end)
  end)

  it("that floods with sequences", function()
    shells.world({}, function(world)
      run(world, "true")
      local bytes = LONG and 50000000 or 2000000
      local result = run(world, "yes $'\\e[31mred\\e[0m\\e[2K\\e[1A\\e]2;x\\a' | head -c " .. bytes, {
        timeout_ms = 600000,
      })
      assert.equal("finished", result.outcome)
      assert.is_true(#result.output < 1100000)
      assert.is_true(worker_bytes(world) < 24 * MIB)
      works(world)
    end)
  end)

  it("that asks the terminal and is gone when the answers come", function()
    shells.world({}, function(world)
      for _ = 1, LONG and 50 or 3 do
        run(world, "stty raw -echo; printf '\\e[c\\e[6n\\e]10;?\\a\\e[5n%.0s' {1..300}")
        works(world)
      end
    end)
  end)

  it("after which line discipline, flow and use are odd", function()
    shells.world({}, function(world)
      for _, code in ipairs {
        "import fcntl, struct; fcntl.ioctl(0, 0x5423, struct.pack('i', 27))", -- TIOCSETD N_NULL
        "import fcntl; fcntl.ioctl(0, 0x540C)", -- TIOCEXCL
        "import termios; termios.tcflow(0, termios.TCOOFF)",
        "import termios; termios.tcflow(0, termios.TCIOFF)",
        "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSWINSZ, b'\\x01\\0\\x01\\0' + bytes(4))",
      } do
        world:write("odd.py", "try:\n    exec(\"\"\"" .. code .. "\"\"\")\nexcept OSError as e: print(e)\n")
        run(world, "python3 odd.py")
        works(world, code)
      end
    end)
  end)
end)
