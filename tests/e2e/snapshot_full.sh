#!/usr/bin/env bash
# Also as root.
# A disk that fills up in the middle of a snapshot (as root, on a small disk of the test's own): the
# command does not run, what git had written goes, and with room again command and undo work.
# As an ordinary user only that the command runs where there is room.
. "$(dirname "$0")/lib.sh"
if [[ $(id -u) == 0 && -z ${EFR_TEST_NAMESPACE-} ]]; then
    export EFR_TEST_NAMESPACE=1
    exec unshare --mount --propagation private bash "$0"
fi
if [[ $(id -u) == 0 ]]; then
    disk=${EFR_TEST_BASE:-$HOME/.cache/efr-tests}
    mkdir -p "$disk"
    mount -t tmpfs -o size=128m none "$disk"
fi
new_home
config auto
model <<'END'
return function() error("no model may be asked") end
END
cd "$P"
project
mkdir big
for name in a b c d; do head -c 8M /dev/urandom >big/$name; done
if [[ $(id -u) == 0 ]]; then
    efr status >"$T/out"
    [[ $(stat -f -c %T .) == tmpfs ]] || fail 'this is not the disk of the test'
    fallocate -l $((($(stat -f -c %a .) - 5000) * $(stat -f -c %S .))) "$HOME/fill"
    free=$(stat -f -c %a .)
    rc=0
    efr run -- sh -c 'echo ran >ran' 2>"$T/err" || rc=$?
    [[ $rc != 0 && ! -e ran ]] || fail 'the command ran without a snapshot'
    contains "$(cat "$T/err")" 'diskspace' 'the reason'
    [[ $(stat -f -c %a .) -gt $((free - 500)) ]] || fail 'the room did not come back'
    contains "$(efr status)" 'efrd' 'status afterwards'
    rm "$HOME/fill"
fi
before=$(sha256sum big/a)
efr run -- sh -c 'echo ran >ran; rm big/a'
[[ -e ran && ! -e big/a ]] || fail 'the command did not run'
efr undo --yes
[[ ! -e ran ]] || fail 'undo left a file'
equals "$(sha256sum big/a)" "$before" 'the file that undo brought back'
