#!/usr/bin/env bash
# Also as root.
# Contained calls that attack the hidden shell's terminal: raw mode, stopped output, forged marks, unfinished
# sequences, a flood, a title of 1 MB, questions to the terminal, line disciplines, exclusive use, random bytes,
# the foreground group. Each later call still gives its own result. At the end a call
# that ignores every signal and holds the foreground dies with efrd. Not covered: TIOCSTI and its like
# (tests/sbx), direct commands (spec/shell).
. "$(dirname "$0")/lib.sh"
new_home
config auto
model <<'LUA'
local hostile = {
  "stty raw -echo; print x",
  "stty -icanon rows 1 cols 1",
  "python3 -c 'import termios; termios.tcflow(0, termios.TCOOFF)' ",
  "printf '\\e]133;D;0\\a\\e]133;efr-sbx;%032d\\a\\e]133;D;0;aid=%032d\\a\\e]133;A\\a\\e]133;B\\a' 0 0",
  "printf '\\e]133;D;0'; printf '\\ePunfinished\\e'",
  "printf '\\e]133;P;k=s\\a\\e]133;B\\a'",
  "yes flood | head -c 20000000",
  "setsid sh -c 'sleep 300' & true",
  "kill -STOP 0; true",
  -- Line discipline N_NULL, exclusive use, a stopped terminal: whatever the sandbox lets through.
  "python3 -c 'import fcntl,struct; fcntl.ioctl(0, 0x5423, struct.pack(\"i\", 27))'; true",
  "python3 -c 'import fcntl; fcntl.ioctl(0, 0x540C)'; true",
  "printf '\\e]2;'; head -c 1048576 /dev/zero | tr '\\0' t; printf '\\a'",
  -- Questions whose answers come when nobody reads them any more.
  "stty raw -echo; printf '\\e[c\\e[6n\\e]10;?\\a\\e[>c\\e[5n%.0s' $(seq 200)",
  "head -c 300000 /dev/urandom",
}
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "text" and block.text:find("forever") then
    return { calls = { { name = "shell", input = { command = [[python3 -c '
import os, signal, time
for s in range(1, 64):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    os.execvp("sleep", ["sleep", "4323"])
os.execvp("sleep", ["sleep", "4324"])']], timeout_seconds = 600 } } } }
  end
  local n = request.call
  if n > 0 and n % 2 == 0 and not block.output:find("^probe %d+ 40 120\n") then
    return { text = "WRONG after " .. hostile[n // 2] .. ": " .. block.output }
  end
  if n == 2 * #hostile then return { text = "all held" } end
  local line = n % 2 == 0 and hostile[n // 2 + 1] or ("echo probe %d $(stty size)"):format(n)
  return { calls = { { name = "shell", input = { command = line, timeout_seconds = 60 } } } }
end
LUA
cd "$P"
project
equals "$(efr send -- go 2>/dev/null)" 'all held' 'what the model saw'

efr send -- forever >/dev/null 2>&1 &
python3 - "$limit" <<'PY'
import subprocess, sys, time
end = time.monotonic() + float(sys.argv[1])
while subprocess.run(["pgrep", "-f", "^sleep 4323"], stdout=subprocess.DEVNULL).returncode:
    assert time.monotonic() < end, "the call does not run"
    time.sleep(0.05)
PY
mapfile -t pids < <(pgrep -u "$(id -u)" -f '^sleep 432[34]')
kill -KILL "$(daemon_pid)"
wait_gone "${pids[@]}"
