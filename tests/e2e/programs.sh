#!/bin/bash
# The programs by themselves: flags and exit codes of efrd, efr and efr-worker, closed standard
# descriptors, and the proof of efr-worker that it is confined. Needs no daemon.
set -u
bin=${EFR_BIN:-build/bin}
failed=0

# expect NAME WANTED_CODE WANTED_TEXT COMMAND...: runs it, checks the code and a part of the output.
expect() {
    local name=$1 code=$2 text=$3 got rc
    shift 3
    got=$("$@" 2>&1)
    rc=$?
    if [ "$rc" != "$code" ] || [[ $got != *"$text"* ]]; then
        printf 'FAIL %s: code %s (not %s), output: %s\n' "$name" "$rc" "$code" "$got"
        failed=1
    fi
}

expect version 0 "efrd " "$bin/efrd" --version
expect help 0 "usage: efrd" "$bin/efrd" --help
expect unknown 2 "usage: efrd" "$bin/efrd" --unknown
expect argument 2 "unexpected argument x" "$bin/efrd" x
expect role 2 "unknown role x" "$bin/efrd" --role x
expect rules 2 "started by efrd and efr only" "$bin/efrd" --role rules
expect seams 0 "off" timeout 20 "$bin/efrd" --test-seams
expect efr-version 0 "efr " "$bin/efr" --version
expect worker-role 2 "unknown role x" "$bin/efr-worker" x
expect worker-none 2 "exactly one argument" "$bin/efr-worker"
expect worker-check 0 "confined: open, socket and execve are refused" "$bin/efr-worker" check

# With closed standard descriptors nothing of ours may get their numbers.
expect closed 0 "" bash -c "'$bin/efr' --version <&- >&- 2>&-"

exit $failed
