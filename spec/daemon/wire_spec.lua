local wire = require "efr.daemon.wire"

local json
do
  local ok, module = pcall(require, "efr.json")
  json = ok and module or require "spec.support.json"
end

local function feed_all(chunks, limit)
  local decoder, lines, err = wire.decoder(limit), {}, nil
  for _, chunk in ipairs(chunks) do
    local some, failure = decoder:feed(chunk)
    for _, line in ipairs(some) do
      lines[#lines + 1] = line
    end
    err = err or failure
  end
  return lines, err, decoder
end

describe("daemon.wire decoder", function()
  local text = '{"a":1}\n\n\r\n{"b":"\u{e9}"}\r\n {"c":3}\n'
  local expected = { '{"a":1}', '{"b":"\u{e9}"}\r', ' {"c":3}' }

  it("gives the same lines wherever the stream is split", function()
    for i = 0, #text do
      for j = i, #text do
        local lines, err, decoder = feed_all { text:sub(1, i), text:sub(i + 1, j),
          text:sub(j + 1) }
        assert.is_nil(err)
        assert.same(expected, lines)
        assert.is_nil(decoder:finish())
      end
    end
  end)

  it("tells an end inside a line from an end between lines", function()
    local _, _, decoder = feed_all { "{}\n{" }
    assert.truthy(decoder:finish())
    _, _, decoder = feed_all { "{}\n" }
    assert.is_nil(decoder:finish())
  end)

  it("counts the limit without the newline and ends the moment it is passed", function()
    local lines, err = feed_all({ "12345678\n1234", "5678\n" }, 8)
    assert.is_nil(err)
    assert.same({ "12345678", "12345678" }, lines)
    lines, err = feed_all({ "1\n123456789" }, 8)
    assert.same({ "1" }, lines)
    assert.truthy(err)
    lines, err = feed_all({ "1234", "56789\n2\n" }, 8)
    assert.same({}, lines)
    assert.truthy(err)
    lines, err = feed_all({ "123456789\n2\n", "3\n" }, 8)
    assert.same({}, lines)
    assert.truthy(err)
  end)

  it("takes 16 MiB and refuses one byte more", function()
    local chunk = ("x"):rep(1024 * 1024)
    local decoder = wire.decoder()
    for _ = 1, 16 do
      local lines, err = decoder:feed(chunk)
      assert.same({}, lines)
      assert.is_nil(err)
    end
    local lines = decoder:feed("\n")
    assert.equal(16 * 1024 * 1024, #lines[1])
    for _ = 1, 16 do
      decoder:feed(chunk)
    end
    local _, err = decoder:feed("x")
    assert.truthy(err)
  end)

  it("gives what a simple splitter gives, for random bytes in random pieces", function()
    local seed = tonumber(os.getenv("EFR_TEST_SEED")) or os.time()
    math.randomseed(seed)
    local alphabet = { "\n", "\r", "\0", "{", "}", '"', "\\", "a", "\xff", " ", "[", "1", "\n" }
    for _ = 1, 2000 do
      local bytes = {}
      for i = 1, math.random(0, 60) do
        bytes[i] = alphabet[math.random(#alphabet)]
      end
      local stream = table.concat(bytes)
      local want, pos, limit, dead = {}, 1, 12, false
      while not dead do
        local newline = stream:find("\n", pos, true)
        local line = stream:sub(pos, (newline or #stream + 1) - 1)
        dead = #line > limit
        if dead or not newline then
          break
        end
        if line ~= "" and line ~= "\r" then
          want[#want + 1] = line
        end
        pos = newline + 1
      end
      local chunks, at = {}, 1
      while at <= #stream do
        local size = math.random(1, 9)
        chunks[#chunks + 1] = stream:sub(at, at + size - 1)
        at = at + size
      end
      local lines, err = feed_all(chunks, limit)
      assert.same(want, lines, "seed " .. seed)
      assert.equal(dead, err ~= nil, "seed " .. seed)
      for _, line in ipairs(lines) do -- never raises, whatever the line is
        local message = wire.parse(json, line)
        assert.truthy(message.kind)
      end
    end
  end)
end)

describe("daemon.wire messages", function()
  local function parse(line)
    return wire.parse(json, line)
  end

  it("reads a request and a cancel", function()
    local request = parse '{"jsonrpc":"2.0","id":9223372036854775807,"method":"m","params":{"a":1}}'
    assert.equal("request", request.kind)
    assert.equal(math.maxinteger, request.id)
    assert.same({ a = 1 }, request.params)
    assert.same({ kind = "cancel", id = 7 },
      parse '{"jsonrpc":"2.0","method":"$/cancel","params":{"id":7}}')
    assert.equal("ignored", parse('{"jsonrpc":"2.0","method":"other","params":{}}').kind)
    assert.equal("ignored", parse('{"jsonrpc":"2.0","method":"$/cancel","params":[7]}').kind)
  end)

  local refused = {
    -- line, number, id
    { "nonsense", -32700 },
    { "", -32700 },
    { '{"jsonrpc":"2.0","id":1', -32700 },
    { '"text"', -32600 },
    { "null", -32600 },
    { "[]", -32600 },
    { '[{"jsonrpc":"2.0","id":1,"method":"m","params":{}}]', -32600 },
    { '{"jsonrpc":"2.0","id":"1","method":"m","params":{}}', -32600 },
    { '{"jsonrpc":"2.0","id":1.5,"method":"m","params":{}}', -32600 },
    { '{"jsonrpc":"2.0","id":null,"method":"m","params":{}}', -32600 },
    { '{"jsonrpc":"2.0","id":-1,"method":"m","params":{}}', -32600 },
    { "{}", -32600 },
    { '{"jsonrpc":"2.0","id":1,"params":{}}', -32600, 1 },
    { '{"id":1,"method":"m","params":{}}', -32600, 1 },
    { '{"jsonrpc":"2.0","id":1,"method":"$/cancel","params":{"id":2}}', -32600, 1 },
    { '{"jsonrpc":"2.0","id":1,"method":"m"}', -32602, 1 },
    { '{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', -32602, 1 },
    { '{"jsonrpc":"2.0","id":1,"method":"m","params":null}', -32602, 1 },
  }
  for i, case in ipairs(refused) do
    it("refuses " .. i .. ": " .. case[1], function()
      local message = parse(case[1])
      assert.equal("refused", message.kind)
      assert.equal(case[2], message.number)
      assert.equal(case[3], message.id)
    end)
  end

  it("refuses deep nesting, NUL bytes and text that is no UTF-8", function()
    local deep = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":' .. ("["):rep(100000)
    assert.equal(-32700, parse(deep .. ("]"):rep(100000) .. "}}").number)
    assert.equal(-32700, parse('{"jsonrpc":"2.0","id":1,"method":"\0","params":{}}').number)
    assert.equal(-32700, parse('{"jsonrpc":"2.0","id":1,"method":"\xff","params":{}}').number)
  end)
end)

describe("daemon.wire golden messages", function()
  local dir = (os.getenv("EFR_SOURCE") or ".") .. "/tests/golden/protocol/v1/"
  local texts = {
    response = wire.result(1, '{"ok":true}'),
    stream = wire.item(3, '{"kind":"event","seq":17}'),
    error = wire.error(json, 2, { code = "not_found", message = "unknown conversation" }),
    error_data = wire.error(json, 3, { code = "overflow", message = "too slow",
      data = { last_seq = 42 } }),
    error_mismatch = wire.error(json, 1, { code = "protocol_mismatch", message = "differs",
      data = { daemon = 1, client = 2 } }),
    error_no_id = wire.error(json, nil, { code = "invalid", message = "not JSON",
      number = -32700 }),
  }
  for name, text in pairs(texts) do
    it("writes " .. name, function()
      local file = assert(io.open(dir .. name .. ".json", "rb"))
      local want = file:read("a")
      file:close()
      assert.equal(want, text)
    end)
  end
end)
