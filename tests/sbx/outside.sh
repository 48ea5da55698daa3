#!/bin/bash
# `efr-sbx outside`: the status and the result of a line, its environment and directory, and that everything the
# line left behind ends with it: a child that ignores SIGTERM, one in a session of its own, a stopped one, one that
# forks again and again; also when the launcher is asked to stop. A plan is no line outside, and the reverse. Each
# also as an ordinary user. Not covered: who decides (tests/e2e/exits.sh), terminals (tests/e2e/exit_child.sh).
# shellcheck disable=SC1091,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    cp "$TESTS/../../zsh/efr-outside.zsh" "$W/bin/"
    cp "$TESTS/../e2e/gone.py" "$W/bin/"
}
as_both

# call LINE: makes the directory of a call.
call() {
    CALL=$W/call/$RANDOM$RANDOM
    mkdir -m 700 "$CALL"
    printf '%s' "$1" >"$CALL/line"
    printf '%s\0' FROM_EFR "two words" >"$CALL/environment"
    cp "$W/bin/efr-outside.zsh" "$CALL/outside.zsh"
    printf '%s\0' efr-outside 1 nonce "$NONCE" shell "$(command -v zsh)" end >"$CALL/outside"
}
# outside LINE: runs it; OUT, STATUS.
outside() {
    call "$1"
    OUT=$("$W/bin/efr-sbx" outside --call-dir "$CALL" 2>&1)
    STATUS=$?
}
# field NAME: of the result.
field() { tr '\0' '\n' <"$CALL/result" | grep -A1 -x "$1" | tail -n 1; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else bad "$1: [$2] is not [$3]"; fi; }
# pids_of FILE: every process that wrote its number there has ended.
ended() {
    local pids
    mapfile -t pids <"$1"
    if [ ${#pids[@]} -gt 0 ] && python3 "$W/bin/gone.py" 10 "${pids[@]}"; then ok "$2"; else bad "$2"; fi
    rm -f "$1"
}

outside 'print -r -- "$PWD $MARK"; (exit 3)'
expect "a line" 3 "$W/project *"
same "its exit code is in the result" "$(field exit_code)" 3
same "with the nonce" "$(field nonce)" "$NONCE"
[ -e "$CALL/started" ] && ok "it started" || bad "it started"
outside 'print -r -- "[$FROM_EFR][$_efr_name]"'
expect "with what efrd gives it" 0 "?two words???"
MARK=marked outside 'print -r -- $MARK; echo x >"$HOME/written"'
expect "with the environment of its caller" 0 "marked"
same "and the user's rights" "$(cat "$HOME/written")" x
outside 'kill -KILL $$'
expect "a signal" 137 ""
same "is in the result" "$(field signal)" 9
outside 'print "not closed'
expect "a line that cannot be read" 1 "*unmatched*"
outside 'ls /proc/self/fd | wc -l'
expect "no descriptor but the standard ones, and that of ls" 0 "4"

# What a line leaves behind.
outside 'zsh -fc "trap \"\" TERM; print \$\$ >>pids; exec sleep 900" & while [[ ! -s pids ]]; do :; done'
ended pids "a child that ignores SIGTERM ends"
outside 'setsid zsh -fc "print \$\$ >>pids; exec sleep 900" & while [[ ! -s pids ]]; do :; done'
ended pids "a child with a session of its own ends"
outside '(zsh -fc "print \$\$ >>pids; exec sleep 900" &) ; while [[ ! -s pids ]]; do :; done'
ended pids "a child that lost its parent ends"
outside 'zsh -fc "print \$\$ >>pids; kill -STOP \$\$; sleep 900" & while [[ ! -s pids ]]; do :; done'
ended pids "a stopped child ends"
outside 'zsh -fc "for i in {1..20}; do setsid sleep 90\$i & print \$! >>pids; done; wait" & while [[ ! -s pids ]]; do :; done'
ended pids "a child that starts more ends"
same "nobody was left" "$(field survivors)" ""

# The launcher is asked to stop.
call 'trap "" TERM; print $$ >>pids; sleep 900'
"$W/bin/efr-sbx" outside --call-dir "$CALL" &
launcher=$!
while [ ! -s pids ]; do :; done
kill -TERM $launcher
wait $launcher
same "a launcher that is asked to stop ends the line" $? 137
ended pids "and all of it"

# A call directory of the other kind.
plan true
OUT=$("$W/bin/efr-sbx" outside --call-dir "$CALL" 2>&1)
STATUS=$?
expect "a plan is no line outside" 125 "*setup failed*open outside*"
call true
OUT=$("$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1)
STATUS=$?
expect "a line outside is no plan" 125 "*setup failed*plan*"
printf 'efr-outside\0' >"$CALL/outside"
OUT=$("$W/bin/efr-sbx" outside --call-dir "$CALL" 2>&1)
STATUS=$?
expect "a cut file runs nothing" 125 "*malformed*"
chmod 755 "$CALL"
OUT=$("$W/bin/efr-sbx" outside --call-dir "$CALL" 2>&1)
STATUS=$?
expect "a directory that others may read runs nothing" 125 "*not a private directory*"
finish
