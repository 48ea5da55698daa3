-- efr config edit on a terminal: the editor has it, a broken file is told and can be edited again.
-- What the command does in a pipe: tests/e2e/config.sh.

local fs = require "efr.fs"
local loop = require "spec.host.loop"
local pty = require "efr.pty"
local sys = require "efr.sys"
local uv = require "luv"

local EFR <const> = assert(uv.fs_realpath((os.getenv("EFR_BIN") or "build/bin") .. "/efr"))

-- Writes the file as its next step says; each step is used once.
local EDITOR <const> = [[
#!/bin/sh
cat "$1" >>"$HOME/seen"
printf 'editing\n' >/dev/tty
step=$(ls "$HOME"/step.* | head -n 1)
cat "$step" >"$1"
rm "$step"
]]

describe("efr config edit", function()
  local dir, term

  before_each(function()
    dir = "/tmp/efr-edit-" .. sys.uuid7()
    assert(fs.mkdirs(dir .. "/config", 448))
    assert(fs.write_atomic(dir .. "/editor", EDITOR, 448))
  end)
  after_each(function()
    term:close()
    assert(fs.rmtree(dir))
  end)

  -- The terminal of `efr config edit`, whose editor writes these texts one after the other.
  local function start(...)
    for i, text in ipairs { ... } do
      assert(fs.write_atomic(("%s/step.%d"):format(dir, i), text, 384))
    end
    local self = { out = "" }
    term = assert(pty.open({
      path = EFR, argv = { EFR, "config", "edit" }, cwd = dir, cols = 100, rows = 20,
      env = { "HOME=" .. dir, "EFR_HOME=" .. dir, "PATH=/usr/bin:/bin", "TERM=dumb",
        "EDITOR=" .. dir .. "/editor" },
    }))
    term:on_data(function(bytes) self.out = self.out .. bytes end)
    term:on_exit(function(code) self.code = code end)
    function self.sees(words)
      loop.wait_until(function() return self.out:find(words, 1, true) end)
      self.out = self.out:gsub("^.*" .. words:gsub("%p", "%%%0"), "")
    end
    function self.ends()
      loop.wait_until(function() return self.code end)
      return self.code
    end
    return self
  end

  local function config() return assert(fs.read_file(dir .. "/config/config.toml", 100000)) end

  it("starts from the example and tells that no efrd runs", function()
    local self = start "log = 'warn'\n"
    self.sees "efrd does not run; it reads the file when it starts"
    assert.equal(0, self.ends())
    assert.equal("log = 'warn'\n", config())
    assert.is_truthy(fs.read_file(dir .. "/seen", 100000):find("#log = \"info\"", 1, true))
  end)

  it("offers a broken file again until it is fine", function()
    local self = start("log = 1\n", "log = \n", "log = 'warn'\n")
    self.sees "config.toml line 1 column 1: log must be a string"
    self.sees "edit it again? [Y/n] "
    term:write "\r"
    self.sees "line 1 column 7: a value is expected"
    self.sees "edit it again? [Y/n] "
    term:write "y\r"
    self.sees "efrd does not run"
    assert.equal(0, self.ends())
    assert.equal("log = 'warn'\n", config())
  end)

  it("leaves it at no", function()
    local self = start "log = 1\n"
    self.sees "edit it again? [Y/n] "
    term:write "n\r"
    assert.equal(1, self.ends())
    assert.equal("log = 1\n", config())
  end)
end)
