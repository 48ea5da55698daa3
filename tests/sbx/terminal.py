# Drives an interactive zsh on a pseudo terminal: terminal.py LAUNCHER. Reads steps from standard
# input, one a line: `type TEXT` (Python escapes), `wait TEXT` (until the screen shows it, at most
# 10 s), `forget` (what was shown so far). Ends with 1 and the screen at the first wait that fails.
import os
import pty
import select
import sys
import time

LIMIT_S = 10


def main():
    pid, master = pty.fork()
    if pid == 0:
        env = dict(os.environ, PS1="READY%% ", TERM="dumb", HISTFILE="")
        os.execve("/usr/bin/zsh", ["zsh", "-f", "-i", "+Z", "-o", "nopromptsp"], env)
    shown = b""
    for step in sys.stdin:
        word, _, text = step.rstrip("\n").partition(" ")
        data = text.encode().decode("unicode_escape").encode()
        if word == "type":
            os.write(master, data)
        elif word == "forget":
            shown = b""
        elif word == "wait":
            end = time.monotonic() + LIMIT_S
            while data not in shown:
                ready, _, _ = select.select([master], [], [], max(0, end - time.monotonic()))
                if not ready:
                    print("waited for %r, shown: %r" % (data, shown))
                    os.kill(pid, 9)
                    return 1
                shown += os.read(master, 4096)
            shown = shown[shown.index(data) + len(data):]
    os.close(master)
    os.waitpid(pid, 0)
    return 0


sys.exit(main())
