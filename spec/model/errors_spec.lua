local errors = require "efr.model.errors"

describe("model.errors", function()
  it("names the class of an HTTP answer and what the turn reports", function()
    for _, row in ipairs({
      { 401, "bad key", nil, "Unauthorized", "unauthorized" },
      { 404, "model 'x' not found, try pulling it first", nil, "UnknownModel", "invalid" },
      { 404, "no such path", nil, "Api", "internal" },
      { 400, "The model `x` does not exist", "model_not_found", "UnknownModel", "invalid" },
      { 400, "This model's maximum context length is 8192 tokens", "context_length_exceeded",
        "ContextOverflow", "internal" },
      { 400, "bad request", nil, "Api", "internal" },
      { 429, "slow down", nil, "RateLimited", "busy" },
      { 503, "loading", nil, "Overloaded", "busy" },
      { 500, "", nil, "Api", "internal" },
    }) do
      local err = errors.from_http(row[1], row[2], { code = row[3], model = "x" })
      assert.equal(row[4], err.class)
      local failure = errors.failure(err)
      assert.equal(row[5], failure.code)
      assert.matches(tostring(row[1]), failure.message)
      if row[4] == "UnknownModel" then assert.same({ model = "x" }, failure.data) end
      if row[4] == "ContextOverflow" then
        assert.same({ cause = "context_overflow" }, failure.data)
      end
    end
  end)

  it("passes the wait on", function()
    local failure = errors.failure(errors.from_http(429, "", { retry_after_ms = 1200 }))
    assert.same({ retry_after_ms = 1200 }, failure.data)
  end)

  it("reads the error objects of common servers", function()
    for _, row in ipairs({
      { { error = { message = "m", code = "c", type = "t" } }, "m", "c" },
      { { error = { message = "m", code = 400, type = "t" } }, "m", "t" },
      { { error = "text" }, "text" },
      { { message = "m" }, "m" },
      { { detail = "d" }, "d" },
      { {} },
      { "no table" },
    }) do
      local message, code = errors.read_body(row[1])
      assert.equal(row[2], message)
      assert.equal(row[3], code)
    end
  end)

  it("cuts long texts between characters", function()
    local text = errors.clip(("é"):rep(2000))
    assert.is_truthy(utf8.len(text))
    assert.is_true(#text <= errors.MAX_TEXT + 3)
    assert.equal("short", errors.clip("short"))
  end)
end)
