local programs = require "efr.perm.programs"

local KEYS = { operands = "string", tree = true, default_tree = "boolean", default_read = "boolean",
  pattern = "table", flags = "string", values = "string", long_flags = "table", long_values = "table",
  outputs = "table", reads = "table", outputs_named = "table", in_place = "string",
  in_place_long = "string", anywhere = "table", trees = "table", writes_cwd = "boolean", dot_files = "table",
  recursive = "table", names_only = "boolean", special = "string", network = "string",
  interactive = "boolean", prompts = true, moves = "table" }

describe("perm.programs", function()
  it("has records of known keys only", function()
    local count = 0
    for name, record in pairs(programs.all()) do
      count = count + 1
      for key, value in pairs(record) do
        assert.is_truthy(KEYS[key], name .. "." .. key)
        if KEYS[key] ~= true then assert.equal(KEYS[key], type(value), name .. "." .. key) end
      end
    end
    assert.is_true(count > 150)
  end)

  it("has no option that both takes and takes no value", function()
    for name, record in pairs(programs.all()) do
      for letter in (record.values or ""):gmatch(".") do
        assert.is_nil((record.flags or ""):find(letter, 1, true), name .. " -" .. letter)
      end
    end
  end)

  it("knows nothing of other programs", function()
    assert.same({}, programs.get "no-such-program")
    assert.same({}, programs.get(nil))
  end)
end)
