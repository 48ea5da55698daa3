#!/bin/bash
# Cost of a contained `true`: bare, plain bwrap with the same namespaces and one bind, efr-sbx
# with one root, with an envelope of 60 masks and roots, and with that and 8 caches in each
# mode (kept ones on the disk of the state root); and the same plans through bubblewrap. One run,
# taking turns.
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

pair() { # NAME: copies of a plan for both backends
    BWRAP=
    plan true
    copies "$1"
    BWRAP=$(command -v bwrap)
    plan true
    copies "$1.bwrap"
}
pair one
same=()
for ((i = 0; i < 40; i++)); do
    mkdir -p "$W/home/mask$i"
    MOUNTS+=("mask $W/home/mask$i")
    same+=(--tmpfs "$W/home/mask$i")
done
for ((i = 0; i < 20; i++)); do
    mkdir -p "$W/home/root$i"
    MOUNTS+=("root $W/home/root$i")
    same+=(--bind "$W/home/root$i" "$W/home/root$i")
done
pair many
mkdir -m 700 "$W/layers"
LAYERS=(layers "$W/layers" call)
base=("${MOUNTS[@]}")
caches() { # NAME KEPT: a plan with 8 caches, of which the first KEPT are kept
    local layer
    MOUNTS=("${base[@]}")
    for ((i = 0; i < 8; i++)); do
        layer=tmp
        [ $i -ge "$2" ] || layer=$1$i
        mkdir -p "$W/home/cache$i" "$W/layers/cache/$layer/upper" "$W/layers/cache/$layer/work"
        MOUNTS+=("overlay $W/home/cache$i $layer")
    done
    chmod 700 "$W/layers/cache"
    pair "$1"
}
caches tmp 0
caches downloads 5
caches kept 8

"$W/bin/spawn_times" "$ROUNDS" \
    "bare true" true -- \
    "bwrap, one bind" bwrap --unshare-user --unshare-pid --unshare-net \
    --unshare-ipc --unshare-uts --unshare-cgroup --die-with-parent --cap-drop ALL \
    --ro-bind / / --proc /proc --dev /dev --bind "$W/project" "$W/project" true -- \
    "bwrap, the same 60 places" bwrap --unshare-user --unshare-pid --unshare-net \
    --unshare-ipc --unshare-uts --unshare-cgroup --die-with-parent --cap-drop ALL \
    --ro-bind / / --proc /proc --dev /dev --bind "$W/project" "$W/project" "${same[@]}" true -- \
    "efr-sbx, one root" "$EFR_SBX" run --call-dir "$W/call/one/{}" -- \
    "efr-sbx, 40 masks and 20 roots" "$EFR_SBX" run --call-dir "$W/call/many/{}" -- \
    "the same by bubblewrap, one root" "$EFR_SBX" run --call-dir "$W/call/one.bwrap/{}" -- \
    "by bubblewrap, 40 masks and 20 roots" "$EFR_SBX" run --call-dir "$W/call/many.bwrap/{}" -- \
    "by bubblewrap, and 8 caches, tmp" "$EFR_SBX" run --call-dir "$W/call/tmp.bwrap/{}" -- \
    "and 8 caches, tmp" "$EFR_SBX" run --call-dir "$W/call/tmp/{}" -- \
    "and 8 caches, 5 kept (keep_downloads)" "$EFR_SBX" run --call-dir "$W/call/downloads/{}" -- \
    "and 8 caches, overlay" "$EFR_SBX" run --call-dir "$W/call/kept/{}"
