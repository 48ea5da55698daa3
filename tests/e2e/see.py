#!/usr/bin/env python3
"""see.py FILE FROM LIMIT PATTERN: waits until the text that FILE gains after byte FROM holds PATTERN.

Owns: waiting for a text with a limit, by events of the file (tail -f), without sleeping.
Escape sequences and carriage returns are taken out first. Status 0 = seen, 1 = not within LIMIT seconds.
"""
import os
import re
import select
import subprocess
import sys
import time

path, start, limit, pattern = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
escapes = re.compile(r"\x1b\[[0-9;?>]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Za-z0-9]|\x1b[=>78]|\r")
wanted = re.compile(pattern, re.M)
tail = subprocess.Popen(["tail", "-c", "+%d" % (start + 1), "-f", path], stdout=subprocess.PIPE)
held = b""
end = time.monotonic() + limit
status = 1
try:
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([tail.stdout], [], [], left)[0]:
            break
        data = os.read(tail.stdout.fileno(), 65536)
        if not data:
            break
        held += data
        if wanted.search(escapes.sub("", held.decode("utf-8", "replace"))):
            status = 0
            break
finally:
    tail.kill()
    tail.wait()
sys.exit(status)
