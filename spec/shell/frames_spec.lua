-- Specs of the frames of the screen worker: what is written is read, at any split, and bytes that a
-- worker in foreign hands may send are refused, never raised and never kept without bound.
local frames = require "efr.shell.frames"

local function decode(bytes, step)
  local got = {}
  local decoder = frames.decoder(function(kind, payload) got[#got + 1] = kind .. payload end)
  for at = 1, #bytes, step do
    local ok, err = decoder:feed(bytes:sub(at, at + step - 1))
    if not ok then return nil, err end
  end
  return got, decoder
end

describe("frames", function()
  it("come back at every split", function()
    local bytes = frames.encode("A", "") .. frames.encode("B", ("x"):rep(65536))
      .. frames.encode("C", "\0\1\2") .. frames.encode("D", "\n")
    for _, step in ipairs { 1, 2, 5, 7, 4096, #bytes } do
      assert.same({ "A", "B" .. ("x"):rep(65536), "C\0\1\2", "D\n" }, (decode(bytes, step)))
    end
  end)

  it("of a wrong length are refused at once", function()
    assert.is_nil((decode(string.pack("<I4", 65537) .. "A", 5)))
    assert.is_nil((decode("\255\255\255\255A", 1)))
  end)

  it("are not kept longer than one of them", function()
    local got, decoder = decode(string.pack("<I4", 65536) .. "A" .. ("x"):rep(65535), 100)
    assert.same({}, got)
    assert.is_true(decoder._have <= 65541)
  end)

  it("have fields, or are none", function()
    assert.same({ consumed = 7 }, frames.parse("P", string.pack("<i8", 7)))
    assert.same({ id = 3, lost = true, alternate = false }, frames.parse("X", "\3\0\0\0\1"))
    assert.same({ id = 1, text = "ab" }, frames.parse("T", "\1\0\0\0ab"))
    for _, kind in ipairs { "P", "H", "L", "Z", "T", "X", "?", "" } do
      assert.is_nil(frames.parse(kind, "\1"), kind)
    end
    assert.is_nil(frames.parse("R", ("x"):rep(257)))
  end)

  it("give cells with their colours", function()
    local cells = frames.cells(string.pack("<BI4I4I2", 9, 1 << 24 | 4, 2 << 24 | 0x010203, 6)
      .. "\1a\131\xe6\x97\xa5")
    assert.same({
      { text = "a", bold = true, inverse = true, fg = { indexed = 4 }, bg = { rgb = { 1, 2, 3 } } },
      { text = "日", wide = true, bold = true, inverse = true, fg = { indexed = 4 },
        bg = { rgb = { 1, 2, 3 } } },
    }, cells)
    assert.same({}, frames.cells(""))
  end)

  it("of any bytes never raise", function()
    local state = 1
    local function random(limit)
      state = (state * 1103515245 + 12345) % 2147483648
      return state // 65536 % limit
    end
    local kinds = "PRHLZTX"
    for _ = 1, 3000 do
      local parts = {}
      for i = 1, random(40) do parts[i] = string.char(random(2) == 0 and random(4) or random(256)) end
      local bytes, at = table.concat(parts), random(#kinds) + 1
      local frame = frames.parse(kinds:sub(at, at), bytes)
      assert.is_true(frame == nil or type(frame) == "table")
      local cells = frames.cells(bytes)
      for _, cell in ipairs(cells or {}) do assert.truthy(utf8.len(cell.text)) end
      decode(bytes, 1 + random(9))
    end
  end)
end)
