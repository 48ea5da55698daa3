#!/bin/bash
# Cost of a contained `true`: bare, plain bwrap with the same namespaces and one bind, efr-sbx
# with one root, and efr-sbx with an envelope of 60 masks and roots. One run, taking turns.
# Run as an ordinary user and as root; the ratios are what counts.
# shellcheck disable=SC1091,SC2034
set -u
here=$(cd "$(dirname "$0")" && pwd)
EFR_SBX=${EFR_SBX:-${EFR_BIN:-$here/../../build/bin}/efr-sbx}
ROUNDS=${1:-200}
. "$here/../sbx/lib.sh"
world
cc -std=c11 -D_GNU_SOURCE -O1 -o "$W/bin/spawn_times" "$here/spawn_times.c" || exit 1
cd "$W/project" || exit 1

copies() { # NAME: one call directory for each round, all with the last plan
    mkdir "$W/call/$1"
    local i
    for ((i = 0; i < ROUNDS; i++)); do
        mkdir -m 700 "$W/call/$1/$i" && cp "$CALL/plan" "$W/call/$1/$i/plan"
    done
}

plan true
copies one
for ((i = 0; i < 40; i++)); do
    mkdir -p "$W/home/mask$i"
    MOUNTS+=("mask $W/home/mask$i")
done
for ((i = 0; i < 20; i++)); do
    mkdir -p "$W/home/root$i"
    MOUNTS+=("root $W/home/root$i")
done
plan true
copies many

"$W/bin/spawn_times" "$ROUNDS" \
    "bare true" true -- \
    "bwrap, same namespaces, one bind" bwrap --unshare-user --unshare-pid --unshare-net \
    --unshare-ipc --unshare-uts --unshare-cgroup --die-with-parent --cap-drop ALL \
    --ro-bind / / --proc /proc --dev /dev --bind "$W/project" "$W/project" true -- \
    "efr-sbx, one root" "$EFR_SBX" run --call-dir "$W/call/one/{}" -- \
    "efr-sbx, 40 masks and 20 roots" "$EFR_SBX" run --call-dir "$W/call/many/{}"
