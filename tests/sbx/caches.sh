#!/bin/bash
# Caches of tools: overlays in memory, on disk (as on a kernel whose tmpfs has no user attributes,
# and with Landlock of ABI 2) and kept by the conversation. The real directory does not change, whatever is done; masks and
# floors inside hold; a kept layer has one user at a time. Not covered: which directories are
# caches and what is pinned (spec/sbx/caches_spec.lua), the clean-up (spec/sbx/layers_spec.lua).
# shellcheck disable=SC1091,SC2034,SC2016
UNSAFE_BIN=${EFR_SBX_UNSAFE:-${EFR_BUILD:-$(dirname "$0")/../../build}/test/efr-sbx-unsafe}
. "$(dirname "$0")/lib.sh"
prepare() {
    attacker attempts
    cp "$UNSAFE_BIN" "$W/bin/efr-sbx-unsafe" || exit 1
    mkdir -m 700 "$W/layers"
    cache=$W/home/.cache
    mkdir -p "$cache/old/deep" "$cache/secret" "$cache/bin" "$cache/full/of/things"
    echo old >"$cache/old/file"
    echo deep >"$cache/old/deep/file"
    ln "$cache/old/file" "$cache/old/hard"
    ln -s file "$cache/old/link"
    echo hidden >"$cache/secret/key"
    echo hidden >"$cache/token"
    printf '#!/bin/sh\necho program\n' >"$cache/bin/program"
    chmod 755 "$cache/bin/program"
    chmod 750 "$cache"
}
as_both
A=$W/bin/attempts
C=$W/home/.cache
MASKS=("mask $C/secret" "mask $C/token" "floor $C/bin" "mask $W/layers")

# Everything of the real directory: names, types, modes, times, sizes and contents.
listing() {
    (cd "$C" && find . -printf '%p %y %m %n %s %T@ %U %G\n' && find . -type f -exec cat {} +) | sort
}
BEFORE=$(listing)
unchanged() {
    if [ "$BEFORE" = "$(listing)" ]; then ok "$how: the real directory is as before $1"; else
        OUT=$(diff <(echo "$BEFORE") <(listing)) bad "$how: the real directory changed $1"
    fi
}
call_number=0
fields() { # LAYER
    call_number=$((call_number + 1))
    LAYERS=(layers "$W/layers" "call-$call_number")
    EXTRA=(set HOME "$W/home")
    MOUNTS=("${MASKS[@]}" "overlay $C $1")
}
kept_dirs() {
    mkdir -p "$W/layers/cache/kept/upper" "$W/layers/cache/kept/work"
    chmod -R 700 "$W/layers/cache"
}
inside() { # CMD...
    fields "$layer"
    plan "$@"
    OUT=$("${launcher[@]}" run --call-dir "$CALL" 2>&1 </dev/null)
    STATUS=$?
    chmod -R u+rwX "$W/layers/layers" 2>/dev/null
    rm -rf "$W/layers/layers"
}

for how in memory disk kept; do
    layer=tmp launcher=("$W/bin/efr-sbx")
    [ $how != disk ] || launcher=(env EFR_SBX_TEST_UNSAFE=disk-layers EFR_SBX_MAX_ABI=2 "$W/bin/efr-sbx-unsafe")
    [ $how != kept ] || { layer=kept && kept_dirs; }

    inside bash -ec "cd '$C'; mkdir -p _npx/a; echo {} >_npx/a/package.json; cat _npx/a/package.json
        echo more >>old/file; cat old/file; stat -c %a ."
    expect "$how: new files, an appended old one, the directory's mode" 0 $'{}\nold\nmore\n750'
    unchanged "after writes"
    inside sh -c "cat '$C/old/file'; ls '$C/_npx' 2>&1"
    if [ $how = kept ]; then expect "kept: the next call sees it" 0 $'old\nmore\na'; else
        expect "$how: the next call sees nothing of it" 2 $'old\n*cannot access*'
    fi
    inside bash -ec "cd '$C'; rm -r old full; test ! -e old; mkdir old; test -z \"\$(ls -A old)\"
        echo x >old/file; mv old new; cat new/file; rm -r new"
    expect "$how: directories of the real one are removed, made anew and renamed" 0 "x"
    if [ "$(tr '\0' ' ' <"$CALL/deletes")" = "efr-deletes 1 cache $C gone full gone old end " ] ||
        [ "$(tr '\0' ' ' <"$CALL/deletes")" = "efr-deletes 1 cache $C gone old gone full end " ]; then
        ok "$how: and are listed"
    else OUT=$(tr '\0' ' ' <"$CALL/deletes") bad "$how: the list of what was deleted"; fi
    unchanged "after removals"
    [ $how != kept ] || { rm -rf "$W/layers/cache/kept/upper" && kept_dirs; }
    inside bash -ec "cd '$C/old'; ln file again; ln -s file sym; echo 2 >again; cat file sym link
        mv file moved; cat moved again; chmod 600 moved; touch -d @1 deep/file; truncate -s 0 deep/file"
    expect "$how: links, hard links, renames, modes and times" 0 $'2\n2\n2\n2\n2'
    inside python3 -c "
import os
os.chdir('$C/old'); os.setxattr('deep/file', 'user.efr', b'1'); assert os.getxattr('deep/file', 'user.efr') == b'1'
os.rename('deep/file', 'up'); os.mkfifo('pipe'); open('deep/new', 'w').close()
fd = os.open('sparse', os.O_RDWR | os.O_CREAT); os.pwrite(fd, b'x', 10 << 20); assert os.fstat(fd).st_size == (10 << 20) + 1"
    expect "$how: attributes, a rename out of a directory, a fifo, a sparse file" 0 ""
    [ $how != kept ] || { rm -rf "$W/layers/cache/kept/upper" && kept_dirs; }
    inside bash -ec "cd '$C'; rm old/deep/file; rm -r full/of; mkdir full/of; touch x y; rm x; mkfifo p
        (setsid sh -c 'while :; do rm -f old/hard; echo >old/hard; done' &)"
    OUT=$(tr '\0' ' ' <"$CALL/deletes")
    expect "$how: what was deleted is listed, what was made anew is counted" 0 "efr-deletes 1 cache $C *gone old/deep/file *other 1 end "
    inside true
    if [ $how != kept ] && [ -e "$CALL/deletes" ]; then bad "$how: a list without a delete"; else ok "$how: nothing, no list"; fi
    inside python3 -c "
import sqlite3, mmap
db = sqlite3.connect('$C/x.db'); assert db.execute('pragma journal_mode=wal').fetchone()[0] == 'wal'
db.execute('create table if not exists t(a)'); db.execute('insert into t values(1)'); db.commit()"
    expect "$how: sqlite in WAL mode" 0 ""
    unchanged "after all that"

    inside sh -c "ls -A '$C/secret'; cat '$C/token'; '$C/bin/program'"
    expect "$how: masks and floors lie on top" 0 "program"
    inside sh -c "echo x >'$C/secret/new'"
    expect "$how: a masked directory cannot be written" 2 "*Read-only*"
    inside sh -c "echo x >'$C/bin/program'"
    expect "$how: a floor cannot be written" 2 "*Read-only*"
    for name in secret token bin; do
        inside "$A" rename "$C/$name" "$C/away"
        expect "$how: $name cannot be renamed away" 1 "rename: EBUSY"
    done
    inside sh -c "rm -rf '$C/secret' '$C/token' '$C/bin' 2>/dev/null; ls '$C/secret'; cat '$C/token'"
    expect "$how: nor removed" 0 ""
    inside python3 -c "
import os
for name in ('user.overlay.redirect', 'user.overlay.opaque', 'trusted.overlay.opaque'):
    try: os.setxattr('$C/old', name, b'/secret')
    except OSError as e: print(e.strerror)
print(os.listdir('$C/old') != [], os.listdir('$C/secret'))"
    expect "$how: the overlay's own attributes lead nowhere" 0 "*True []"
    inside "$A" mknod 0020600 "$C/node"
    expect "$how: no device" 1 "mknod: E*"
    inside "$A" chmod 04755 "$C/old/link"
    expect "$how: no set-user-id file" 1 "chmod: EPERM"
    inside "$A" link "$W/outside/file" "$C/hard"
    expect "$how: no hard link from outside" 1 "link: EXDEV"
    inside "$A" write "$W/outside/file"
    expect "$how: and outside nothing can be written" 1 "write: EROFS"
    inside sh -c "ls '$W/layers' /dev/layers /dev/overlay 2>&1; cat /proc/self/mountinfo | grep -c overlay"
    expect "$how: no path leads to a layer" 0 "*"
    if [[ $OUT == *cache* || $OUT == *upper* ]]; then bad "$how: a layer shows"; else ok "$how: and none shows"; fi
    inside python3 -c "
import socket
s = socket.socket(socket.AF_UNIX); s.bind('$C/socket'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('$C/socket'); c.send(b'x'); assert s.accept()[0].recv(1) == b'x'"
    expect "$how: a socket of the call itself" 0 ""
    unchanged "after attacks and a socket"
done

# A kept layer: its state after a killed call, its lock, a full disk.
how=kept layer=kept launcher=("$W/bin/efr-sbx")
hold() { # starts a call that holds the layer until its input ends; $holder is its launcher
    fields kept
    plan sh -c 'echo begun; read -r x'
    coproc HOLD { exec "$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1; }
    holder=$HOLD_PID
    read -rt 10 -u "${HOLD[0]}" OUT
    [ "$OUT" = begun ] || bad "the holder began"
}
hold
fields kept
plan echo second
"$W/bin/efr-sbx" run --call-dir "$CALL" >"$W/project/out" 2>&1 </dev/null &
second=$!
echo >&"${HOLD[1]}"
wait $second
STATUS=$? OUT=$(cat "$W/project/out")
expect "a second call waits for the first one" 0 second
wait
hold
if [ "${EFR_TEST_SIZE:-}" = long ]; then # it waits for 5 s
    inside true
    expect "and not for ever" 125 "*tool caches: another command of this conversation holds*5 s*"
fi
fields tmp
layer=tmp inside true
expect "a call that keeps nothing does not wait" 0 ""
kill -KILL "$holder"
wait "$holder" 2>/dev/null # its end is not told
layer=kept inside sh -c "echo after >'$C/after'"
expect "a killed call leaves no lock" 0 ""

chmod 755 "$W/layers"
inside true
expect "layers that others can read are refused" 125 "*is not a private directory*"
chmod 700 "$W/layers"
rm -rf "$W/layers/cache/kept/work"
inside true
expect "a layer without its directories is refused" 125 "*layer: open*"
kept_dirs
mv "$W/layers/cache/kept/upper" "$W/layers/real"
ln -s ../../real "$W/layers/cache/kept/upper"
inside true
expect "a layer behind a link is refused" 125 "*layer: open*"
rm "$W/layers/cache/kept/upper"
kept_dirs

own=(unshare --mount)
[ "$(id -u)" = 0 ] || own=(unshare --user --mount --map-current-user --keep-caps)
fields kept
plan sh -c "head -c 3000000 /dev/zero >'$C/big' && exit 9; rm '$C/big'; echo small >'$C/small'; cat '$C/small'"
OUT=$("${own[@]}" sh -c "mount -t tmpfs -o size=1m,mode=700 none '$W/layers' &&
    mkdir -p '$W/layers/cache/kept/upper' '$W/layers/cache/kept/work' && exec '$W/bin/efr-sbx' run --call-dir '$CALL'" 2>&1 </dev/null)
STATUS=$?
expect "a full disk is an error of the command" 0 "*No space left*small"
unchanged "after a full disk"

# The host's mounts inside a cache: no overlay could show them, so it stays read-only.
fields tmp
plan sh -c "ls '$C/full'; echo x >'$C/x'"
OUT=$("${own[@]}" sh -c "mount -t tmpfs none '$C/full' && echo x >'$C/full/host' &&
    exec '$W/bin/efr-sbx' run --call-dir '$CALL'" 2>&1 </dev/null)
STATUS=$?
expect "a cache with mounts of the host stays read-only" 2 "host*Read-only*"

# Directories on the launcher's own PATH are read-only in a cache.
mkdir -p "$C/tool/bin"
fields tmp
plan sh -c "echo x >'$C/tool/x'; echo x >'$C/tool/bin/x'"
OUT=$(PATH=$PATH:$C/tool/bin "$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </dev/null)
STATUS=$?
expect "a directory on PATH in a cache is read-only" 2 "*tool/bin/x*Read-only*"

# Variables of caches that would lead to a place that cannot be written.
fields tmp
EXTRA+=(move CCACHE_DIR "$C/ccache" move SCCACHE_DIR "$C/sccache" move ZIG_GLOBAL_CACHE_DIR "$C/zig")
plan sh -c 'echo "$CCACHE_DIR $SCCACHE_DIR ${ZIG_GLOBAL_CACHE_DIR-unset}"'
OUT=$(CCACHE_DIR=$W/outside/x SCCACHE_DIR=$C/mine "$W/bin/efr-sbx" run --call-dir "$CALL" 2>&1 </dev/null)
STATUS=$?
expect "a variable outside of every writable place moves, others do not" 0 "$C/ccache $C/mine unset"
finish
