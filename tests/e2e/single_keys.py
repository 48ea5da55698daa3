"""single_keys.py LIMIT TERMINAL: waits until the program in front reads single keys there (no line mode).

efr throws away what was typed before its question stood; a key of a test must not come in between.
Owns: that wait. Must not know: what is asked. Status 1 after LIMIT seconds.
"""
import os
import sys
import termios
import threading
import time

pause = threading.Event()
end = time.monotonic() + float(sys.argv[1])
terminal = os.open(sys.argv[2], os.O_RDWR | os.O_NOCTTY)
while termios.tcgetattr(terminal)[3] & termios.ICANON:
    # No event tells that a terminal's mode changed.
    pause.wait(0.01)
    if time.monotonic() > end:
        sys.exit(1)
