#!/bin/bash
# A call's limit of memory, and of root's processes: efrd in a cgroup (version 2) that it may divide, as root
# and as an ordinary user. In a booted kernel, as its root. Not covered: the question to systemd.
# shellcheck disable=SC1091
set -u
. "$(dirname "$0")/../sbx/lib.sh"
base=/sys/fs/cgroup
mountpoint -q $base || mount -t cgroup2 cgroup2 $base || exit 1
echo '+memory +pids' >$base/cgroup.subtree_control || exit 1

# enter CGROUP COMMAND...: runs it as the first process there; as the user when WHO says so
enter() {
    local cgroup=$1
    shift
    (
        echo "$BASHPID" >"$cgroup/cgroup.procs" || exit 99
        if [ "$WHO" = user ]; then
            exec setpriv --reuid="$ORDINARY_UID" --regid="$ORDINARY_UID" --clear-groups env HOME="$HOME" "$@"
        fi
        exec "$@"
    )
}
# efr_run WHERE SCRIPT: efr run in a cgroup of its own below WHERE
efr_run() {
    OUT=$(cd "$HOME/p" && enter "$1" "$EFR_BIN/efr" run --write "$HOME/p" -- python3 -c "$2" 2>&1)
    STATUS=$?
}
# Waits until efrd listens: a client that came before would start one in its own cgroup.
ready() {
    local n
    for ((n = 0; n < 600; n++)); do
        [ -S "$HOME/.local/state/efr/run/daemon.sock" ] && return
        read -r -t 0.1 _ <>"$pause"
    done
    return 1
}
pause=$(mktemp -u) && mkfifo "$pause" || exit 1

for WHO in root user; do
    HOME=/home/memory-$WHO
    export HOME
    mkdir -p "$HOME/.config/efr" "$HOME/p" $base/$WHO/{efrd,client} $base/client-$WHO
    echo '+memory +pids' >$base/$WHO/cgroup.subtree_control
    printf '[model]\nprovider = "scripted"\n[sandbox]\nmax_memory_mib = 96\nmax_processes = 64\n' \
        >"$HOME/.config/efr/config.toml"
    chmod -R go= "$HOME"
    if [ $WHO = user ]; then
        chown -R "$ORDINARY_UID:$ORDINARY_UID" "$HOME"
        # As systemd delegates: the directories and the files that move processes and controllers.
        for dir in $base/user $base/user/efrd $base/user/client; do
            chown "$ORDINARY_UID" "$dir" "$dir"/cgroup.{procs,subtree_control,threads}
        done
    fi
    enter $base/$WHO/efrd "$EFR_BIN/efrd" >"$HOME/efrd.out" 2>&1 &
    daemon=$!
    ready || bad "$WHO: efrd started"
    OUT=$(enter $base/$WHO/client "$EFR_BIN/efr" sandbox check 2>&1)
    STATUS=$?
    expect "$WHO: the check names the limit" 0 "*memory: a call has at most 96 MiB*"
    efr_run $base/$WHO/client 'print(len(bytearray(32 << 20)))'
    expect "$WHO: below the limit a call runs" 0 "*33554432*"
    efr_run $base/$WHO/client 'x = bytearray(300 << 20); print("lived")'
    expect "$WHO: above it the kernel ends the call" 137 "*reached its limit of 96 MiB*"
    efr_run $base/$WHO/client 'import os
pids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        x = bytearray(40 << 20)
        os.read(os.pipe()[0], 1)
    pids.append(pid)
os.wait()
print("lived")'
    expect "$WHO: the processes of a call count together" 137 "*reached its limit of 96 MiB*"
    # More than the limit and what pid 1 may have (320 with its 260): no fork bomb.
    efr_run $base/$WHO/client 'import os, signal
n = 0
try:
    for n in range(2000):
        if os.fork() == 0: signal.pause()
except OSError as error:
    print("refused below 400:", n < 400)'
    expect "$WHO: the processes of a call are limited" 0 "*refused below 400: True*"
    OUT=$(find $base/$WHO/efrd/efr-calls -mindepth 1 -type d && echo none)
    STATUS=$?
    expect "$WHO: nothing is left in the cgroup of calls" 0 none
    if [ $WHO = user ]; then
        # A login session beside the user's systemd: processes cannot be moved from there.
        efr_run $base/client-user 'print("ran")'
        expect "user: from a cgroup that is not the user's the call runs and says so" 0 "*no limit of memory*ran*"
    fi
    kill $daemon
    wait $daemon
done
rm -f "$pause"
finish
