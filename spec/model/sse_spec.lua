local sse = require "efr.model.sse"

-- Feeds `bytes` in the pieces that `cuts` (sorted offsets) makes and returns all events.
local function parse(bytes, cuts)
  local parser, out, from = sse.new(), {}, 1
  local function feed(piece)
    for _, event in ipairs(assert(parser:feed(piece))) do
      out[#out + 1] = event.event .. "|" .. event.data
    end
  end
  for _, cut in ipairs(cuts or {}) do
    feed(bytes:sub(from, cut))
    from = cut + 1
  end
  feed(bytes:sub(from))
  return out
end

describe("model.sse", function()
  local rows = {
    { "data: a\n\n", { "message|a" } },
    { "data:a\r\n\r\n", { "message|a" } },
    { "data: a\r\r", { "message|a" } },
    { "data:  a\n\n", { "message| a" } },
    { "data: a\ndata: b\n\n", { "message|a\nb" } },
    { "data\n\n", { "message|" } },
    { "event: x\ndata: a\n\ndata: b\n\n", { "x|a", "message|b" } },
    { "event: x\n\ndata: b\n\n", { "message|b" } },
    { ": ping\n\ndata: a\n: more\n\n", { "message|a" } },
    { "id: 1\nretry: 5\nother: x\ndata: a\n\n", { "message|a" } },
    { "\xEF\xBB\xBFdata: a\n\n", { "message|a" } },
    { "\xEF\xBBdata: a\n\n", {} },
    { "data: a\n\ndata: unfinished\n", { "message|a" } },
    { "data: unfinished", {} },
    { "\n\n\ndata: a\n\n\n\n", { "message|a" } },
    { "data: a:b: c\n\n", { "message|a:b: c" } },
    { "data: \xF0\x9F\x98\x80\n\n", { "message|\xF0\x9F\x98\x80" } },
  }
  for i, row in ipairs(rows) do
    it(("reads row %d whole and cut at each byte"):format(i), function()
      assert.same(row[2], parse(row[1]))
      local every = {}
      for n = 1, #row[1] - 1 do
        every[n] = n
        assert.same(row[2], parse(row[1], { n }))
      end
      assert.same(row[2], parse(row[1], every))
    end)
  end

  it("gives the same events however a generated stream is cut", function()
    math.randomseed(20261130)
    local parts = { "data: x", "data:", "event: e", ": c", "\n", "\r", "\r\n", "\n\n",
      "\r\n\r\n", "é", "data: {\"a\":1}", "id: 3", "\xF0\x9F\x98\x80", "\xEF\xBB\xBF", "data", ":" }
    for _ = 1, 400 do
      local out = {}
      for n = 1, math.random(1, 40) do out[n] = parts[math.random(#parts)] end
      local bytes = table.concat(out)
      local whole = parse(bytes)
      for _ = 1, 5 do
        local cuts = {}
        for n = 1, #bytes - 1 do
          if math.random(4) == 1 then cuts[#cuts + 1] = n end
        end
        assert.same(whole, parse(bytes, cuts))
      end
    end
  end)

  it("refuses an event over the limit, in one line or in many", function()
    for _, piece in ipairs({ ("x"):rep(50), "data: " .. ("x"):rep(20) .. "\n" }) do
      local parser = sse.new({ max_bytes = 100 })
      local events, message, code
      for _ = 1, 10 do
        events, message, code = parser:feed(piece)
        if not events then break end
      end
      assert.is_nil(events)
      assert.equal("EFR_TOO_BIG", code)
      assert.matches("100 bytes", message)
      assert.is_nil((parser:feed("\n\n")))
    end
  end)

  it("does work linear in a long line that comes byte by byte", function()
    local parser = sse.new()
    local started = os.clock()
    parser:feed("data: ")
    for _ = 1, 200000 do parser:feed("x") end
    local events = parser:feed("\n\n")
    assert.equal(200000, #events[1].data)
    assert.is_true(os.clock() - started < 2)
  end)
end)
