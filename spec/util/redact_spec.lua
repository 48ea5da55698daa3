local redact = require "efr.util.redact"

local function same(text) assert.equal(text, redact.text(text)) end
local function hides(text, want) assert.equal(want, redact.text(text)) end

describe("util.redact", function()
  it("hides values of secret-like assignments", function()
    hides("export GITHUB_TOKEN=abc123 x", "export GITHUB_TOKEN=[redacted] x")
    hides("DB_PASSWORD='a b c'; ls", "DB_PASSWORD='[redacted]'; ls")
    hides('api_key="zzz"', 'api_key="[redacted]"')
    hides("AWS_ACCESS_KEY_ID=AK", "AWS_ACCESS_KEY_ID=[redacted]")
    hides("login --password hunter2 -v", "login --password [redacted] -v")
    hides("--api-key=zz", "--api-key=[redacted]")
    hides('{"access_token": "zz", "n": 1}', '{"access_token": "[redacted]", "n": 1}')
  end)

  it("leaves names that hold no secret, and references", function()
    same("MAX_TOKENS=5 TOKEN_COUNT=7 TOKEN_URL=x")
    same("TOKEN=$TOKEN")
    same('PASSWORD="${PW}" cmd')
    same("KEYBOARD=us path=/x")
    same("if a==b then")
  end)

  it("hides keys with a known prefix", function()
    hides("use sk-ant-api03-abcdefghijkl now", "use [redacted] now")
    hides("ghp_0123456789abcdef0123", "[redacted]")
    same("risk-ant-api03-abcdefghijkl")
    same("sk-short")
  end)

  it("hides passwords in URLs and headers", function()
    hides("git clone https://u:pw@host/x", "git clone https://u:[redacted]@host/x")
    same("http://localhost:8080/a@b")
    hides('curl -H "Authorization: Bearer abc" u', 'curl -H "Authorization: [redacted]" u')
    hides('{"Authorization": "Bearer abc"}', '{"Authorization": "[redacted]"}')
    hides("cookie: a=b; c=d\nnext", "cookie: [redacted]\nnext")
    same('curl -H "Authorization: Bearer $T" u')
  end)

  it("knows the password options of some programs", function()
    hides("mysql -u root -phunter2 db", "mysql -u root -p[redacted] db")
    hides("sshpass -p hunter2 ssh h", "sshpass -p [redacted] ssh h")
    hides("docker login -u me -p hunter2", "docker login -u me -p [redacted]")
    hides("/usr/bin/curl -u me:pw http://h", "/usr/bin/curl -u [redacted] http://h")
    same("mkdir -p dir; ls -u x")
    same("mysql -p db")
  end)

  it("grows linearly on hostile input", function()
    for _, unit in ipairs { "a", "a=", "A_TOKEN", "a:", "-", "\"", "sk-", "://", "x " } do
      local s = unit:rep(60000 // #unit)
      assert.is_string(redact.text(s))
    end
  end)

  it("hints at a key", function()
    assert.equal("sk-ant-...a1b2", redact.hint("sk-ant-api03-xxxxxxxxa1b2"))
    assert.equal("...", redact.hint("short"))
  end)
end)
