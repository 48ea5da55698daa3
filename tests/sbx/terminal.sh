#!/bin/bash
# The terminal of a call: it is kept, the command is its foreground job, Ctrl+C and Ctrl+Z act as
# for any job of a shell, and the shell has its terminal back afterwards.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    cp "$TESTS/terminal.py" "$W/bin/"
}
as_both
PYTHON=/usr/bin/python3

# steps NAME: plays the steps of standard input; @RUN@ stands for the launch of CALL
steps() {
    local run="$W/bin/efr-sbx run --call-dir $CALL"
    if OUT=$(sed "s|@RUN@|$run|" | PATH=/usr/bin:/bin $PYTHON "$W/bin/terminal.py"); then
        ok "$1"
    else
        STATUS=1
        bad "$1"
    fi
}

plan bash -c 'tty; test -t 0 -a -t 1 && echo is-a-terminal; read -r x </dev/tty; echo "got $x"'
steps "the controlling terminal is there" <<'STEPS'
wait READY% 
type @RUN@; echo status $?\r
wait /dev/console
wait is-a-terminal
type word\r
wait got word
wait status 0
wait READY% 
STEPS

plan bash -c 'stty size </dev/stdin >/dev/stdout && echo again >/dev/stdout; echo status $?'
steps "the inherited terminal can be opened again" <<'STEPS'
wait READY% 
type @RUN@\r
wait again
wait status 0
wait READY% 
STEPS

plan sh -c 'echo begins; exec cat'
steps "Ctrl+C ends the command, and the shell goes on" <<'STEPS'
wait READY% 
type @RUN@; echo status $?\r
wait begins
type \x03
wait status 130
wait READY% 
type echo alive\r
wait alive
wait READY% 
STEPS

plan bash -c 'trap "echo caught; exit 4" INT; echo begins; while :; do sleep 0.1; done'
steps "a command that handles Ctrl+C keeps its own status" <<'STEPS'
wait READY% 
type @RUN@; echo status $?\r
wait begins
type \x03
wait caught
wait status 4
wait READY% 
STEPS

plan sh -c 'echo begins; read x; echo "read $x"'
steps "Ctrl+Z stops the job, fg continues it with the terminal" <<'STEPS'
wait READY% 
type @RUN@\r
wait begins
type \x1a
wait suspended
wait READY% 
type jobs\r
wait suspended
wait READY% 
type fg\r
wait continued
type again\r
wait read again
wait READY% 
type echo alive\r
wait alive
wait READY% 
STEPS

plan sh -c 'echo background; exit 6'
steps "in the background it does not take the terminal" <<'STEPS'
wait READY% 
type @RUN@ & wait $!; echo status $?\r
wait background
wait status 6
type echo alive\r
wait alive
wait READY% 
STEPS

for request in 0x5412 0x541c 0x5423 0x540c; do
    plan "$W/bin/attempts" ioctl $request
    steps "ioctl $request on the terminal" <<'STEPS'
wait READY% 
type @RUN@; echo status $?\r
wait ioctl: EPERM
wait status 1
STEPS
done

plan bash -c "exec 9>'$W/project/held'; flock 9; trap '' HUP TERM; echo begins; sleep 1000"
steps "a lost terminal" <<'STEPS'
wait READY% 
type @RUN@\r
wait begins
STEPS
if flock -w 10 "$W/project/held" true; then ok "ends the call"; else bad "ends the call"; fi
finish
