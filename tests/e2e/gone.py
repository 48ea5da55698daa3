#!/usr/bin/env python3
"""gone.py LIMIT PID...: waits until the processes are gone, at most LIMIT seconds. Status 1: one lives on."""
import os
import select
import sys
import time

end = time.monotonic() + float(sys.argv[1])
for pid in map(int, sys.argv[2:]):
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        continue
    if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
        sys.exit(1)
    os.close(fd)
