#!/bin/bash
# Sockets that a call makes itself, in every place where it can make one, and ordinary programs
# that live on them. Not covered: other file systems (filesystems.sh), the host's (sockets.sh).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    cp "$TESTS/own_sockets.py" "$TESTS/serve.py" "$W/bin/"
    printf '%s\n' 'const net = require("net"), fs = require("fs"), path = `${require("os").tmpdir()}/a/b.sock`;' \
        'fs.mkdirSync(require("path").dirname(path), { recursive: true });' \
        'const server = net.createServer((c) => c.end("hello")).listen(path, () => {' \
        '  net.connect(path).on("data", (d) => { console.log(String(d)); server.close(); });' \
        '});' >"$W/project/node.js"
}
as_both
PYTHON=/usr/bin/python3

sbx $PYTHON "$W/bin/own_sockets.py" "$W/project"
expect "in the project" 0 "all as expected"
for dir in /tmp /var/tmp /dev/shm "$W/run/xrt"; do
    sbx $PYTHON "$W/bin/own_sockets.py" "$dir" private
    expect "in $dir" 0 "all as expected"
done
sbx $PYTHON -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("/var/tmp/one"); s.listen()
socket.socket(socket.AF_UNIX).connect("/tmp/one"); os.unlink("/tmp/one")'
expect "made in /var/tmp, reached in /tmp" 0 ""

# A host program serves in the project; beside it a socket of the call has the same name.
mkdir -p "$W/project/host" "$W/project/own"
coproc SERVE { exec $PYTHON "$W/bin/serve.py" "$W/project/host/sock" H; }
SERVER=$SERVE_PID
read -r _ <&"${SERVE[0]}"
sbx $PYTHON -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("own/sock"); s.listen()
def connect(path):
    try: return socket.socket(socket.AF_UNIX).connect(path)
    except OSError as e: return e.errno
print(connect("own/sock"), connect("host/sock"))
os.rename("own", "away"); os.rename("host", "own")
print(connect("own/sock"), connect("away/sock"))
os.rename("own", "host"); os.rename("away", "own")'
expect "a host program's socket beside it, also when the directories swap names" 0 "None 13
13 None"
sbx $PYTHON -c '
import os, socket
os.link("host/sock", "hard")
socket.socket(socket.AF_UNIX).connect("hard")'
expect "and by a hard link" 1 "*PermissionError*"
kill "$SERVER" && wait "$SERVER" 2>/dev/null
# The file of one call is none of the next call's.
sbx $PYTHON -c '
import socket
socket.socket(socket.AF_UNIX).bind("left")'
sbx $PYTHON -c '
import socket
socket.socket(socket.AF_UNIX).connect("left")'
expect "a socket that another call left in the project" 1 "*PermissionError*"

works "a manager of multiprocessing" $PYTHON -c '
import multiprocessing
with multiprocessing.Manager() as m:
    d = m.dict()
    p = multiprocessing.Process(target=d.update, args=({1: 2},)); p.start(); p.join()
    assert dict(d) == {1: 2}'
works "ssh-agent -a" bash -c 'eval "$(ssh-agent -a "$PWD/agent")" >/dev/null; ssh-add -l; s=$?; ssh-agent -k >/dev/null; test $s = 1'
works "tmux has a server of its own" bash -ec '
    cd /tmp; tmux -f /dev/null new-session -d "read x"; tmux kill-server'
if [ -n "$(type -P node)" ]; then
    sbx node "$W/project/node.js"
    expect "node listens on a socket below the temporary directory" 0 hello
else
    echo "ok - node # skip there is no node"
fi

# At most 256 connects wait at once, the next ones are refused; afterwards the broker's threads go.
# It is stuck when 20 s bring neither an answer nor a change of their number, however slow the machine.
sbx $PYTHON -c '
import errno, os, socket, threading, time
s = socket.socket(socket.AF_UNIX); s.bind("\0full"); s.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect("\0full")
answers = []
refused = threading.Semaphore(0)
def go():
    c = socket.socket(socket.AF_UNIX)
    answers.append(errno.errorcode[c.connect_ex("\0full")])
    if answers[-1] == "EAGAIN": refused.release()
def broker(): return len(os.listdir("/proc/1/task"))
seen = None
def moves():
    global seen
    before, seen = seen, (broker(), len(answers))
    if before == seen: raise SystemExit("stuck at %d threads, %d answers" % seen)
threads = [threading.Thread(target=go, daemon=True) for _ in range(270)]
for t in threads: t.start()
for _ in range(14):
    while not refused.acquire(timeout=20): moves()
s.close()
for t in threads:
    while t.join(20) or t.is_alive(): moves()
least, end = broker(), time.monotonic() + 20
while least > 3:
    if broker() < least: least, end = broker(), time.monotonic() + 20
    if time.monotonic() > end: raise SystemExit("%d threads stay" % least)
print(answers.count("EAGAIN"), answers.count("ECONNREFUSED"))'
expect "256 connects in flight" 0 "14 256"

# Without room for one more thread a connect is refused, and the call goes on. Root has no such limit.
if [ "$(id -u)" != 0 ]; then
    EXTRA=(limit processes 3)
    sbx timeout 20 $PYTHON -c '
import errno, socket
s = socket.socket(socket.AF_UNIX); s.bind("\0few"); s.listen()
for _ in range(3): print(errno.errorcode[socket.socket(socket.AF_UNIX).connect_ex("\0few")])'
    EXTRA=()
    expect "no room for a thread" 0 $'EAGAIN\nEAGAIN\nEAGAIN'
fi

# A command that may make namespaces can have a root of its own, which its paths begin at.
EXTRA=(userns 1)
sbx $PYTHON -c '
import ctypes, os, socket
os.makedirs("root/dir", exist_ok=True)
s = socket.socket(socket.AF_UNIX); s.bind("root/dir/own"); s.listen()
assert ctypes.CDLL(None).unshare(0x10000000) == 0 # CLONE_NEWUSER
outside = os.getcwd() + "/root/dir/own"
os.chroot("root")
def connect(path): return socket.socket(socket.AF_UNIX).connect_ex(path)
print(connect("/dir/own"), connect("/../dir/own"), connect(outside))
os.chdir("/dir"); print(connect("own"))'
EXTRA=()
expect "below a root of its own" 0 $'0 0 2\n0'

# Ctrl+C ends a connect that waits (alarm: sockets.sh). The other thread waits until the kernel
# shows this one in connect.
if [ "$(uname -m)" = x86_64 ]; then
    sbx timeout 20 $PYTHON -c '
import os, signal, socket, threading
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/full"); s.listen(0)
first = socket.socket(socket.AF_UNIX); first.connect("/tmp/full")
def interrupt():
    while open("/proc/self/task/%d/syscall" % os.getpid()).read().split()[0] != "42": pass
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try: socket.socket(socket.AF_UNIX).connect("/tmp/full"); print("connected")
except KeyboardInterrupt: print("interrupted")
os.unlink("/tmp/full")'
    expect "Ctrl+C ends a connect that waits" 0 interrupted
fi
finish
