-- Specs of the screen of a terminal with a real efr-worker: what it shows, what it answers, replays,
-- its death. The bytes are those of terminals; no shell runs here.
local async = require "efr.util.async"
local screen = require "efr.shell.screen"
local shells = require "spec.support.shells"

local function with(fn, program)
  return function()
    shells.run(function()
      local seen = { replies = {}, full = {}, ends = {} }
      local made = assert(screen.start {
        ports = shells.ports, program = program or shells.WORKER, cols = 20, rows = 5,
        on_reply = function(bytes) table.insert(seen.replies, bytes) end,
        on_full = function(full) table.insert(seen.full, full) end,
        on_end = function(message) table.insert(seen.ends, message) end,
      })
      local ok, err = xpcall(fn, debug.traceback, made, seen)
      made:close()
      assert(ok, err)
    end)
  end
end

local function row_text(row)
  local parts = {}
  for i, cell in ipairs(row.cells) do parts[i] = cell.text end
  return table.concat(parts)
end

local function shown(made, history)
  local snapshot = assert(made:snapshot(history))
  local rows = {}
  for _, list in ipairs { snapshot.scrollback, snapshot.rows } do
    for _, row in ipairs(list) do rows[#rows + 1] = row_text(row) end
  end
  while rows[#rows] == "" do rows[#rows] = nil end
  return rows, snapshot
end

local function feed(made, bytes)
  for at = 1, #bytes, 65536 do made:feed(bytes:sub(at, at + 65535)) end
end

describe("screen", function()
  it("shows what was printed, with colours, cursor and title", with(function(made)
    feed(made, "\27]2;my title\7one\r\n\27[1;31mred\27[0m \27[48;2;1;2;3mrgb\27[0m\r\n日本\r\nend")
    local rows, snapshot = shown(made)
    assert.same({ "one", "red rgb", "日本", "end" }, rows)
    assert.same({ row = 3, col = 3, hidden = false }, snapshot.cursor)
    assert.equal("my title", snapshot.title)
    assert.same({ cols = 20, rows = 5 }, snapshot.size)
    assert.is_false(snapshot.alternate_screen)
    assert.same({ text = "r", bold = true, fg = { indexed = 1 } }, snapshot.rows[2].cells[1])
    assert.same({ rgb = { 1, 2, 3 } }, snapshot.rows[2].cells[5].bg)
    assert.is_true(snapshot.rows[3].cells[1].wide)
  end))

  it("keeps a thousand lines and knows which were wrapped", with(function(made)
    for i = 1, 1500 do feed(made, ("line %d\r\n"):format(i)) end
    local rows, snapshot = shown(made, 2000)
    assert.equal(1000, #snapshot.scrollback)
    assert.equal("line 1500", rows[#rows])
    assert.equal("line 497", rows[1])
    feed(made, "\27[H\27[2J" .. ("w"):rep(25) .. "\r\n" .. ("f"):rep(20) .. "\r\nx")
    rows, snapshot = shown(made)
    assert.same({ ("w"):rep(20), "wwwww", ("f"):rep(20), "x" }, rows)
    assert.is_true(snapshot.rows[1].wrapped)
    assert.is_false(snapshot.rows[3].wrapped)
  end))

  it("has an alternate screen", with(function(made)
    feed(made, "main\27[?1049h\27[2J\27[Hother\27[?25l")
    local rows, snapshot = shown(made)
    assert.same({ "other" }, rows)
    assert.is_true(snapshot.alternate_screen)
    assert.is_true(snapshot.cursor.hidden)
    assert.is_nil(snapshot.application_keys)
    for on, modes in pairs { ["\27[?1h"] = "\27[?1l", ["\27[?7;1h"] = "\27[!p", ["\27[?1;7h"] = "\27c" } do
      feed(made, on .. "\27[?11l\27[1l\27[?1$p")
      assert.is_true(select(2, shown(made)).application_keys, on)
      feed(made, modes)
      assert.is_nil(select(2, shown(made)).application_keys, modes)
    end
    feed(made, "\27[?1049h\27[2J\27[Hother\27[?25l")
    feed(made, "\27[?25h\27[?1049l")
    rows, snapshot = shown(made)
    assert.same({ "main" }, rows)
    assert.is_false(snapshot.alternate_screen)
  end))

  it("follows a new size", with(function(made)
    feed(made, "1\r\n2\r\n3\r\n4\r\n5")
    made:resize(10, 3)
    local rows, snapshot = shown(made, 100)
    assert.same({ "1", "2", "3", "4", "5" }, rows)
    assert.equal(2, #snapshot.scrollback)
    made:resize(30, 6)
    feed(made, "\r\n" .. ("x"):rep(30))
    assert.equal(("x"):rep(30), (select(1, shown(made)))[4])
  end))

  it("answers queries", with(function(made, seen)
    feed(made, "ab\27[6n\27[c\27]10;?\7\27]11;?\27\\\27[5n")
    assert(made:snapshot())
    local replies = table.concat(seen.replies)
    assert.truthy(replies:find("\27[1;3R", 1, true))
    assert.truthy(replies:find("\27%[%?[%d;]+c"))
    assert.truthy(replies:find("\27]10;rgb:", 1, true))
    assert.truthy(replies:find("\27]11;rgb:", 1, true))
    assert.truthy(replies:find("\27[0n", 1, true))
  end))

  it("repeats characters, and ignores what would never end", with(function(made)
    feed(made, "\27[99999999bab\27[3b\27[0bc\27[b\27P$qm\27\\\27_apc\27\\\27^pm\27\\.")
    assert.same({ "abbbbbcc." }, (shown(made)))
  end))

  it("stands titles of a megabyte and strings that never end", with(function(made)
    feed(made, "a\27]2;" .. ("t"):rep(1 << 20) .. "\7b\27]2;" .. ("t"):rep(1 << 20) .. "\24c")
    feed(made, "\27P" .. ("d"):rep(1 << 20))
    feed(made, "\27\\d")
    local rows, snapshot = shown(made)
    assert.same({ "abcd" }, rows)
    assert.is_nil(snapshot.title)
  end))
end)

describe("screen replays", function()
  it("leave the last frame of a redrawn display", with(function(made)
    local parts = { "start\r\n" }
    for i = 1, 50 do
      parts[#parts + 1] = ("\27[2Klayer one %d%%\r\n\27[2Klayer two %d%%\r\n\27[2A"):format(i * 2, i)
    end
    parts[#parts + 1] = "\27[2Bdone\r\n"
    assert.equal("start\nlayer one 100%\nlayer two 50%\ndone", made:replay(table.concat(parts)))
  end))

  it("join what was wrapped and keep full rows apart", with(function(made)
    local long = ("word "):rep(30) .. "end"
    assert.equal(long, made:replay("\27[A" .. long .. "\r\n"))
    assert.equal(("="):rep(20) .. "\nnext", made:replay(("="):rep(20) .. "\r\nnext"))
    assert.equal(("="):rep(20) .. "\n\nnext", made:replay(("="):rep(20) .. "\r\n\r\nnext\27[K"))
  end))

  it("of more lines than a screen keeps go in halves", with(function(made)
    local lines = {}
    for i = 1, 20000 do lines[i] = "line " .. i end
    local text = table.concat(lines, "\r\n")
    assert.equal(table.concat(lines, "\n"), made:replay(text))
  end))

  it("show the main screen alone, and leave the terminal's own screen", with(function(made)
    feed(made, "own")
    assert.equal("before\nafter", made:replay("before\27[?1049hfull\27[?1049l\r\nafter\r\n\r\n"))
    assert.equal("", made:replay("\27[2J\27[H"))
    assert.same({ "own" }, (shown(made)))
  end))
end)

describe("screen worker", function()
  it("that dies costs the screen and frees who waits", with(function(made, seen)
    local answer, done = "none", async.future()
    async.spawn(function()
      answer = made:replay(("x"):rep(1 << 20))
      done:set()
    end)
    shells.ports.sys.kill(made:pid(), shells.ports.sys.SIGKILL)
    done:get()
    assert.is_nil(answer)
    assert.is_true(made.ended)
    assert.equal(1, #seen.ends)
    made:feed("more")
    assert.is_nil(made:snapshot())
    assert.is_nil(made:replay("x"))
  end))

  it("that reads nothing makes the terminal wait, and then costs its screen", with(function(made, seen)
    shells.ports.sys.kill(made:pid(), 19)
    feed(made, ("\27[mx"):rep(1 << 20))
    assert.same({ true }, seen.full)
    shells.ports.sys.kill(made:pid(), shells.ports.sys.SIGKILL)
    while not made.ended do async.sleep(5) end
    assert.same({ true, false }, seen.full)
  end))

  it("makes the terminal wait no longer than it reads", with(function(made, seen)
    feed(made, ("\27[31mline\27[m\r\n"):rep(200000) .. "end")
    local rows = shown(made)
    assert.equal("end", rows[#rows])
    assert.same({ true, false }, seen.full)
  end))

  it("gets only the end of a flood of plain text", with(function(made, seen)
    feed(made, "\27[?1049h\27[?1049lfirst\27[3")
    for i = 1, 60000 do
      made:feed(("line %d\r\n"):format(i))
    end
    local rows = shown(made, 1000)
    assert.equal("line 60000", rows[#rows])
    assert.equal("line 59500", rows[#rows - 500])
    assert.same({}, seen.full)
    assert.is_true(made._sent < 700 << 10)
  end))

  it("that says what is no answer is ended", with(function(made, seen)
    assert.is_nil(made:snapshot())
    assert.equal(1, #seen.ends)
  end, "/bin/cat"))

  it("that cannot be started is an error", function()
    shells.run(function()
      local made, err = screen.start {
        ports = shells.ports, program = "/nonexistent", cols = 20, rows = 5,
      }
      assert.is_nil(made)
      assert.truthy(err)
    end)
  end)
end)
