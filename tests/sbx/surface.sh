#!/bin/bash
# Every row of surface.table, as root and as an ordinary user, at the Landlock ABI of this kernel and
# capped to the older ones. The attempts of one setting run in one call, each in a process of its own.
# shellcheck disable=SC1091,SC2034,SC2016
. "$(dirname "$0")/lib.sh"
prepare() {
    local source=${EFR_SOURCE:-$TESTS/../..} file text
    attacker attempts
    cp "$TESTS/serve.py" "$W/bin/"
    # Numbers of calls, filled in once; what another test shows is looked up here, where it can be read.
    {
        echo '#include <sys/syscall.h>'
        grep -v '^#' "$TESTS/surface.table" | sed 's/@nr:\([a-z0-9_]*\)@/SYS_\1/g; s/.*/"&"/; s/\(SYS_[a-z0-9_]*\)/"\1"/g'
    } | cc -E -P - | sed '/^"/!d; s/" *\([0-9]*\) *"/\1/g; s/^"//; s/"$//' >"$W/table"
    [ -d "$source/sbx" ] || return 0 # the booted kernels have no sources
    while read -r _ file text; do
        grep -qsF -- "$text" "$source/$file" || echo "not ok - $file does not speak of: $text" >>"$W/unseen"
    done < <(grep '^see ' "$W/table")
}
as_both
A=$W/bin/attempts
PYTHON=/usr/bin/python3
if [ -e "$W/unseen" ]; then OUT=$(cat "$W/unseen") STATUS=1 && bad "what other tests show"; fi
if grep -q 'SYS_' "$W/table"; then bad "a call has no number here"; fi

mkdir -p "$W/sibling" "$W/home/.aws" "$W/project/.git/hooks" "$W/run/host"
for file in sibling/file project/plain project/.env project/.git/config project/.git/index home/.npmrc \
    home/.aws/credentials; do
    echo text >"$W/$file"
done
ln -s ../outside/file "$W/project/link"
ln -s ../outside "$W/project/link-to-dir"
ln -s ../outside/sock "$W/project/sock-link"
chmod 644 "$W/project/.env" "$W/home/.npmrc"

# One server for all sockets of the host: it is also the process outside that the call tries to reach.
coproc SERVE { exec $PYTHON -c '
import os, select, socket, sys
os.umask(0)
servers = []
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0" + path[1:] if path[0] == "@" else path)
    servers.append(s)
t = socket.socket(); t.bind(("127.0.0.1", 0)); servers.append(t)
for s in servers: s.listen(64)
print(os.getpid(), t.getsockname()[1], flush=True)
while True:
    for s in select.select(servers, [], [])[0]: s.accept()[0].close()' \
    "$W/outside/sock" "$W/project/host-sock" "$W/state/sock" "$W/run/xrt/bus" "@efr-surface-$$"; }
read -r VICTIM PORT <&"${SERVE[0]}"

# Lines of this setting, with the words filled in.
kind=user
[ "$(id -u)" != 0 ] || kind=root
machine=$(uname -m)
row='' rows=0 count=0
rm -f "$W/answers" "$W/attempts" "$W/titles"
while IFS= read -r line; do
    case $line in
        '' | 'see '*) [ -z "$line" ] || count=$((count + 1)) && continue ;;
        '== '*)
            [ "$rows" = 0 ] || [ "$count" -gt 0 ] || bad "no attempt for: $row"
            row=${line#== } rows=$((rows + 1)) count=0
            continue
            ;;
        root:*) [ $kind = root ] && line=${line#root:} || continue ;;
        user:*) [ $kind = user ] && line=${line#user:} || continue ;;
        x86:*) [ "$machine" = x86_64 ] && line=${line#x86:} || continue ;;
    esac
    count=$((count + 1))
    for pair in "HOME=$W/home" "OUTSIDE=$W/outside" "PROJECT=$W/project" "STATE=$W/state" "XRT=$W/run/xrt" "W=$W" \
        "VICTIM=$VICTIM" "PORT=$PORT" "ABSTRACT=@efr-surface-$$"; do
        line=${line//@${pair%%=*}@/${pair#*=}}
    done
    echo "${line%% *}" >>"$W/answers"
    echo "${line#* }" >>"$W/attempts"
    echo "$row" >>"$W/titles"
done <"$W/table"

MOUNTS=("mask $W/home/.npmrc" "mask $W/home/.aws" "mask $W/project/.env" "pin $W/project/.git"
    "floor $W/project/.git/config" "floor $W/project/.git/hooks")
found=$("$W/bin/efr-sbx" landlock-abi)
for abi in $found 6 4 3 2; do
    [ "$abi" = "$found" ] || [ "$abi" -lt "$found" ] || continue
    plan "$A" batch
    sed 's/^+ //' "$W/attempts" | "$W/bin/efr-sbx" run --call-dir "$CALL" --max-abi "$abi" >"$W/outcomes" 2>"$W/err"
    STATUS=$? OUT=$(cat "$W/err")
    paste -d '\t' "$W/titles" "$W/answers" "$W/outcomes" "$W/attempts" >"$W/all"
    wrong=$(awk -F '\t' '{ n = split($2, want, "|"); good = 0
        for (i = 1; i <= n; i++) if (want[i] == $3) good = 1
        if (!good) print $1 ": " $4 ": " $3 ", not " $2 }' "$W/all")
    total=$(wc -l <"$W/answers")
    if [ $STATUS = 0 ] && [ -z "$wrong" ] && [ "$(wc -l <"$W/outcomes")" = "$total" ]; then
        ok "ABI $abi: $total attempts of $rows rows"
    else
        OUT+=$wrong
        bad "ABI $abi"
    fi
done
if kill -0 "$VICTIM"; then ok "the process outside lives"; else bad "the process outside"; fi

# The same outside the sandbox: what is marked must work there.
sed -n 's/^+ //p' "$W/attempts" >"$W/marked"
"$A" batch <"$W/marked" >"$W/outcomes"
STATUS=$? OUT=$(paste -d ' ' "$W/outcomes" "$W/marked" | grep -v '^worked ')
if [ -z "$OUT" ]; then ok "$(wc -l <"$W/marked") of them work outside"; else bad "outside"; fi
kill "$VICTIM" && wait "$VICTIM" 2>/dev/null
finish
