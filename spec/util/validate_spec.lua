local validate = require "efr.util.validate"

local SCHEMA = {
  id = { type = "uuid" },
  text = { type = "string", min = 1, max = 5 },
  count = { type = "integer", optional = true, min = 0, max = 3 },
  mode = { type = "choice", optional = true, choices = { "a", "b" } },
  files = {
    type = "list", optional = true, max = 2,
    items = { type = "table", fields = { path = { type = "string" } } },
  },
  flag = { type = "boolean", optional = true },
  extra = { type = "any", optional = true },
}
local ID = "019a9b1c-0000-7000-8000-0123456789ab"

local function value(changes)
  local out = { id = ID, text = "hi" }
  for k, v in pairs(changes) do out[k] = v end
  return out
end

local function err(changes, opts)
  local ok, why = validate.check(SCHEMA, value(changes), opts)
  assert.is_nil(ok)
  return why
end

describe("util.validate", function()
  it("accepts what fits, and unknown names unless strict", function()
    assert.is_true(validate.check(SCHEMA, value { other = 1, count = 3, mode = "b", flag = false,
      files = { { path = "x" } }, extra = {} }))
    assert.is_true(validate.check(SCHEMA, value { files = {} }))
    assert.equal("other is not known", err({ other = 1 }, { strict = true }))
  end)

  it("names the field that does not fit", function()
    assert.equal("id must be a lowercase UUID", err { id = ID:upper() })
    assert.equal("id must be a lowercase UUID", err { id = ID .. "\n" })
    assert.equal("text must be a string", err { text = 1 })
    assert.equal("text must hold no NUL byte", err { text = "a\0b" })
    assert.equal("text must have a length of at least 1", err { text = "" })
    assert.equal("text must have a length of at most 5", err { text = "123456" })
    assert.equal("count must be an integer", err { count = 1.0 })
    assert.equal("count must be at most 3", err { count = 4 })
    assert.equal("mode must be one of a, b", err { mode = "c" })
    assert.equal("files must be a list", err { files = { path = "x" } })
    assert.equal("files[1].path is missing", err { files = { { path = "x" }, {} } })
    assert.equal("flag must be true or false", err { flag = 0 })
    assert.equal("id is missing", select(2, validate.check(SCHEMA, {})))
    assert.equal("must be a table", select(2, validate.check(SCHEMA, "x")))
  end)
end)
