-- Specs of the environment that a hidden zsh starts with.
local env = require "efr.shell.env"

local function build(environ, opts)
  opts = opts or {}
  local list = env.build {
    environ = environ, user = { name = "u", home = "/home/u", shell = "/bin/zsh" },
    assets = "/run/a", control = "/run/c", cwd = "/w", scratch = opts.scratch,
  }
  local vars = {}
  for _, entry in ipairs(list) do
    local name, value = entry:match("^([^=]+)=(.*)$")
    vars[name] = value
  end
  return vars, list
end

describe("environment of a hidden shell", function()
  it("keeps what efrd has and fills in the user", function()
    local vars = build({ LANG = "de_DE.UTF-8", PATH = "/p", XDG_RUNTIME_DIR = "/run/user/1" })
    assert.equal("de_DE.UTF-8", vars.LANG)
    assert.equal("/p", vars.PATH)
    assert.equal("/run/user/1", vars.XDG_RUNTIME_DIR)
    assert.equal("/home/u", vars.HOME)
    assert.equal("u", vars.LOGNAME)
    assert.equal("/w", vars.PWD)
    assert.equal("1", vars.EFR_HIDDEN_SHELL)
  end)

  it("removes efr's own, the terminal's and the service's", function()
    local names = { "EFR_HOME", "_EFR_X", "TMUX", "KITTY_PID", "TERM_PROGRAM", "COLUMNS", "SHLVL",
      "NOTIFY_SOCKET", "INVOCATION_ID", "OLDPWD", "_" }
    local environ = {}
    for _, name in ipairs(names) do environ[name] = "x" end
    local vars = build(environ)
    for _, name in ipairs(names) do assert.is_nil(vars[name], name) end
  end)

  it("has no pager and no editor that waits", function()
    local vars = build({ PAGER = "less", EDITOR = "vi", TERM = "dumb" })
    assert.equal("cat", vars.PAGER)
    assert.equal("cat", vars.GIT_PAGER)
    assert.equal("", vars.AWS_PAGER)
    assert.equal("/run/a/editor", vars.GIT_SEQUENCE_EDITOR)
    assert.equal("xterm-256color", vars.TERM)
  end)

  it("hands the user's ZDOTDIR through the shim", function()
    local vars = build({ ZDOTDIR = "/z" })
    assert.equal("/run/a", vars.ZDOTDIR)
    assert.equal("/z", vars._EFRH_ZDOTDIR)
    assert.is_nil(build({})._EFRH_ZDOTDIR)
    assert.equal("/run/c", vars._EFRH_DIR)
  end)
end)
