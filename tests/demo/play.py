#!/usr/bin/env python3
"""play.py: types lines into a real interactive zsh on a terminal of its own and shows what a user sees.

usage: play.py LIMIT LINE...

Owns: the terminal of the demo. Each line is typed when zsh shows its prompt again. What zsh prints is
copied as it is. Status 0 when the shell ended by itself, 1 when a line took longer than LIMIT seconds.
The end of a line is told by a mark that the demo's prompt prints (OSC 133;A), never by time. A question is
answered with n, once a line, when efr reads single keys: what is typed before that is thrown away.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

MARK = b"\x1b]133;A\x07"
QUESTION = " allow · ".encode()
limit, lines = float(sys.argv[1]), sys.argv[2:] + ["exit"]

pid, master = pty.fork()
if pid == 0:
    os.execvp("zsh", ["zsh", "-i"])
try:
    size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
except OSError:
    size = struct.pack("HHHH", 30, 100, 0, 0)
fcntl.ioctl(master, termios.TIOCSWINSZ, size)


def reads_keys():
    """Whether the program in front reads single keys, as efr does once its question stands."""
    return not termios.tcgetattr(master)[3] & termios.ICANON


answered, recent = False, b""
held, status, end = b"", 1, time.monotonic() + limit
while True:
    asked = QUESTION in recent and not answered
    if asked and reads_keys():
        os.write(master, b"n")
        answered = True
        continue
    left = max(0, end - time.monotonic())
    # No event tells that the terminal's mode changed, so with an open question it looks again soon.
    ready = select.select([master], [], [], min(left, 0.02) if asked else left)[0]
    if not ready and asked and left > 0:
        continue
    if not ready:
        sys.stdout.write("\ndemo: no answer within %d s\n" % limit)
        break
    try:
        data = os.read(master, 65536)
    except OSError:
        data = b""
    if not data:
        status = 0
        break
    held += data
    # A mark may come in two pieces: the tail that could be its beginning waits.
    keep = next((n for n in range(len(MARK) - 1, 0, -1) if held.endswith(MARK[:n])), 0)
    shown, held = (held[:-keep], held[-keep:]) if keep else (held, b"")
    parts = shown.split(MARK)
    sys.stdout.buffer.write(b"".join(parts))
    sys.stdout.flush()
    recent = (recent + data)[-4096:]
    for _ in parts[1:]:
        answered, recent = False, b""
        if lines:
            os.write(master, lines.pop(0).encode() + b"\r")
            end = time.monotonic() + limit
os.close(master)
os.waitpid(pid, 0)
sys.exit(status)
