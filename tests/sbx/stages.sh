#!/bin/bash
# The shell, the launcher, pid 1 with the broker, and the command killed at each stage of a launch,
# and while a connect is in flight: no process, no mount, no file of the host is left, and the next
# call works. Not covered: efrd killed (tests/e2e/kill.sh), random moments (end.sh).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
SOURCES=${EFR_SOURCE:-$TESTS/../..}/sbx
prepare() {
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
    cp "$TESTS/stages.py" "$W/bin/"
    mkdir "$W/sbx" "$W/project/kept"
    [ ! -d "$SOURCES" ] || cp "$SOURCES"/*.c "$W/sbx/" # the booted kernels have no sources
}
as_both
everything() {
    grep -c . /proc/self/mountinfo
    find "$W/project" "$W/home" "$W/outside" "$W/run" "$W/state" | sort
}
MOUNTS=("mask $W/home/.zshrc" "floor $W/project/kept")
sbx true # makes the mount points in the conversation's own /tmp
before=$(everything)
plan /usr/bin/python3 -c '
import os, socket, threading
s = socket.socket(socket.AF_UNIX); s.bind("\0full"); s.listen(0)
for _ in range(2):
    threading.Thread(target=lambda: socket.socket(socket.AF_UNIX).connect("\0full")).start()
    c = socket.socket(socket.AF_UNIX); c.setblocking(False)
while c.connect_ex("\0full") == 0: c = socket.socket(socket.AF_UNIX); c.setblocking(False)
os.write(2, b"running\n")'
OUT=$(/usr/bin/python3 "$W/bin/stages.py" "$W/bin/efr-sbx-unsafe" "$CALL" "$W/sbx" 2>&1)
STATUS=$?
expect "each party killed at each stage" 0 "* launches ended"
if [ "$before" = "$(everything)" ]; then ok "nothing is left on the host"; else bad "left on the host"; fi
works "and the next call works" true
finish
