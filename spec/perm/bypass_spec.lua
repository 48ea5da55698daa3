-- The lines of spec/data/bypass.jsonl: none that does something else than reading is judged
-- read-only; those that only read are, but for the controls.
local calls = require "spec.perm.calls"
local read_only = require "efr.perm.read_only"
local shell = require "efr.perm.shell"
local strict = require "efr.perm.strict"

local ROOT = os.getenv("EFR_SOURCE") or "."

-- They ask on purpose: env and printenv print tokens, zmodload loads a module, and a file name or
-- the words of a file may become an option of print.
local CONTROLS = { [561] = true, [562] = true, [576] = true, [578] = true, [580] = true }

local CLEAN = { git_code = { state = "clean" }, found = calls.FOUND }

local ESCAPES = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f" }

local function decode(text)
  text = text:gsub("\\u(%x%x%x%x)", function(hex)
    return utf8.char(tonumber(hex, 16)):gsub("\\", "\\\\")
  end)
  return (text:gsub("\\(.)", function(char) return ESCAPES[char] or char end))
end

local function rows()
  local out = {}
  for line in io.lines(ROOT .. "/spec/data/bypass.jsonl") do
    local id = tonumber(line:match('"id": (%d+)'))
    local from = line:match('"cmd": "()')
    local stop = from
    while line:sub(stop, stop) ~= '"' do
      stop = stop + (line:sub(stop, stop) == "\\" and 2 or 1)
    end
    out[#out + 1] = {
      id = id, line = decode(line:sub(from, stop - 1)), expect = line:match('"expect": "([^"]*)"'),
    }
  end
  return out
end

local function judge(line)
  local ast = shell.parse(line)
  if not ast then return false, "opaque" end
  return read_only.judge(ast, CLEAN)
end

describe("lines that look harmless", function()
  local all = rows()

  it("are all there", function()
    local count = {}
    for _, row in ipairs(all) do count[row.expect] = (count[row.expect] or 0) + 1 end
    assert.same({ NOT = 303, ["read-only"] = 39 }, count)
  end)

  it("do not run without a question when they write, send or run something", function()
    for _, row in ipairs(all) do
      if row.expect == "NOT" then
        local ok, why = judge(row.line)
        assert.is_false(ok, row.id .. ": " .. row.line)
        assert.is_string(why)
      end
    end
  end)

  it("run without a question when they only read", function()
    for _, row in ipairs(all) do
      if row.expect == "read-only" then
        local ok, why = judge(row.line)
        assert.equal(not CONTROLS[row.id], ok, ("%d: %s: %s"):format(row.id, row.line, tostring(why)))
      end
    end
  end)

  it("match no row in the strict reading either", function()
    for _, row in ipairs(all) do
      local ast = row.expect == "NOT" and shell.parse(row.line)
      local commands = ast and strict.commands(ast)
      if commands then
        local free = 0
        for _, command in ipairs(commands) do
          if read_only.row(command, CLEAN) then free = free + 1 end
        end
        assert.is_true(free < #commands, row.id .. ": " .. row.line)
      end
    end
  end)
end)
