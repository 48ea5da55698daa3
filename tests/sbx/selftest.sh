#!/bin/bash
# efr-sbx probe and self-test: every check holds in a real call with a terminal, and each kind of
# hole is seen. Not covered: who starts it and what becomes of a failure (spec/sbx/probe_spec.lua,
# e2e/sandbox.sh).
# shellcheck disable=SC1091,SC2034
. "$(dirname "$0")/lib.sh"
UNSAFE=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$TESTS/../../build}/test/efr-sbx-unsafe}
prepare() {
    cp "$UNSAFE" "$W/bin/efr-sbx-unsafe" || exit 1
}
as_both
sleep 1000 &
victim=$!
trap 'kill $victim 2>/dev/null' EXIT

# probe LAUNCHER SELF-TEST-ARGUMENT...
probe() {
    local launcher=$1
    shift
    plan "$W/bin/efr-sbx" self-test "$@"
    OUT=$("$launcher" probe --call-dir "$CALL" --dir "$W/project" --name "efr-test-$$" ${CAP:+--max-abi $CAP} 2>&1 </dev/null)
    STATUS=$?
}
facts=(--write "$W/project" --outside "$W/outside" --masked "$W/home/.ssh" --masked "$W/state"
    --socket "$W/project/socket" --abstract "efr-test-$$" --pid "$victim" --terminal yes)
sees() { # NAME: of the last probe
    if [ "$STATUS" = 1 ] && [[ $OUT == *"$1"* ]]; then ok "sees: $1"; else bad "sees: $1"; fi
}

probe "$W/bin/efr-sbx" "${facts[@]}"
expect "all checks" 0 "*no_capability ok*"
if [ "$(grep -c ' ok$' <<<"$OUT")" = 23 ] && grep -qx 'cache_write skipped' <<<"$OUT"; then
    ok "none but the cache is skipped"
else
    bad "none but the cache is skipped"
fi
if [ -e "$W/project/socket" ]; then bad "the socket is left behind"; fi
for CAP in 2 3 4 6; do
    probe "$W/bin/efr-sbx" "${facts[@]}" --cache "$W/project"
    expect "all checks at ABI $CAP" 0 "*cache_write ok*"
done
CAP=

# Holes: the check that must see each.
plain=(--write "$W/project" --terminal yes)
probe "$W/bin/efr-sbx" "${plain[@]}" --masked "$W/outside"
sees "mask_empty FAILED: its content shows"
probe "$W/bin/efr-sbx" "${plain[@]}" --masked "$W/outside/file"
sees "mask_empty FAILED: its content shows"
probe "$W/bin/efr-sbx" "${plain[@]}" --outside "$W/project"
sees "write_outside FAILED: it worked"
probe "$W/bin/efr-sbx" --write "$W/outside" --terminal yes
sees "write_inside FAILED: EROFS"
probe "$W/bin/efr-sbx" "${plain[@]}" --cache "$W/outside"
sees "cache_write FAILED: EROFS"
EFR_SBX_TEST_UNSAFE=no-landlock probe "$W/bin/efr-sbx-unsafe" "${facts[@]}"
sees "write_landlock_only FAILED: it worked"
sbx "$W/bin/efr-sbx" self-test --terminal yes
sees "tty FAILED: ENOTTY"

# Outside of any call.
coproc HOST { exec /usr/bin/python3 -c 'import socket, sys
held = []
for name in sys.argv[1], "\0" + sys.argv[2]:
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind(name)
    held[-1].listen()
print("ready", flush=True)
sys.stdin.read()' "$W/run/socket" "efr-test-$$"; }
read -r _ <&"${HOST[0]}"
OUT=$("$W/bin/efr-sbx" self-test --write "$W/project" --outside "$W/outside" --masked "$W/home/.ssh" \
    --socket "$W/run/socket" --abstract "efr-test-$$" --pid $victim 2>&1 </dev/null)
STATUS=$?
for name in write_outside write_landlock_only mask_empty unix_socket abstract_socket signal_outside \
    proc_environ io_uring unix_dgram mptcp nested_userns no_capability proc_sys setuid_file; do
    sees "$name FAILED"
done
sees "unix_socket FAILED: it worked"
sees "abstract_socket FAILED: it worked"
if [ "$(ls -A "$W/outside")" != dir$'\n'file ]; then bad "files are left outside"; fi
finish
