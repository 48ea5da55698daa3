local text = require "efr.util.text"

describe("util.text", function()
  it("splits, trims and counts", function()
    assert.same({ "a", "", "b" }, text.split("a,,b", ","))
    assert.same({ "" }, text.split("", ","))
    assert.same({ "a", "b" }, text.lines("a\nb\n"))
    assert.same({}, text.lines(""))
    assert.same({ "", "b" }, text.lines("\nb"))
    assert.equal("a b", text.trim(" \ta b\n"))
    assert.equal("", text.trim("  "))
    assert.equal("1 match", text.plural(1, "match", "matches"))
    assert.equal("2 files", text.plural(2, "file"))
    assert.is_true(text.starts_with("ab", "a"))
    assert.is_false(text.starts_with("ab", "b"))
  end)

  it("cuts the middle near line ends", function()
    local lines = {}
    for i = 1, 5000 do lines[i] = ("line %04d of the output"):format(i) end
    local long = table.concat(lines, "\n") .. "\n"
    local cut, truncated = text.cut_middle(long, 4096)
    assert.is_true(truncated)
    assert.is_true(#cut <= 4096 and #cut > 3000)
    local head, omitted, tail = cut:match("^(.*\n)%[%.%.%. (%d+) bytes omitted %.%.%.%]\n(.*)$")
    assert.equal(#long, #head + tonumber(omitted) + #tail)
    assert.equal(head, long:sub(1, #head))
    assert.equal(tail, long:sub(-#tail))
    assert.equal("line 5000 of the output\n", tail:sub(-24))
    assert.equal("line", tail:sub(1, 4))
  end)

  it("never tears a character and counts what is gone", function()
    for extra = 0, 3 do
      local long = ("x"):rep(extra) .. ("\u{20AC}"):rep(2000)
      local cut = text.cut_middle(long, 512)
      assert.is_truthy(utf8.len(cut))
      local a, n, b = cut:match("^(.*)\n%[%.%.%. (%d+) bytes omitted %.%.%.%]\n(.*)$")
      assert.equal(#long, #a + tonumber(n) + #b)
      assert.is_true(#cut <= 512)
    end
    assert.same({ "short", false }, { text.cut_middle("short", 512) })
  end)

  it("keeps the limit on bytes that are no text", function()
    local cut = text.cut_middle(("\xBF"):rep(4000), 512)
    assert.is_true(#cut <= 512)
  end)

  it("writes and reads base64", function()
    assert.equal("", text.base64(""))
    assert.equal("YQ==", text.base64("a"))
    assert.equal("YXg=", text.base64("ax"))
    assert.equal("AP8+YXh5", text.base64("\0\xff>axy"))
    for n = 0, 40 do
      local bytes = {}
      for i = 1, n do bytes[i] = string.char((i * 37 + n) % 256) end
      bytes = table.concat(bytes)
      assert.equal(bytes, text.unbase64(text.base64(bytes)))
    end
    for _, bad in ipairs { "a", "ab=c", "a===", "Zg= =", "Zm9v\n" } do
      assert.is_nil((text.unbase64(bad)))
    end
  end)

  it("folds paths", function()
    for path, want in pairs {
      ["/"] = "/", ["/a//b/./c/"] = "/a/b/c", ["/a/../../b"] = "/b", ["/a/..."] = "/a/...",
    } do
      assert.equal(want, text.fold_path(path))
    end
  end)
end)
