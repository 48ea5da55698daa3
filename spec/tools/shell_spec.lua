local fake = require "spec.tools.fake"
local shell = require "efr.tools.shell"

local function declare(input)
  local requirements, err = shell.declare(input, fake.context())
  if not requirements then return nil, err end
  local kinds = {}
  for i, item in ipairs(requirements) do kinds[i] = item.kind end
  return table.concat(kinds, " "), requirements
end

local function run(result, changes, input)
  local seen
  local ctx = fake.context(changes)
  function ctx.shell(opts)
    seen = opts
    return result
  end
  return shell.run(input or { command = "x" }, ctx), seen
end

describe("tools.shell", function()
  it("refuses wrong input and says what is right", function()
    for _, row in ipairs {
      { {}, "command must be a string that is not empty." },
      { { command = " \n" }, "command must be a string that is not empty." },
      { { command = "a\0b" }, "command holds a NUL byte." },
      { { command = ("x"):rep(65537) }, "command has more than 64 KiB." },
      { { command = "x", timeout_seconds = 0 },
        "timeout_seconds must be a whole number from 1 to 600." },
      { { command = "x", timeout_seconds = 601 },
        "timeout_seconds must be a whole number from 1 to 600." },
      { { command = "x", timeout_seconds = "9" },
        "timeout_seconds must be a whole number from 1 to 600." },
      { { command = "x", nested_shell = 1 }, "nested_shell must be true or false." },
      { { command = "x", cwd = "/" },
        "shell has no parameter cwd. It takes command, timeout_seconds, nested_shell and needs." },
    } do
      assert.same({ nil, row[2] }, { declare(row[1]) })
    end
  end)

  it("declares the line and its directory", function()
    local kinds, requirements = declare { command = "make test", timeout_seconds = 30.0 }
    assert.equal("line", kinds)
    assert.same({ kind = "line", text = "make test", cwd = "/w" }, requirements[1])
  end)

  it("declares what the model needs, with absolute paths, and only in auto", function()
    local null = {}
    local auto = { mode = "auto", cwd = "/w", home = "/h", scratch = "/s", json = { null = null } }
    local function needs(given, changes)
      local context = fake.context(changes or auto)
      local out = assert(shell.declare({ command = "ls", needs = given }, context))
      return out[2] and out[2].needs
    end
    assert.same({ write = { "/h/a", "/w/b", "/c", "/s/d" }, outside = true, reason = "r" },
      needs { write = { "~/a", "b", "/c", "$SCRATCH/d" }, outside = true, userns = false,
        reason = "r", sockets = {}, hosts = {} })
    assert.same({ bus = "system" }, needs { bus = "system", device = null })
    assert.is_nil(needs {})
    assert.is_nil(needs({ outside = true }, { mode = "cautious" }))
    assert.same({ nil, "needs must be an object." }, { declare { command = "ls", needs = true } })
  end)

  it("declares a shell that stays; what the line does is read out of it later", function()
    assert.equal("line", (declare { command = "sudo curl http://x > /etc/x" }))
    assert.equal("line nested_shell", (declare { command = "bash", nested_shell = true }))
    assert.equal("line", (declare { command = "bash", nested_shell = false }))
  end)

  it("gives line and timeout to the hidden shell", function()
    local _, seen = run({ outcome = "finished", output = "", exit_code = 0, cwd = "/w" }, nil,
      { command = "a\nb", timeout_seconds = 5 })
    assert.same({ line = "a\nb", timeout_ms = 5000 }, seen)
    _, seen = run({ outcome = "finished", output = "", exit_code = 0, cwd = "/w" })
    assert.equal(30000, seen.timeout_ms)
  end)

  it("ends with exit code and directory", function()
    local done = run { outcome = "finished", output = "hi", exit_code = 0, cwd = "/d" }
    assert.same({ output = "hi\n[exit code 0, cwd /d]", is_error = false, exit_code = 0 }, done)
    local failed = run { outcome = "finished", output = "", exit_code = 3, cwd = "/d",
      truncated = true }
    assert.equal("[exit code 3, cwd /d]", failed.output)
    assert.is_true(failed.is_error and failed.truncated)
  end)

  it("names the sandbox when a failure can come from it", function()
    local function contained(output, exit_code, launch)
      local result = { outcome = "finished", output = output, exit_code = exit_code, cwd = "/d" }
      return run(result, { launch = launch or "contained" }).output
    end
    local stopped = contained("touch: Read-only file system\n", 1)
    assert.is_truthy(stopped:find("^[^\n]*\n%[exit code 1, cwd /d%]\n%[it ran in the sandbox: "))
    assert.equal("1 test failed\n[exit code 1, cwd /d]", contained("1 test failed\n", 1))
    assert.equal("Permission denied\n[exit code 0, cwd /d]", contained("Permission denied\n", 0))
    assert.equal("Permission denied\n[exit code 1, cwd /d]",
      contained("Permission denied\n", 1, "direct"))
  end)

  it("has a text for each other outcome", function()
    local slow = run { outcome = "timeout", output = "tail\n" }
    local goes_on = "[the command still runs after 30 s and goes on in the hidden shell, which takes "
      .. "no other command until it ends; "
    assert.equal(goes_on .. "its output ends with:]\ntail\n", slow.output)
    assert.is_false(slow.is_error)
    assert.equal(goes_on .. "it printed nothing so far]",
      run({ outcome = "timeout", output = "" }).output)
    assert.is_truthy(run({ outcome = "timeout", output = "~\n~", full_screen = true }).output
      :find("^%[the command is a full%-screen program that still runs .*:%]\n~\n~$"))
    assert.is_truthy(run({ outcome = "finished", output = "a\n", exit_code = 0, cwd = "/d",
      fresh = true }).output:find("%[exit code 0, cwd /d%]\n%[the hidden shell of before had ended"))
    local setup = { outcome = "setup_failed", output = "", setup_error = "no user namespaces" }
    assert.equal("[the sandbox could not start: no user namespaces; nothing of it ran]",
      run(setup, { launch = "contained" }).output)
    assert.equal("[the command could not start: no user namespaces; nothing of it ran]",
      run(setup).output)
    setup = { outcome = "setup_failed", output = "", setup_error = "no prompt", no_shell = true }
    assert.equal("[the hidden shell could not start: no prompt; nothing of it ran]",
      run(setup, { launch = "contained" }).output)
    assert.same({
      output = "a\n[the sandbox ended while the command ran: it left no result; what the command "
        .. "did until then stays]",
      is_error = true,
    }, run({ outcome = "cut_short", output = "a\n", cut_short = "it left no result" }))
    assert.same({
      output = "[the hidden shell is busy: it shows no prompt. The command did not run, and no call "
        .. "can change that: tell the user. ,shell shows and stops what runs there, ,new starts with "
        .. "a new shell.]",
      is_error = true,
    }, run { outcome = "busy", output = "", setup_error = "it shows no prompt" })
    assert.equal("zsh: parse error\n[zsh could not read the command, and nothing of it ran]",
      run({ outcome = "not_started", output = "zsh: parse error\n" }).output)
    assert.same({ output = "v\n[exit code 3, cwd /r, in the shell that ssh host started]",
      is_error = true, exit_code = 3 }, run { outcome = "finished", output = "v\n", exit_code = 3,
      nested = { line = "ssh host", cwd = "/r" } })
    for outcome, words in pairs { nested = "shell is open", nested_ended = "has ended" } do
      local result = run { outcome = outcome, output = "$ " }
      assert.is_false(result.is_error)
      assert.is_truthy(result.output:find("^%$ \n%[.*" .. words), result.output)
    end
    for _, outcome in ipairs { "too_long", "setup_failed", "interrupted", "wants_secret", "not_started",
      "exited" } do
      local result = run { outcome = outcome, output = "so far" }
      assert.is_true(result.is_error, outcome)
      assert.is_truthy(result.output:find("^so far"), outcome)
    end
    assert.has_error(function() run { outcome = "new" } end)
  end)
end)
