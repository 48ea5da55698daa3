-- Specs of the mark scanner: each rule with an accept and a reject example, then generated input.
local marks = require "efr.shell.marks"

local NONCE = ("0123456789abcdef"):rep(2)

-- Feeds pieces; returns the data without the marks, and the marks.
local function scan(...)
  local data, found = {}, {}
  local scanner = marks.new {
    data = function(bytes) data[#data + 1] = bytes end,
    mark = function(mark) found[#found + 1] = mark end,
  }
  for _, piece in ipairs { ... } do scanner:feed(piece) end
  return table.concat(data), found, scanner
end

local function kinds(found)
  local out = {}
  for i, mark in ipairs(found) do out[i] = mark.kind end
  return table.concat(out, " ")
end

describe("shell marks", function()
  it("reads the marks of a command and leaves its output", function()
    local data, found = scan(
      "\27]133;A;cl=line\7% \27]133;B\7\27]133;C;aid=n1\7out\r\n\27]133;D;3;aid=n1\7"
    )
    assert.equal("% out\r\n", data)
    assert.equal("A B C D", kinds(found))
    assert.equal("line", found[1].cl)
    assert.equal("n1", found[3].aid)
    assert.same({ kind = "D", status = 3, aid = "n1" }, found[4])
  end)

  it("accepts ESC backslash as terminator", function()
    local data, found = scan("a\27]133;D;0\27\\b")
    assert.equal("ab", data)
    assert.equal(0, found[1].status)
  end)

  it("tells a bare D from one with a status", function()
    local _, found = scan("\27]133;D\7\27]133;D;;aid=x\7\27]133;D;12x\7")
    assert.is_nil(found[1].status)
    assert.equal("x", found[2].aid)
    assert.is_nil(found[3].status)
  end)

  it("reads the end mark of a contained call only with 32 hex digits", function()
    local _, found = scan("\27]133;efr-sbx;" .. NONCE .. "\7")
    assert.same({ kind = "efr-sbx", nonce = NONCE }, found[1])
    local bad = "\27]133;efr-sbx;" .. NONCE .. "0\7"
    local data, none = scan(bad)
    assert.same({}, none)
    assert.equal(bad, data)
  end)

  it("reads directories raw and percent-encoded", function()
    local _, found = scan("\27]7;kitty-shell-cwd://h/a%20b c\7\27]7;file://h/a%20b\7")
    assert.equal("/a%20b c", found[1].path)
    assert.equal("/a b", found[2].path)
    assert.equal("h", found[2].host)
    local _, none = scan("\27]7;file://h/a%0ab\7\27]7;http://h/a\7\27]7;kitty-shell-cwd://h\7")
    assert.same({}, none)
  end)

  it("drops unknown options and kinds", function()
    local _, found = scan("\27]133;A;zzz=1;k=s\7\27]133;Z\7\27]133;AB\7\27]133;\7\27]1337;A\7")
    assert.equal("A", kinds(found))
    assert.equal("s", found[1].k)
    assert.is_nil(found[1].zzz)
  end)

  it("knows no mark longer than 4096 bytes", function()
    local fits = "133;A;cmdline=" .. ("x"):rep(4096 - 14)
    local _, found = scan("\27]" .. fits .. "\7")
    assert.equal(1, #found)
    local long = "\27]" .. fits .. "x\7"
    local data, none = scan(long, "\27]133;B\7")
    assert.equal("B", kinds(none))
    assert.equal(long, data)
  end)

  it("finds no mark inside DCS, SOS, PM and APC", function()
    for _, intro in ipairs { "P", "X", "^", "_" } do
      local data, found = scan("\27" .. intro .. "q]133;D;0\7more\27\\\27]133;B\7")
      assert.equal("B", kinds(found), intro)
      assert.equal("\27" .. intro .. "q]133;D;0\7more\27\\", data)
    end
  end)

  it("takes a doubled ESC as payload", function()
    local wrapped = "\27Ptmux;\27\27]133;D;0\7\27\\"
    local data, found = scan(wrapped .. "\27]133;B\7")
    assert.equal("B", kinds(found))
    assert.equal(wrapped, data)
  end)

  it("aborts an OSC at another ESC, CAN or SUB", function()
    assert.equal("A", kinds(select(2, scan("\27]133;D;0\27]133;A\7"))))
    assert.equal("A", kinds(select(2, scan("\27]133;D;0\24\7\27]133;A\7"))))
    assert.equal("A", kinds(select(2, scan("\27]133;D;0\26\7\27]133;A\7"))))
  end)

  it("is not shut out by an unfinished sequence, because efr's marks begin with CAN", function()
    local unfinished =
      { "\27", "\27]", "\27]x\27", "\27P", "\27Pq\27", "\27[", "\27\27", "\27]" .. ("x"):rep(5000) }
    for _, left in ipairs(unfinished) do
      local data, found = scan(left, "\24\27]133;D;0;aid=n\7")
      assert.equal("D", kinds(found), ("%q"):format(left:sub(1, 10)))
      assert.equal(left .. "\24", data)
    end
  end)

  it("ignores 8-bit C1 bytes", function()
    local data, found = scan("\157133;D;0\7\194\157")
    assert.same({}, found)
    assert.equal("\157133;D;0\7\194\157", data)
  end)
end)

describe("shell marks, generated", function()
  local sample = "x\27[1mred\27[0m\27]133;C;aid=q\7line\r\n\27]0;title\27\\\27Pq\27\27]133;D\7\27\\"
    .. "\27]7;kitty-shell-cwd://h/tmp\7\27]133;D;1;aid=q\27\\\27]133;A\24\27]8;;u\7t\27]133;B\7\27"

  it("gives the same at every split", function()
    local data, found = scan(sample)
    for at = 0, #sample do
      local d, f = scan(sample:sub(1, at), sample:sub(at + 1))
      assert.equal(data, d)
      assert.same(found, f)
    end
    local bytes = {}
    for i = 1, #sample do bytes[i] = sample:sub(i, i) end
    local d, f = scan(table.unpack(bytes))
    assert.equal(data, d)
    assert.same(found, f)
  end)

  it("never raises, loses no byte that is no mark, and holds at most one body", function()
    local alphabet = { "\27", "]", "133;", "D", ";0", "\7", "\\", "P", "\24", "\26", "x",
      "7;file://", "/", "%00", ("y"):rep(900), "\0", "\255", "aid=" }
    local state = 12345
    local function random(n)
      state = (state * 1103515245 + 12345) % 2147483648
      return state // 65536 % n + 1
    end
    for _ = 1, 300 do
      local pieces = {}
      for i = 1, 60 do pieces[i] = alphabet[random(#alphabet)] end
      local data, found, scanner = scan(table.unpack(pieces))
      assert.is_true(scanner:held_bytes() <= 4098)
      if #found == 0 then
        local whole = table.concat(pieces)
        assert.equal(whole:sub(1, #data), data)
      end
    end
  end)

  it("works in time linear to the input", function()
    local steps_taken = 0
    local _, _, scanner = scan()
    local function count(n)
      steps_taken = 0
      debug.sethook(function() steps_taken = steps_taken + 1 end, "", 100)
      for _ = 1, n do scanner:feed("\27]x\27]y\27Pz\27\27text\27[0m") end
      debug.sethook()
      return steps_taken
    end
    count(100)
    local once = count(1000)
    assert.is_true(count(2000) < once * 2.2)
  end)
end)
