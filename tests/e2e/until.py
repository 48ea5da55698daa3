"""until.py SECONDS PATTERN COMMAND...: runs the command until its output matches, with a limit."""

import re
import subprocess
import sys
import threading
import time

end = time.monotonic() + float(sys.argv[1])
pause = threading.Event()
while True:
    run = subprocess.run(sys.argv[3:], capture_output=True, text=True, check=False)
    if re.search(sys.argv[2], run.stdout + run.stderr, re.M):
        sys.exit(0)
    if time.monotonic() > end:
        print(run.stdout + run.stderr, file=sys.stderr)
        sys.exit(1)
    pause.wait(0.02)
