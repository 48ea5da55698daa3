#!/usr/bin/env bash
# The end of a test in lib.sh: a process that is left behind fails the test, and yet it is ended and the test's
# directory removed.
. "$(dirname "$0")/lib.sh"
new_home
status=0
EFR_TEST_BASE=$T EFR_TEST_LIMIT=1 bash -c '. "$1/e2e/lib.sh"
    new_home
    printf "%s\n" "$T" >"$2/inner"
    (setsid sleep 7771 </dev/null >/dev/null 2>&1 & echo $! >"$2/pid")' inner "$tests" "$T" \
    >"$T/out" 2>&1 || status=$?
equals "$status" 1 'status of a test that leaves a process'
contains "$(cat "$T/out")" 'FAIL left behind: .*sleep 7771' 'its message'
wait_gone "$(cat "$T/pid")"
[[ -n $(cat "$T/inner") && ! -e $(cat "$T/inner") ]] || fail 'its directory is still there'
