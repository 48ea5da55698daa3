local time = require "efr.util.time"

describe("util.time", function()
  it("writes RFC 3339", function()
    assert.equal("1970-01-01T00:00:00Z", time.rfc3339(0))
    assert.equal("2024-02-29T12:34:56.000789Z", time.rfc3339(1709210096000789))
    assert.equal("2000-03-01T00:00:00Z", time.rfc3339(951868800 * 1000000))
    assert.equal("1969-12-31T23:59:59.999999Z", time.rfc3339(-1))
  end)

  it("agrees with the C library on many days", function()
    for day = 0, 40000, 13 do
      local at = day * 86400 + 3661
      assert.equal(os.date("!%Y-%m-%dT%H:%M:%SZ", at), time.rfc3339(at * 1000000))
    end
  end)

  it("tells how long ago", function()
    local function ago(s) return time.relative(0, s * 1000000) end
    assert.equal("0s ago", ago(0))
    assert.equal("30s ago", ago(30))
    assert.equal("5m 0s ago", ago(300))
    assert.equal("1h 1m ago", ago(3665))
    assert.equal("2d 7h ago", ago(2 * 86400 + 7 * 3600 + 59))
    assert.equal("in 52m 0s", time.relative(52 * 60 * 1000000, 0))
  end)
end)
