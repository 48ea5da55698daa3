-- The whole program `efr` on a pipe and on a real terminal, against a fake daemon.

local fake = require "spec.cli.fake_daemon"
local json = require "efr.json"
local pty = require "efr.pty"
local uv = require "luv"

local EFR <const> = assert(uv.fs_realpath((os.getenv("EFR_BIN") or "build/bin") .. "/efr"))
local T <const> = "0199a000-0000-7000-8000-000000000001"
local C <const> = "0199a000-0000-7000-8000-00000000000c"
local WAIT_MS <const> = 10000

local dir, server, seq, stream

-- Lets the loop run until the condition holds.
local function wait_for(what, condition)
  local late, from = false, uv.now()
  local timer = assert(uv.new_timer()) -- what it waits for need not be an event of this loop
  timer:start(5, 5, function()
    late = uv.now() - from > WAIT_MS
  end)
  while not condition() and not late do
    uv.run("once")
  end
  timer:close()
  assert(not late, "waited in vain for " .. what)
end

local function environment(more)
  local env = { "HOME=" .. dir, "EFR_HOME=" .. dir, "TERM=xterm-256color", "PATH=/usr/bin:/bin" }
  for _, entry in ipairs(more or {}) do
    env[#env + 1] = entry
  end
  return env
end

local function event(fields)
  fields.turn_id = fields.turn_id or T
  seq = seq + 1
  stream.peer:item(stream.id, {
    kind = "event", seq = seq, conversation_id = C, at = "2026-10-10T09:00:00Z", event = fields,
  })
end

local function started()
  event({ kind = "turn_started", cwd = "/" })
end

local function text(words)
  event({ kind = "assistant_message_completed", index = 0, text = words })
end

local function completed()
  event({ kind = "turn_completed", usage = { input_tokens = 10, output_tokens = 5 } })
end

-- A daemon that plays `play` once the client follows its turn.
local function serve(play, more)
  local methods = {
    ["prompt.send"] = function(peer, _, id)
      peer:result(id, { conversation_id = C, turn_id = T, seq = 1 })
    end,
    ["conversation.subscribe"] = function(peer, _, id)
      stream = { peer = peer, id = id }
      seq = 1
      play()
    end,
  }
  for name, handler in pairs(more or {}) do
    methods[name] = handler
  end
  server = fake.new(dir, methods)
end

-- Runs efr with pipes; returns its exit code, stdout and stderr.
local function piped(args, env, input)
  local pipes = { uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false) }
  local got, code = { "", "" }, nil
  local options = { args = args, stdio = pipes, env = environment(env), cwd = dir }
  local child = assert(uv.spawn(EFR, options, function(status, signal)
    code = signal ~= 0 and 128 + signal or status
  end))
  pipes[1]:write(input or "")
  pipes[1]:shutdown()
  local open = 2
  for i = 1, 2 do
    pipes[i + 1]:read_start(function(_, bytes)
      open = open - (bytes and 0 or 1)
      got[i] = got[i] .. (bytes or "")
    end)
  end
  wait_for("the end of efr", function()
    return code and open == 0
  end)
  child:close()
  for _, pipe in ipairs(pipes) do
    pipe:close()
  end
  return code, got[1], got[2]
end

-- Starts efr on a terminal of its own.
local function terminal(args, env)
  local argv = { EFR, table.unpack(args) }
  local self = { out = "" }
  self.pty = assert(pty.open({
    path = EFR, argv = argv, env = environment(env), cwd = dir,
    cols = 60, rows = 20,
  }))
  self.pty:on_data(function(bytes)
    self.out = self.out .. bytes
  end)
  self.pty:on_exit(function(code, signal)
    self.code = signal ~= 0 and 128 + signal or code
  end)
  function self.sees(words)
    wait_for(words, function()
      return self.out:find(words, 1, true)
    end)
  end
  function self.ends()
    wait_for("the end of efr", function()
      return self.code
    end)
    local modes = assert(self.pty:modes())
    self.pty:close()
    assert.same({ echo = true, canonical = true }, modes)
    assert.is_nil(self.out:match("\27%[%?25h.*\27%[%?25l"), "the cursor is shown at the end")
    return self.code
  end
  return self
end

local function ask()
  event({ kind = "approval_requested", call_id = "c1", tool = "shell", summary = "make" })
end

describe("efr", function()
  before_each(function()
    dir = fake.dir()
  end)

  after_each(function()
    if server then
      server:close()
      server = nil
    end
    fake.clean(dir)
  end)

  describe("in a pipe", function()
    it("writes the reply to stdout and hands the plugin's context over", function()
      serve(function()
        started()
        text("Hello\tthere \27[2J.")
        completed()
      end)
      local context = '{"pwd":"/p q","tty":"/dev/pts/7","last_status":2,"oldpwd":null,"x":1}'
      local code, out, err = piped({ "send" }, {
        "EFR_CONTEXT=" .. context, "EFR_PROMPT=what's `this` !! #1\nline 2",
        "EFR_LAST_COMMAND=make", "EFR_MODE=auto",
      })
      assert.same({ 0, "Hello\tthere ␛[2J.\n" }, { code, out })
      assert.matches("^done in", err)
      local params = server:requests("prompt.send")[1].params
      assert.equal("what's `this` !! #1\nline 2", params.text)
      assert.same({ pwd = "/p q", tty = "/dev/pts/7", last_status = 2 }, params.context)
      assert.same({ "make", "auto" }, { params.last_command, params.settings.mode })
      assert.equal("shell", server:requests("hello")[1].params.origin)
      assert.equal(0, server:requests("conversation.subscribe")[1].params.after_seq)
    end)

    it("takes the prompt from words, with hyphens", function()
      serve(function()
        started()
        completed()
      end)
      local code = piped({ "send", "--mode", "cautious", "fix", "-x", "--now" })
      local params = server:requests("prompt.send")[1].params
      assert.same({ 0, "fix -x --now", "cautious" }, { code, params.text, params.settings.mode })
      assert.equal(dir, params.context.pwd)
      assert.equal("cli", server:requests("hello")[1].params.origin)
    end)

    it("says why a turn failed and what to do", function()
      serve(function()
        started()
        event({ kind = "turn_failed", error = { code = "unauthorized", message = "no key" } })
      end)
      local code, _, err = piped({ "send", "x" })
      assert.equal(1, code)
      assert.equal("efr: no key\nlog in with: efr login openai-compatible\n", err)
    end)

    it("answers usage errors with 2 and a refused setting with its choices", function()
      serve(function() end, {
        ["prompt.send"] = function(peer, _, id)
          peer:fail(id, "invalid", "unknown mode x", { setting = "mode", choices = { "auto" } })
        end,
      })
      local code, _, err = piped({ "send", "--mode", "x", "hi" })
      assert.same({ 2, "efr: unknown mode x\nchoices: auto\n" }, { code, err })
      for _, args in ipairs({
        { "nonsense" }, { "send" }, { "new" }, { "status", "x" }, { "history", "abc" },
        { "send", "--context-json", "{", "x" },
      }) do
        code = piped(args)
        assert.equal(2, code, table.concat(args, " "))
      end
    end)

    it("says that the connection broke", function()
      serve(function()
        started()
        stream.peer:close()
      end)
      local code, _, err = piped({ "send", "x" })
      assert.equal(1, code)
      assert.matches("efr: efrd closed the connection\n.*efr history " .. C:gsub("%-", "%%-"), err)
    end)

    it("resubscribes after an overflow", function()
      local times = 0
      serve(function()
        times = times + 1
        if times == 1 then
          started()
          stream.peer:fail(stream.id, "overflow", "too slow", { last_seq = 2 })
        else
          seq = 2
          text("ok")
          completed()
        end
      end)
      local code, out = piped({ "send", "x" })
      assert.same({ 0, "ok\n" }, { code, out })
      assert.equal(2, server:requests("conversation.subscribe")[2].params.after_seq)
    end)

    it("reads a key from stdin", function()
      serve(function() end, {
        ["admin.login_api_key"] = function(peer, params, id)
          peer:result(id, {
            provider = params.provider, key_hint = "k...9", checked = true, active = true,
          })
        end,
      })
      local code, out = piped({ "login", "openai-compatible" }, {}, "  key-123\n")
      assert.same({ 0, "logged in to openai-compatible with key k...9\n" }, { code, out })
      assert.equal("key-123", server:requests("admin.login_api_key")[1].params.key)
    end)
  end)

  describe("on a terminal", function()
    it("streams, ends and gives the terminal back", function()
      serve(function()
        started()
      end)
      local efr = terminal({ "send", "x" })
      efr.sees("waiting for the model")
      stream.peer:item(stream.id, {
        kind = "draft", turn_id = T, after_seq = 2,
        draft = { kind = "text", index = 0, offset = 0, delta = "first row\nsec" },
      })
      efr.sees("sec")
      text("first row\nsecond row")
      completed()
      assert.equal(0, efr.ends())
      assert.is_truthy(efr.out:find("first row\r", 1, true))
      assert.is_truthy(efr.out:find("done in", 1, true))
      assert.is_true(server:requests("conversation.subscribe")[1].params.drafts)
    end)

    it("takes y only after the card stands on the screen", function()
      local answered
      serve(function()
        started()
      end, {
        ["approval.respond"] = function(peer, params, id)
          answered = params.decision
          peer:result(id, { seq = 3 })
          event({ kind = "approval_resolved", call_id = "c1", decision = params.decision })
          completed()
        end,
      })
      local efr = terminal({ "send", "x" })
      efr.sees("waiting for the model")
      efr.pty:write("n")
      ask()
      efr.sees("deny")
      assert.is_nil(answered)
      wait_for("single keys", function()
        return not efr.pty:modes().canonical
      end)
      efr.pty:write("y")
      assert.equal(0, efr.ends())
      assert.equal("allow", answered)
      assert.is_truthy(efr.out:find("allowed", 1, true))
    end)

    it("interrupts at Ctrl+C and exits with 130", function()
      serve(function()
        started()
      end, {
        ["turn.interrupt"] = function(peer, _, id)
          peer:result(id, { turn_id = T, seq = 3 })
          event({ kind = "turn_interrupted" })
        end,
      })
      local efr = terminal({ "send", "x" })
      efr.sees("waiting for the model")
      efr.pty:write("\3")
      assert.equal(130, efr.ends())
      assert.is_truthy(efr.out:find("interrupted after", 1, true))
      assert.equal(T, server:requests("turn.interrupt")[1].params.turn_id)
    end)

    it("dies of signals with the terminal as it was", function()
      for _, signal in ipairs({ 15, 1, 3 }) do
        serve(function()
          started()
          ask()
        end)
        local efr = terminal({ "send", "x" })
        efr.sees("deny")
        wait_for("single keys", function()
          return not efr.pty:modes().canonical
        end)
        efr.pty:kill(signal)
        assert.equal(128 + signal, efr.ends())
        server:close()
        os.remove(dir .. "/runtime/daemon.sock")
      end
      server = nil
    end)

    it("redraws at a new size", function()
      serve(function()
        started()
        event({
          kind = "tool_call_started", call_id = "c1", tool = "shell",
          input = { command = "abcdefghij klmnopqrst uvwxyz" },
        })
      end)
      local efr = terminal({ "send", "x" })
      efr.sees("uvwxyz")
      efr.pty:resize(24, 10)
      efr.sees("…")
      completed()
      assert.equal(0, efr.ends())
    end)

    it("leaves the terminal to the shell while it is stopped or in the background", function()
      serve(function()
        started()
      end)
      local shell = { out = "" }
      shell.pty = assert(pty.open({
        path = "/bin/bash", argv = { "bash", "--norc", "--noediting", "-i" },
        env = environment({ "PS1=ready> ", "EFR=" .. EFR }), cwd = dir, cols = 60, rows = 20,
      }))
      shell.pty:on_data(function(bytes)
        shell.out = shell.out .. bytes
      end)
      local function types(keys, sees)
        shell.out = ""
        shell.pty:write(keys)
        wait_for(sees, function()
          return shell.out:find(sees, 1, true)
        end)
      end
      local function tool(words)
        event({
          kind = "tool_call_started", call_id = words, tool = "shell", input = { command = words },
        })
      end
      types('"$EFR" send x\n', "waiting for the model")
      assert.is_false(shell.pty:modes().echo)
      types("\26", "ready> ")
      assert.is_truthy(shell.out:find("\27[?25h", 1, true))
      assert.is_true(shell.pty:modes().echo)
      types("bg\n", "ready> ")
      tool("first call")
      types("echo ty''ped\n", "typed")
      assert.is_nil(shell.out:find("first call", 1, true))
      types("fg\n", "first call")
      assert.is_false(shell.pty:modes().echo)
      shell.out = ""
      completed()
      wait_for("the shell", function()
        return shell.out:find("ready> ", 1, true)
      end)
      assert.is_true(shell.pty:modes().echo)
      types("exit $?\n", "exit")
      shell.pty:close()
    end)

    it("asks for a key without showing it", function()
      serve(function() end, {
        ["admin.login_api_key"] = function(peer, params, id)
          peer:result(id, { provider = params.provider, checked = false, active = true })
        end,
      })
      local efr = terminal({ "login", "openai-compatible", "--no-check" })
      efr.sees("not shown")
      wait_for("no echo", function()
        return not efr.pty:modes().echo
      end)
      efr.pty:write("sk-secret\r")
      assert.equal(0, efr.ends())
      assert.is_nil(efr.out:find("secret", 1, true))
      assert.equal("sk-secret", server:requests("admin.login_api_key")[1].params.key)
    end)
  end)

  it("shows a conversation as it was, by a prefix of its id", function()
    local function at(n, fields)
      fields.turn_id = T
      local when = ("2026-10-10T09:00:%02dZ"):format(n)
      return { seq = n, conversation_id = C, at = when, event = fields }
    end
    serve(function() end, {
      ["conversations.list"] = function(peer, _, id)
        peer:result(id, { conversations = json.array({
          { id = C, status = "idle", title = "a\27title", updated_at = "2026-10-10T09:00:00Z" },
        }) })
      end,
      ["conversation.history"] = function(peer, _, id)
        peer:result(id, { events = json.array({
          at(1, { kind = "prompt_queued", text = "why `x` !!\n# $HOME", command_id = "c" }),
          at(2, { kind = "turn_started", cwd = "/", settings = { mode = "auto", model = "m" } }),
          at(3, { kind = "assistant_message_completed", index = 0, text = "because" }),
          at(4, {
            kind = "tool_call_started", call_id = "c1", tool = "shell", input = { command = "ls" },
          }),
          at(6, { kind = "tool_call_completed", call_id = "c1", output = "a", exit_code = 0 }),
          at(7, { kind = "turn_interrupted" }),
        }) })
      end,
    })
    local code, out = piped({ "history", C:sub(1, 8) })
    assert.equal(0, code)
    assert.equal(table.concat({
      "conversation " .. C, "",
      "> why `x` !!", "> # $HOME", "mode auto, model m, effort default", "",
      "because", "", "· $ ls", "  ✓ 2.0s", "", "interrupted", "",
    }, "\n"), out)
    code, out = piped({ "history" })
    assert.equal(0, code)
    assert.matches("idle .* a␛title\n$", out)
  end)
end)
