-- Specs of the recording of a terminal: the format byte for byte, segments, torn tails, failures.
local recording = require "efr.shell.recording"
local shells = require "spec.support.shells"

local ports = shells.ports

local function with(fn)
  return function()
    local dir = os.tmpname()
    os.remove(dir)
    local rows = {}
    local function open()
      return recording.new {
        ports = ports, dir = dir, pty_id = "p", write = function(row) rows[#rows + 1] = row end,
      }
    end
    local ok, err = pcall(fn, open, dir .. "/p/", rows)
    ports.fs.rmtree(dir)
    assert(ok, err)
  end
end

local function payloads(path)
  local out = {}
  for i, chunk in ipairs(assert(recording.chunks(assert(ports.fs.read_file(path))))) do
    out[i] = chunk.type .. ":" .. chunk.payload
  end
  return out
end

describe("recording", function()
  it("has the format of the specification", function()
    assert.equal("efr\1\2\0\0\0\3\2\1\0\0\0\0\0", recording.header(1, "ab", 0x010203))
  end)

  it("keeps output and sizes in order, private", with(function(open, dir, rows)
    local made = assert(open())
    made:resize(120, 40)
    made:append("one")
    made:append("two\0\27")
    assert.equal(8, made.seq)
    made:close()
    assert.same({ "2:\120\0\40\0", "1:one", "1:two\0\27" }, payloads(dir .. "0.rec"))
    assert.equal(384, ports.fs.stat(dir .. "0.rec").mode)
    assert.equal(448, ports.fs.stat(dir).mode)
    assert.same({ "p", 0, "p/0.rec" }, { table.unpack(rows[1][2], 1, 3) })
    assert.equal(8, rows[2][2][1])
  end))

  it("begins a segment at 8 MiB, named by its offset", with(function(open, dir, rows)
    local made = assert(open())
    for _ = 1, 200 do made:append(("x"):rep(65536)) end
    made:close()
    local second = 65536 * 128
    assert.equal(65536 * 72, #ports.fs.read_file(("%s%d.rec"):format(dir, second))
      - 72 * 16)
    assert.equal(second, rows[3][2][2])
    assert.equal(4, #rows)
  end))

  it("cuts a torn tail before the next append", with(function(open, dir)
    local made = assert(open())
    made:append("whole")
    made:close()
    local path = dir .. "0.rec"
    local whole = ports.fs.read_file(path)
    for _, tail in ipairs { "efr", recording.header(1, "more", 1) .. "mo", ("\0"):rep(100), "" } do
      local file = assert(io.open(path, "wb"))
      file:write(whole, tail)
      file:close()
      made = assert(open())
      assert.equal(5, made.seq)
      made:append("next")
      made:close()
      assert.same({ "1:whole", "1:next" }, payloads(path))
    end
  end))

  it("refuses what is damaged", with(function(open, dir)
    assert(open()):append("x")
    local file = assert(io.open(dir .. "0.rec", "ab"))
    file:write("no chunk at all, really")
    file:close()
    local made, err = open()
    assert.is_nil(made)
    assert.truthy(err:find("no chunk at byte 17"))
  end))

  it("goes on behind a gap when a write fails", with(function()
    local written, fails, files = {}, false, {}
    local now = 0
    local made = assert(recording.new {
      dir = "/d", pty_id = "p",
      ports = {
        fs = { mkdirs = function() return true end, readdir = function() return {} end },
        sys = { now_us = function() return now end, mono_us = function() return now end },
        uv = {
          fs_open = function(path)
            files[#files + 1] = path
            return #files
          end,
          fs_close = function() end,
          fs_ftruncate = function(fd, size) written[#written + 1] = ("cut %d %d"):format(fd, size) end,
          fs_write = function(fd, parts)
            if fails then return nil, "ENOSPC" end
            written[#written + 1] = ("%d %s"):format(fd, parts[2])
            return #parts[1] + #parts[2]
          end,
        },
      },
    })
    made:append("aa")
    fails = true
    made:append("bb")
    made:append("cc")
    fails = false
    made:append("dd")
    now = 2000000
    made:append("ee")
    assert.same({ "1 aa", "cut 1 18", "2 ee" }, written)
    assert.same({ "/d/p/0.rec", "/d/p/8.rec" }, files)
  end))
end)
