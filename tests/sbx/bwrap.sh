#!/bin/bash
# The bubblewrap backend: which bubblewrap may build a call, what pid 1 of the call notices when it
# did not do what it was told, and the sandbox tests once more with this backend. In the CI size
# some of them and as an ordinary user (one where the tests run as root); in the long size all, and
# as root too.
# shellcheck disable=SC1091,SC2034
export EFR_SBX_BACKEND=bwrap
. "$(dirname "$0")/lib.sh"

# Those with a launch by a plan of lib.sh; `seccomp` has none.
SCRIPTS="surface ordinary grants sockets"
[ "$(id -u)" != 0 ] || SCRIPTS=surface
[ "${EFR_TEST_SIZE:-ci}" = long ] &&
    SCRIPTS="surface ordinary grants sockets files refusals kernel capped selftest end caches git
        terminal stages own_sockets filesystems races"
if [ -z "${SBX_INNER:-}" ]; then
    [ "${EFR_TEST_SIZE:-ci}" = long ] || export SBX_WHO=user
    for script in $SCRIPTS; do
        echo "# $script.sh"
        bash "$TESTS/$script.sh" || FAILED=1
    done
    unset SBX_WHO
    [ "$FAILED" = 0 ] || { echo "not ok - with bubblewrap" && exit 1; }
fi

prepare() {
    # Programs that only root can make.
    [ "$(id -u)" = 0 ] || return 0
    attacker bwrap_liar
    local name
    for name in --unshare-pid --unshare-net --unshare-ipc mask --remount-ro --ro-bind-data \
        --bind-fd --ro-bind-fd proc writable other moved none stuck; do
        cp "$W/bin/bwrap_liar" "$W/bin/bwrap-$name"
    done
    rm -f "$W/bin/bwrap_liar"
    mkdir "$W/trust"
    for name in setuid group other; do cp "$BWRAP" "$W/trust/$name"; done
    chmod 4755 "$W/trust/setuid"
    chmod 775 "$W/trust/group"
    chmod 757 "$W/trust/other"
    cp -r "$W/bin" "$W/trust/bin"
    # as_both gives the world away; what stands here stays root's.
    LIARS=$(mktemp -d /var/lib/efr-sbx-liars.XXXXXX) || exit 1
    chmod 755 "$LIARS"
    mv "$W/trust" "$W/bin"/bwrap-* "$LIARS/"
    echo "$LIARS" >"$W/liars"
}
tidy() {
    [ -z "${LIARS:-}" ] || rm -rf "$LIARS"
}
as_both
mkdir "$W/project/kept"
echo x >"$W/project/hidden"
MOUNTS=("floor $W/project/kept" "mask $W/project/hidden")

works "a call through bubblewrap" true
sbx sh -c 'tr "\0" " " </proc/1/cmdline'
expect "its pid 1 is efr's" 0 "/proc/self/fd/* inner --policy-fd *"
OUT=$(tr '\0' ' ' <"$CALL/result")
expect "and the result is efr's" 0 "efr-result 1 nonce $NONCE started 1 *exit_code 0 end "

sbx sh -c 'ulimit -Sn; ulimit -Hn'
expect "the limit of open files is the caller's" 0 "$(ulimit -Sn)"$'\n'"$(ulimit -Hn)"
# More entries than that limit has descriptors for.
before=("${MOUNTS[@]}")
mkdir "$W/outside/many"
for ((i = 0; i < 120; i++)); do
    echo x >"$W/outside/many/$i"
    MOUNTS+=("mask $W/outside/many/$i")
done
(
    ulimit -Sn 64
    works "many places with few descriptors" sh -c '! cat "$1"/* | grep . && ulimit -Sn | grep -qx 64' _ "$W/outside/many"
    exit "$FAILED"
) || FAILED=1
MOUNTS=("${before[@]}")

# Overlays come from outside of the call; what lies inside them comes onto them.
C=$W/home/.cache
mkdir -p "$C/secret" "$C/bin" "$W/layers"
chmod 700 "$W/layers"
for file in secret/key token bin/tool old; do echo text >"$C/$file"; done
MOUNTS+=("overlay $C tmp" "mask $C/secret" "mask $C/token" "floor $C/bin")
LAYERS=(layers "$W/layers" call)
sbx sh -c 'cd "$1" && ls -A secret && cat token && echo new >new && rm old && cat new bin/tool && ls -A "$XDG_RUNTIME_DIR"
    ! { echo x >bin/tool; } 2>/dev/null && ! { echo x >token; } 2>/dev/null' _ "$C"
expect "a cache with masks and a floor inside" 0 $'new\ntext\nefr-sbx'
names=("$C"/*)
OUT=${names[*]##*/}
expect "nothing of it in the real one" 0 "bin old secret token"
OUT=$(tr '\0' ' ' <"$CALL/deletes")
expect "what it deleted is listed" 0 "efr-deletes 1 cache $C gone old end "
MOUNTS=("${before[@]}")
LAYERS=()

cp "$BWRAP" "$W/bin/mine"
ln -s "$BWRAP" "$W/bin/link"
real=$BWRAP
if [ "$(id -u)" != 0 ]; then
    BWRAP=$W/bin/mine
    sbx true
    expect "one of this user" 125 "*bubblewrap: $W/bin/mine does not belong to root"
fi
BWRAP=$W/bin/link
sbx true
expect "one behind a link" 125 "*bubblewrap: open $W/bin/link: Too many levels*"
BWRAP=$W/bin/none
sbx true
expect "one that is not there" 125 "*bubblewrap: open $W/bin/none: No such file*"
BWRAP=$W/bin
sbx true
expect "a directory" 125 "*bubblewrap: $W/bin is not a program"
BWRAP=/usr/bin/false
sbx true
expect "a program that is none" 125 "*pid 1: it ended without a report"
BWRAP=$real
if [ ! -e "$W/liars" ]; then finish; fi

liars=$(cat "$W/liars")
BWRAP=$liars/trust/setuid
sbx true
expect "a set-user-id one" 125 "*has rights of its own*"
for who in group other; do
    BWRAP=$liars/trust/$who
    sbx true
    expect "one that others can change ($who)" 125 "*can be changed by others"
done
# lies OPTION PATTERN
lies() {
    BWRAP=$liars/bwrap-$1
    sbx touch "$W/project/ran"
    expect "a lie is seen: $1" 125 "$2"
    if [ -e "$W/project/ran" ]; then bad "nothing ran: $1"; else ok "nothing ran: $1"; fi
}
BWRAP=$liars/bwrap-none
works "the liar tells the truth (control)" true
lies --unshare-pid "*setup failed*"
lies --unshare-net "*namespaces: a namespace is not the call's own"
lies --unshare-ipc "*namespaces: a namespace is not the call's own"
lies mask "*mounts: $W/state is not what the plan says*"
lies --remount-ro "*mounts: * is not what the plan says*"
lies proc "*mounts: /proc is writable, and the plan does not say so"
lies --ro-bind-data "*mounts: $W/project/hidden is not what the plan says*"
lies --bind-fd "*mounts: * is not what the plan says*"
lies --ro-bind-fd "*mounts: $W/project/kept is not what the plan says*"
lies writable "*mounts: / is writable, and the plan does not say so"
lies other "*mounts: $W/project/kept is not what the plan says*"
lies moved "*mounts: * is not what the plan says*"

# What bubblewrap leaves behind when its launcher is killed early. Every process has standard input, so
# the lock on that tells.
BWRAP=$liars/bwrap-stuck
plan true
: >"$W/project/held"
exec 8<"$W/project/held"
flock -x 8
"$W/bin/efr-sbx" run --call-dir "$CALL" <&8 >"$W/project/said" 2>&1 &
launcher=$!
exec 8<&-
until [ -s "$W/project/said" ] || ! kill -0 $launcher 2>/dev/null; do read -rt 0.01 <> <(:); done
STATUS=0 OUT=$(cat "$W/project/said")
expect "a bubblewrap that does not come on" 0 stuck
kill -KILL $launcher
wait $launcher 2>/dev/null
if flock -w 10 "$W/project/held" true; then ok "ends with its launcher, child and all"; else bad "left behind"; fi
finish
