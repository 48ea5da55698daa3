#!/bin/bash
# Sockets: those of the host are out of reach by every name, those of the call work. Not covered:
# races (races.sh).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    cp "$TESTS/serve.py" "$W/bin/"
}
as_both
A=$W/bin/attempts
PYTHON=/usr/bin/python3

serve() { # PATH BYTE: in the background; sets SERVER
    coproc SERVE { exec $PYTHON "$W/bin/serve.py" "$1" "$2"; }
    # shellcheck disable=SC2153
    SERVER=$SERVE_PID
    read -r _ <&"${SERVE[0]}"
}

serve "$W/outside/sock" H
HOST=$SERVER
denied "connect to a socket of the host" EACCES "$A" unix "$W/outside/sock"
ln -s "$W/outside/sock" "$W/project/link"
denied "through a symbolic link" EACCES "$A" unix "$W/project/link"
denied "by a relative path" EACCES "$A" unix ../outside/sock
denied "through /proc/self/root" EACCES "$A" unix "/proc/self/root$W/outside/sock"
sbx bash -c "cd '$W/outside' && exec 5<. && '$A' unix /proc/self/fd/5/sock"
expect "through /proc/self/fd" 1 "unix: EACCES"
sbx "$A" unix "$W/outside/missing"
expect "a missing path" 1 "unix: ENOENT"
sbx sh -c "ln '$W/outside/sock' /tmp/hard"
expect "a hard link to it cannot be made in /tmp" 1 "*"
kill "$HOST" && wait "$HOST" 2>/dev/null

serve "$W/project/sock" H
denied "a socket that a host program serves in the project" EACCES "$A" unix "$W/project/sock"
kill "$SERVER" && wait "$SERVER" 2>/dev/null

# One that appears after the call began.
for dir in outside project; do
    rm -f "$W/project/began"
    plan bash -c "echo >'$W/project/began'; until [ -S '$W/$dir/late' ]; do :; done; '$A' unix '$W/$dir/late'"
    "$W/bin/efr-sbx" run --call-dir "$CALL" >"$W/out" 2>&1 </dev/null &
    called=$!
    until [ -e "$W/project/began" ] || ! kill -0 "$called"; do read -rt 0.01 <> <(:); done
    serve "$W/$dir/late" H
    wait "$called"
    STATUS=$?
    OUT=$(cat "$W/out")
    expect "a socket that appears later in the $dir" 1 "unix: EACCES"
    kill "$SERVER" && wait "$SERVER" 2>/dev/null
done

serve "@efr-test-$$" H
denied "an abstract socket of the host" ECONNREFUSED "$A" unix "@efr-test-$$"
kill "$SERVER" && wait "$SERVER" 2>/dev/null

works "a Unix socket in /tmp" $PYTHON -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/own"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("/tmp/own"); s.accept()[0].send(b"x")
os.unlink("/tmp/own")
assert c.recv(1) == b"x"'
works "by a relative path and below the runtime directory" $PYTHON -c '
import os, socket
os.chdir(os.environ["XDG_RUNTIME_DIR"])
s = socket.socket(socket.AF_UNIX); s.bind("own"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("own")
d = socket.socket(socket.AF_UNIX); d.connect(os.getcwd() + "/own")'
works "an abstract socket of the call" $PYTHON -c '
import socket
s = socket.socket(socket.AF_UNIX); s.bind("\0own"); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect("\0own")'
works "TCP on loopback, 4 and 6" $PYTHON -c '
import socket
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    s = socket.socket(family); s.bind((host, 0)); s.listen()
    c = socket.create_connection(s.getsockname()[:2]); s.accept()'
works "UDP on loopback" $PYTHON -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0))
c = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); c.connect(s.getsockname()); c.send(b"x")
assert s.recv(1) == b"x"'
sbx $PYTHON -c '
import socket
for family, host in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try: socket.socket(family, kind).connect((host, 9)); print("out")
        except OSError as e: print(e.errno)'
expect "TCP and UDP to the world" 0 "101
101
101
101"
sbx $PYTHON -c '
import socket
s = socket.socket()
try: s.sendto(b"x", socket.MSG_FASTOPEN, ("192.0.2.1", 9)); print("out")
except OSError as e: print(e.errno)'
expect "TCP fast open" 0 101
works "a refused connect says so" $PYTHON -c '
import socket
try: socket.socket().connect(("127.0.0.1", 1)); raise SystemExit(1)
except ConnectionRefusedError: pass'
works "a connect that does not block" $PYTHON -c '
import errno, select, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.socket(); c.setblocking(False)
assert c.connect_ex(s.getsockname()) in (0, errno.EINPROGRESS)
select.select([], [c], [], 5); assert c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0'
works "an alarm interrupts a connect that waits" timeout 20 $PYTHON -c '
import signal, socket
s = socket.socket(socket.AF_UNIX); s.bind("\0full"); s.listen(0)
class Alarm(Exception): pass
def ring(*_): raise Alarm()
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.3)
keep = []
try:
    while True:
        c = socket.socket(socket.AF_UNIX); keep.append(c); c.connect("\0full")
except Alarm: pass
other = socket.socket(socket.AF_UNIX); other.bind("\0other"); other.listen()
c = socket.socket(socket.AF_UNIX); c.connect("\0other")'
works "64 connects at once that wait for an accept" timeout 30 $PYTHON -c '
import socket, threading
s = socket.socket(socket.AF_UNIX); s.bind("\0many"); s.listen(0)
def go():
    c = socket.socket(socket.AF_UNIX); c.connect("\0many"); assert c.recv(1) == b"x"
threads = [threading.Thread(target=go) for _ in range(64)]
for t in threads: t.start()
for t in threads: s.accept()[0].send(b"x")
for t in threads: t.join()'
sbx $PYTHON -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for args in ((-1, None, 0), (0, None, 16), (1000, b"x" * 16, 16)):
    print(libc.connect(*args), ctypes.get_errno())'
expect "a connect on no socket" 0 "-1 9
-1 88
-1 9"
sbx $PYTHON -c '
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
s = socket.socket(socket.AF_UNIX)
for size in (0, 1, 2, 111, 129, 4096):
    print(libc.connect(s.fileno(), b"\1\0" + b"x" * 5000, size), ctypes.get_errno())
print(libc.connect(s.fileno(), ctypes.c_void_p(8), 20), ctypes.get_errno())'
expect "addresses that are none" 0 "-1 22
-1 22
-1 22
-1 22
-1 22
-1 22
-1 14"

# A call that keeps the host's network: the kernel's list shows the host's sockets too, so only the
# private directories count, and abstract names by Landlock's scope or, below ABI 6, not at all.
serve "@efr-test-$$" H
EXTRA=(network host)
for abi in 99 6 5 2; do
    plan $PYTHON -c '
import errno, os, socket, sys
def name(code): return errno.errorcode.get(code, "worked")
def connect(path): return name(socket.socket(socket.AF_UNIX).connect_ex(path))
def own(path):
    s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen()
    answer = connect(path)
    if path[0] != "\0": os.unlink(path)
    return answer
print(connect("\0" + sys.argv[1]), own("\0own-" + sys.argv[1]), own("/tmp/own"), own("/dev/shm/own"),
      own(os.environ["XDG_RUNTIME_DIR"] + "/own"), own("own"))
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); socket.create_connection(s.getsockname())' "efr-test-$$"
    OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" --max-abi $abi 2>&1 </dev/null)
    STATUS=$?
    if [ $abi -ge 6 ] && [ "$("$W/bin/efr-sbx" landlock-abi)" -ge 6 ]; then
        expect "with the host's network, ABI $abi" 0 "EPERM worked worked worked worked EACCES"
    else
        expect "with the host's network, ABI $abi" 0 "EACCES EACCES worked worked worked EACCES"
    fi
done
EXTRA=()
kill "$SERVER" && wait "$SERVER" 2>/dev/null

# A socket of the host's network on a standard descriptor would be a way out.
plan true
OUT=$($PYTHON -c '
import socket, subprocess, sys
s = socket.socket()
sys.exit(subprocess.run(sys.argv[1:], stdin=s).returncode)' \
    "$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1)
STATUS=$?
expect "a socket of the host as standard input" 125 "*descriptors: descriptor 0 is a socket of the host"
finish
