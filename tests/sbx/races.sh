#!/bin/bash
# Races against the check of a connect. Each has a control run: the same attacker, as often, with
# the check in its unsafe form (build/test/efr-sbx-unsafe), must get out at least once; a control
# that shows no escape fails. Not covered: the same names without a race (sockets.sh).
# shellcheck disable=SC1091,SC2034
. "$(dirname "$0")/lib.sh"
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
prepare() {
    attacker socket_race
    cp "$TESTS/serve.py" "$W/bin/"
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
    # Nothing of the unsafe forms is in what ships, and they do not run by themselves.
    if ! grep -q EFR_SBX_TEST_UNSAFE "$UNSAFE" || grep -Eq 'EFR_SBX_(TEST_UNSAFE|MAX_ABI)' "$(dirname "$EFR_SBX")"/*; then
        echo "not ok - the unsafe forms are in the test build alone"
        exit 1
    fi
}
as_both
rounds=1000
[ "${EFR_TEST_SIZE:-ci}" = long ] && rounds=20000

OUT=$(env -u EFR_SBX_TEST_UNSAFE "$W/bin/efr-sbx-unsafe" landlock-abi 2>&1)
STATUS=$?
expect "the unsafe launcher does not start by itself" 125 "efr-sbx-unsafe: *"

serve() { # PATH: a server of the host
    coproc SERVE { exec /usr/bin/python3 "$W/bin/serve.py" "$1" H; }
    HOST=$SERVE_PID
    read -r _ <&"${SERVE[0]}"
}
stop() {
    kill "$HOST" && wait "$HOST" 2>/dev/null
}

unsafe() { # FORM MODE ROUNDS
    plan "$W/bin/socket_race" "$2" "$SOCK" "$3" "$OWN"
    OUT=$(EFR_SBX_TEST_UNSAFE=$1 "$W/bin/efr-sbx-unsafe" run --call-dir "$CALL" 2>&1 </dev/null)
    STATUS=$?
}
race() { # MODE UNSAFE-FORM...
    local mode=$1 form
    shift
    sbx "$W/bin/socket_race" "$mode" "$SOCK" $rounds "$OWN"
    expect "race: $mode" 0 "$mode: 0 escapes, both sides seen"
    unsafe wait "$mode" $rounds
    expect "race: $mode, with a moment between check and use" 0 "$mode: 0 escapes, both sides seen"
    for form in "$@"; do
        unsafe "$form" "$mode" 20000 # it ends at the first escape
        expect "race: $mode (control: $form gets out)" 1 "$mode: 1 escapes*"
    done
}
SOCK=$W/outside/sock OWN=/tmp/race
serve "$SOCK"
race address continue
race rename continue path
race chdir continue path
race descriptor continue
stop
# The host's server lies in the project, beside the call's own.
SOCK=$W/project/host/sock OWN=$W/project/own
mkdir -p "$W/project/host"
serve "$SOCK"
race address continue
race rename path
race swap continue path
stop
finish
