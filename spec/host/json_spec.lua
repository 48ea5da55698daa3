-- efr.json under our own state: exactness, refusals, marks; lua-cjson as a second opinion.
require("spec.helper")
local json = require("efr.json")

describe("json", function()
  local function decodes(text)
    local value, err, code = json.decode(text)
    assert.is_nil(code, err)
    return value
  end

  local function refused(text, pattern, options)
    local value, err, code = json.decode(text, options)
    assert.is_nil(value)
    assert.are.equal("EFR_JSON", code)
    assert.matches(pattern, err)
    return err
  end

  describe("decode", function()
    it("keeps integers and floats apart and exact", function()
      for _, text in ipairs({ "0", "-1", "9223372036854775807", "-9223372036854775808" }) do
        local value = decodes(text)
        assert.are.equal("integer", math.type(value))
        assert.are.equal(text, tostring(value))
      end
      assert.are.equal("float", math.type(decodes("1.0")))
      assert.are.equal("float", math.type(decodes("1e3")))
      assert.are.equal(0.1, decodes("0.1"))
      refused("9223372036854775808", "integer")
      refused("1e999", "real")
    end)

    it("takes every kind of value", function()
      assert.are.same({ a = { true, false, "x\0é\n" }, b = {} }, decodes([[
        { "a": [true, false, "x\u0000é\n"], "b": {} } ]]))
      assert.are.equal(json.null, decodes("null"))
      assert.are.equal("\u{1f600}", decodes([["\ud83d\ude00"]]))
    end)

    it("refuses what is no JSON", function()
      local rows = {
        "", " ", "{", "[1,]", "{\"a\":}", "'a'", "[1] 2", "nul", "01", "+1", "\"\t\"", "\"\xff\"",
        "\"\xed\xa0\x80\"", [["\ud800"]], "{a:1}", "[1", "NaN", "\xef\xbb\xbf1",
      }
      for _, text in ipairs(rows) do
        refused(text, "^JSON: ")
      end
    end)

    it("refuses duplicate keys at any depth", function()
      refused([[{"a":1,"a":1}]], "duplicate")
      refused([=[[{"x":{"a":1,"b":2,"a":3}}]]=], "duplicate")
    end)

    it("limits depth and length", function()
      local function nested(depth)
        return ("["):rep(depth) .. ("]"):rep(depth)
      end
      assert.is_table(decodes(nested(64)))
      refused(nested(65), "deep")
      assert.is_table(json.decode(nested(256), { max_depth = 256 }))
      refused(("[{\"a\":"):rep(1000000), "deep")
      refused("[1]", "long", { max_bytes = 2 })
      assert.is_table(json.decode("[1]", { max_bytes = 3 }))
      assert.are.equal("[[[", decodes([["[[["]])) -- brackets in strings count nothing
      assert.are.equal("\"[", json.decode([["\"["]], { max_depth = 0 }))
    end)

    it("never quotes the text in its errors", function()
      local rows = { [["sk-secret]], [[{"k":sk-secret}]], [[{"sk-secret":1,"sk-secret":2}]] }
      for _, text in ipairs(rows) do
        assert.is_nil(refused(text, "JSON"):find("secret", 1, true))
      end
    end)
  end)

  describe("encode", function()
    local function encodes(value, options)
      local text, err = json.encode(value, options)
      assert.is_nil(err)
      return text
    end

    local function cannot(value, pattern)
      local text, err, code = json.encode(value)
      assert.is_nil(text)
      assert.are.equal("EFR_JSON", code)
      assert.matches(pattern, err)
    end

    it("writes numbers so that they come back the same", function()
      local rows = {
        { 9007199254740993, "9007199254740993" },
        { math.mininteger, "-9223372036854775808" },
        { 1.0, "1.0" },
        { 0.1, "0.1" },
        { 0.7, "0.7" },
        { 1 / 3, "0.3333333333333333" },
        { 1e300, "1e300" },
        { -0.0, "-0.0" },
      }
      for _, row in ipairs(rows) do
        local text = encodes(row[1])
        assert.are.equal(row[2], text)
        local back = decodes(text)
        assert.are.equal(row[1], back)
        assert.are.equal(math.type(row[1]), math.type(back))
      end
    end)

    it("tells arrays from objects", function()
      assert.are.equal("{}", encodes({}))
      assert.are.equal("[]", encodes(json.array({})))
      assert.are.equal("[[],{},[1,2]]", encodes(decodes("[[],{},[1,2]]")))
      assert.is_true(json.is_array(decodes("[]")))
      assert.is_false(json.is_array(decodes("{}")))
      assert.is_false(json.is_array({ 1 }))
      assert.is_false(json.is_array("x"))
    end)

    it("sorts keys and indents when asked", function()
      local value = { b = 1, a = { d = json.null, c = { 1, true } } }
      assert.are.equal([[{"a":{"c":[1,true],"d":null},"b":1}]], encodes(value, { sort = true }))
      local pretty = encodes(value, { sort = true, pretty = true })
      assert.are.equal('{\n  "a": {', pretty:match("^[^\n]*\n[^\n]*"))
      assert.are.same(value, decodes(pretty))
    end)

    it("stays on one line", function()
      local text = encodes({ a = "x\ny\r\0", ["k\n"] = 1 })
      assert.is_nil(text:find("[%c]"))
    end)

    it("refuses what has no JSON form", function()
      local cycle = {}
      cycle.cycle = cycle
      cannot("\xff", "UTF%-8")
      cannot({ ["\xff"] = 1 }, "UTF%-8")
      cannot({ ["a\0"] = 1 }, "NUL")
      cannot({ 1, 2, nil, 4 }, "hole")
      cannot({ 1, x = 2 }, "keys")
      cannot({ [1.5] = 1 }, "keys")
      cannot({ [true] = 1 }, "keys")
      cannot(json.array({ x = 1 }), "keys")
      cannot(0 / 0, "finite")
      cannot(math.huge, "finite")
      cannot(print, "type")
      cannot(coroutine.create(print), "type")
      cannot(cycle, "deep")
      cannot({ a = { b = { print } } }, "type")
    end)
  end)

  it("refuses to mark a table that has another metatable", function()
    assert.has_error(function()
      json.array(setmetatable({}, {}))
    end)
    local list = json.array({ 1 })
    assert.are.equal(list, json.array(list))
  end)

  it("checks its arguments", function()
    for _, call in ipairs({
      { json.decode },
      { json.decode, {} },
      { json.decode, "1", 5 },
      { json.decode, "1", { max_depth = "x" } },
      { json.decode, "1", { max_depth = 1000 } },
      { json.encode, 1, "sort" },
      { json.encode, 1, { sort = 1 } },
      { json.array, 5 },
    }) do
      assert.is_false(pcall(table.unpack(call)))
    end
  end)

  it("agrees with lua-cjson on random values", function()
    local cjson = require("cjson")
    local random = 20260101
    local function next_number(limit)
      random = (random * 1103515245 + 12345) % 2147483648
      return random // 7 % limit
    end
    local function make(depth)
      local kind = next_number(depth > 0 and 6 or 4)
      if kind == 0 then
        return next_number(100000)
      elseif kind == 1 then
        return next_number(2) == 1
      elseif kind == 2 then
        local text = {}
        for i = 1, next_number(8) do
          text[i] = utf8.char(next_number(0xd000))
        end
        return table.concat(text)
      elseif kind == 3 then
        return next_number(1000) / 8
      end
      local value = kind == 4 and json.array({}) or {}
      for i = 1, next_number(5) do
        value[kind == 4 and i or "k" .. i] = make(depth - 1)
      end
      return value
    end
    for _ = 1, 300 do
      local value = make(4)
      local text = assert(json.encode(value))
      assert.are.same(value, decodes(text))
      assert.are.same(cjson.decode("[" .. text .. "]")[1], json.decode(text))
    end
  end)
end)
