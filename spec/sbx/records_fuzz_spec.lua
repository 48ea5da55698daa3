-- Random changes of kept streams (tests/fuzz/corpus/records): the readers of what comes back from a call
-- never raise, take a stream whole or not at all, and what they take reads the same again.
local calls = require "efr.sbx.calls"
local generator = require "spec.perm.shell_generator"
local records = require "efr.sbx.records"

-- Another seed tries other streams: EFR_FUZZ_SEED=$RANDOM.
local SEED <const> = math.tointeger(os.getenv("EFR_FUZZ_SEED") or "0")
local ROUNDS <const> = os.getenv("EFR_TEST_SIZE") == "long" and 1000000 or 20000
local NONCE <const> = "0123456789abcdef0123456789abcdef"
local WORDS <const> = {
  "", "end", "0", "-1", "999", "1e3", "cwd", "export", "func", "alias", "unset", "unfunc", "unalias",
  "setup-error", "efr-records", "v1", "efr-result", "1", NONCE, "exit_code", "signal", "started",
  "/", "/a/../b", "PATH", "LD_PRELOAD", "RUST_LOG", "A=B", "_efr_x", "\255\254", "\n", "$(id)",
  ("x"):rep(200), "18446744073709551616", "0x10", " 1",
}

local function corpus()
  local dir = (os.getenv("EFR_SOURCE") or ".") .. "/tests/fuzz/corpus/records/"
  local out = {}
  for _, name in ipairs { "all", "setup", "empty", "hostile", "result", "refused" } do
    local file = assert(io.open(dir .. name, "rb"))
    out[#out + 1] = file:read("a")
    file:close()
  end
  return out
end

local function split(bytes)
  local fields = {}
  for field in (bytes .. "\0"):gmatch("([^\0]*)\0") do fields[#fields + 1] = field end
  return fields
end

-- A field goes, comes, is doubled or replaced, or a byte of the whole changes.
local function mutate(gen, bytes)
  local fields = split(bytes)
  for _ = 1, gen:random(3) do
    local at, word = gen:random(#fields), WORDS[gen:random(#WORDS)]
    local how = gen:random(5)
    if how == 1 then table.remove(fields, at) end
    if how == 2 then table.insert(fields, at, word) end
    if how == 3 then fields[at] = word end
    if how == 4 then table.insert(fields, at, fields[gen:random(#fields)]) end
    if #fields == 0 then fields[1] = word end
  end
  local out = table.concat(fields, "\0")
  if gen:chance(30) and #out > 0 then
    local at = gen:random(#out)
    out = out:sub(1, at - 1) .. string.char(gen:random(256) - 1) .. out:sub(at + 1)
  end
  return out
end

local function encode(parsed)
  local fields = { "efr-records", "v1" }
  for _, record in ipairs(parsed.list) do
    fields[#fields + 1] = record.kind
    fields[#fields + 1] = record.name
    fields[#fields + 1] = record.value
  end
  if parsed.setup_error then return table.concat({ "efr-records", "v1", "setup-error",
    parsed.setup_error }, "\0") .. "\0" end
  fields[#fields + 1] = "end"
  fields[#fields + 1] = tostring(parsed.status)
  return table.concat(fields, "\0") .. "\0"
end

describe("what comes back from a call, changed at random", function()
  it("is read whole or refused", function()
    local gen, seeds, taken = generator.new(SEED + 31), corpus(), 0
    for _ = 1, ROUNDS do
      local bytes = mutate(gen, seeds[gen:random(4)])
      local parsed, why = records.parse(bytes)
      if parsed then
        taken = taken + 1
        assert.are.same(parsed, records.parse(encode(parsed)), ("%q"):format(bytes))
        for _, record in ipairs(parsed.list) do
          assert(not (record.name .. (record.value or "")):find("\0"), ("%q"):format(bytes))
          if record.kind == "export" then
            assert(record.name:match("^[%a_][%w_]*$"), ("%q"):format(bytes))
          end
        end
      else
        assert(type(why) == "string", ("%q"):format(bytes))
      end
    end
    assert(taken > ROUNDS / 100, "too few were taken to say anything: " .. taken)
  end)

  it("and so is a result", function()
    local gen, seeds, taken = generator.new(SEED + 32), corpus(), 0
    for _ = 1, ROUNDS do
      local bytes = mutate(gen, seeds[4 + gen:random(2)])
      local result, why = calls.parse_result(bytes, NONCE)
      if result then
        taken = taken + 1
        assert(result.nonce == NONCE and type(result.started) == "boolean", ("%q"):format(bytes))
        assert(result.exit_code == nil or math.type(result.exit_code) == "integer")
      else
        assert(type(why) == "string", ("%q"):format(bytes))
      end
    end
    assert(taken > ROUNDS / 1000, "too few were taken to say anything: " .. taken)
  end)
end)
