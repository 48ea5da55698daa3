#!/bin/bash
# System calls, socket families, capabilities and other processes: each attempt gets its exact
# answer.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
}
as_both
A=$W/bin/attempts

nr() { # name: its number on this architecture
    echo "#include <sys/syscall.h>
SYS_$1" | cc -E -P - | tail -1
}

# answer ERRNO NAME ARG...
answer() {
    local errno=$1
    shift
    sbx "$A" "$@"
    expect "$*" 1 "$1: $errno"
}

for name in keyctl add_key request_key bpf perf_event_open userfaultfd pivot_root move_mount \
    open_tree fsopen fsconfig fsmount fspick mount_setattr setns unshare open_by_handle_at \
    name_to_handle_at kexec_load init_module finit_module delete_module reboot swapon swapoff acct \
    fanotify_init quotactl vhangup kexec_file_load iopl ioperm mount umount2 chroot; do
    number=$(nr $name)
    case $number in
        SYS_*) bad "$name has no number here" ;;
        *) sbx "$A" call "$number" && expect "$name" 1 "call: EPERM" ;;
    esac
done
for name in io_uring_setup io_uring_enter io_uring_register clone3; do
    sbx "$A" call "$(nr $name)"
    expect "$name" 1 "call: ENOSYS"
done
answer EPERM call 467
answer EPERM call "$(nr prlimit64)" 1
answer ENOSYS call 468
answer ENOSYS call 100000
answer ENOSYS openat2
sbx "$A" x32
expect "x32 call" 159 "*"
sbx "$A" i386
expect "i386 call" 159 "*"

answer EPERM mount "$W/project"
answer EPERM remount /
answer EPERM umount /tmp
for flag in 0x20000 0x10000000 0x20000000 0x40000000 0x02000000 0x04000000 0x08000000; do
    answer EPERM clone $flag
done
works "an ordinary clone" "$A" clone 0

for family in 40 38 17 31 15 16384; do # vsock alg packet bluetooth key none
    answer EAFNOSUPPORT socket $family 1
done
works "no family but these four" "$A" families
if [ "$OUT" = "families: worked" ]; then ok "is known"; else bad "is known"; fi
answer EAFNOSUPPORT wide-socket 40
answer EPROTONOSUPPORT socket 1 2
answer EPROTONOSUPPORT socket 1 3
answer EPROTONOSUPPORT socketpair 1 2
answer EPROTONOSUPPORT socket 2 1 262
answer EPERM socket 2 3 1
answer EPERM socket 10 3 58
answer EPERM socket 2 3 255
answer EPROTONOSUPPORT socket 2 1 132 # SCTP
answer ENETUNREACH udp 192.0.2.1
for type in 1 5; do
    works "AF_UNIX socket of type $type" "$A" socket 1 $type
    works "AF_UNIX socketpair of type $type" "$A" socketpair 1 $type
done
works "netlink" "$A" socket 16 3 0

for request in 0x5412 0x541c 0x5423 0x540c; do # TIOCSTI TIOCLINUX TIOCSETD TIOCEXCL
    answer EPERM ioctl $request
    answer EPERM wide-ioctl $request
done

sleep 1000 &
victim=$!
answer ESRCH kill $victim 9
answer ESRCH trace $victim
answer ESRCH write-memory $victim
answer ESRCH take-descriptor $victim 0
sbx "$A" read /proc/$victim/environ
expect "the environment of a process outside" 1 "read: ENOENT"
sbx sh -c "kill -9 -1; :"
if kill -0 $victim; then ok "the process outside lives"; else bad "the process outside"; fi
kill $victim
answer EPERM trace 1
answer EPERM write-memory 1
answer EPERM take-descriptor 1 0
for name in environ mem root cwd fd/0 maps; do
    sbx "$A" read /proc/1/$name
    expect "/proc/1/$name" 1 "read: EACCES"
done
# The group of the command holds only processes of the call.
works "a signal to the own group" sh -c "trap 'exit 0' TERM; kill -TERM 0; exit 1"

sbx grep -E '^(Cap|NoNewPrivs)' /proc/self/status
expect "capabilities are empty" 0 "CapInh:?0000000000000000
CapPrm:?0000000000000000
CapEff:?0000000000000000
CapBnd:?0000000000000000
CapAmb:?0000000000000000
NoNewPrivs:?1"
sbx "$W/bin/efr-sbx" self-test
expect "self-test" 0 "*"
finish
