-- Specs of the output cleaner and of the bounded collector.
local cleaner = require "efr.shell.cleaner"
local output = require "efr.shell.output"

local clean = output.clean

describe("output cleaner", function()
  it("keeps plain text, tabs and newlines", function()
    assert.equal("a\tb\nc", clean("a\tb\r\nc"))
    assert.equal("", clean(""))
    assert.equal("\n\n", clean("\n\n"))
  end)

  it("removes escape sequences", function()
    assert.equal("red", clean("\27[1;31mred\27[0m"))
    assert.equal("ab", clean("a\27]0;title\7b"))
    assert.equal("ab", clean("a\27]8;;http://x\27\\b"))
    assert.equal("ab", clean("a\27Pq#0;2;0\27\\b"))
    assert.equal("ab", clean("a\27_Ga=T\27\\b\27^pm\27\\\27Xsos\27\\"))
    assert.equal("ab", clean("a\27(Bb\27=\27>\27c\27 F"))
    assert.equal("ab", clean("a\27[2J\27[10;20Hb"))
    assert.equal("ab", clean("a\27Ptmux;\27\27]0;x\7\27\\b"))
  end)

  it("makes one note of full-screen programs", function()
    local note = output.NOTE
    assert.equal("a\n" .. note .. "b", clean("a\27[?1049hscreen\r\n\27[3;3Hmore\27[?1049lb"))
    assert.equal(note .. "b\nc", clean("\27[?1h\27[?47hx\27[?47lb\r\n\27[?1049hy\27[?1049lc"))
    assert.equal(note, clean("\27[?25;1049hnever left\r\n"))
  end)

  it("tells which output needs a screen", function()
    local function kind(bytes)
      local collector = output.new()
      collector:feed(bytes)
      return collector:moves(), collector:full_screen()
    end
    for _, bytes in ipairs { "a\27[31mb\27[K\r\8c", "\27]0;x\7", "\27[?25l\27[?1h\27[>c", "\27(B" } do
      assert.is_false(kind(bytes), ("%q"):format(bytes))
    end
    for _, bytes in ipairs { "a\27[1Ab", "\27[3;4H", "\27[2J", "\27M", "\0277x\0278", "\27[5G" } do
      assert.is_true(kind(bytes), ("%q"):format(bytes))
    end
    assert.same({ false, true }, { kind("\27[?1049h\27[H\27[?1049l") })
    assert.is_false(kind("\0277\27[0;39r\0278\27[1A"))
  end)

  it("ends a broken sequence without eating text", function()
    assert.equal("a\nb", clean("a\27[1\nb"))
    assert.equal("ab", clean("a\27]0;x\24b"))
    assert.equal("ared", clean("a\27]0;x\27[31mred"))
    assert.equal("a\nb", clean("a\27\nb"))
    assert.equal("é", clean("\27é"))
  end)

  it("removes C0 and C1 controls", function()
    assert.equal("ab", clean("a\7\0\14\127b"))
    assert.equal("ab", clean("a\u{85}b"))
  end)

  it("overprints after a carriage return", function()
    assert.equal("100%\n", clean(" 10%\r 50%\r100%\n"))
    assert.equal("bbaa\n", clean("aaaa\rbb\r\n"))
    assert.equal("xbcd", clean("abcd\rx"))
    assert.equal("ééx", clean("aéa\ré\27[0mé\27[0mx"))
  end)

  it("erases in the line", function()
    assert.equal("ab\n", clean("long line\r\27[Kab\n"))
    assert.equal("ab", clean("long\27[2K\rab"))
    assert.equal("loxx", clean("long\8\8\27[Kxx"))
  end)

  it("handles backspaces", function()
    assert.equal("aX", clean("ab\8X"))
    assert.equal("NAME", clean("N\8NA\8AM\8ME\8E"))
    assert.equal("x", clean("\8\8x"))
  end)

  it("replaces invalid UTF-8", function()
    assert.equal("a\u{FFFD}b", clean("a\xffb"))
    assert.equal("a\u{FFFD}b", clean("a\xe2\x82b"))
    assert.equal("a\u{FFFD}", clean("a\xe2\x82"))
    assert.equal("\u{FFFD}\u{FFFD}", clean("\xc0\x80"))
    assert.equal("\u{FFFD}\u{FFFD}\u{FFFD}", clean("\xed\xa0\x80"))
    assert.equal("\u{FFFD}x\27" and "\u{FFFD}x", clean("\xf0\x9f\27[0mx"))
    assert.equal("😀", clean("😀"))
  end)
end)

describe("output cleaner, generated", function()
  local function random_bytes(seed, count)
    local alphabet = { "\27", "[", "]", "P", "\\", "\7", "\r", "\n", "\8", "K", "2", "m", "x", "é",
      "\xe2", "\x82", "\xac", "\xff", "\xf0\x9f", "\t", "\24", "\0", "\xc2\x9b", "text", "(", ";" }
    local parts, state = {}, seed
    for i = 1, count do
      state = (state * 1103515245 + 12345) % 2147483648
      parts[i] = alphabet[state // 65536 % #alphabet + 1]
    end
    return table.concat(parts)
  end

  it("gives valid text and the same at every split", function()
    for seed = 1, 40 do
      local bytes = random_bytes(seed, 60)
      local whole = clean(bytes)
      assert.truthy(utf8.len(whole))
      assert.is_nil(whole:find("[\0-\8\11-\31\127]"))
      for at = 0, #bytes, 3 do
        local parts = {}
        local piecewise = cleaner.new(function(text) parts[#parts + 1] = text end)
        piecewise:feed(bytes:sub(1, at))
        piecewise:feed(bytes:sub(at + 1))
        piecewise:finish()
        assert.equal(whole, table.concat(parts), ("seed %d split %d"):format(seed, at))
      end
    end
  end)

  it("works in time linear to the input", function()
    local function count(bytes, times)
      local steps = 0
      local collector = output.new()
      debug.sethook(function() steps = steps + 1 end, "", 100)
      for _ = 1, times do collector:feed(bytes) end
      collector:finish()
      debug.sethook()
      return steps
    end
    local hard =
      { "\r 10%", ("x"):rep(500) .. "\ry\8", "\27[1mx\27[0m", "\xff\xe2", "\27[K", "a\8\27[K" }
    for _, bytes in ipairs(hard) do
      local once = count(bytes, 2000)
      assert.is_true(count(bytes, 4000) < once * 2.5 + 50, ("%q"):format(bytes))
    end
  end)
end)

describe("output collector", function()
  it("keeps small output whole", function()
    local collector = output.new()
    collector:feed("a\r\n")
    collector:feed("b")
    local text, truncated = collector:finish()
    assert.equal("a\nb", text)
    assert.is_false(truncated)
    assert.equal(4, collector.total_bytes)
  end)

  it("keeps everything up to the limit, also beyond the head", function()
    local collector = output.new { limit_bytes = 1000 }
    for i = 1, 100 do collector:feed(("%08d\n"):format(i)) end
    local text, truncated = collector:finish()
    assert.is_false(truncated)
    assert.equal(900, #text)
  end)

  it("keeps head and tail and tells how much is gone", function()
    local collector = output.new { limit_bytes = 1000 }
    for i = 1, 10000 do collector:feed(("%08d\n"):format(i)) end
    local text, truncated = collector:finish()
    assert.is_true(truncated)
    assert.equal("00000001\n", text:sub(1, 9))
    assert.equal("00010000\n", text:sub(-9))
    local gone = tonumber(text:match("%[%.%.%. (%d+) bytes omitted %.%.%.%]"))
    assert.is_true(gone > 88000 and gone < 90000)
    assert.is_true(#text < 1100)
  end)

  it("holds a flood in bounded memory", function()
    local collector = output.new()
    local chunk = ("y\r\n"):rep(21845)
    collectgarbage()
    local before, most = collectgarbage("count"), 0
    for i = 1, 800 do
      collector:feed(chunk)
      if i % 100 == 0 then
        collectgarbage()
        most = math.max(most, collectgarbage("count") - before)
      end
    end
    assert.is_true(most < 4096, most .. " KiB")
    local text, truncated = collector:finish()
    assert.is_true(truncated)
    assert.is_true(#text <= 1024 * 1024 + 64)
  end)

  it("holds a flood of small pieces in bounded memory", function()
    local collector = output.new { limit_bytes = 65536 }
    local piece = "\27[32mok\27[0m\r\n"
    local function grown(count)
      for _ = 1, count do collector:feed(piece) end
      collectgarbage()
      return collectgarbage("count")
    end
    local before = grown(20000)
    local after = grown(200000)
    assert.is_true(after - before < 1024, (after - before) .. " KiB")
    local text = collector:finish()
    assert.is_true(#text <= 65536 + 64)
    local gone = tonumber(text:match("%[%.%.%. (%d+) bytes omitted %.%.%.%]"))
    assert.is_true(gone > 220000 * #piece - 2 * 65536 * 5 and gone < 220000 * #piece)
  end)

  it("holds a flood of single bytes and of one endless line", function()
    local collector = output.new { limit_bytes = 1000 }
    for _ = 1, 100000 do collector:feed("é") end
    local text, truncated = collector:finish()
    assert.is_true(truncated)
    assert.truthy(utf8.len(text))
    assert.is_true(#text < 70000)
  end)

  it("shows the newest text as tail", function()
    local collector = output.new()
    collector:feed("first\r\n\27[1msecond\27[0m\r\n")
    assert.equal("first\nsecond\n", collector:tail(4096))
    assert.equal("ond\n", collector:tail(4))
    for _ = 1, 5000 do collector:feed("line\r\n") end
    assert.is_true(#collector:tail(4096) <= 4096)
    assert.equal("line\nline\n", collector:tail(10))
  end)
end)
