-- efr.util.sha256 against the examples of FIPS 180-4 and, at every length around the edges of a
-- block, against sha256sum.
require "spec.helper"
local sha256 = require "efr.util.sha256"

describe("sha256", function()
  it("gives the published hashes", function()
    assert.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", sha256.hex(""))
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", sha256.hex("abc"))
    assert.equal("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
      sha256.hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))
    assert.equal("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
      sha256.hex(("a"):rep(1000000)))
  end)

  it("agrees with sha256sum at the edges of a block", function()
    local path = os.tmpname()
    for _, length in ipairs { 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128 } do
      local bytes = {}
      for i = 1, length do bytes[i] = string.char((i * 37 + length) % 256) end
      local file = assert(io.open(path, "wb"))
      file:write(table.concat(bytes)):close()
      local pipe = assert(io.popen("sha256sum <" .. path))
      local wanted = pipe:read("a"):match("^%x+")
      pipe:close()
      assert.equal(wanted, sha256.hex(table.concat(bytes)))
    end
    os.remove(path)
  end)
end)
