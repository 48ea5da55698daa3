local toml = require "efr.config.toml"

local function value(text)
  local root, err = toml.parse("v = " .. text .. "\n")
  assert(root, err)
  return root.v
end

local function refused(text, want)
  local root, err, place = toml.parse(text)
  assert.is_nil(root, text)
  assert.is_truthy(err:find("^line %d+ column %d+: "), err)
  assert.is_number(place.line)
  if want then assert.is_truthy(err:find(want, 1, true), err .. " has not: " .. want) end
end

-- One accepted and one refused example for each rule of TOML 1.0.
local SCALARS = {
  { '"a\\tb\\u00e9\\U0001F600"', "a\tb\u{e9}\u{1F600}" }, { '""', "" }, { "'a\\b'", "a\\b" },
  { '"""\na\n  b"""', "a\n  b" }, { '"""a \\\n\n  b"""', "a b" }, { '"""a""b"""', 'a""b' },
  { '"""a"""""', 'a""' }, { "'''\n'a' b'''", "'a' b" }, { "'''a'''''", "a''" },
  { '"""\r\na"""', "a" },
  { "0", 0 }, { "-0", 0 }, { "+17", 17 }, { "1_000", 1000 }, { "0xDEAD_beef", 0xDEADBEEF },
  { "0o755", 493 }, { "0b1101", 13 }, { "9223372036854775807", math.maxinteger },
  { "-9223372036854775808", math.mininteger }, { "0x7fffffffffffffff", math.maxinteger },
  { "1.5", 1.5 }, { "-0.01", -0.01 }, { "5e+22", 5e22 }, { "1e06", 1e6 }, { "6.6e-3", 6.6e-3 },
  { "9_224.5", 9224.5 }, { "inf", math.huge }, { "-inf", -math.huge }, { "true", true },
  { "false", false },
}

local BAD_VALUES = {
  "", "abc", '"a', '"a\nb"', '"\\x"', '"\\ud800"', '"\\U00110000"', '"\\u12"', "'a\nb'", "'''a",
  '"""a', '"""a""""""', "00", "01", "+01", "1__0", "_1", "1_", "0x", "0xg", "-0x1", "0B1",
  "9223372036854775808", "0x8000000000000000", ".5", "5.", "1.e5", "1e", "1_e5", "03.5", "Inf",
  "+true", "True", "[1, 2", "[1 2]", "[,]", "[1,,2]", "{a=1,}", "{a=1\n}", "{a=1, a=2}", "{a}",
  "{a=1",
  "1 2", "a.b", "\1", "'\1'", "1979-13-01", "1979-02-29", "1979-05-27T25:00:00", "1979-05-27T07:32",
  "07:60:00", "1979-05-27T07:32:00+24:00", "1979-05-27x", "1979-5-27",
}

local BAD_FILES = {
  "a", "a =", "= 1", "a = 1 b = 2", "a = 1\na = 2", "a.b = 1\na = 2", "a = 1\na.b = 2",
  "[a]\n[a]", "[a]\nb = 1\n[a.b]", "[[a]]\n[a]", "[a]\n[[a]]", "a = []\n[[a]]", "a = {}\n[a.b]",
  "a = {}\na.b = 1", "a.b = 1\n[a]", "[a.b.c]\n[a]\nb.c.d = 1", "[[a]]\n[b]\n[[a.c]]\n[a.c]",
  "[a", "[[a]", "[]", "[a.]", "[.a]", "[a]b = 1", "[ [a]]", "a. = 1", "a..b = 1", '"""a""" = 1',
  "a = 1 # \1", "# \127", "a = 1\rb = 2", "\xff = 1", "# \xff", "a = \"\xed\xa0\x80\"", "a\n= 1",
  "a = {b = 1, b.c = 2}", "[a]\nb = {c = 1}\nb.d = 2", "a = [{b = 1}]\n[a.c]", "é = 1",
}

describe("config.toml", function()
  for _, row in ipairs(SCALARS) do
    it("reads " .. row[1]:gsub("%c", "?"), function()
      assert.equal(row[2], value(row[1]))
      assert.equal(math.type(row[2]), math.type(value(row[1])))
    end)
  end

  it("keeps the sign of a zero, and nan", function()
    assert.equal(-math.huge, 1 / value "-0.0")
    assert.is_true(value "nan" ~= value "-nan")
  end)

  it("refuses each wrong value", function()
    for _, text in ipairs(BAD_VALUES) do refused("v = " .. text .. "\n") end
  end)

  it("refuses each wrong file", function()
    for _, text in ipairs(BAD_FILES) do refused(text) end
  end)

  it("reads dates and times", function()
    for text, kind in pairs {
      ["1979-05-27T07:32:00Z"] = "offset_datetime",
      ["1979-05-27 07:32:00.5-07:00"] = "offset_datetime",
      ["2000-02-29t07:32:00"] = "local_datetime", ["1979-05-27"] = "local_date",
      ["07:32:00.999"] = "local_time",
    } do
      local v = value(text)
      assert.same({ kind, text }, { v.kind, tostring(v) })
    end
  end)

  it("reads tables, dotted keys, arrays and arrays of tables", function()
    local root = assert(toml.parse([==[
# a comment
title = "x" # behind a value
a . "b c".'d' = 1
[owner.'x.y']
n = [ 1, # first
  [ "two", ], {three = 3, f.g = []}, ]
[[p]]
n = 1
[p.sub]
k = true
[[p]]
[owner]
late = {}
3.14 = "dotted"
]==]))
    assert.equal(1, root.a["b c"].d)
    assert.same({ 1, { "two" }, { three = 3, f = { g = {} } } }, root.owner["x.y"].n)
    assert.same({ { n = 1, sub = { k = true } }, {} }, root.p)
    assert.equal("dotted", root.owner["3"]["14"])
    assert.is_true(toml.is_array(root.p) and toml.is_array(root.owner["x.y"].n[3].f.g))
    assert.is_false(toml.is_array(root.owner.late) or toml.is_array(root.p[1]))
  end)

  it("accepts what the specification calls valid", function()
    for _, text in ipairs {
      "", "\xEF\xBB\xBFa = 1", "a = 1\r\nb = 2\r\n", "\t[ a . b ]\t# c\n", "[x.y.z.w]\n[x]",
      "[a]\nb.c = 1\nb.d = 2\n[a.e]", "fruit.apple = 1\nanimal = 2\nfruit.orange = 3",
      "[fruit]\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true",
      "a = [\n# only a comment\n]", "1234 = 'v'\n-- = 2", '"" = 1',
      "[[a]]\n[[a.b]]\n[[a.b]]\n[a.c]",
    } do
      local ok, err = toml.parse(text)
      assert(ok, err)
    end
  end)

  it("names line and column", function()
    refused("a = 1\n  b = ?\n", "line 2 column 7: a value is expected, not '?'")
    refused("a = 1\nb = 'x\n", "line 2 column 5: ")
    refused("[a]\n[b]\n[a]", "line 3 column 2: 'a' is given twice")
    refused("a = 1\n# \xff", "line 2 column 3: a byte that is no UTF-8")
  end)

  it("keeps the place of each key, value and header", function()
    local text = "x = 'é' # c\n[a]\nk.l = [ 1, 22 ]\n[[b]]\n"
    local root, document = toml.parse(text)
    local function at(place, from, to) return text:sub(place[from or "from"], place[to or "to"]) end
    assert.equal("'é'", at(document.where[root].x))
    local kl = document.where[root.a.k].l
    assert.equal("[ 1, 22 ]", at(kl))
    assert.equal("k.l", at(kl, "key_from", "key_to"))
    assert.equal("22", at(document.where[root.a.k.l][2]))
    assert.equal("[[b]]", at(document.headers[2]))
    assert.equal(root.b[1], document.headers[2].table)
  end)

  it("limits depth and length", function()
    assert(toml.parse("a = " .. ("["):rep(60) .. ("]"):rep(60)))
    refused("a = " .. ("["):rep(100000), "deeper than 64")
    refused("a = " .. ("{a="):rep(1000), "deeper than 64")
    refused(("a."):rep(100) .. "b = 1", "more than 64 parts")
    refused(("#"):rep(1024 * 1024 + 1), "more than 1048576 bytes")
  end)

  it("never raises on generated input", function()
    local tokens = {
      "=", ".", '"', "'", "[", "]", "[[", "]]", "{", "}", ",", "\n", "\r\n", " ", "#", "a", "1",
      "_", "-", "e", "true", '"""', "'''", "\\", "\\u0041", "1979-05-27", "T", "07:32:00", "\1",
      "\xff",
    }
    math.randomseed(11)
    for _ = 1, 3000 do
      local out = {}
      for i = 1, math.random(1, 14) do out[i] = tokens[math.random(#tokens)] end
      local root, err = toml.parse(table.concat(out))
      assert.is_true(root ~= nil or type(err) == "string")
    end
  end)

  -- Counted instructions of the virtual machine, so the test does not depend on the machine.
  it("works linearly", function()
    local function cost(text)
      local n = 0
      debug.sethook(function() n = n + 1 end, "", 1000)
      toml.parse(text)
      debug.sethook()
      return n
    end
    for _, unit in ipairs { "a = 1 # c\n", "[[a]]\nb = 1\n",
      '"a', "a=[", "'''\n", "k = [1,2]\n" } do
      local once, twice = cost(unit:rep(3000)), cost(unit:rep(6000))
      assert.is_true(twice <= once * 2.5 + 5, unit)
    end
  end)
end)
