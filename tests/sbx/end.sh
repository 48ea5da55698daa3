#!/bin/bash
# How a call ends: nothing outlives it, nothing inside can forge its end, and it dies with its
# launcher. Results are compared field by field.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    cp "$TESTS/own_sockets.py" "$W/bin/"
}
as_both

result() {
    tr '\0' ' ' <"$CALL/result" 2>/dev/null | sed 's/landlock_abi [0-9]* //'
}
is() { # NAME WANTED SEEN
    if [ "$2" = "$3" ]; then ok "$1"; else OUT=$3 bad "$1"; fi
}
# Waits until no process holds the file any more that every process of the call has open.
gone() { # NAME
    if flock -w 10 "$W/project/held" true; then ok "$1"; else bad "$1"; fi
}
# Waits until the command runs, as long as its launcher lives.
started() {
    until [ -e "$CALL/started" ] || ! kill -0 $launcher 2>/dev/null; do read -rt 0.01 <> <(:); done
}
HEAD="efr-result 1 nonce $NONCE started"

sbx sh -c 'exit 7'
is "an exit code" "$HEAD 1 exit_code 7 end " "$(result)"
expect "is the launcher's" 7 ""
sbx sh -c 'kill -KILL $$'
is "a signal" "$HEAD 1 signal 9 end " "$(result)"
expect "is 128 + signal" 137 ""
sbx /nowhere/program
is "no such program" "$HEAD 0 exit_code 127 launch_error /nowhere/program: No such file or directory end " "$(result)"
expect "is 127" 127 "efr-sbx: /nowhere/program: No such file or directory"
sbx "$W/home"
expect "a program that is none is 126" 126 "*Permission denied"

# A lock that is inherited tells when the last process of a call is gone.
HOLD="exec 9>'$W/project/held'; flock 9"
sbx bash -c "$HOLD; (trap '' TERM HUP INT; setsid sh -c 'sleep 1000 & sleep 1000' &) ; exit 0"
expect "the call ends with its main command" 0 ""
gone "double fork, setsid and ignored signals do not outlive it"
sbx bash -c "$HOLD; kill -9 1; kill -9 -1; kill -TERM 1; echo alive"
expect "pid 1 cannot be killed from inside" 0 "*alive"
sbx bash -c "$HOLD; (while :; do kill -USR1 1; done) & /usr/bin/python3 '$W/bin/own_sockets.py' /tmp private"
expect "signals to pid 1 do no harm" 0 "all as expected"
gone "and leave nothing"

sbx sh -c "echo forged >'$CALL/result'; ls '$W/call'; exit 3"
is "a result written from inside has no effect" "$HEAD 1 exit_code 3 end " "$(result)"
if grep -q forged "$CALL/result" 2>/dev/null; then bad "forged"; else ok "and arrives nowhere"; fi

EXTRA=(records 1)
sbx sh -c 'printf "efr-records\0v1\0end\0000\0" >&3; exit 5'
OUT=$(tr '\0' ' ' <"$CALL/records")
STATUS=0
expect "records are copied unread" 0 "efr-records v1 end 0 "
is "and change no status" "$HEAD 1 exit_code 5 end " "$(result)"
sbx sh -c 'head -c 1000000 /dev/zero >&3'
OUT=$(stat -c %s "$CALL/records")
expect "at most 256 KiB of them" 0 262144
EXTRA=()
sbx sh -c 'ls /proc/self/fd | tr "\n" " "'
expect "the command has only its standard descriptors" 0 "0 1 2 3 "

# started comes first, result last.
plan sh -c "ls '$CALL'; test -e /tmp/go"
if [ ! -e "$CALL/started" ]; then ok "nothing before the start"; else bad "started"; fi

# The launcher killed at a random moment: nothing is left, and no result claims success.
for round in 1 2 3 4 5 6 7 8; do
    plan bash -c "$HOLD; setsid sleep 1000 & sleep 1000"
    : >"$W/project/held"
    "$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null >/dev/null 2>&1 &
    launcher=$!
    if [ $((round % 2)) = 0 ]; then
        started
    fi
    kill -KILL $launcher
    wait $launcher 2>/dev/null
    STATUS=$?
    gone "launcher killed, round $round"
    [ ! -e "$CALL/result" ] || bad "a killed launcher left a result"
done
# And at random moments of its life: no process, no mount, no file of the host but those of the
# call's own directory. Every process of a call has its standard input, so the lock on that tells.
everything() {
    grep -c . /proc/self/mountinfo
    find "$W/project" "$W/home" "$W/outside" "$W/run" "$W/state" | sort
}
MOUNTS=("mask $W/home/.zshrc" "floor $W/project/kept")
mkdir -p "$W/project/kept" "$W/state/scratch"
MOUNTS+=("root $W/state/scratch")
sbx true # makes the mount points in the conversation's own /tmp
before=$(everything)
rounds=40
[ "${EFR_TEST_SIZE:-ci}" = long ] && rounds=1000
left=0
for ((round = 0; round < rounds; round++)); do
    plan bash -c "(setsid sleep 1000 &); sleep 1000"
    exec 8<"$W/project/held"
    flock -x 8
    "$W/bin/efr-sbx" run --call-dir "$CALL" <&8 >/dev/null 2>&1 &
    launcher=$!
    exec 8<&-
    read -rt "0.0$((RANDOM % 2))$((RANDOM % 10))$((RANDOM % 10))" <> <(:)
    kill -KILL $launcher
    wait $launcher 2>/dev/null
    flock -w 10 "$W/project/held" true || left=$((left + 1))
    [ ! -e "$CALL/result" ] || left=$((left + 1))
done
is "launcher killed at $rounds random moments: nothing lives on" 0 $left
is "and nothing is left on the host" "$before" "$(everything)"
MOUNTS=()

for sig in INT TERM HUP QUIT; do
    plan bash -c "$HOLD; sleep 1000"
    (
        trap - INT QUIT
        exec "$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null >/dev/null 2>&1
    ) &
    launcher=$!
    started
    kill -$sig $launcher 2>/dev/null
    # A shell without job control starts its children with INT and QUIT ignored.
    case $sig in INT | QUIT) kill -KILL $launcher 2>/dev/null ;; esac
    wait $launcher 2>/dev/null
    gone "launcher ended by SIG$sig"
done

# Pid 1 killed from outside.
plan bash -c "$HOLD; sleep 1000"
"$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null >"$W/out" 2>&1 &
launcher=$!
started
kill -KILL "$(cat "/proc/$launcher/task/$launcher/children")"
wait $launcher
STATUS=$?
OUT=$(cat "$W/out")
expect "pid 1 killed" 125 "*pid 1: it ended without a report"
gone "and nothing is left"

# A fork bomb stops at the call's own limit: meanwhile the same user can start processes outside,
# and everything ends with the call. Root has a limit from Linux 6.14 on.
limit=$(uname -r | awk -F. '{ print ($1 > 6 || ($1 == 6 && $2 >= 14)) }')
pid_max=$(cat /proc/sys/kernel/pid_max)
if [ "$(id -u)" != 0 ] || [ "$limit" = 1 ]; then
    : >"$W/project/full"
    EXTRA=(limit processes 8192)
    plan sh -c "'$W/bin/attempts' bomb 1 >'$W/project/full'"
    "$W/bin/efr-sbx" run --call-dir "$CALL" </dev/null >"$W/out" 2>&1 &
    launcher=$!
    until [ -s "$W/project/full" ] || ! kill -0 $launcher 2>/dev/null; do read -rt 0.05 <> <(:); done
    STATUS=0 OUT=$(cat "$W/project/full")
    expect "a fork bomb stops" 0 "EAGAIN after more than 8000"
    is "and others can still start" 3 "$(bash -c '(exit 3); echo $?')"
    EXTRA=()
    works "and other calls too" sh -c 'sh -c true'
    kill -KILL $launcher
    wait $launcher 2>/dev/null
fi
is "the limit of the machine is as before" "$pid_max" "$(cat /proc/sys/kernel/pid_max)"
sbx cat /proc/self/oom_score_adj
expect "a call ends first when memory runs out" 0 500
sbx bash -c "$HOLD; ulimit -u 400; b() { b | b & }; b 2>/dev/null; exit 0"
gone "a fork bomb ends with the call"
finish
