local notices = require "efr.daemon.notices"

describe("daemon.notices", function()
  local files, conversation, self, followers

  before_each(function()
    files = {}
    conversation = { id = "c", title = "fix the test", tty = "/dev/pts/3" }
    followers = notices.followers()
    local open
    self = notices.new {
      fs = { mkdirs = function()
        return true
      end },
      uv = {
        fs_open = function(path, flags)
          assert.equal("a", flags)
          open = path
          return 9
        end,
        fs_write = function(_, text)
          files[open] = (files[open] or "") .. text
          return #text
        end,
        fs_close = function() end,
      },
      log = { warn = error },
      query = {
        conversation = function()
          return conversation
        end,
        terminals = function(_, since)
          return since <= 100 and { { tty = "/dev/pts/3" }, { tty = "/dev/pts/4" } } or {}
        end,
      },
      followers = followers,
      dir = "/run/notices",
    }
  end)

  local function row(event)
    self:on_row { kind = event.kind, conversation_id = "c", event = event }
  end

  it("tells a terminal that does not follow", function()
    row { kind = "turn_completed" }
    row { kind = "turn_failed", error = { code = "internal", message = "no\nway" } }
    row { kind = "approval_requested", summary = "rm x" }
    row { kind = "turn_started" }
    assert.equal("efr: turn finished: fix the test\n"
      .. "efr: turn failed: fix the test: no way\n"
      .. "efr: approval waiting: fix the test: rm x\n", files["/run/notices/pts-3"])
  end)

  it("tells of a command that was left in the hidden shell", function()
    row { kind = "shell_command_left", line = "x" }
    row { kind = "shell_command_input_changed", input = "visible" }
    row { kind = "shell_command_input_changed", input = "none" }
    row { kind = "shell_command_ended", exit_code = 3 }
    row { kind = "shell_command_ended" }
    assert.equal("efr: a command in the hidden shell waits for input: fix the test; efr shell\n"
      .. "efr: the command left in the hidden shell ended (exit 3): fix the test\n"
      .. "efr: the command left in the hidden shell ended: fix the test\n",
      files["/run/notices/pts-3"])
  end)

  it("tells each error of the settings once, and what waits for a restart", function()
    local path = "/run/notices/pts-4"
    self:settings("config.toml has an error; the old settings stay: line 1", {}, 100)
    self:settings("config.toml has an error; the old settings stay: line 1", {}, 100)
    self:settings(nil, { "a.b", "c" }, 100)
    self:settings(nil, { "a.b", "c" }, 100)
    assert.equal("efr: config.toml has an error; the old settings stay: line 1\n"
      .. "efr: restart efrd to apply: a.b, c\n", files[path])
    assert.equal(files[path], files["/run/notices/pts-3"])
    files = {}
    self:settings(nil, {}, 100)
    self:settings("config.toml has an error; the old settings stay: line 1", { "c" }, 101)
    assert.same({}, files)
  end)

  it("is silent while a client in that terminal follows", function()
    local remove = followers:add("c", "/dev/pts/3")
    local again = followers:add("c", "/dev/pts/3")
    row { kind = "turn_completed" }
    remove()
    remove()
    row { kind = "turn_completed" }
    assert.is_nil(next(files))
    again()
    row { kind = "turn_completed" }
    assert.truthy(files["/run/notices/pts-3"])
  end)

  it("never cuts the login hint and keeps characters whole", function()
    conversation.title = ("é"):rep(300)
    row { kind = "turn_failed", error = { code = "unauthorized", message = "refused" } }
    local line = files["/run/notices/pts-3"]
    assert.is_true(#line <= 201)
    assert.truthy(utf8.len(line))
    assert.truthy(line:find("...; run efr login openai-compatible\n", 1, true))
  end)

  it("writes no file for a name that is none", function()
    for _, tty in ipairs { "/dev/../../etc/x", "", "/dev/pts/\n3", ("x"):rep(65) } do
      conversation.tty = tty
      row { kind = "turn_completed" }
    end
    conversation.tty = nil
    row { kind = "turn_completed" }
    assert.is_nil(files["/run/notices/etc-x"])
    for path in pairs(files) do
      assert.is_nil(path:find("..", 1, true) and path or nil)
    end
  end)

  it("says what a restart dropped", function()
    self:restarted { { tty = "/dev/pts/3", count = 1, conversation_id = "ID" },
      { tty = "/dev/pts/4", count = 2, conversation_id = "ID" } }
    assert.equal("efr restarted; a queued prompt did not run; see it with efr history ID and"
      .. " send it again\n", files["/run/notices/pts-3"])
    assert.truthy(files["/run/notices/pts-4"]:find("2 queued prompts", 1, true))
  end)
end)
