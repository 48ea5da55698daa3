local retry = require "efr.model.retry"

describe("model.retry", function()
  it("sends a POST again only when the server surely did not act", function()
    for _, row in ipairs({
      { "POST", { code = "EFR_CONNECT" }, true },
      { "POST", { code = "EFR_TIMEOUT" }, false },
      { "POST", { code = "EFR_IO" }, false },
      { "POST", { code = "EFR_TLS" }, false },
      { "POST", { status = 408 }, true },
      { "POST", { status = 429 }, true },
      { "POST", { status = 503 }, true },
      { "POST", { status = 500 }, false },
      { "POST", { status = 502 }, false },
      { "POST", { status = 504 }, false },
      { "POST", { status = 400 }, false },
      { "POST", { status = 401 }, false },
      { "GET", { status = 500 }, true },
      { "GET", { status = 502 }, true },
      { "GET", { status = 504 }, true },
      { "GET", { code = "EFR_TIMEOUT" }, true },
      { "GET", { code = "EFR_IO" }, true },
      { "GET", { code = "EFR_TLS" }, false },
      { "GET", { status = 404 }, false },
    }) do
      assert.equal(row[3], retry.may_retry(row[1], row[2]))
    end
  end)

  it("waits longer each time and gives up after the fourth attempt", function()
    assert.equal(250, retry.wait_ms(1, 0))
    assert.equal(499, retry.wait_ms(1, 0.999))
    assert.equal(500, retry.wait_ms(2, 0))
    assert.equal(1000, retry.wait_ms(3, 0))
    assert.is_nil(retry.wait_ms(4, 0))
  end)

  it("keeps the wait that the server named, up to 60 s", function()
    assert.equal(60000, retry.wait_ms(1, 0.5, 60000))
    assert.equal(0, retry.wait_ms(1, 0.5, 0))
    assert.is_nil(retry.wait_ms(1, 0.5, 60001))
  end)

  it("reads each form of the header", function()
    local now = 784111777 * 1000000 -- Sun, 06 Nov 1994 08:49:37 GMT
    for _, row in ipairs({
      { { ["retry-after-ms"] = "1500", ["retry-after"] = "9" }, 1500 },
      { { ["retry-after-ms"] = "12.7" }, 12 },
      { { ["retry-after"] = "3" }, 3000 },
      { { ["retry-after"] = "0.5" }, 500 },
      { { ["retry-after"] = "Sun, 06 Nov 1994 08:49:47 GMT" }, 10000 },
      { { ["retry-after"] = "Sun, 06 Nov 1994 08:49:27 GMT" }, 0 },
      { { ["retry-after"] = "soon" } },
      { { ["retry-after"] = "-3" } },
      { { ["retry-after"] = ("9"):rep(400) }, 1000000000000 },
      { {} },
    }) do
      assert.equal(row[2], retry.retry_after_ms(row[1], now))
    end
  end)

  it("reads HTTP dates", function()
    assert.equal(784111777, retry.http_date("Sun, 06 Nov 1994 08:49:37 GMT"))
    assert.equal(951782400, retry.http_date("Tue, 29 Feb 2000 00:00:00 GMT"))
    assert.equal(0, retry.http_date("Thu, 01 Jan 1970 00:00:00 GMT"))
    assert.is_nil(retry.http_date("Sun, 06 Foo 1994 08:49:37 GMT"))
    assert.is_nil(retry.http_date("yesterday"))
  end)
end)
