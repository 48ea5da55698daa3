-- What a contained call sends back: all of it or nothing, and how little reaches the hidden shell.
local environment = require "efr.sbx.environment"
local records = require "efr.sbx.records"

local function stream(...)
  return table.concat({ "efr-records", "v1", ... }, "\0") .. "\0"
end

describe("sbx.records.parse", function()
  it("reads every kind", function()
    local out = assert(records.parse(stream("cwd", "/a", "export", "A", "1\n2", "unset", "B",
      "func", "f", "", "unfunc", "g", "alias", "l", "ls", "unalias", "m", "end", "7")))
    assert.are.equal(7, out.status)
    assert.are.equal(7, #out.list)
    assert.are.same({ kind = "export", name = "A", value = "1\n2" }, out.list[2])
    assert.are.equal("/a", records.cwd(out.list))
  end)

  it("reads a failed setup", function()
    assert.are.equal("no zsh", records.parse(stream("setup-error", "no zsh")).setup_error)
  end)

  local many = {}
  for i = 1, 4097 do
    many[#many + 1] = "unset"
    many[#many + 1] = "A" .. i
  end
  many[#many + 1] = "end"
  many[#many + 1] = "0"
  for name, bytes in pairs({
    ["no end"] = stream("cwd", "/a"),
    ["bytes after the end"] = stream("end", "0", "cwd", "/a"),
    ["a second stream"] = stream("end", "0") .. stream("end", "0"),
    ["an unknown kind"] = stream("file", "/a", "end", "0"),
    ["a record that is cut off"] = stream("export", "A"),
    ["an end without a status"] = stream("end"),
    ["a status that is none"] = stream("end", "-1"),
    ["a last field without its NUL"] = stream("end", "0"):sub(1, -2),
    ["another header"] = "efr-records\0v2\0end\0000\0",
    ["no header"] = "end\0000\0",
    ["nothing"] = "",
    ["a relative directory"] = stream("cwd", "a", "end", "0"),
    ["a variable that is none"] = stream("export", "A B", "1", "end", "0"),
    ["an array element"] = stream("export", "a[1]", "1", "end", "0"),
    ["PWD"] = stream("export", "PWD", "/", "end", "0"),
    ["EFR_SANDBOX"] = stream("unset", "EFR_SANDBOX", "end", "0"),
    ["a function of the child shell"] = stream("func", "_efr_put", "x", "end", "0"),
    ["an empty name"] = stream("alias", "", "x", "end", "0"),
    ["a long name"] = stream("func", ("f"):rep(129), "x", "end", "0"),
    ["a setup error with more"] = stream("setup-error", "x", "end", "0"),
    ["more than 256 KiB"] = stream("export", "A", ("x"):rep(256 * 1024), "end", "0"),
    ["more than 4096 records"] = stream(table.unpack(many)),
  }) do
    it("drops everything for " .. name, function()
      local out, err = records.parse(bytes)
      assert.is_nil(out)
      assert.is_string(err)
    end)
  end

  it("never raises, whatever the bytes are", function()
    local seed = 12345
    for _ = 1, 2000 do
      local parts = {}
      for i = 1, 12 do
        seed = (seed * 1103515245 + 12345) % 2147483648
        local words = { "end", "export", "cwd", "func", "\0", "A", "/x", "0", "", "\255" }
        parts[i] = words[seed // 65536 % #words + 1]
      end
      local out, err = records.parse(stream(table.unpack(parts)))
      assert.is_true((out == nil) == (err ~= nil))
    end
  end)
end)

describe("sbx.records.apply", function()
  local function list(...)
    return assert(records.parse(stream(...))).list
  end

  it("grows from call to call and leaves the old state alone", function()
    local first = records.apply(records.new_state(), list("export", "A", "1", "func", "f", "x",
      "end", "0"))
    local second = records.apply(first, list("unset", "A", "alias", "l", "ls", "end", "0"))
    assert.are.same({ A = "1" }, first.exports)
    assert.are.same({ A = false }, second.exports)
    assert.are.same({ f = "x" }, second.functions)
    assert.are.equal("unset\0A\0\0func\0f\0x\0alias\0l\0ls\0", records.encode_state(second))
    assert.are.equal("", records.encode_state(records.new_state()))
  end)

  it("keeps nothing that the next call sets itself or that loads code", function()
    local state = records.apply(records.new_state(), list("export", "LD_PRELOAD", "/x", "export",
      "TMPDIR", "/x", "export", "ZDOTDIR", "/x", "export", "http_proxy", "x", "end", "0"))
    assert.are.same({}, state.exports)
  end)

  it("stops at 4 MiB and keeps the old state", function()
    local state = records.new_state()
    local big = ("x"):rep(200 * 1024)
    local grown, err
    for i = 1, 30 do
      grown, err = records.apply(state, list("export", "A" .. i, big, "end", "0"))
      if not grown then break end
      state = grown
    end
    assert.is_nil(grown)
    assert.is_truthy(err:find("4 MiB", 1, true))
  end)
end)

describe("sbx.environment", function()
  it("matches names with stars, and only secrets without regard to case", function()
    assert.is_true(environment.matches(environment.SECRET, "my_token_x", true))
    assert.is_true(environment.matches(environment.UNSET, "EFR_X"))
    assert.is_false(environment.matches(environment.UNSET, "efr_x"))
    assert.is_false(environment.matches({ "A.C" }, "ABC"))
    assert.is_true(environment.matches({ "*_KEY" }, "X_KEY"))
    assert.is_false(environment.matches({ "*_KEY" }, "X_KEY_Y"))
  end)

  it("names the runtime directory and the user's own patterns", function()
    local fields = table.concat(environment.fields({
      xrt = "/run/user/1", env_deny = { "MINE_*" }, env_keep = { "NPM_TOKEN" },
    }), " ")
    assert.is_truthy(fields:find("set XDG_RUNTIME_DIR /run/user/1", 1, true))
    assert.is_truthy(fields:find("unset MINE_*", 1, true))
    assert.is_truthy(fields:find("keep NPM_TOKEN", 1, true))
  end)
end)
