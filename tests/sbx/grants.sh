#!/bin/bash
# What one call gets beyond the envelope (writing, a socket's place, a device, the host's network, name
# spaces), the limits of a call, and floors for the launcher's own PATH. Each also as an ordinary user. Not
# covered: who decides a grant, the connect to a granted socket (sockets.sh).
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    mkdir "$W/project/bin" "$W/project/v1" "$W/outside/tools"
    ln -s v1 "$W/project/cur"
    cp "$TESTS/serve.py" "$W/bin/"
}
as_both
A=$W/bin/attempts

# Writing one file or directory.
denied "write outside" EROFS "$A" write "$W/outside/file"
MOUNTS=("grant $W/outside/file")
works "a granted file can be written" sh -c "echo 2 >'$W/outside/file'"
if [ "$(cat "$W/outside/file")" = 2 ]; then ok "the write arrived"; else bad "the write arrived"; fi
sbx "$A" write "$W/outside/new"
expect "but nothing beside it" 1 "write: EROFS"
sbx rm -f "$W/outside/file"
expect "and it cannot be removed" 1 "*"
MOUNTS=("grant $W/outside/dir")
works "a granted directory can be written" sh -c "mkdir '$W/outside/dir/a' && echo 2 >'$W/outside/dir/a/f'"
sbx "$A" write "$W/outside/new"
expect "but nothing above it" 1 "write: EROFS"
MOUNTS=("grant $W/outside/dir" "floor $W/outside/dir/a")
sbx "$A" write "$W/outside/dir/a/f"
expect "a floor beats a grant" 1 "write: EROFS"
MOUNTS=("grant $W/outside/file" "floor $W/outside/file")
sbx "$A" write "$W/outside/file"
expect "a floor beats a grant of the same file" 1 "write: EROFS"
MOUNTS=("mask $W/outside" "grant $W/outside/file")
works "a granted file inside a mask" sh -c "echo 3 >'$W/outside/file' && ! test -e '$W/outside/dir'"
MOUNTS=("grant $W/run/xrt/own")
mkdir "$W/run/xrt/own"
works "a granted directory inside the runtime directory" sh -c "echo 3 >'$W/run/xrt/own/f'"
if [ -e "$W/run/xrt/own/f" ]; then ok "the write arrived"; else bad "the write arrived"; fi
MOUNTS=("grant $W/outside/none")
sbx true
expect "a grant of nothing refuses the call" 125 "*setup failed*none*"
ln -s "$W/outside/file" "$W/outside/link"
MOUNTS=("grant $W/outside/link")
sbx true
expect "a grant that became a link refuses the call" 125 "*setup failed*link*"
mkfifo "$W/outside/fifo"
MOUNTS=("grant $W/outside/fifo")
sbx true
expect "a grant that became a pipe refuses the call" 125 "*only a file or a directory*"
MOUNTS=("socket $W/outside/file")
sbx true
expect "a socket that became a file refuses the call" 125 "*granted as a socket and is none*"

# A socket inside a masked directory is there, and nothing else of the directory.
mkdir "$W/outside/sockets"
echo x >"$W/outside/sockets/other"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$W/outside/sockets/s"
MOUNTS=("mask $W/outside/sockets" "socket $W/outside/sockets/s")
sbx sh -c "ls '$W/outside/sockets'; test -S '$W/outside/sockets/s' && echo socket"
expect "a granted socket shows through a mask" 0 $'s\nsocket'
# Who serves it is outside, as dockerd or an agent would be.
rm "$W/outside/sockets/s"
python3 - "$W/outside/sockets" "$W/project" <<'END' &
import os, socket, sys
servers = []
for place in sys.argv[1:]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(place + "/s")
    server.listen()
    servers.append(server)
open(sys.argv[2] + "/ready", "w").close()
while True:
    client, _ = servers[0].accept()
    client.sendall(b"served")
    client.close()
END
server=$!
until [ -e "$W/project/ready" ]; do read -rt 0.02 <> <(:); done
connect='import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(9).decode())'
sbx python3 -c "$connect" "$W/outside/sockets/s"
expect "a granted socket can be connected to" 0 served
sbx python3 -c "$connect" "$W/project/s"
expect "and no other of the host" 1 "*Permission denied*"
EXTRA=(network host)
sbx python3 -c "$connect" "$W/outside/sockets/s"
expect "a granted socket with the host's network" 0 served
sbx python3 -c "$connect" "$W/project/s"
expect "with the host's network too no other" 1 "*Permission denied*"
MOUNTS=()
sbx python3 -c "$connect" "$W/outside/sockets/s"
expect "without the grant: none" 1 "*Permission denied*"
EXTRA=()
kill $server
wait $server 2>/dev/null
MOUNTS=()

# A device. The nodes that every call has are left aside.
device=
for node in /dev/*; do
    case $node in /dev/@(null|zero|full|random|urandom|tty|console|ptmx)) continue ;; esac
    if [ -c "$node" ] && [ ! -L "$node" ]; then device=$node; fi
done
if [ -n "$device" ]; then
    works "no other device is there" test ! -e "$device"
    EXTRA=(device "$device")
    sbx stat -c '%t:%T' "$device"
    expect "a granted device is there" 0 "$(stat -c '%t:%T' "$device")"
    sbx "$A" mknod 0020600 /dev/new
    expect "and no other can be made" 1 "mknod: E*"
else
    echo "ok - # skip: this machine has no further device"
fi
EXTRA=(device "/dev/none")
sbx true
expect "a device that is not there refuses the call" 125 "*setup failed*"
EXTRA=(device "$W/outside/file")
sbx true
expect "a device elsewhere refuses the call" 125 "*not below /dev*"
EXTRA=(device /dev/pts/0)
sbx true
expect "a terminal is no device to grant" 125 "*has its own*"
EXTRA=()

# The host's network.
sbx readlink /proc/self/ns/net
if [ "$STATUS" = 0 ] && [ "$OUT" != "$(readlink /proc/self/ns/net)" ]; then
    ok "a network of its own"
else
    bad "a network of its own"
fi
EXTRA=(network host)
sbx readlink /proc/self/ns/net
if [ "$OUT" = "$(readlink /proc/self/ns/net)" ]; then ok "the host's network"; else bad "the host's network"; fi
EXTRA=(network other)
sbx true
expect "another network refuses the call" 125 "*network is not host*"

# Namespaces.
EXTRA=()
denied "a new user namespace" "not permitted" unshare --user true
EXTRA=(userns 1)
works "a granted user namespace" unshare --user true
map=(--map-root-user)
# Mapping root needs CAP_SETFCAP of whoever makes the namespace, and the command has no capability.
[ "$(id -u)" != 0 ] || map=()
works "and others with it" unshare --user ${map[@]+"${map[@]}"} --net --pid --fork true
if [ "$(id -u)" != 0 ]; then
    works "its id map can be written" sh -c 'test "$(unshare --user --map-root-user id -u)" = 0'
fi
inner=(unshare --user ${map[@]+"${map[@]}"} --mount --propagation unchanged)
for attempt in "mount $W/project" "remount /" "umount $W/home/.ssh"; do
    # shellcheck disable=SC2086
    sbx "${inner[@]}" "$A" $attempt
    expect "but no ${attempt%% *}" 1 "${attempt%% *}: EPERM"
done
for file in sys/kernel/hostname sys/kernel/core_pattern sysrq-trigger irq/default_smp_affinity; do
    [ -e /proc/$file ] || continue
    sbx "$A" write /proc/$file
    expect "/proc/$file" 1 "write: @(EROFS|EACCES)"
    sbx unshare --user ${map[@]+"${map[@]}"} "$A" write /proc/$file
    expect "/proc/$file in a namespace" 1 "write: @(EROFS|EACCES)"
done
if [ "$(id -u)" = 0 ]; then
    sbx sh -c 'for f in $(find /proc -maxdepth 1 ! -name "[0-9]*" -type f -perm /222) /proc/sys/kernel/sysrq; do
        (exec 3>>"$f") 2>/dev/null && echo "$f"; done; true'
    expect "as root: nothing of the machine below /proc" 0 ""
fi
works "the process's own files can be written" sh -c 'echo name >/proc/self/comm'
sbx unshare --user ${map[@]+"${map[@]}"} sh -c 'cat /proc/1/environ; ls /proc/1/root'
expect "pid 1 stays closed" 2 "*"
EXTRA=()

# Limits.
EXTRA=(limit file_bytes 1048576)
sbx dd if=/dev/zero of="$W/project/large" bs=65536 count=32
expect "a file over the limit" 153 "*"
if [ "$(stat -c %s "$W/project/large")" = 1048576 ]; then ok "ends at it"; else bad "ends at it"; fi
EXTRA=(limit open_files 40)
sbx bash -c 'ulimit -Hn; for i in {10..60}; do eval "exec $i</dev/null" || exit 7; done'
expect "more open files than the limit" 7 $'40\n*'
# Root is exempt from RLIMIT_NPROC; its limit is the PID namespace's, 301 at least, from Linux 6.14 on.
count=32
[ "$(id -u)" != 0 ] || count=320
EXTRA=(limit processes "$count")
sbx sh -c "i=0; while [ \$i -lt $((count + 20)) ]; do sleep 30 & i=\$((i + 1)); done; echo made"
if [ "$(id -u)" = 0 ] && [ "$(printf '6.14\n%s\n' "$(uname -r)" | sort -V | head -1)" != 6.14 ]; then
    expect "as root before Linux 6.14: no limit of processes" 0 "*made"
else
    expect "more processes than the limit" 2 "*annot fork*"
fi
EXTRA=(limit processes 0)
sbx true
expect "a limit of nothing refuses the call" 125 "*not a number above 0*"
EXTRA=()

# The launcher's own PATH.
old_path=$PATH
export PATH=$W/project/bin:$PATH
sbx "$A" write "$W/project/bin/ls"
expect "a directory on PATH inside a root" 1 "write: EROFS"
works "what lies beside it" "$A" write "$W/project/beside"
mkdir -p "$W/project/deep/env/bin"
export PATH=$W/project/deep/env/bin:$PATH
for dir in deep deep/env deep/env/bin; do
    sbx "$A" rename "$W/project/$dir" "$W/project/$dir.away"
    expect "$dir on the way to PATH inside a root stays" 1 "rename: EBUSY"
done
works "what lies on the way can be written" "$A" write "$W/project/deep/beside"
export PATH=$W/outside/tools:$old_path
works "a directory on PATH outside of every root" true
export PATH=$W/project:$old_path
sbx true
expect "a root on PATH refuses the call" 125 "*is in PATH*"
export PATH=$W/project/cur:$old_path
sbx true
expect "a link in a root on the way to PATH refuses the call" 125 "*could change the link*cur*"
export PATH=$W/project/none:$W/none:$old_path
works "directories on PATH that are not there" true
export PATH=$old_path
finish
