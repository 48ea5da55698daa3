-- Specs of the hidden shell with a real zsh on a real terminal: what arrives, what comes back, what
-- a command may leave behind. Not covered: the sandbox (a small program stands for the launcher),
-- many interrupted calls (many_spec.lua), users' start-up files (users_spec.lua).
local shells = require "spec.support.shells"

local function with(opts, fn)
  return function() shells.world(opts, fn) end
end

-- Runs a line in the world's first shell.
local function run(world, line, opts)
  opts = opts or {}
  opts.line, opts.timeout_ms = line, opts.timeout_ms or 30000
  return world:shell(opts.shell):run(opts)
end

local function finished(world, line, exit_code)
  local result = run(world, line)
  assert.equal("finished", result.outcome, result.setup_error or result.output)
  assert.equal(exit_code or 0, result.exit_code, result.output)
  return result.output
end

describe("hidden shell", function()
  it("keeps variables, functions and the directory between calls", with({}, function(world)
    finished(world, "typeset -a list=(1 2 3); f() { echo f$1 }; x='a b'")
    assert.equal("a b 3 f7\n", finished(world, "echo $x ${#list} $(f 7)"))
    finished(world, "mkdir -p 'd ir' && cd 'd ir'")
    assert.equal(world.home .. "/d ir", world:shell().cwd)
    assert.equal(world.home .. "/d ir\n", finished(world, "pwd"))
    finished(world, "ln -s .. up; cd up")
    assert.equal(world.home .. "/d ir/up", run(world, "true").cwd)
  end))

  it("runs trusted words as what they always are", with({
    rc = "zmodload zsh/stat; alias ls='echo alias'; cat() { echo function }; alias if='echo if;if'\n"
      .. "aliases[pwd]='echo pwd'; hash wc=/bin/echo; mine() { echo mine }",
  }, function(world)
    local trusted = { "ls", "cat", "if", "pwd", "wc", "grep" }
    local line = "ls -d /; cat /dev/null; if [[ -n x ]] then pwd; fi; wc -c </dev/null; mine; whence -w stat"
    local result = run(world, line, { trusted = trusted })
    assert.equal("/\n" .. world.home .. "\n0\nmine\nstat: command\n", result.output)
    -- What a call makes of them is gone with the next one.
    run(world, "alias ls='echo again'; grep() { echo function }")
    assert.equal("/\n", run(world, "ls -d /", { trusted = trusted }).output)
  end))

  it("says where it looks for programs, and runs no line that was decided with another PATH", with({
    rc = "path=(~/bin $path)",
  }, function(world)
    local shell = world:shell()
    local first = shell:search_path()
    assert.equal(world.home .. "/bin:" .. os.getenv("PATH"), first)
    assert.equal("ok\n", run(world, "echo ok", { search_path = first }).output)
    run(world, "path=(. $path); hash ls=/tmp/x")
    local second = shell:search_path()
    assert.equal(".:" .. first, second)
    local result = run(world, "touch ran", { search_path = first })
    assert.equal("setup_failed", result.outcome)
    assert.is_truthy(result.setup_error:find("PATH", 1, true))
    assert.is_nil(world:read("ran"))
    assert.equal("ok\n", run(world, "echo ok", { search_path = second }).output)
    -- At the prompt, after the report.
    run(world, "TRAPUSR1() { PATH=/nowhere }; (sleep 0.2; kill -USR1 $$) &!; umask 777")
    repeat result = run(world, "echo ok", { search_path = second }) until result.outcome ~= "finished"
    assert.equal("setup_failed", result.outcome)
    assert.equal("/nowhere", shell:search_path())
    run(world, "unset PATH; PATH=a$'\\n'b")
    assert.is_nil(shell:search_path())
    run(world, "unset path; path=(/bin /usr/bin)")
    assert.equal("/bin:/usr/bin", shell:search_path())
    run(world, "exit")
    assert.equal(first, shell:search_path())
  end))

  it("says which variables git reads, and runs no line that was decided with others", with({
    rc = "export GIT_PAGER=mine GIT_SSH_COMMAND=$'a\\nb\\x1fGIT_DIR=/x'; GIT_TRACE=not_exported",
  }, function(world)
    local shell = world:shell()
    shell:search_path()
    local first = shell:git_environment()
    assert.same({ HOME = world.home, GIT_PAGER = "cat", GIT_SSH_COMMAND = "a\1b\1GIT_DIR=/x",
      GIT_EDITOR = first.values.GIT_EDITOR, GIT_SEQUENCE_EDITOR = first.values.GIT_EDITOR,
    }, first.values)
    assert.equal("ok\n", run(world, "echo ok", { git_env = first }).output)
    run(world, "export GIT_DIR=/tmp/x; unset GIT_PAGER GIT_SSH_COMMAND")
    local second = shell:git_environment()
    assert.equal("/tmp/x", second.values.GIT_DIR)
    assert.is_nil(second.values.GIT_PAGER)
    local result = run(world, "touch ran", { git_env = first })
    assert.equal("setup_failed", result.outcome)
    assert.is_truthy(result.setup_error:find("variables for git", 1, true))
    assert.is_nil(world:read("ran"))
    assert.equal("ok\n", run(world, "echo ok", { git_env = second }).output)
    -- At the prompt, after the report.
    run(world, "TRAPUSR1() { export GIT_DIR=/y }; (sleep 0.2; kill -USR1 $$) &!")
    repeat result = run(world, "echo ok", { git_env = second }) until result.outcome ~= "finished"
    assert.equal("setup_failed", result.outcome)
    assert.equal("/y", shell:git_environment().values.GIT_DIR)
    run(world, "exit")
    assert.is_nil(shell:git_environment())
    shell:search_path()
    assert.equal(first.told, shell:git_environment().told)
  end))

  it("makes sudo and doas forget before and after a line", with({
    rc = "_efrh_sudo_dirs=(~/fake); path=(~/evil $path)",
  }, function(world)
    for _, dir in ipairs { "fake", "evil" } do
      assert(shells.ports.fs.mkdirs(world.home .. "/" .. dir, 448))
      for _, name in ipairs { "sudo", "doas" } do
        local path = world:write(dir .. "/" .. name, "#!/bin/sh\nread x; echo "
          .. dir .. " " .. name .. " $* $x >>" .. world.home .. "/log\n")
        assert(shells.ports.fs.chmod(path, 448))
      end
    end
    run(world, "echo none >>log")
    run(world, "echo one >>log", { forget_sudo = "after" })
    run(world, "echo two >>log", { forget_sudo = "before" })
    assert.equal(3, run(world, "echo three >>log; (exit 3)", { forget_sudo = "both" }).exit_code)
    run(world, "echo four >>log")
    local forgotten = "fake sudo -k\nfake doas -L\n"
    assert.equal("none\none\n" .. forgotten .. forgotten .. "two\n" .. forgotten .. "three\n" .. forgotten
      .. "four\n", (world:read("log"):gsub(" \n", "\n")))
  end))

  it("gives trusted builtins and reserved words back", with({}, function(world)
    run(world, "disable echo cd; disable -r if then; command_not_found_handler() { print handled }")
    local trusted = { "echo", "cd", "if", "then", "command_not_found_handler" }
    local result = run(world, "if echo yes; then whence -w echo cd; fi; no_such_program", { trusted = trusted })
    assert.equal("yes\necho: builtin\ncd: builtin\nzsh: command not found: no_such_program\n", result.output)
  end))

  it("gives output and status of the command alone", with({}, function(world)
    assert.equal("", finished(world, "true"))
    assert.equal("one\ntwo", finished(world, "echo one; printf two"))
    finished(world, "(exit 42)", 42)
    finished(world, "false", 1)
    assert.equal("1\n", finished(world, "echo $?"))
    assert.equal("err\n", finished(world, "echo err >&2"))
    local result = run(world, "kill -9 $$")
    assert.equal("exited", result.outcome)
    assert.equal(137, result.exit_code)
  end))

  it("evaluates the text byte for byte", with({}, function(world)
    local odd = {
      "!!", "$x", "`y`", "a'b", 'a"b', "\\", "*", "# no comment", "~", "\u{e9}\u{1F600}",
      "\xff\x83\x9f", "\27[31m", "\r", "\t", "\1\2\3\4\21\23\26", "%s %% !#$", "a\nb\n\nc",
    }
    local words = {}
    for i, word in ipairs(odd) do words[i] = "'" .. word:gsub("'", "'\\''") .. "'" end
    finished(world, "print -rN -- " .. table.concat(words, " ") .. " > out")
    assert.equal(table.concat(odd, "\0") .. "\0", world:read("out"))
    assert.equal("a\n", finished(world, "echo a # comment\n"))
    assert.equal("x\ny\n", finished(world, "cat <<'E'\nx\ny\nE"))
    assert.equal("2\n", finished(world, "echo \\\n2"))
  end))

  it("takes lines of any length", with({}, function(world)
    for _, size in ipairs { 5000, 65536, 102400 } do
      local text = ("'quoted' $x "):rep(size // 12)
      finished(world, "printf %s '" .. text:gsub("'", "'\\''") .. "' > out")
      assert.equal(text, world:read("out"))
    end
    local rows = {}
    for i = 1, 3000 do rows[i] = "x=" .. i end
    finished(world, table.concat(rows, "\n"))
    assert.equal("3000\n", finished(world, "echo $x"))
  end))

  it("runs nothing of a text that does not parse", with({}, function(world)
    local broken =
      { "touch bad\necho 'x", "touch bad; if true", "touch bad; )", "touch bad\n;;" }
    for _, line in ipairs(broken) do
      local result = run(world, line)
      assert.equal("not_started", result.outcome, line)
      assert.truthy(result.output:find("zsh"), line)
      assert.is_nil(world:read("bad"))
    end
    assert.equal("ok\n", finished(world, "echo ok"))
  end))

  it("starts a new shell after exit, where the old one was", with({}, function(world)
    finished(world, "mkdir d; cd d; x=1")
    local result = run(world, "exit 3")
    assert.equal("exited", result.outcome)
    assert.equal(3, result.exit_code)
    assert.equal(world.home .. "/d:\n", finished(world, "echo $PWD:$x"))
    result = run(world, "echo bye; exec sh -c 'exit 4'")
    assert.equal("exited", result.outcome)
    assert.equal(4, result.exit_code)
    assert.equal("bye\n", result.output)
    assert.equal("exited", run(world, "set -e; false; echo no").outcome)
    assert.equal("ok\n", finished(world, "echo ok"))
    local kinds = {}
    for i = 1, 4 do kinds[i] = world.events[i].kind end
    assert.same({ "shell_started", "cwd_changed", "shell_exited", "shell_started" }, kinds)
  end))

  it("starts a new shell when one was killed at its prompt", with({}, function(world)
    finished(world, "mkdir d; cd d; x=1")
    local first = world:shell():pid()
    for _, signal in ipairs { 9, 15, 1 } do
      local pid = world:shell():pid()
      shells.ports.sys.kill(pid, signal)
      local result = run(world, "echo $PWD:$x-")
      assert.equal(world.home .. "/d:-\n", result.output)
      assert.is_true(result.fresh or signal == 15)
    end
    assert.is_true(first ~= world:shell():pid())
  end))

  it("has its environment", with({ rc = "export PAGER=less EDITOR=vi" }, function(world)
    local env = finished(world, "env")
    assert.truthy(env:find("\nEFR_HIDDEN_SHELL=1\n"))
    assert.truthy(env:find("\nTERM=xterm-256color\n", 1, true))
    assert.truthy(env:find("\nPAGER=cat\n"))
    assert.is_nil(env:find("EFR_X"))
    assert.is_nil(env:find("_EFRH"))
    assert.is_nil(env:find("ZDOTDIR"))
    assert.is_nil(env:find("TMUX"))
    local text = finished(world, "$EDITOR file", 1)
    assert.truthy(text:find("no editor here"))
    assert.equal("022\n", finished(world, "umask"))
    assert.equal("0 1 2\n", finished(world, "sh -c 'cd /proc/self/fd && echo 0 1 2' ; :"))
    assert.truthy(finished(world, "print -l $options[login] $options[zle] $options[interactive]")
      :find("^on\noff\non\n"))
  end))

  it("gives commands only their own descriptors", with({}, function(world)
    assert.equal("0\n1\n2\n3\n", finished(world, "ls -1 /proc/self/fd"))
  end))
end)

describe("hidden shell after what a command left behind", function()
  local function left(line)
    return with({}, function(world)
      run(world, line)
      assert.equal("fine\n", finished(world, "echo fine"), line)
      assert.equal("40 120\n", finished(world, "stty size"))
      assert.truthy(finished(world, "stty -a"):find(" icanon.* echo "), line)
    end)
  end

  it("raw mode", left "stty raw -echo")
  it("no echo, other size", left "stty -echo -icanon rows 3 cols 7")
  it("stopped output", left "python3 -c 'import termios,sys; termios.tcflow(1, termios.TCOOFF)'")
  it("exclusive mode", left "python3 -c 'import fcntl; fcntl.ioctl(1, 0x540C)'")
  it("unread input", left "python3 -c 'import termios' ; true")
  it("a shell with redirected output", with({}, function(world)
    run(world, "exec 1>out 2>&1; echo hidden")
    assert.equal("finished", run(world, "echo more; exec 1>/dev/tty 2>&1").outcome)
    assert.equal("fine\n", finished(world, "echo fine"))
    assert.truthy(world:read("out"):find("^hidden\n"))
  end))
  it("no input, which ends the shell", with({}, function(world)
    assert.equal("x\n", run(world, "exec </dev/null; echo x").output)
    assert.equal("fine\n", finished(world, "echo fine"))
  end))
  it("xtrace, verbose, nounset, errexit, noglob", with({}, function(world)
    local result = run(world, "set -x; echo a")
    assert.truthy(result.output:find("echo a\na\n"))
    assert.is_nil(result.output:find("efrh"), result.output)
    run(world, "set -u; setopt err_return noglob ksh_arrays sh_word_split")
    assert.equal("fine *\n", finished(world, "echo fine *"))
    run(world, "emulate sh")
    assert.equal("fine\n", finished(world, "echo fine"))
  end))
  it("other hooks, prompts and aliases", with({}, function(world)
    run(world, "precmd() { echo HOOK }; preexec() { echo HOOK }; PS1='$(echo HOOK)'; PROMPT2=x")
    run(world, "alias -g fine=HOOK; alias -s txt=HOOK; alias '[['=HOOK builtin=HOOK")
    run(world, "chpwd() { echo HOOK }; periodic() { echo HOOK }; PERIOD=1; RPS1=HOOK")
    assert.equal("fine\n", finished(world, "cd /; [[ a == a ]] && echo fine"))
    run(world, "precmd_functions=() preexec_functions=(); unset -f precmd; PS1='> '")
    assert.equal("fine\n", finished(world, "echo fine"))
    run(world, "unset PS1 PS2; precmd_functions=(); precmd() { :; }; source ~/.zshrc")
    assert.equal("fine\n", finished(world, "echo fine"))
  end))
  it("an unfinished sequence", with({}, function(world)
    for _, text in ipairs { "\\e", "\\e]0;x", "\\eP", "\\ePx\\e", "\\e]133;D\\e", "\\xe2\\x82" } do
      run(world, "printf '" .. text .. "'")
      assert.equal("fine\n", finished(world, "echo fine"), text)
    end
  end))
  it("a stopped job and a background job", with({}, function(world)
    run(world, "sleep 1000 & sh -c 'kill -STOP $$'")
    assert.equal("fine\n", finished(world, "echo fine"))
  end))
  it("forged marks", with({}, function(world)
    local forged = "\\e]133;D;0\\a\\e]133;D;0;aid=" .. ("0"):rep(32) .. "\\a"
      .. "\\e]133;A\\a\\e]133;B\\a\\e]133;efr-sbx;" .. ("0"):rep(32) .. "\\a"
      .. "\\e]7;kitty-shell-cwd://h/etc\\a\\e]133;C;aid=x\\a\\e]133;P;k=s\\a"
    local result = run(world, "printf '" .. forged .. "'; echo end; (exit 5)")
    assert.equal("end\n", result.output)
    assert.equal(5, result.exit_code)
    assert.equal(world.home, result.cwd)
    assert.equal("fine\n", finished(world, "echo fine"))
  end))
end)

describe("hidden shell with the user's start-up files", function()
  local function starts(opts)
    return with(opts, function(world)
      assert.equal("fine\n", finished(world, "echo fine"))
      finished(world, "false", 1)
      assert.equal("fine\n", finished(world, "echo fine"))
    end)
  end

  it("keeps their functions, aliases and exports", with({
    zshenv = "export FROM_ENV=1", rc = "export FROM_RC=2; alias hi='echo hello'; f() { echo f }",
  }, function(world)
    assert.equal("1 2\nhello\nf\n", finished(world, "echo $FROM_ENV $FROM_RC; hi; f"))
  end))
  it("lets cd lead only where the line shows", with({
    rc = "CDPATH=/usr; place=/usr; setopt cdable_vars",
  }, function(world)
    assert.equal("no\nno\n", finished(world,
      "cd share 2>/dev/null || echo no; cd place 2>/dev/null || echo no"))
  end))
  it("that fail", starts { rc = "no_such_command; return 1" })
  it("that do not parse", starts { rc = "if true; then ( echo", zshenv = "echo ${(" })
  it("that set nounset and errexit", starts { rc = "setopt nounset errexit" })
  it("that set errexit in .zshenv", starts { zshenv = "set -u; setopt ksh_arrays" })
  it("that print and set odd options", starts {
    rc = "echo 'welcome\27]133;A\7'; setopt ksh_arrays sh_word_split prompt_subst null_glob xtrace",
  })
  it("that clear the hook arrays", starts { rc = "precmd_functions=(); preexec_functions=()" })
  it("with hooks of every kind", starts {
    rc = "precmd() { print HOOK }; preexec() { print HOOK }; PROMPT='$(print X)'\n"
      .. "setopt promptsubst; "
      .. "autoload -Uz add-zsh-hook; add-zsh-hook precmd precmd; TRAPDEBUG() { : }; bindkey -e",
  })
  it("that run compinit", starts { rc = "autoload -Uz compinit; compinit; compinit" })
  it("with a prompt hook that never ends", starts {
    rc = "precmd() { while true; do sleep 1; done }",
  })
  it("that read the terminal", starts { rc = "read answer; echo got" })
end)

describe("hidden shell, time and interrupts", function()
  local async = require "efr.util.async"

  it("interrupts a command", with({}, function(world)
    local token = async.token()
    local result = run(world, "echo go; sleep 1000", {
      token = token, on_output = function() token:cancel("test") end,
    })
    assert.equal("interrupted", result.outcome)
    assert.equal("go\n", (result.output:gsub("%^C", "")))
    assert.is_nil(result.left_running)
    assert.equal("fine\n", finished(world, "echo fine"))
  end))

  it("interrupts a loop of the shell itself", with({}, function(world)
    local token = async.token()
    local result = run(world, "echo go; while :; do :; done", {
      token = token, on_output = function() token:cancel("test") end,
    })
    assert.equal("interrupted", result.outcome)
    assert.equal("fine\n", finished(world, "echo fine"))
  end))

  it("lets only the fixed line take a run, not one with a rest before it", with({}, function(world)
    local shell = world:shell()
    for _, rest in ipairs { "\\", "\\builtin eval \"", "echo it; ", "x" } do
      finished(world, "true")
      local pty, first = shell._pty, true
      -- As an interrupt can leave it: what zsh had read of a line stands before the next one.
      shell._pty = setmetatable({ write = function(_, text)
        local whole = (first and rest or "") .. text
        first = false
        return pty:write(whole)
      end }, { __index = function(_, name)
        return function(_, ...) return pty[name](pty, ...) end
      end })
      assert.equal("$(echo no)\n", finished(world, "print -r -- '$(echo no)'"), rest)
      shell._pty = pty
    end
  end))

  it("never sends a run whose token is cancelled", with({}, function(world)
    local token = async.token()
    token:cancel("test")
    assert.equal("interrupted", run(world, "touch bad", { token = token }).outcome)
    assert.equal("fine\n", finished(world, "echo fine"))
    assert.is_nil(world:read("bad"))
  end))

  it("leaves a command running at the timeout and is busy until it ends", with({}, function(world)
    local late
    world:write("fifo.sh", "mkfifo f; echo head; read x < f; echo tail")
    local result = run(world, "sh fifo.sh", {
      timeout_ms = 300, on_late_end = function(r) late = r end,
    })
    assert.equal("timeout", result.outcome)
    assert.is_true(result.left_running)
    assert.equal("head\n", result.output)
    local busy = run(world, "touch bad", { timeout_ms = 200 })
    assert.equal("busy", busy.outcome)
    assert.is_false(world:shell():set_cwd("/"))
    local fifo = assert(io.open(world.home .. "/f", "w"))
    fifo:write("x\n")
    fifo:close()
    assert.equal("fine\n", finished(world, "echo fine"))
    assert.is_nil(world:read("bad"))
    assert.equal("finished", late.outcome)
    assert.equal("head\ntail\n", late.output)
  end))

  it("refuses overlapping runs", with({}, function(world)
    local first
    local task = async.spawn(function() first = run(world, "echo one") end)
    assert.equal("busy", run(world, "echo two").outcome)
    task:wait()
    assert.equal("one\n", first.output)
  end))

  it("runs two conversations at once", with({}, function(world)
    local one
    local task = async.spawn(function()
      one = run(world, "mkfifo ~/f; x=1; read y < ~/f; echo $x$y")
    end)
    while not world:read("g") do run(world, "x=2; [[ -p ~/f ]] && touch ~/g", { shell = "c2" }) end
    run(world, "echo $x > ~/f", { shell = "c2" })
    task:wait()
    assert.equal("12\n", one.output)
    assert.equal(2, world.pool:count())
  end))

  it("is moved without hooks", with({}, function(world)
    finished(world, "true")
    assert.is_true(world:shell():set_cwd("/usr"))
    assert.equal("/usr\n", finished(world, "pwd"))
    assert.is_false(world:shell():set_cwd("/no/such"))
    assert.equal("/usr\n", finished(world, "pwd"))
  end))

  it("ends everything at close", with({}, function(world)
    finished(world, "trap '' HUP; (trap '' HUP TERM; sleep 1000) &")
    finished(world, "nohup sleep 1000 >/dev/null 2>&1 &")
    run(world, "sh -c 'trap \"\" HUP INT; sleep 1000'", { timeout_ms = 100 })
    local pid = world:shell():pid()
    world.pool:close_all()
    -- Killed processes take a moment to go.
    local deadline = os.time() + 10
    while shells.in_session(pid) > 0 do assert.is_true(os.time() < deadline) end
    assert.is_nil(world.pool:get("c1"))
  end))
end)

describe("hidden shell, contained calls", function()
  local async = require "efr.util.async"

  -- A program in the launcher's place: `efr-sbx run --call-dir D`.
  local function launcher(world, body)
    local path = world:write("launcher", "#!/bin/sh\n" .. body .. "\n")
    assert(shells.ports.fs.chmod(path, 493))
    return path
  end

  it("takes the result from the launcher's files", with({}, function(world)
    local call = world:contained(launcher(world, "echo \"$@\"; exit 9"), { exit_code = 7 })
    local result = run(world, nil, { call = call, launch = "contained" })
    assert.equal("finished", result.outcome, result.setup_error)
    assert.equal(7, result.exit_code)
    assert.equal("run --call-dir " .. call.dir .. "\n", result.output)
  end))

  it("is a failed setup without a result", with({}, function(world)
    local path = launcher(world, "exit 125")
    local result = run(world, nil, { call = world:contained(path, nil), launch = "contained" })
    assert.equal("setup_failed", result.outcome)
    local call = world:contained(path, { setup_error = "mount: no" })
    assert.equal("mount: no", run(world, nil, { call = call, launch = "contained" }).setup_error)
  end))

  it("applies directory and variables as data", with({}, function(world)
    local call = world:contained(launcher(world, ":"), {
      exit_code = 0, cwd = "/usr",
      exports = {
        CI = "a'b $(touch ~/bad)\nc", path = "/x", ["x[$(touch ~/bad)]"] = "1",
      },
    })
    local result = run(world, nil, { call = call, launch = "contained" })
    assert.equal("/usr", result.cwd)
    assert.equal("/usr a'b $(touch ~/bad)\nc\n", finished(world, "echo $PWD \"$CI\""))
    assert.is_nil(world:read("bad"))
  end))

  it("ends with the marks of the prompt itself when no hook ran", with({}, function(world)
    finished(world, "functions[_efrh_precmd]=: functions[_efrh_options]=:")
    local call = world:contained(launcher(world, "echo out; exit 9"), { exit_code = 7 })
    local result = run(world, nil, { call = call, launch = "contained", timeout_ms = 5000 })
    assert.equal("finished", result.outcome)
    assert.equal(7, result.exit_code)
    assert.equal("out\n", result.output)
  end))

  it("ends a launcher that ignores the interrupt", with({}, function(world)
    local token = async.token()
    local path = launcher(world, "trap '' INT; echo go; while :; do sleep 1000; done")
    local result = run(world, nil, {
      call = world:contained(path, nil), launch = "contained", token = token,
      on_output = function() token:cancel("test") end,
    })
    assert.equal("interrupted", result.outcome, result.setup_error)
    assert.is_nil(result.setup_error)
    assert.is_nil(result.left_running)
    assert.equal("fine\n", finished(world, "echo fine"))
  end))

  it("tells a call that ended in the middle from one that never ran", with({}, function(world)
    local call = world:contained(launcher(world, "echo a; : > \"$3/started\"; kill -9 $$"), nil)
    local result = run(world, nil, { call = call, launch = "contained" })
    assert.equal("cut_short", result.outcome)
    assert.is_truthy(result.output:find("^a\n"))
    assert.is_nil(result.setup_error)
    assert.equal("it left no result", result.cut_short)
  end))

  it("ends a launcher that stops itself", with({}, function(world)
    local path = launcher(world, "echo $$ > pid; kill -STOP $$")
    local result = run(world, nil, { call = world:contained(path, nil), launch = "contained" })
    assert.equal("setup_failed", result.outcome)
    assert.equal("fine\n", finished(world, "echo fine"))
    local pid, deadline = math.tointeger(tonumber(world:read("pid"))), os.time() + 10
    while shells.ports.sys.kill(pid, 0) do
      assert.is_true(os.time() < deadline)
      run(world, "true")
    end
  end))
end)

describe("hidden shell whose efrd is killed", function()
  -- The owner of the shells is a process of its own here: it prints the pid of its shell and waits.
  local OWNER = [=[
    dofile("spec/helper.lua")
    local shells = require "spec.support.shells"
    shells.world({}, function(world)
      local call = world:contained(world:write("launcher", "#!/bin/sh\nsleep 1000"), {})
      shells.ports.fs.chmod(call.launcher, 493)
      local lines = {
        direct = { line = "sleep 1000 & sleep 1001" },
        builtin = { line = "while :; do :; done" },
        contained = { call = call, launch = "contained" },
      }
      local opts = lines[arg[1]]
      opts.timeout_ms = 300
      local result = world:shell():run(opts)
      io.stdout:write(result.outcome, " ", world:shell():pid(), "\n")
      io.stdout:flush()
      while true do world:shell():run { line = "", timeout_ms = 60000 } end
    end)
  ]=]

  for _, how in ipairs { "direct", "builtin", "contained" } do
    it("leaves no process of a call: " .. how, function()
      local script = os.tmpname()
      local file = assert(io.open(script, "w"))
      file:write(OWNER)
      file:close()
      local build = os.getenv("EFR_BUILD") or "build"
      local command = ("echo $$; exec %s/test/efr-lua %s %s"):format(build, script, how)
      local pipe = assert(io.popen(command))
      local owner = math.tointeger(pipe:read("n"))
      local outcome, shell = pipe:read("l", "l")
      shell = outcome == "" and shell or outcome
      outcome, shell = shell:match("(%S+) (%d+)")
      assert.equal("timeout", outcome)
      assert.is_true(shells.in_session(shell) > 0)
      assert(shells.ports.sys.kill(owner, 9))
      pipe:close()
      os.remove(script)
      local deadline = os.time() + 10
      while shells.in_session(shell) > 0 do assert.is_true(os.time() < deadline) end
    end)
  end
end)

describe("hidden shell, many calls", function()
  it("leaves memory and descriptors flat", with({}, function(world)
    local function descriptors() return #shells.ports.fs.readdir("/proc/self/fd") end
    local function shell_descriptors() return finished(world, "print -l /proc/$$/fd/*(:t)") end
    for i = 1, 20 do finished(world, "x=" .. i) end
    collectgarbage()
    local memory, fds, shell_fds = collectgarbage("count"), descriptors(), shell_descriptors()
    for i = 1, 200 do
      assert.equal(i .. "\n", finished(world, "x=" .. i .. "; echo $x"))
    end
    collectgarbage()
    assert.is_true(collectgarbage("count") - memory < 200)
    assert.equal(fds, descriptors())
    assert.equal(shell_fds, shell_descriptors())
  end))

  it("holds a flood in bounded memory", with({}, function(world)
    finished(world, "true")
    collectgarbage()
    local before = collectgarbage("count")
    local bytes = os.getenv("EFR_TEST_SIZE") == "long" and 50000000 or 10000000
    local line = "yes 'some text of a flood' | head -c " .. bytes
    local result = run(world, line, { timeout_ms = 100000 })
    assert.equal("finished", result.outcome)
    assert.is_true(result.truncated)
    assert.is_true(#result.output < 1100000)
    result = nil
    collectgarbage()
    assert.is_true(collectgarbage("count") - before < 8192, result)
  end))
end)
