#!/bin/bash
# A capped Landlock ABI: the means of older kernels give the same answers. By option in what ships
# (efr sandbox check --abi N), by EFR_SBX_MAX_ABI in the test build. A cap is no older kernel: those
# are booted by ./dev test-kernels.
# shellcheck disable=SC1091,SC2034
. "$(dirname "$0")/lib.sh"
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
prepare() {
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
}
as_both
ABI=$("$W/bin/efr-sbx" landlock-abi)

# capped PROGRAM ABI ARG...: runs the self-test with a program and further arguments
capped() {
    local program=$1
    shift
    plan "$W/bin/efr-sbx" self-test
    OUT=$("$program" run --call-dir "$CALL" "$@" 2>&1 </dev/null)
    STATUS=$?
}
used() { # NAME ABI
    expect "$1: all checks" 0 "*"
    OUT=$(tr '\0' ' ' <"$CALL/result")
    expect "$1: is in the result" 0 "* landlock_abi $2 *"
}

for abi in 2 3 4 6 99; do
    min=$((abi < ABI ? abi : ABI))
    capped "$W/bin/efr-sbx" --max-abi $abi
    used "--max-abi $abi" $min
    export EFR_SBX_MAX_ABI=$abi
    capped "$W/bin/efr-sbx-unsafe"
    used "EFR_SBX_MAX_ABI=$abi" $min
    capped "$W/bin/efr-sbx"
    used "EFR_SBX_MAX_ABI=$abi means nothing to what ships" "$ABI"
    unset EFR_SBX_MAX_ABI
done
plan true
EFR_SBX_TEST_UNSAFE=erratum "$W/bin/efr-sbx-unsafe" run --call-dir "$CALL" </dev/null
STATUS=$? OUT=$(tr '\0' ' ' <"$CALL/result")
expect "an open erratum is in the result" 0 "* landlock_abi $ABI landlock_erratum 3 exit_code 0 *"
for abi in 1 0; do
    capped "$W/bin/efr-sbx" --max-abi $abi
    expect "--max-abi $abi is below what a call needs" 125 \
        "efr-sbx: setup failed: landlock: Landlock is off or too old (ABI $abi, *"
done
for words in "--max-abi" "--max-abi x" "--max-abi -1" "--max-abi 12345" "--abi 3"; do
    # shellcheck disable=SC2086
    capped "$W/bin/efr-sbx" $words
    expect "usage: $words" 2 "usage: efr-sbx run --call-dir DIR *"
done
finish
